// Where volunteers stand between three labels: a triangle for each true class, a dot for each volunteer.

const MOST_TRIANGLES = 6;
const DOT = 4;

// points: [{ name, colour, nobody, style, shares: time => [three shares for each class, from 0 to 1] or null, action }]
function ternaryPanels(points) {
  const drawers = [];
  const panels = data.classes.slice(0, MOST_TRIANGLES).map((name, j) => {
    const panel = trianglePanel(name, j, points);
    drawers.push(panel.move);
    return panel.node;
  });
  return { nodes: panels, move: (time) => drawers.forEach((move) => move(time)) };
}

function trianglePanel(name, j, points) {
  let present = null;
  let project = null;
  let namer = () => {};
  const dots = points.map((point) => {
    const dot = svg("circle", {
      r: DOT,
      fill: point.colour,
      stroke: point.nobody ? "var(--strong-line)" : "none",
      "fill-opacity": 0.75,
      style: point.style,
    });
    dot.addEventListener("click", point.action);
    return withTip(
      dot,
      () =>
        `${point.name}\n${data.labels.map((label, l) => `${label}: ${percent(point.shares(present)[j][l])}`).join(", ")}`,
    );
  });
  function move(time) {
    present = time;
    if (project)
      points.forEach((point, k) => {
        const shares = point.shares(time);
        dots[k].setAttribute("visibility", shares ? "visible" : "hidden");
        if (!shares) return;
        const [x, y] = project(shares[j]);
        dots[k].setAttribute("cx", x.toFixed(1));
        dots[k].setAttribute("cy", y.toFixed(1));
      });
    namer(time);
  }
  const diagram = chart(
    `What volunteers say if the true class is ${name}`,
    (width) => Math.min(width, 430) * 0.73 + 56,
    (picture, width, height) => {
      const side = Math.min(width, 430) * 0.84;
      const left = (width - side) / 2;
      const floor = 26 + side * Math.sqrt(0.75);
      const corners = [
        [left, floor],
        [left + side / 2, 26],
        [left + side, floor],
      ];
      project = (shares) => [0, 1].map((axis) => corners.reduce((sum, corner, l) => sum + shares[l] * corner[axis], 0));
      const texts = drawTriangle(picture, corners, width);
      picture.append(...dots);
      if (areFewEnoughForNames(points.length)) {
        const names = svg("g", { class: "names" });
        picture.append(names);
        namer = (time) => {
          const shown = points.filter((point) => point.shares(time));
          const at = shown.map((point) => project(point.shares(time)[j]));
          drawNames(names, shown.map(({ name: text }, k) => ({ x: at[k][0], y: at[k][1], r: DOT, name: text })), [width, height], texts);
        };
      }
      move(present);
    },
  );
  return { node: el("div", { class: "panel" }, el("h4", {}, `true class: ${name}`), diagram), move };
}

function drawNames(group, dots, [width, height], taken) {
  const parts = placeNames(dots, width, height, taken).map((name, k) => {
    if (!name) return [];
    const { x, y, r, name: whole } = dots[k];
    const [across, up] = [Math.cos(name.angle), Math.sin(name.angle)];
    const line = { x1: x + r * across, y1: y + r * up, x2: x + name.edge * across, y2: y + name.edge * up };
    const text = svg("text", { x: name.x, y: name.y + 4, "text-anchor": "middle", "data-name": whole }, name.text);
    return name.far ? [svg("line", line), text] : [text];
  });
  group.replaceChildren(...parts.flat());
}

// Returns the boxes of the labels at the corners.
function drawTriangle(picture, corners, width) {
  const between = (a, b, share) => [0, 1].map((axis) => corners[a][axis] * (1 - share) + corners[b][axis] * share);
  for (const share of [0.25, 0.5, 0.75]) {
    for (const [a, b, c] of [
      [0, 1, 2],
      [1, 2, 0],
      [2, 0, 1],
    ]) {
      picture.append(svg("path", { class: "grid-line", d: path([between(a, b, share), between(a, c, share)]) }));
    }
  }
  picture.append(svg("path", { class: "frame", d: `${path(corners)}Z` }));
  const anchors = ["start", "middle", "end"];
  return data.labels.map((label, l) => {
    const x = [corners[0][0], corners[1][0], corners[2][0]][l];
    const y = l === 1 ? 16 : corners[0][1] + 20;
    const text = shortened(label, width / 18);
    picture.append(svg("text", { class: "strong", x, y, "text-anchor": anchors[l] }, text));
    const wide = widthOfName(text) * 1.15;
    return boxAround(x + [0.5, 0, -0.5][l] * wide, y - 4, wide, 16);
  });
}
