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
        `What each item is, according to ${items.model}. Entropy says how uncertain that is: 0 bits for none, ${fixed(Math.log2(data.classes.length))} at most. The most uncertain items come first${items.gold.some(isKnown) ? ", those with gold last; they keep it" : ""}.`,
      ),
    );
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
      text: (row) => items.id[row],
    }).node,
  );
}

function itemColumns(items) {
  const columns = [{ name: "item", kind: "name", value: (row) => items.id[row], cell: (row) => items.id[row] }];
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
              value: (row) => items.calibrated[row],
              cell: (row) => fixed(items.calibrated[row], 3),
            },
          ]
        : []),
      { name: "posterior", cell: (row) => stack(items.probs[row]) },
      {
        name: "entropy",
        kind: "number",
        value: (row) => items.entropy[row],
        cell: (row) => fixed(items.entropy[row], 3),
      },
    );
  }
  if (items.gold.some(isKnown))
    columns.push({
      name: "gold",
      value: (row) => goldText(items.gold[row]),
      cell: (row) => goldText(items.gold[row]) || "–",
    });
  columns.push(
    {
      name: "responses",
      kind: "number",
      value: (row) => items.responses[row],
      cell: (row) => formatCount(items.responses[row]),
    },
    { name: "answers", cell: (row) => answersText(items.answers[row]) },
  );
  return columns;
}

// How often each label was used; of many labels, the most frequent ones.
function answersText(counts) {
  const used = range(counts.length).filter((l) => counts[l]);
  const order = used.length > MAX_ANSWERS ? used.sort((a, b) => counts[b] - counts[a]) : used;
  const counted = order.slice(0, MAX_ANSWERS).map((l) => `${data.labels[l]}: ${formatCount(counts[l])}`);
  const more = order.length > MAX_ANSWERS ? [`${order.length - MAX_ANSWERS} more`] : [];
  return [...counted, ...more].join(", ") || "–";
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
