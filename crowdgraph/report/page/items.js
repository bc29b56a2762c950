// The items: what each is believed to be, and on what that rests.

const MAX_ANSWERS = 4;

function drawItems() {
  const body = bodyOf("items");
  const items = data.items;
  if (items.missing) body.append(missing(items.missing));
  else
    body.append(
      el(
        "p",
        {},
        `What each item is, according to ${items.model}. Uncertainty is 0% if one class is certain, and 100% if all classes are equally probable. The most uncertain items come first${items.gold.some(isKnown) ? ", those with gold last; they keep it" : ""}.${items.calibrated ? " Bars and uncertainty are by the calibrated probabilities." : ""}`,
      ),
    );
  if (items.warning) body.append(note(items.warning));
  body.append(
    el(
      "div",
      { class: "legend", "aria-label": "Classes" },
      ...data.classes.map((name, j) => el("span", {}, swatch(data.colours.classes[j]), name)),
    ),
  );
  const less = truncationNote(
    items.id.length,
    items.total,
    "items",
    items.missing ? "with the most responses" : "that are most uncertain",
  );
  if (less) body.append(less);
  body.append(
    makeTable({
      name: "Items",
      noun: "items",
      count: items.id.length,
      columns: itemColumns(items),
      text: (row) => [items.id[row], ...itemFacts(items, row).map(([, value]) => value)].join(" "),
    }).node,
  );
}

function itemColumns(items) {
  const columns = [
    {
      name: "item",
      kind: "name",
      value: (row) => items.id[row],
      cell: (row) => button(items.id[row], () => openItemRow(row), { class: "link" }),
    },
  ];
  if (items.probs) {
    const best = (row) => items.probs[row][items.class[row]];
    columns.push(
      { name: "class", value: (row) => data.classes[items.class[row]], cell: (row) => classCell(items.class[row]) },
      { name: "probability", kind: "number", value: best, cell: (row) => fixed(best(row), 3) },
      ...(items.calibrated
        ? [
            {
              name: "calibrated",
              kind: "number",
              value: (row) => items.calibrated[row][items.class[row]],
              cell: (row) => fixed(items.calibrated[row][items.class[row]], 3),
            },
          ]
        : []),
      { name: "all classes", wide: true, cell: (row) => stack((items.calibrated || items.probs)[row]) },
      {
        name: "uncertainty",
        kind: "number",
        wide: true,
        value: (row) => items.uncertainty[row],
        cell: (row) => `${(100 * items.uncertainty[row]).toFixed(1)}%`,
      },
    );
  }
  if (items.gold.some(isKnown))
    columns.push({
      name: "gold",
      wide: true,
      value: (row) => goldText(items.gold[row]),
      cell: (row) => goldText(items.gold[row]) || "–",
    });
  columns.push(
    {
      name: "responses",
      kind: "number",
      wide: Boolean(items.probs),
      value: (row) => items.responses[row],
      cell: (row) => formatCount(items.responses[row]),
    },
    { name: "answers", wide: Boolean(items.probs), cell: (row) => answersText(items.answers[row]) },
  );
  return columns;
}

// One item

function openItem(id) {
  const row = data.items.id.indexOf(id);
  if (row >= 0) openItemRow(row);
}

function openItemRow(row) {
  const items = data.items;
  const dialog = document.getElementById("details");
  const parts = [
    button("Close", () => dialog.close(), { class: "close" }),
    el("h3", { id: "details-title" }, items.id[row]),
    factList([
      ...(items.probs ? [["most probable class", data.classes[items.class[row]]]] : []),
      ...(isKnown(items.gold[row]) ? [["gold", goldText(items.gold[row])]] : []),
      ["responses", formatCount(items.responses[row])],
      ["answers", answersText(items.answers[row])],
      ...itemFacts(items, row),
    ]),
  ];
  if (items.probs) parts.push(el("h4", {}, "How probable each class is"), probabilityTable(items, row));
  if (items.warning) parts.push(note(items.warning));
  dialog.replaceChildren(...parts);
  hideTip();
  dialog.showModal();
}

function probabilityTable(items, row) {
  const kinds = [...(items.calibrated ? [["calibrated", items.calibrated]] : []), [items.model, items.probs]];
  const head = ["class", ...kinds.map(([name]) => name)].map((name) => el("th", { scope: "col" }, name));
  const lines = data.classes.map((name, j) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, swatch(data.colours.classes[j]), name),
      ...kinds.map(([, probs]) => el("td", { class: "number" }, `${(100 * probs[row][j]).toFixed(1)}%`)),
    ),
  );
  return el("table", { class: "matrix" }, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...lines));
}

// What the file says of an item beside its answers, such as the name of its picture.
function itemFacts(items, row) {
  return Object.entries(items.attributes || {})
    .map(([name, values]) => [name, values[row]])
    .filter(([, value]) => isKnown(value));
}

// How often each label was used; of many labels, the most frequent ones.
function answersText(counts) {
  const used = range(counts.length).filter((l) => counts[l]);
  const order = used.length > MAX_ANSWERS ? used.sort((a, b) => counts[b] - counts[a]) : used;
  const counted = order.slice(0, MAX_ANSWERS).map((l) => `${formatCount(counts[l])} × ${data.labels[l]}`);
  const more = order.length > MAX_ANSWERS ? [`${order.length - MAX_ANSWERS} more`] : [];
  return [...counted, ...more].join(" · ") || "–";
}

const classCell = (j) => el("span", { class: "class" }, swatch(data.colours.classes[j]), data.classes[j]);

function goldText(gold) {
  if (!isKnown(gold)) return null;
  return Array.isArray(gold)
    ? gold.map((share, j) => `${data.classes[j]} ${percent(share)}`).join(", ")
    : data.classes[gold];
}

function stack(probs) {
  const description = probs.map((share, j) => `${data.classes[j]}: ${percent(share)}`).join(", ");
  const parts = probs.map((share, j) =>
    el("i", { style: { width: `${100 * share}%`, background: data.colours.classes[j] } }),
  );
  return withTip(el("div", { class: "stack", role: "img", "aria-label": description }, ...parts), () => description);
}
