// What becomes of communities: columns and ribbons for who goes where, and a line of life for each.

function drawTrack(body) {
  const track = data.track;
  body.append(el("h3", {}, "Over time"));
  if (track.missing) return body.append(missing(track.missing));
  body.append(
    note(
      `Communities followed through ${quantity(track.times.length, "snapshot")} of the network ${track.method}.${track.renumbered ? " Here they are numbered in the order in which they were first seen, not as above." : ""}`,
    ),
  );
  track.reasons.forEach((reason, snapshot) => {
    if (reason) body.append(note(`${track.times[snapshot]}: ${reason}`));
  });
  body.append(el("h4", {}, "Who goes where"), flowChart(track));
  body.append(
    note(
      "The height is the number of volunteers; those without a ribbon on the left are new. Moves that may be chance are drawn, but not listed below.",
    ),
  );
  body.append(el("h4", {}, "Lifelines"), lifelineChart(track));
  body.append(note("A line is as thick as the community is large; ends are births and deaths. In words:"));
  body.append(el("ul", { class: "events" }, ...track.events.map((event) => el("li", {}, event.words))));
  return undefined;
}

const snapshotNames = (track) => track.times.map((time, snapshot) => [time, `${formatCount(track.counts[snapshot])} resp.`]);

function flowChart(track) {
  const largest = Math.max(...track.sizes.map((sizes) => sizes.reduce((sum, size) => sum + size, 0)), 1);
  return chart("Volunteers who stay in or move between communities", 320, (picture, width, height) => {
    const [top, floor, bar] = [8, height - 40, 16];
    const tall = (floor - top) / largest;
    const column = (snapshot) =>
      track.times.length > 1 ? 24 + (snapshot * (width - 48 - bar)) / (track.times.length - 1) : width / 2;
    const starts = track.sizes.map((sizes) => stacked(sizes));
    for (const flow of track.flows)
      drawRibbons(picture, flow, { tall, floor, bar, column, starts, sizes: track.sizes });
    // In the first column all blocks are numbered, however small, on the left and one above the other.
    let free = Infinity;
    track.sizes.forEach((sizes, snapshot) =>
      sizes.forEach((size, k) => {
        if (!size) return;
        const y = floor - tall * (starts[snapshot][k] + size);
        const rect = svg("rect", {
          x: column(snapshot),
          y,
          width: bar,
          height: Math.max(tall * size - 1, 1),
          fill: communityColour(k),
          rx: 2,
        });
        picture.append(withTip(rect, () => `${communityName(k)}, ${track.times[snapshot]}: ${quantity(size, "volunteer")}`));
        if (!snapshot) {
          free = Math.min(y + (tall * size) / 2 + 4, free - 12);
          picture.append(svg("text", { x: column(0) - 5, y: free, class: "strong", "text-anchor": "end" }, k));
        } else if (tall * size > 15)
          picture.append(svg("text", { x: column(snapshot) + bar + 4, y: y + (tall * size) / 2 + 4, class: "strong" }, k));
      }),
    );
    nameColumns(picture, track, (snapshot) => column(snapshot) + bar / 2, width, height);
  });
}

// Where each part of a column begins.
function stacked(sizes) {
  let sum = 0;
  return sizes.map((size) => (sum += size) - size);
}

function drawRibbons(picture, flow, { tall, floor, bar, column, starts, sizes }) {
  // Ribbons lie at the top of their communities; newcomers and those who leave are below.
  const used = [{}, {}];
  const sums = [{}, {}];
  for (const [source, target, n] of flow.ribbons) {
    sums[0][source] = (sums[0][source] || 0) + n;
    sums[1][target] = (sums[1][target] || 0) + n;
  }
  for (const [source, target, n] of flow.ribbons) {
    const edge = (side, snapshot, k) => {
      const low = starts[snapshot][k] + sizes[snapshot][k] - sums[side][k] + (used[side][k] || 0);
      used[side][k] = (used[side][k] || 0) + n;
      return floor - tall * low;
    };
    const [left, right] = [edge(0, flow.from, source), edge(1, flow.to, target)];
    const [x1, x2] = [column(flow.from) + bar, column(flow.to)];
    const middle = (x1 + x2) / 2;
    const thick = tall * n;
    const d = `M${x1} ${left}C${middle} ${left} ${middle} ${right} ${x2} ${right}V${right - thick}C${middle} ${right - thick} ${middle} ${left - thick} ${x1} ${left - thick}Z`;
    const ribbon = svg("path", { d, fill: communityColour(source), opacity: 0.35 });
    picture.append(
      withTip(
        ribbon,
        () =>
          `${quantity(n, "volunteer")}: ${source === target ? `${n === 1 ? "stays" : "stay"} in ${communityName(source)}` : `${communityName(source)} to ${communityName(target)}`}`,
      ),
    );
  }
}

function nameColumns(picture, track, middle, width, height) {
  let free = -Infinity;
  snapshotNames(track).forEach((lines, snapshot) => {
    const half = 3.4 * Math.max(...lines.map((line) => line.length));
    const x = Math.min(Math.max(middle(snapshot), half), width - half);
    if (x - half < free) return;
    free = x + half + 8;
    lines.forEach((line, row) =>
      picture.append(svg("text", { x, y: height - 20 + 15 * row, "text-anchor": "middle" }, line)),
    );
  });
}

function lifelineChart(track) {
  const n = track.sizes.length ? track.sizes[0].length : 0;
  const largest = Math.max(...track.sizes.flat(), 1);
  return chart("When each community had members", 30 * n + 46, (picture, width, height) => {
    const column = (snapshot) =>
      track.times.length > 1 ? 40 + (snapshot * (width - 80)) / (track.times.length - 1) : width / 2;
    range(n).forEach((k) => {
      const y = 18 + 30 * k;
      const thick = (snapshot) => Math.max(2, 20 * Math.sqrt(track.sizes[snapshot][k] / largest));
      picture.append(svg("text", { x: 0, y: y + 4, class: "strong" }, k));
      range(track.times.length).forEach((snapshot) => {
        const size = track.sizes[snapshot][k];
        if (!size) return;
        if (snapshot + 1 < track.times.length && track.sizes[snapshot + 1][k]) {
          const [x1, x2, a, b] = [column(snapshot), column(snapshot + 1), thick(snapshot) / 2, thick(snapshot + 1) / 2];
          picture.append(
            svg("path", {
              d: `M${x1} ${y - a}L${x2} ${y - b}V${y + b}L${x1} ${y + a}Z`,
              fill: communityColour(k),
              opacity: 0.55,
            }),
          );
        }
        const dot = svg("circle", { cx: column(snapshot), cy: y, r: thick(snapshot) / 2 + 1, fill: communityColour(k) });
        picture.append(withTip(dot, () => `${communityName(k)}, ${track.times[snapshot]}: ${quantity(size, "volunteer")}`));
      });
    });
    nameColumns(picture, track, column, width, height);
  });
}
