// The communities: what their members do, in words and bars, and what becomes of them.

const MOST_BARS = 60;

function drawCommunities() {
  const body = bodyOf("communities");
  const found = data.communities;
  if (found.missing) body.append(missing(found.missing));
  else {
    body.append(
      el(
        "p",
        {},
        `Found by ${found.method}; modularity ${fixed(found.modularity, 3)}. Volunteers may belong to several; they are counted where they belong most.`,
      ),
    );
    if (found.others.length)
      body.append(note(`The graph also carries the communities ${found.others.join(", ")}; shown are the latest.`));
    if (!found.mean)
      body.append(missing(data.volunteers.missing));
    const shown = shownCommunities();
    if (shown.length < found.rows.length)
      body.append(note(`Shown are the ${MOST_COMMUNITIES} largest of ${whole(found.rows.length)} communities.`));
    body.append(el("div", { class: "panels" }, ...shown.map(communityCard)));
  }
  drawTrack(body);
}

function communityCard(row) {
  const k = row.community;
  const found = data.communities;
  const name = k >= 0 ? `Community ${k}` : "No community";
  const card = el(
    "article",
    { class: "group", style: { "border-top-color": k >= 0 ? communityColour(k) : "var(--line)" } },
    el("h3", {}, name),
    el("p", { class: "behaviour" }, row.behaviour || ""),
    note(communityFacts(row)),
  );
  if (k >= 0 && found.mean && known(found.mean[k][0][0])) card.append(prototype(k, row));
  if (volunteerLegend) card.append(button("Show these volunteers", () => showVolunteers(k), { "data-show": k }));
  return card;
}

function communityFacts(row) {
  const facts = [counted(row.volunteers, "volunteer") + (known(row.share) ? ` (${percent(row.share)})` : "")];
  if (known(row.responses)) facts.push(counted(row.responses, "response"));
  if (row.few_responses) facts.push(`${whole(row.few_responses)} with fewer than 10`);
  if (row.mixed) facts.push(`mixed by ${fixed(row.mixed)} (1: in all alike)`);
  if (known(row.centroid)) facts.push(`most central: ${row.centroid}`);
  return facts.join(" · ");
}

// The members' mean, and the most central volunteer on demand.
function prototype(k, row) {
  const found = data.communities;
  if (data.classes.length * data.labels.length > MOST_BARS)
    return note("There are too many classes and labels for bars; click a volunteer to see a matrix.");
  const own = el(
    "details",
    {},
    el("summary", {}, "The most central volunteer"),
    confusionBars(found.central[k], communityColour(k)),
  );
  return el(
    "div",
    {},
    el("h4", {}, "Members on average"),
    confusionBars(found.mean[k], communityColour(k)),
    known(row.centroid) ? own : null,
  );
}

function showVolunteers(k) {
  const pressed = volunteerLegend.querySelector(`[data-community="${k}"]`);
  if (pressed.getAttribute("aria-pressed") !== "true") volunteerLegend.press(k);
  volunteerLegend.scrollIntoView({ block: "start" });
  pressed.focus({ preventScroll: true });
}
