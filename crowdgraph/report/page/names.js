// Names beside the dots of a small crowd: each as near to its dot as there is room, with a line where it is not beside it.

const NAME_HEIGHT = 15;
const NAME_FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";
const MOST_NAME_LETTERS = 20;
const nameBrush = document.createElement("canvas").getContext("2d");
nameBrush.font = NAME_FONT;

const areFewEnoughForNames = (count) => count <= data.most_names;

// Long names keep their ends, which often differ where their starts do not.
const shortName = (name) =>
  name.length > MOST_NAME_LETTERS ? `${name.slice(0, MOST_NAME_LETTERS - 8)}…${name.slice(-7)}` : name;

const widthOfName = (name) => nameBrush.measureText(name).width + 4;

const overlaps = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

const boxAround = (x, y, wide, tall) => ({ left: x - wide / 2, right: x + wide / 2, top: y - tall / 2, bottom: y + tall / 2 });

// Small boxes along a line.
const alongLine = (x, y, from, to, angle) =>
  range(Math.max(Math.ceil((to - from) / 6), 0)).map((step) =>
    boxAround(x + (from + 6 * step) * Math.cos(angle), y + (from + 6 * step) * Math.sin(angle), 3, 3),
  );

// dots: [{ x, y, r, name }]; taken: boxes that are not free. Returns for each dot the middle of its name, how far that is,
// and the text; null where there is no room at all.
function placeNames(dots, width, height, taken = []) {
  const frame = { left: 1, right: width - 1, top: 1, bottom: height - 1 };
  const isInside = (box) =>
    box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom;
  const full = [...taken, ...dots.map(({ x, y, r }) => boxAround(x, y, 2 * r, 2 * r))];
  const names = [];
  const middle = ["x", "y"].map((axis) => dots.reduce((sum, dot) => sum + dot[axis], 0) / (dots.length || 1));
  return dots.map(({ x, y, r, name }) => {
    const text = shortName(name);
    const half = [widthOfName(text) / 2, NAME_HEIGHT / 2];
    const outward = Math.atan2(y - middle[1], x - middle[0]);
    for (let ring = 0; ring < 24; ring += 1)
      for (const turn of [0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6]) {
        const angle = outward + (turn * Math.PI) / 6;
        const [across, up] = [Math.cos(angle), Math.sin(angle)];
        // As far as the nearest side of the name's box is from the dot.
        const reach = Math.min(half[0] / Math.max(Math.abs(across), 1e-6), half[1] / Math.max(Math.abs(up), 1e-6));
        const away = r + 2 + 9 * ring + reach;
        const box = boxAround(x + away * across, y + away * up, 2 * half[0], 2 * half[1]);
        if (!isInside(box) || full.some((other) => overlaps(box, other))) continue;
        const line = ring > 0 ? alongLine(x, y, r, away - reach, angle) : [];
        // Where it gets crowded, lines may cross names.
        if (ring > 12 || !names.some((name) => line.some((part) => overlaps(name, part)))) {
          names.push(box);
          full.push(box, ...line);
          return { x: x + away * across, y: y + away * up, text, far: ring > 0, edge: away - reach, angle };
        }
      }
    return null;
  });
}
