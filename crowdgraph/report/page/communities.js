// The communities: what their members do, in words and bars, and what becomes of them.

const MOST_BARS = 60;

function drawCommunities() {
  const body = bodyOf("communities");
  const communities = data.communities;
  if (data.pairs) {
    drawPairs(body, data.pairs);
    // A small crowd has communities only if somebody put them on the graph.
    if (communities.missing) return;
    body.append(el("h3", {}, "Communities"));
  }
  if (communities.missing) body.append(missing(communities.missing));
  else {
    body.append(el("p", {}, "Volunteers may belong to several communities; they are counted where they belong most."));
    if (communities.others.length)
      body.append(note(`The graph also carries the communities ${communities.others.join(", ")}; shown are the latest.`));
    if (!communities.mean)
      body.append(missing(data.volunteers.missing));
    const rows = shownCommunities();
    if (rows.length < communities.rows.length)
      body.append(note(`Shown are the ${MAX_COMMUNITIES} largest of ${formatCount(communities.rows.length)} communities.`));
    body.append(el("div", { class: "panels" }, ...rows.map(communityCard)));
  }
  drawTrack(body);
}

// The pairs of a crowd that is too small for communities.
function drawPairs(body, { reason, lists, missing: advice }) {
  for (const node of document.querySelectorAll("#communities > h2, #sections a[href='#communities']"))
    node.textContent = "Pairs";
  body.append(el("p", {}, reason));
  if (advice) body.append(missing(advice));
  const panels = (lists || []).map(({ title, note: about, pairs }) =>
    panel(title, about ? note(about) : null, el("ol", { class: "story" }, ...pairs.map((words) => el("li", {}, words)))),
  );
  body.append(el("div", { class: "panels pairs" }, ...panels));
}

function communityCard(row) {
  const k = row.community;
  const communities = data.communities;
  const name = k >= 0 ? `Community ${k}${row.name ? `: ${row.name}` : ""}` : "No community";
  const card = el(
    "article",
    { class: "group", style: { "border-top-color": k >= 0 ? communityColour(k) : "var(--line)" } },
    el("h3", {}, name),
    el("p", { class: "behaviour" }, row.behaviour || ""),
    note(communityFacts(row)),
  );
  if (k >= 0 && communities.mean && isKnown(communities.mean[k][0][0])) card.append(prototype(k, row));
  if (volunteerLegend) card.append(button("Show these volunteers", () => showVolunteers(k), { "data-show": k }));
  return card;
}

function communityFacts(row) {
  const facts = [quantity(row.volunteers, "volunteer") + (isKnown(row.share) ? ` (${percent(row.share)})` : "")];
  if (isKnown(row.responses)) facts.push(quantity(row.responses, "response"));
  if (row.few_responses) facts.push(`${formatCount(row.few_responses)} with fewer than 10`);
  if (row.mixed) facts.push(`overlap ${fixed(row.mixed)} (0: one community only, 1: all equally)`);
  if (isKnown(row.centroid)) facts.push(`most central: ${row.centroid}`);
  return facts.join(" · ");
}

// The members' mean, and the most central volunteer on demand.
function prototype(k, row) {
  const communities = data.communities;
  if (data.classes.length * data.labels.length > MOST_BARS)
    return note("There are too many classes and labels for bars; click a volunteer to see a matrix.");
  const own = el(
    "details",
    {},
    el("summary", {}, "The most central volunteer"),
    confusionBars(communities.central[k], communityColour(k)),
  );
  return el(
    "div",
    {},
    el("h4", {}, "Members on average"),
    confusionBars(communities.mean[k], communityColour(k)),
    isKnown(row.centroid) ? own : null,
  );
}

function showVolunteers(k) {
  const pressed = volunteerLegend.querySelector(`[data-community="${k}"]`);
  if (pressed.getAttribute("aria-pressed") !== "true") volunteerLegend.press(k);
  volunteerLegend.scrollIntoView({ block: "start" });
  pressed.focus({ preventScroll: true });
}
