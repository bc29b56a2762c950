// Put the page together.

// The note of a card with more letters gets a wider card.
const LONG_NOTE = 70;

function drawOverview() {
  const body = bodyOf("overview");
  const overview = data.overview;
  document.getElementById("headline").textContent = overview.headline;
  body.append(
    el(
      "dl",
      { class: "cards" },
      ...overview.cards.map(({ name, value, note: about }) =>
        el(
          "div",
          { class: about.length > LONG_NOTE ? "card long" : "card" },
          el("dt", {}, name),
          el("dd", { class: "value" }, value),
          el("dd", { class: "about" }, about),
        ),
      ),
    ),
  );
  body.append(
    el("ul", { class: "story" }, ...overview.sentences.map(sentenceItem)),
    factList(overview.facts),
  );
}

// A sentence, with a link to the section that shows more.
function sentenceItem({ words, section }) {
  const link = section && el("a", { href: `#${section}` }, "Read more");
  return el("li", {}, words, ...(link ? [" ", link] : []));
}

// The link of the section that is being read.
function followReader() {
  const list = document.getElementById("sections");
  const links = [...list.querySelectorAll("a")];
  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries.filter(({ isIntersecting }) => isIntersecting)) {
        const current = links.find((link) => link.hash === `#${entry.target.id}`);
        links.forEach((link) => link.removeAttribute("aria-current"));
        current.setAttribute("aria-current", "true");
        // On a phone not all links fit beside each other.
        list.scrollLeft = current.offsetLeft - list.offsetLeft - 40;
      }
    },
    { rootMargin: "-15% 0px -75% 0px" },
  );
  document.querySelectorAll("main section").forEach((section) => observer.observe(section));
}

function offerThemes() {
  const root = document.documentElement;
  const toggle = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const applyTheme = () => {
    toggle.textContent = isDark() ? "Light" : "Dark";
    document.dispatchEvent(new Event("themechange"));
  };
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    applyTheme();
  });
  system.addEventListener("change", applyTheme);
  applyTheme();
}

drawOverview();
drawNext();
drawItems();
drawVolunteers();
drawNetworks();
drawCommunities();
drawChecks();
drawDoctor();
drawProvenance();
offerThemes();
followReader();
// What is pressed outside of an open dialog closes it.
document
  .getElementById("details")
  .addEventListener("click", (event) => event.target.id === "details" && event.target.close());
document.documentElement.dataset.ready = "true";
