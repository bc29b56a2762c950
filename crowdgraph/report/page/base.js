// What all sections use: the data, elements made without markup, numbers as text, and a hint beside the pointer.
// Everything from the data becomes a text node or an attribute, so that ids are shown and never run.

const data = JSON.parse(document.getElementById("data").textContent);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, action] of Object.entries(value)) node.addEventListener(event, action);
    else if (name === "style") for (const [key, part] of Object.entries(value)) node.style.setProperty(key, part);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function button(text, action, attributes = {}) {
  return el("button", { type: "button", on: { click: action }, ...attributes }, text);
}

function bodyOf(section) {
  return document.querySelector(`#${section} .body`);
}

const missing = (text) => el("p", { class: "missing" }, text);
const note = (text) => el("p", { class: "note" }, text);
const isKnown = (value) => value !== null && value !== undefined;
const formatCount = (value) => value.toLocaleString("en");
const quantity = (value, noun) => `${formatCount(value)} ${noun}${value === 1 ? "" : "s"}`;
// With enough digits to distinguish the ends of an axis.
const formatWithin = (value, [low, high]) =>
  value.toLocaleString("en", {
    maximumFractionDigits: Math.min(Math.max(0, 1 - Math.floor(Math.log10(high - low))), 9),
  });
const fixed = (value, digits = 2) => (isKnown(value) ? value.toFixed(digits) : "–");
const percent = (value) => (isKnown(value) ? `${(100 * value).toFixed(0)}%` : "–");
const range = (length) => Array.from({ length }, (_, index) => index);

function truncationNote(nShown, total, noun, which) {
  if (nShown >= total) return null;
  return note(
    `So that the page stays light, it holds the ${formatCount(nShown)} of ${formatCount(total)} ${noun} ${which}. ` +
      `The tables of the results (to_frame, or the CSV files of a run) have all.`,
  );
}

// The largest communities have the first numbers; of very many, the rest is in the table only.
const MAX_COMMUNITIES = 24;
const shownCommunities = () => (data.communities.rows || []).filter((row) => row.community < MAX_COMMUNITIES);
const communityColour = (k) => (k >= 0 ? data.colours.communities[k] : "transparent");
const communityName = (k, noun = "community") => (k >= 0 ? `${noun} ${k}` : `no ${noun}`);
const swatch = (colour) =>
  el("span", { class: colour === "transparent" ? "swatch nobody" : "swatch", style: { background: colour } });

// Participations arrive as community, share, community, share, ...
function shares(flat) {
  return range(flat.length / 2).map((index) => ({ k: flat[2 * index], share: flat[2 * index + 1] }));
}

const tip = document.getElementById("tip");

function showTip(event, text) {
  tip.textContent = text;
  tip.hidden = false;
  const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(left, 8)}px`;
  tip.style.top = `${event.clientY + 18 + tip.offsetHeight > window.innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18}px`;
}

function hideTip() {
  tip.hidden = true;
}

function withTip(node, text) {
  node.addEventListener("pointermove", (event) => showTip(event, text()));
  node.addEventListener("pointerleave", hideTip);
  return node;
}

// Colours of the present theme, for canvases.
const themeColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
