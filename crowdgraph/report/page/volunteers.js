// The volunteers: how they answer, how good they are and were, to which communities they belong.

const MAX_LINES = 40;
let volunteerTable = null;
let volunteerLegend = null;

function drawVolunteers() {
  const body = bodyOf("volunteers");
  const people = data.volunteers;
  if (people.missing) body.append(missing(people.missing));
  else {
    body.append(
      el(
        "p",
        {},
        `How often each volunteer is expected to be right, with an interval that holds with ${percent(people.level)} probability. ${people.right}`,
      ),
    );
    drawSkill(body);
  }
  const less = truncationNote(people.id.length, people.total, "volunteers", "who gave the most responses");
  if (less) body.append(less);
  if (people.changed && people.changed.id.length) body.append(...whoChanged(people));
  volunteerTable = makeTable({
    name: "Volunteers",
    noun: "volunteers",
    count: people.id.length,
    columns: volunteerColumns(people),
    text: (row) => people.id[row],
  });
  volunteerTable.node.id = "volunteer-table";
  body.append(el("h3", {}, "Everybody"));
  if (shownCommunities().length) {
    volunteerLegend = communityLegend("Show one community", (k) =>
      volunteerTable.setFilter(k === null ? () => true : (row) => people.community[row] === k),
    );
    body.append(volunteerLegend);
  }
  body.append(volunteerTable.node);
}

// Everybody for whose change there is evidence, the clearest first.
function whoChanged({ id, changed }) {
  const isListed = new Set(id);
  const columns = [
    {
      name: "volunteer",
      kind: "name",
      value: (row) => changed.id[row],
      cell: (row) =>
        isListed.has(changed.id[row])
          ? button(changed.id[row], () => openVolunteer(changed.id[row]), { class: "link" })
          : changed.id[row],
    },
    { name: "when", value: (row) => changed.when[row], cell: (row) => changed.when[row] },
    { name: "about items of class", wide: true, value: (row) => changed.about[row], cell: (row) => changed.about[row] },
    ...["before", "after"].map((name) => ({
      name,
      kind: "number",
      value: (row) => changed[name][row],
      cell: (row) => percent(changed[name][row]),
    })),
  ];
  return [
    el("h3", { id: "who-changed", tabindex: "-1" }, "Who changed"),
    note(
      "Those for whose change there is evidence, the clearest first, and how often they were right before and after. Others may have changed, too little to be seen.",
    ),
    makeTable({
      name: "Volunteers who changed",
      noun: "volunteers who changed",
      count: changed.id.length,
      columns,
      text: (row) => changed.id[row],
    }).node,
  ];
}

function volunteerColumns(people) {
  const columns = [
    {
      name: "volunteer",
      kind: "name",
      value: (row) => people.id[row],
      cell: (row) => button(people.id[row], () => openRow(row), { class: "link" }),
    },
  ];
  columns.push({
    name: "responses",
    kind: "number",
    wide: Boolean(people.accuracy),
    value: (row) => people.responses[row],
    cell: (row) => formatCount(people.responses[row]),
  });
  if (people.accuracy) {
    columns.push(
      {
        name: "right",
        kind: "number",
        value: (row) => people.accuracy[row],
        cell: (row) => percent(people.accuracy[row]),
      },
      {
        name: "interval",
        value: (row) => people.high[row] - people.low[row],
        cell: (row) => interval(people, row),
        about: "sorts by width",
      },
      { name: "confusion", wide: true, cell: (row) => tinyMatrix(people.confusion[row]) },
    );
  }
  if (people.community)
    columns.push({
      name: "community",
      value: (row) => (people.community[row] < 0 ? null : people.community[row]),
      cell: (row) => belonging(people, row),
    });
  if (people.behaviour)
    columns.push({
      name: "how they answer",
      kind: "words",
      wide: true,
      value: (row) => people.behaviours[people.behaviour[row]],
      cell: (row) => people.behaviours[people.behaviour[row]],
    });
  return columns;
}

function interval(people, row) {
  const [low, high, middle] = [people.low[row], people.high[row], people.accuracy[row]].map((share) => 100 * share);
  const description = `${low.toFixed(0)}% to ${high.toFixed(0)}%`;
  return withTip(
    el(
      "div",
      { class: "range", role: "img", "aria-label": description },
      el("i", { class: "rail" }),
      el("i", { class: "span", style: { left: `${low}%`, width: `${high - low}%` } }),
      el("i", { class: "dot", style: { left: `${middle}%` } }),
    ),
    () => description,
  );
}

function tinyMatrix(matrix) {
  const description = data.classes
    .map((name, j) => `${name}: ${data.labels.map((label, l) => `${label} ${percent(matrix[j][l])}`).join(", ")}`)
    .join("\n");
  if (matrix.length > 6 || matrix[0].length > 8)
    return withTip(
      el("span", { class: "note" }, `${matrix.length} × ${matrix[0].length}`),
      () => "Click the name to see the matrix.",
    );
  const rows = matrix.map((row) =>
    el("tr", {}, ...row.map((share) => el("td", { style: { background: `rgba(var(--shade), ${share.toFixed(2)})` } }))),
  );
  return withTip(el("table", { class: "tiny", role: "img", "aria-label": description }, el("tbody", {}, ...rows)), () => description);
}

function belonging(people, row) {
  const k = people.community[row];
  if (k < 0) return el("span", { class: "note" }, swatch("transparent"), "none");
  const parts = shares(people.participation[row]);
  const description = parts.map((part) => `${communityName(part.k)}: ${percent(part.share)}`).join(", ");
  const bars = parts.map((part) =>
    el("i", { style: { width: `${100 * part.share}%`, background: communityColour(part.k) } }),
  );
  return withTip(
    el(
      "div",
      { "aria-label": description, role: "img" },
      el("div", {}, swatch(communityColour(k)), String(k)),
      parts.length > 1 ? el("div", { class: "stack" }, ...bars) : null,
    ),
    () => description,
  );
}

// Skill over time

function drawSkill(body) {
  const history = data.histories;
  const people = data.volunteers;
  const moving = !history.missing;
  const ternary = data.labels.length === 3;
  const nShown = moving ? history.mean.length : Math.min(people.id.length, 2000);
  if (!ternary && !moving) return body.append(missing(history.missing));
  body.append(el("h3", {}, ternary ? "What volunteers say" : "Skill over time"));
  if (!moving) body.append(note(history.missing));
  if (nShown < people.id.length) body.append(note(`Drawn are the ${formatCount(nShown)} most active volunteers.`));
  const skill = el(
    "div",
    { id: "skill" },
    ...(ternary ? ternarySkill(people, moving ? history : null, nShown) : lineSkill(people, history)),
  );
  if (shownCommunities().length) skill.prepend(communityLegend("Light up a community", (k) => lightUp(skill, k)));
  body.append(skill);
  return undefined;
}

// A dot or line is as opaque as its community's variable says, else as the one for all.
const litStyle = (people, row) =>
  people.community ? { opacity: `var(--lit-${people.community[row]}, var(--dim, 1))` } : { opacity: "0.7" };

function lightUp(skill, k) {
  for (const row of shownCommunities()) skill.style.removeProperty(`--lit-${row.community}`);
  skill.style.setProperty("--dim", k === null ? "1" : "0.06");
  if (k !== null) skill.style.setProperty(`--lit-${k}`, "1");
}

function ternarySkill(people, history, nShown) {
  const points = range(nShown).map((row) => ({
    name: people.id[row],
    colour: people.community ? communityColour(people.community[row]) : "var(--accent)",
    nobody: people.community && people.community[row] < 0,
    style: litStyle(people, row),
    action: () => openRow(row),
    shares: history ? (time) => unpacked(history.mean[row][time]) : () => people.confusion[row],
  }));
  const panels = ternaryPanels(points);
  const parts = [
    note(
      "The nearer a dot is to a corner, the more often the volunteer gives that label; volunteers who distinguish the classes sit in a different place in each triangle.",
    ),
  ];
  if (data.classes.length > MOST_TRIANGLES)
    parts.push(note(`Drawn are the first ${MOST_TRIANGLES} of ${data.classes.length} classes.`));
  if (history) parts.push(timeline(history, panels.move));
  else panels.move(0);
  parts.push(el("div", { class: "panels", id: "ternary" }, ...panels.nodes));
  return parts;
}

// Thousandths, class after class, as rows of shares.
function unpacked(flat) {
  return (
    flat && data.classes.map((_, j) => range(data.labels.length).map((l) => flat[j * data.labels.length + l] / 1000))
  );
}

function timeline(history, move) {
  const last = history.times.length - 1;
  const slider = el("input", { type: "range", min: 0, max: last, value: last, step: 1, "aria-label": "Time" });
  const output = el("output", {});
  let playing = null;
  const play = button("Play", () => (playing ? stop() : start()));
  function show() {
    output.textContent = history.times[slider.value];
    slider.setAttribute("aria-valuetext", history.times[slider.value]);
    move(Number(slider.value));
  }
  function stop() {
    clearInterval(playing);
    playing = null;
    play.textContent = "Play";
  }
  function start() {
    if (Number(slider.value) === last) slider.value = 0;
    play.textContent = "Stop";
    playing = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      show();
      if (Number(slider.value) === last) stop();
    }, 150);
  }
  slider.addEventListener("input", () => {
    stop();
    show();
  });
  show();
  return el("div", { class: "timeline" }, play, slider, output);
}

function lineSkill(people, history) {
  const active = range(history.accuracy.length).filter((row) => pointsOf(history, row).length);
  const named = active.length > 0 && areFewEnoughForNames(active.length);
  const lines = active.slice(0, MAX_LINES).map((row) => ({
    name: people.id[row],
    colour: people.community && people.community[row] >= 0 ? communityColour(people.community[row]) : "var(--accent)",
    width: 1.5,
    points: pointsOf(history, row),
    style: litStyle(people, row),
    action: () => openRow(row),
  }));
  const scales = skillAxes(history, Math.min(...lines.flatMap((line) => line.points.map(([, share]) => share))));
  return [
    note(
      `The ${quantity(lines.length, "most active volunteer")}: the expected share of right labels${startWords(scales)}. Click a line, or a name in the table, for one with its interval.`,
    ),
    lineChart("Expected share of right labels over time", lines, {
      height: Math.max(300, NAME_HEIGHT * (named ? lines.length : 0) + 60),
      named,
      ...scales,
    }),
  ];
}

const pointsOf = (history, row) =>
  range(history.times.length)
    .filter((time) => isKnown(history.accuracy[row][time]))
    .map((time) => [history.positions[time], history.accuracy[row][time]]);

// Where all are good, the axis starts at the tenth below the lowest share.
function skillAxes(history, lowest) {
  const start = lowest >= 0.5 ? Math.min(Math.floor(10 * lowest) / 10, 0.9) : 0;
  const some = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const gaps = history.positions.map((position) => Math.abs(position - share));
    return gaps.indexOf(Math.min(...gaps));
  });
  return {
    x: [0, 1],
    y: [start, 1],
    yTicks: start ? ticks([start, 1]).map((share) => [share, percent(share)]) : shareTicks,
    xTicks: [...new Set(some)].map((time) => [history.positions[time], history.times[time]]),
  };
}

const startWords = ({ y: [start] }) => (start ? `, on an axis that starts at ${percent(start)}` : "");

// One volunteer

function openVolunteer(id) {
  const row = data.volunteers.id.indexOf(id);
  if (row >= 0) openRow(row);
}

function openRow(row) {
  const people = data.volunteers;
  const dialog = document.getElementById("details");
  const parts = [
    button("Close", () => dialog.close(), { class: "close" }),
    el("h3", { id: "details-title" }, people.id[row]),
  ];
  const facts = [["responses", formatCount(people.responses[row])]];
  if (people.accuracy)
    facts.push(
      ["right", `${percent(people.accuracy[row])} (${percent(people.low[row])} to ${percent(people.high[row])})`],
      ["answers", people.behaviours[people.behaviour[row]]],
    );
  if (people.change) facts.push(["changed?", people.change[row]]);
  if (people.community)
    facts.push([
      "communities",
      shares(people.participation[row])
        .map((part) => `${part.k}: ${percent(part.share)}`)
        .join(", ") || "none",
    ]);
  parts.push(factList(facts));
  if (people.confusion) parts.push(el("h4", {}, "After the last response"), matrixTable(people.confusion[row]));
  const history = data.histories;
  if (!history.missing && row < history.accuracy.length && pointsOf(history, row).length)
    parts.push(el("h4", {}, "Right over time"), historyChart(history, row));
  dialog.replaceChildren(...parts);
  hideTip();
  dialog.showModal();
}

function historyChart(history, row) {
  const times = range(history.times.length).filter((time) => isKnown(history.accuracy[row][time]));
  const band = times.map((time) => [history.positions[time], history.low[row][time], history.high[row][time]]);
  const line = { name: data.volunteers.id[row], colour: "var(--accent)", points: pointsOf(history, row), band };
  const scales = skillAxes(history, Math.min(...band.map(([, low]) => low)));
  const change = history.change && history.change[row];
  const lines = change ? [changeLine(change, scales), line] : [line];
  const marked = change ? " The grey line and band are when the volunteer changed." : "";
  return el(
    "div",
    {},
    lineChart("Expected share of right labels over time, with its interval", lines, { height: 200, ...scales }),
    note(`The expected share of right labels and its interval${startWords(scales)}.${marked}`),
  );
}

// When a volunteer changed: an upright line, and a band as wide as its interval.
function changeLine([time, low, high], { y: [bottom, top] }) {
  return {
    name: "the change",
    colour: "var(--grey)",
    width: 1,
    points: [bottom, top].map((share) => [time, share]),
    band: [low, high].map((position) => [position, bottom, top]),
  };
}

function factList(facts) {
  return el("dl", { class: "facts" }, ...facts.flatMap(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]));
}
