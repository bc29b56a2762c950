// A table that can be searched, sorted and leafed through; rows are numbers, columns say what a row holds.

const PAGE_SIZE = 25;

// columns: [{ name, value: row => what to sort by, cell: row => what to show, kind: "number" | "name" | "words", wide }];
// those that are wide are left out on a phone, where a note says how to see more.
function makeTable({ name, noun, count, columns, text, pageSize = PAGE_SIZE }) {
  const state = { search: "", filter: () => true, sorted: null, page: 0 };
  const head = el("tr", {}, ...columns.map(headCell));
  const rows = el("tbody");
  const status = el("span", { class: "count", role: "status" });
  const back = button("Previous", () => turn(-1));
  const forth = button("Next", () => turn(1));
  const search = el("input", { type: "search", placeholder: `find ${noun}`, autocomplete: "off", spellcheck: "false" });
  search.addEventListener("input", () => change({ search: search.value.trim().toLowerCase() }));
  const tools = el("div", { class: "tools" }, el("label", {}, `Search ${noun} `, search));
  const scroll = el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
    el("table", { class: "grid" }, el("thead", {}, head), rows),
  );
  const pager = el("div", { class: "pager" }, status, ...(count > pageSize ? [back, forth] : []));
  const more = el("p", { class: "note narrow-only" }, "Tap a name for more; a wider window has more columns.");
  const hides = columns.some((column) => column.wide);
  const node = el("div", { class: "table" }, count > 1 ? tools : null, scroll, pager, hides ? more : null);

  function headCell(column) {
    const plain = column.value === undefined;
    const label = plain ? column.name : button(column.name, () => sortBy(column), { class: "sort" });
    const kind = column.kind === "number" ? "number" : "";
    return el("th", { scope: "col", class: classes(kind, column), title: column.about }, label);
  }

  function classes(kind, column) {
    return [kind, column.wide ? "wide-only" : ""].filter(Boolean).join(" ") || null;
  }

  // Numbers fall first and text rises first: that is what a reader looks for.
  function sortBy(column) {
    const rising =
      state.sorted && state.sorted.column === column.name ? !state.sorted.rising : column.kind !== "number";
    change({ sorted: { column: column.name, rising } });
  }

  function change(part) {
    Object.assign(state, part, { page: 0 });
    draw();
  }

  function turn(step) {
    state.page += step;
    draw();
  }

  function matchingRows() {
    const matches = range(count).filter((row) => state.filter(row) && text(row).toLowerCase().includes(state.search));
    const column = state.sorted && columns.find(({ name }) => name === state.sorted.column);
    return column ? matches.sort((a, b) => compared(column.value(a), column.value(b), state.sorted.rising)) : matches;
  }

  function draw() {
    const matches = matchingRows();
    const first = state.page * pageSize;
    const last = Math.min(first + pageSize, matches.length);
    rows.replaceChildren(
      ...matches
        .slice(first, last)
        .map((row) => el("tr", {}, ...columns.map((column) => el("td", { class: classes(column.kind, column) }, column.cell(row))))),
    );
    if (!matches.length)
      rows.append(el("tr", {}, el("td", { class: "none", colspan: columns.length }, `no ${noun} found`)));
    status.textContent = matches.length ? `${formatCount(first + 1)}–${formatCount(last)} of ${formatCount(matches.length)}` : "none";
    back.disabled = state.page === 0;
    forth.disabled = last >= matches.length;
    columns.forEach((column, index) => {
      const sorted = state.sorted && state.sorted.column === column.name;
      if (sorted) head.children[index].setAttribute("aria-sort", state.sorted.rising ? "ascending" : "descending");
      else head.children[index].removeAttribute("aria-sort");
    });
  }

  draw();
  return { node, setFilter: (filter) => change({ filter }) };
}

// What is not known comes last, whichever way the table is sorted.
function compared(a, b, rising) {
  if (!isKnown(a) || !isKnown(b)) return isKnown(b) - isKnown(a);
  const order = typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  return rising ? order : -order;
}
