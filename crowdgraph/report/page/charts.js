// Small pictures in SVG, drawn anew when their width changes so that letters keep their size.

const MARGIN = { left: 46, right: 14, top: 12, bottom: 34 };

function chart(label, height, draw) {
  const node = el("div", { class: "chart" });
  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.floor(node.clientWidth);
    if (width < 40 || width === drawn) return;
    drawn = width;
    const tall = typeof height === "function" ? height(width) : height;
    const picture = svg("svg", {
      width,
      height: tall,
      viewBox: `0 0 ${width} ${tall}`,
      role: "img",
      "aria-label": label,
    });
    draw(picture, width, tall);
    node.replaceChildren(picture);
  }).observe(node);
  return node;
}

const scaled = (from, to) => (value) =>
  to[0] + (to[1] - to[0]) * (from[1] === from[0] ? 0.5 : (value - from[0]) / (from[1] - from[0]));

const path = (points) => points.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// About n round numbers between two others.
function ticks([low, high], n = 4) {
  const rough = (high - low || 1) / n;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const first = Math.ceil(low / step - 1e-9);
  return range(Math.max(Math.floor(high / step + 1e-9) - first + 1, 0)).map((index) => (first + index) * step);
}

// Axes with grid lines; returns the two scales. xTicks and yTicks are pairs of a value and its text.
function axes(picture, width, height, { x, y, xTicks, yTicks, xName, yName, right = MARGIN.right }) {
  const left = Math.max(MARGIN.left, 10 + 7 * Math.max(0, ...yTicks.map(([, text]) => text.length)));
  const across = scaled(x, [left, width - right]);
  const up = scaled(y, [height - MARGIN.bottom, MARGIN.top]);
  for (const [value, text] of yTicks) {
    picture.append(
      svg("line", { class: "grid-line", x1: left, x2: width - right, y1: up(value), y2: up(value) }),
    );
    picture.append(svg("text", { x: left - 6, y: up(value) + 4, "text-anchor": "end" }, text));
  }
  let free = -Infinity;
  for (const [value, text] of xTicks) {
    const half = 3.4 * text.length;
    const middle = Math.min(Math.max(across(value), half), width - half);
    if (middle - half < free) continue;
    free = middle + half + 10;
    picture.append(svg("text", { x: middle, y: height - MARGIN.bottom + 19, "text-anchor": "middle" }, text));
  }
  if (xName) picture.append(svg("text", { x: width - right, y: height - 3, "text-anchor": "end" }, xName));
  if (yName) picture.append(svg("text", { x: left, y: MARGIN.top - 3 }, yName));
  return { across, up };
}

const shareTicks = [0, 0.25, 0.5, 0.75, 1].map((value) => [value, percent(value)]);

// lines: [{ name, colour, points: [[x, y]], band: [[x, low, high]], width, style, action }]; named lines end in their names.
function lineChart(label, lines, { height = 230, named = false, ...options }) {
  return chart(label, height, (picture, width, tall) => {
    const names = named ? lines.map((line) => shortName(line.name)) : [];
    const right = named ? Math.min(12 + Math.max(...names.map(widthOfName)), 0.45 * width) : MARGIN.right;
    const { across, up } = axes(picture, width, tall, { ...options, right });
    if (named) nameLines(picture, lines, names, { across, up, left: width - right, tall });
    for (const line of lines) {
      if (line.band) {
        const there = line.band.map(([x, low]) => [across(x), up(low)]);
        const back = line.band.map(([x, , high]) => [across(x), up(high)]).reverse();
        picture.append(svg("path", { d: `${path([...there, ...back])}Z`, fill: line.colour, opacity: 0.18 }));
      }
      const points = line.points.map(([x, y]) => [across(x), up(y)]);
      const drawn =
        points.length === 1
          ? svg("circle", { cx: points[0][0], cy: points[0][1], r: 4, fill: line.colour })
          : svg("path", {
              d: path(points),
              fill: "none",
              stroke: line.colour,
              "stroke-width": line.width || 2,
              "stroke-linejoin": "round",
              style: line.style || {},
            });
      picture.append(withTip(drawn, () => line.name));
      if (line.action) drawn.addEventListener("click", line.action);
    }
  });
}

// Names in one column, in the order of the ends of their lines, and as near to these as there is room.
function nameLines(picture, lines, names, { across, up, left, tall }) {
  const ends = lines.map(({ points }) => points[points.length - 1].map((value, axis) => [across, up][axis](value)));
  const order = range(lines.length).sort((a, b) => ends[a][1] - ends[b][1]);
  const least = (number) => MARGIN.top + NAME_HEIGHT * number;
  const most = (number) => tall - MARGIN.bottom - NAME_HEIGHT * (lines.length - 1 - number);
  let free = -Infinity;
  order.forEach((line, number) => {
    const y = Math.min(Math.max(ends[line][1], free, least(number)), most(number));
    free = y + NAME_HEIGHT;
    const lead = { x1: ends[line][0], y1: ends[line][1], x2: left + 8, y2: y };
    picture.append(
      svg("line", { class: "grid-line", ...lead }),
      svg("text", { x: left + 10, y: y + 4, "data-name": lines[line].name }, names[line]),
    );
  });
}

// How a class is answered: a bar for each label, for each true class.
function confusionBars(matrix, colour) {
  const rowHeight = 16;
  const gap = 22;
  const height = data.classes.length * (gap + rowHeight * data.labels.length);
  const description = data.classes.map(
    (name, j) => `${name}: ${data.labels.map((label, l) => `${label} ${percent(matrix[j][l])}`).join(", ")}`,
  );
  return chart(description.join("; "), height, (picture, width) => {
    const longest = Math.max(...data.labels.map((label) => label.length));
    const left = Math.min(8 + 7 * longest, 0.35 * width);
    data.classes.forEach((name, j) => {
      const top = j * (gap + rowHeight * data.labels.length);
      picture.append(svg("text", { x: 0, y: top + 13 }, shortened(`if ${name}`, width / 7)));
      data.labels.forEach((label, l) => {
        const y = top + gap + l * rowHeight - 3;
        const wide = (width - left - 44) * matrix[j][l];
        picture.append(svg("text", { x: left - 6, y: y + 10, "text-anchor": "end" }, shortened(label, left / 7)));
        picture.append(svg("rect", { x: left, y, width: Math.max(wide, 1), height: 11, rx: 2, fill: colour }));
        picture.append(svg("text", { x: left + wide + 5, y: y + 10 }, percent(matrix[j][l])));
      });
    });
  });
}

const shortened = (text, most) => (text.length > most ? `${text.slice(0, Math.max(Math.floor(most) - 1, 1))}…` : text);

function matrixTable(matrix) {
  const head = el(
    "tr",
    {},
    el("th", {}, "true class"),
    ...data.labels.map((label) => el("th", { scope: "col" }, `says ${label}`)),
  );
  const rows = data.classes.map((name, j) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      ...matrix[j].map((share) =>
        el(
          "td",
          { class: share > 0.6 ? "dense" : null, style: { background: `rgba(var(--shade), ${share.toFixed(2)})` } },
          percent(share),
        ),
      ),
    ),
  );
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Confusion matrix", style: { border: "0" } },
    el("table", { class: "matrix" }, el("thead", {}, head), el("tbody", {}, ...rows)),
  );
}
