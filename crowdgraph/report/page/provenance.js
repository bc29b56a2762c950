// What the data doctor found, and how the page was made.

function drawDoctor() {
  const body = bodyOf("doctor");
  const doctor = data.doctor;
  body.append(el("p", {}, `Checked: ${doctor.examined.join(", ") || "nothing"}.`));
  if (!doctor.findings.length) body.append(note("Nothing found: the data look as they should."));
  body.append(...doctor.findings.map(findingBox));
}

function findingBox(finding) {
  const level = { warning: "warning", note: "note-level", info: "info" }[finding.severity];
  const box = el(
    "article",
    { class: `finding ${level}` },
    el("h3", {}, finding.name, el("span", { class: "badge" }, finding.severity)),
    el("p", {}, finding.what),
  );
  if (finding.why) box.append(el("p", {}, el("strong", {}, "Why it matters: "), finding.why));
  if (finding.advice) box.append(el("p", {}, el("strong", {}, "What to do: "), finding.advice));
  if (finding.ids.length) {
    const more = finding.n_ids > finding.ids.length ? ` and ${formatCount(finding.n_ids - finding.ids.length)} more` : "";
    box.append(
      el(
        "details",
        {},
        el("summary", {}, quantity(finding.n_ids, finding.subject).replace("classs", "classes")),
        el("p", {}, `${finding.ids.join(", ")}${more}`),
      ),
    );
  }
  return box;
}

function drawProvenance() {
  const body = bodyOf("provenance");
  const provenance = data.provenance;
  if (provenance.commands.length)
    body.append(el("h3", {}, "To repeat it"), el("pre", { tabindex: "0" }, el("code", {}, provenance.commands.join("\n"))));
  if (provenance.run) body.append(el("h3", {}, "The run"), nested(provenance.run));
  else
    body.append(
      missing(
        'No record of the run was given: report.write(graph, path, run={"seed": 0, "commands": [...]}) puts it here. The settings of the results below say how to make them again.',
      ),
    );
  body.append(el("h3", {}, "Results on the graph"));
  if (!provenance.results.length) body.append(note("None: the graph holds the responses only."));
  body.append(...provenance.results.map(resultBox));
  body.append(el("h3", {}, "Versions"), factList(provenance.versions));
}

function resultBox(result) {
  const box = el("details", {}, el("summary", {}, `${result.name} (${result.kind})`), note(result.repr));
  if (result.code) box.append(el("pre", { tabindex: "0" }, el("code", {}, result.code)));
  if (result.params.length) box.append(nested(result.params));
  return box;
}

// Names and texts, or names and more of the same.
function nested(pairs) {
  return factList(pairs.map(([name, value]) => [name, Array.isArray(value) ? nested(value) : value]));
}
