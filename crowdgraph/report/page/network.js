// A network of volunteers on a canvas: drag or arrow keys move it, wheel, buttons or + and - zoom, a click shows more.

const NETWORK_HEIGHT = 480;

class NetworkPicture {
  constructor(network) {
    this.network = network;
    this.belongs = network.participation.map(shares);
    this.plain = !isKnown(network.noun);
    this.view = { x: 0, y: 0, zoom: 1, lit: null };
    const size = Math.min(Math.max(150 / Math.sqrt(network.id.length + 1), 3.2), 13);
    this.radius = network.size.map((part) => size * (0.55 + 0.75 * part));
    this.extent = [network.x, network.y].map((positions) => Math.max(...positions.map(Math.abs), 0.05));
    this.width = 0;
    this.waiting = false;
    const keys = "Arrow keys move, plus and minus zoom, 0 resets.";
    const label = `${network.title}. ${network.note} ${keys}`;
    this.canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": label });
    this.brush = this.canvas.getContext("2d");
    this.node = el("div", { class: "canvas" }, this.canvas, this.tools());
    this.listen();
  }

  tools() {
    return el(
      "div",
      { class: "tools" },
      button("+", () => this.zoom(1.4), { "aria-label": "Zoom in" }),
      button("\u2212", () => this.zoom(1 / 1.4), { "aria-label": "Zoom out" }),
      button("\u27f2", () => this.reset(), { "aria-label": "Show all" }),
    );
  }

  listen() {
    const { canvas } = this;
    listenToPointer(canvas, {
      moved: (x, y) => this.move(x, y),
      hovered: (event) => this.hover(event),
      clicked: (event) => this.open(event),
    });
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.press(event));
    document.addEventListener("themechange", () => this.redraw());
    new ResizeObserver(() => {
      this.width = canvas.clientWidth;
      this.redraw();
    }).observe(canvas);
  }

  // What the reader does

  move(x, y) {
    this.view.x += x;
    this.view.y += y;
    this.redraw();
  }

  zoom(factor, x = this.width / 2, y = NETWORK_HEIGHT / 2) {
    const { view } = this;
    const next = Math.min(Math.max(view.zoom * factor, 0.5), 30);
    const ratio = next / view.zoom;
    view.x = x - this.width / 2 - ratio * (x - this.width / 2 - view.x);
    view.y = y - NETWORK_HEIGHT / 2 - ratio * (y - NETWORK_HEIGHT / 2 - view.y);
    view.zoom = next;
    this.redraw();
  }

  reset() {
    Object.assign(this.view, { x: 0, y: 0, zoom: 1 });
    this.redraw();
  }

  light(k) {
    this.view.lit = k;
    this.redraw();
  }

  hover(event) {
    const nearest = this.nearest(event);
    if (nearest === null) hideTip();
    else showTip(event, this.describe(nearest));
  }

  open(event) {
    const nearest = this.nearest(event);
    if (nearest !== null) openVolunteer(this.network.id[nearest]);
  }

  // The page scrolls past the picture unless the reader is at work in it.
  wheel(event) {
    if (!event.ctrlKey && document.activeElement !== this.canvas) return;
    event.preventDefault();
    const box = this.canvas.getBoundingClientRect();
    this.zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
  }

  press(event) {
    const action = {
      ArrowLeft: () => this.move(40, 0),
      ArrowRight: () => this.move(-40, 0),
      ArrowUp: () => this.move(0, 40),
      ArrowDown: () => this.move(0, -40),
      "+": () => this.zoom(1.3),
      "=": () => this.zoom(1.3),
      "-": () => this.zoom(1 / 1.3),
      0: () => this.reset(),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // Positions

  position(k) {
    const { network, view, width } = this;
    const [wide, tall] = this.extent;
    const scale = view.zoom * Math.min((width / 2 - 24) / wide, (NETWORK_HEIGHT / 2 - 24) / tall);
    return [width / 2 + view.x + scale * network.x[k], NETWORK_HEIGHT / 2 + view.y - scale * network.y[k]];
  }

  nearest(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let [nearest, closest] = [null, 14];
    range(this.network.id.length).forEach((k) => {
      const [left, top] = this.position(k);
      const away = Math.hypot(left - x, top - y);
      if (away < closest) [nearest, closest] = [k, away];
    });
    return nearest;
  }

  describe(k) {
    const members = this.belongs[k].map((part) => `${communityName(part.k, this.network.noun)} ${percent(part.share)}`).join(", ");
    return members ? `${this.network.id[k]}\n${members}` : this.network.id[k];
  }

  isLit(k) {
    return this.view.lit === null || this.network.community[k] === this.view.lit;
  }

  // Drawing, once a frame at most

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    const dense = window.devicePixelRatio || 1;
    this.canvas.width = this.width * dense;
    this.canvas.height = NETWORK_HEIGHT * dense;
    this.canvas.style.height = `${NETWORK_HEIGHT}px`;
    this.brush.setTransform(dense, 0, 0, dense, 0, 0);
    const [grey, page, accent, text] = ["--grey", "--page", "--accent", "--text"].map(themeColour);
    const colour = { grey, page, accent, text };
    const positions = range(this.network.id.length).map((k) => this.position(k));
    this.drawLinks(positions, colour.grey);
    positions.forEach((at, k) => this.drawDot(k, at, colour));
    if (areFewEnoughForNames(positions.length)) this.drawNames(positions, colour);
  }

  dotRadius(k) {
    // Smaller on a phone.
    return this.radius[k] * Math.min(Math.sqrt(this.view.zoom), 2.5) * Math.min(Math.max(this.width / 800, 0.45), 1);
  }

  // Beside the dots, and not under the buttons in the corner.
  drawNames(positions, colour) {
    const { brush } = this;
    const dots = positions.map(([x, y], k) => ({ x, y, r: this.dotRadius(k), name: this.network.id[k] }));
    const buttons = { left: this.width - 140, right: this.width, top: 0, bottom: 50 };
    Object.assign(brush, { font: NAME_FONT, textAlign: "center", textBaseline: "middle", lineJoin: "round" });
    placeNames(dots, this.width, NETWORK_HEIGHT, [buttons]).forEach((name, k) => {
      if (!name) return;
      brush.globalAlpha = this.isLit(k) ? 1 : 0.15;
      if (name.far) {
        const { x, y, r } = dots[k];
        Object.assign(brush, { strokeStyle: colour.text, lineWidth: 0.6 });
        brush.beginPath();
        brush.moveTo(x + r * Math.cos(name.angle), y + r * Math.sin(name.angle));
        brush.lineTo(x + name.edge * Math.cos(name.angle), y + name.edge * Math.sin(name.angle));
        brush.stroke();
      }
      Object.assign(brush, { strokeStyle: colour.page, lineWidth: 3, fillStyle: colour.text });
      brush.strokeText(name.text, name.x, name.y);
      brush.fillText(name.text, name.x, name.y);
    });
    brush.globalAlpha = 1;
  }

  drawLinks(positions, grey) {
    const { brush, network } = this;
    const n = network.weights.length;
    const faint = Math.min(Math.max(14 / Math.sqrt(n + 1), 0.12), 0.5);
    for (let link = n - 1; link >= 0; link -= 1) {
      const [a, b] = [network.links[2 * link], network.links[2 * link + 1]];
      const inside = network.community[a] === network.community[b] && network.community[a] >= 0;
      brush.globalAlpha = this.isLit(a) && this.isLit(b) ? faint : faint / 6;
      brush.strokeStyle = inside ? communityColour(network.community[a]) : grey;
      brush.lineWidth = 0.4 + network.weights[link];
      brush.beginPath();
      brush.moveTo(...positions[a]);
      brush.lineTo(...positions[b]);
      brush.stroke();
    }
    brush.globalAlpha = 1;
  }

  // Somebody of several communities is a pie, somebody of none a ring; without communities all are plain dots.
  drawDot(k, [x, y], colour) {
    const { brush, plain } = this;
    const parts = this.belongs[k];
    const r = this.dotRadius(k);
    brush.globalAlpha = this.isLit(k) ? 1 : 0.15;
    this.drawPieces(parts, x, y, r);
    brush.beginPath();
    brush.arc(x, y, r, 0, 2 * Math.PI);
    if (!parts.length) {
      brush.fillStyle = plain ? colour.accent : colour.page;
      brush.fill();
    }
    brush.strokeStyle = parts.length || plain ? colour.page : colour.grey;
    brush.lineWidth = parts.length || plain ? 0.8 : 1.4;
    brush.stroke();
    brush.globalAlpha = 1;
  }

  drawPieces(parts, x, y, r) {
    const { brush } = this;
    const total = parts.reduce((sum, { share }) => sum + share, 0);
    let angle = -Math.PI / 2;
    for (const { k, share } of parts) {
      const next = angle + (2 * Math.PI * share) / total;
      brush.fillStyle = communityColour(k);
      brush.beginPath();
      if (parts.length > 1) brush.moveTo(x, y);
      brush.arc(x, y, r, angle, next);
      brush.fill();
      angle = next;
    }
  }
}

// A drag moves, a press without a drag is a click.
function listenToPointer(canvas, { moved, hovered, clicked }) {
  let last = null;
  let far = 0;
  canvas.addEventListener("pointerdown", (event) => {
    last = [event.clientX, event.clientY];
    far = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!last) return hovered(event);
    const step = [event.clientX - last[0], event.clientY - last[1]];
    far += Math.hypot(...step);
    last = [event.clientX, event.clientY];
    if (far > 4) {
      hideTip();
      canvas.setPointerCapture(event.pointerId);
      moved(...step);
    }
    return undefined;
  });
  canvas.addEventListener("pointerup", (event) => {
    if (far <= 4) clicked(event);
    last = null;
  });
  for (const name of ["pointercancel", "pointerleave"])
    canvas.addEventListener(name, () => {
      hideTip();
      if (far <= 4) last = null;
    });
}

function drawNetworks() {
  const body = bodyOf("networks");
  if (data.networks.missing) return body.append(missing(data.networks.missing));
  const coloured = data.networks.pictures.some((network) => isKnown(network.noun));
  body.append(
    el(
      "p",
      {},
      coloured
        ? "A dot is a volunteer, larger if more is known; its colours are the communities that the volunteer belongs to, as the legend of the network names them. Lines are the strongest links, in the colour of a community if they lie inside it."
        : "A dot is a volunteer, larger if more is known; lines are the strongest links.",
    ),
  );
  for (const network of data.networks.pictures) {
    const picture = new NetworkPicture(network);
    body.append(
      el("h3", {}, network.title),
      note(`${network.note} Drag to move; to zoom, use + and −, pinch on a trackpad, or click the picture and use the wheel; click a dot for more.`),
    );
    if (network.noun) body.append(networkLegend(network, picture));
    body.append(picture.node);
  }
  return undefined;
}

// The communities that the network is coloured by, nobody's last.
function networkLegend(network, picture) {
  const all = [...new Set(network.community)].filter((k) => k < MAX_COMMUNITIES).sort((a, b) => a - b);
  const numbers = [...all.filter((k) => k >= 0), ...all.filter((k) => k < 0)];
  const label = `Light up a ${network.noun} of ${network.title}`;
  return communityLegend(label, (k) => picture.light(k), { numbers, noun: network.noun });
}

const shownNumbers = () => shownCommunities().map((row) => row.community);

// Buttons for the communities of which one can be pressed; the action gets its number, or null for all.
function communityLegend(label, action, { numbers = shownNumbers(), noun = "community" } = {}) {
  const legend = el("div", { class: "legend", role: "group", "aria-label": label });
  const buttons = numbers.map((k) => button("", () => press(k), { "aria-pressed": "false", "data-community": k }));
  buttons.forEach((node, index) => node.append(swatch(communityColour(numbers[index])), communityName(numbers[index], noun)));
  function press(k) {
    const index = numbers.indexOf(k);
    const on = k !== null && buttons[index].getAttribute("aria-pressed") !== "true";
    buttons.forEach((node, other) => node.setAttribute("aria-pressed", String(on && other === index)));
    action(on ? k : null);
  }
  legend.append(...buttons);
  legend.press = press;
  return legend;
}
