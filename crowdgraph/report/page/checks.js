// Can the model be believed? Whether it converged, what gold says, whether volunteers answer independently, and communities or chance.

function drawChecks() {
  const body = bodyOf("checks");
  const checks = data.checks;
  if (checks.missing) return body.append(missing(checks.missing));
  body.append(
    el(
      "div",
      { class: "panels" },
      ...checks.fits.map(fitPanel),
      calibrationPanel(checks.calibration),
      predictivePanel(checks.predictive),
      evidencePanel(checks.evidence),
    ),
  );
  return undefined;
}

const panel = (title, ...children) => el("div", { class: "panel" }, el("h3", {}, title), ...children);

function fitPanel(fit) {
  const outcome = fit.converged ? "It converged" : "It did not converge: raise max_iter, or doubt it";
  const parts = [el("p", {}, `${outcome}, after ${quantity(fit.iterations, "iteration")}.`)];
  const ends = [Math.min(...fit.bound), Math.max(...fit.bound)];
  if (fit.bound.length && ends[0] === ends[1])
    parts.push(note(`The bound is ${formatCount(ends[0])} from the start.`));
  else if (fit.bound.length) parts.push(boundChart(fit, ends));
  if (fit.facts.length) parts.push(factList(fit.facts));
  return panel(`The fit of ${fit.name}`, ...parts);
}

function boundChart(fit, ends) {
  const steps = [fit.steps[0], fit.steps[fit.steps.length - 1]];
  const line = {
    name: `bound of ${fit.name}`,
    colour: "var(--accent)",
    points: fit.steps.map((step, index) => [step, fit.bound[index]]),
  };
  return lineChart(`Bound of ${fit.name} after each iteration`, [line], {
    x: steps,
    y: ends,
    yTicks: ends.map((value) => [value, formatWithin(value, ends)]),
    xTicks: [...new Set(steps)].map((step) => [step, String(step)]),
    xName: "iterations",
    height: 200,
  });
}

const withInterval = (value, [low, high]) => `${fixed(value, 3)} (90% interval ${fixed(low, 3)} to ${fixed(high, 3)})`;

function calibrationPanel(calibration) {
  const title = "Against gold";
  if (!calibration) return panel(title, missing("There is no fit to check."));
  if (calibration.missing) return panel(title, missing(calibration.missing));
  const kind =
    "The model was given the gold and repeats it, so this is what the answers alone say of those items. The volunteers’ skill was still learned with gold, so it is somewhat kind; crowdgraph evaluate, in Python cg.evaluation.cross_validate, is stricter.";
  const hidden =
    "The model repeats gold that it is given, so it was fitted three more times, each with a third of the gold hidden, and is judged by what it said of the hidden items.";
  const fair = "The model did not follow this gold, so it is a fair test.";
  const how = calibration.hidden ? hidden : calibration.without_gold ? kind : fair;
  const points = range(calibration.stated.length).filter((bin) => calibration.items[bin]);
  const most = Math.max(...calibration.items);
  const diagram = chart(
    "How often the most probable class is right, by its probability",
    260,
    (picture, width, height) => {
      const { across, up } = axes(picture, width, height, {
        x: [0, 1],
        y: [0, 1],
        xTicks: shareTicks,
        yTicks: shareTicks,
        xName: "stated probability",
        yName: "share that is right",
      });
      picture.append(
        svg("path", {
          class: "expected",
          d: path([
            [across(0), up(0)],
            [across(1), up(1)],
          ]),
        }),
      );
      for (const bin of points) {
        const dot = svg("circle", {
          cx: across(calibration.stated[bin]),
          cy: up(calibration.observed[bin]),
          r: 3 + 9 * Math.sqrt(calibration.items[bin] / most),
          fill: "var(--accent)",
          "fill-opacity": 0.7,
        });
        picture.append(
          withTip(
            dot,
            () =>
              `stated ${percent(calibration.stated[bin])}, right ${percent(calibration.observed[bin])}: ${quantity(calibration.items[bin], "item")}`,
          ),
        );
      }
    },
  );
  return panel(
    title,
    el(
      "p",
      {},
      `The most probable class is right for ${(100 * calibration.accuracy).toFixed(1)}% of ${quantity(
        calibration.items.reduce((sum, n) => sum + n, 0),
        "gold item",
      )}. ${calibration.verdict}`,
    ),
    factList([
      ["log loss", withInterval(calibration.log_loss, calibration.log_loss_interval)],
      ["calibration error", withInterval(calibration.error, calibration.error_interval)],
    ]),
    diagram,
    note(
      `The calibration error is the mean difference between stated and observed shares; intervals are bootstraps over items. Larger dots are more items; on the dashed line the model is as sure as it should be. ${how}`,
    ),
  );
}

function predictivePanel(check) {
  const title = "Do volunteers answer independently?";
  if (!check || check.missing) return panel(title, missing(check?.missing || "There is no fit to check."));
  const diagram = chart("Observed and expected share of each label", 44 * check.labels.length + 24, (picture, width) => {
    const left = Math.min(10 + 7 * Math.max(...check.labels.map((label) => label.length)), width * 0.35);
    const wide = (share) => ((width - left - 112) * share) / Math.max(...check.observed, ...check.expected, 1e-9);
    check.labels.forEach((label, l) => {
      const y = 44 * l + 6;
      picture.append(svg("text", { x: left - 8, y: y + 20, "text-anchor": "end" }, shortened(label, left / 7)));
      [
        ["observed", "var(--accent)", check.observed[l]],
        ["expected", "var(--strong-line)", check.expected[l]],
      ].forEach(([name, colour, share], row) => {
        picture.append(
          svg("rect", { x: left, y: y + 16 * row, width: Math.max(wide(share), 1), height: 13, rx: 2, fill: colour }),
        );
        picture.append(
          svg(
            "text",
            { x: left + wide(share) + 6, y: y + 16 * row + 11 },
            `${(100 * share).toFixed(1)}%${l === 0 ? ` ${name}` : ""}`,
          ),
        );
      });
    });
  });
  const pairs = check.pairs.length
    ? el(
        "details",
        {},
        el("summary", {}, `${quantity(check.pairs.length, "pair")} who err together`),
        factList(
          check.pairs.map(([one, other, items, correlation]) => [
            `${one}, ${other}`,
            `errors correlate by ${fixed(correlation)} over ${quantity(items, "item")}`,
          ]),
        ),
      )
    : null;
  return panel(
    title,
    el("p", {}, check.verdict),
    checkTable(check.checks),
    pairs,
    el("h4", {}, "Labels"),
    diagram,
    note(
      `By ${quantity(check.replicates, "replicate")} of all answers. Expected: the mean of replicates, and the interval that holds 90% of them; p: how often replicates are as extreme. Below 0.02 a check stands out (bold). The first four compare with independent volunteers whose skills are learned from these answers; volunteers and label shares with the fit as it is. The model has seen these answers, so p-values are rather too large than too small.`,
    ),
  );
}

// Zero has no sign.
const rounded = (value) => fixed(value, 3).replace(/^-(0\.000)$/, "$1");

function checkTable(checks) {
  const head = ["check", "observed", "expected", "p"].map((name) => el("th", { scope: "col" }, name));
  const rows = checks.map((check) => {
    const cells = check.reason
      ? [el("td", { colspan: 3 }, `not checked: ${check.reason}`)]
      : [
          el("td", {}, rounded(check.observed)),
          el("td", {}, rounded(check.replicated), el("span", {}, `${rounded(check.low)} to ${rounded(check.high)}`)),
          el("td", {}, rounded(check.p_value)),
        ];
    return el("tr", check.stands_out ? { class: "strong" } : {}, el("th", { scope: "row" }, check.name), ...cells);
  });
  return el("table", { class: "checks" }, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows));
}

function evidencePanel(evidence) {
  const title = "Communities, or chance?";
  if (!evidence)
    return panel(
      title,
      missing(
        data.communities.missing ||
          "Communities found by cg.BayesianNMF().detect(network) are compared with random networks of the same kind without communities.",
      ),
    );
  const verdict = `There is ${evidence.verdict}.`;
  const agreement = isKnown(evidence.agreement)
    ? ` Several starts agree by ${fixed(evidence.agreement)} (1 is the same, 0 chance).`
    : "";
  // Two modularities on one page have two names.
  const itself = data.communities.modularity;
  const sharpened = Math.abs(evidence.modularity - itself) >= 0.001;
  const name = sharpened ? "sharpened modularity" : "modularity";
  const explained = sharpened
    ? ` The sharpened modularity, ${fixed(evidence.modularity, 3)}, is computed after strengthening strong links; the modularity of these communities, ${fixed(itself, 3)}, is that of the network as it is.`
    : "";
  const values = [...evidence.null, evidence.modularity];
  const ends = [Math.min(...values), Math.max(...values)];
  const pad = (ends[1] - ends[0] || 0.1) / 10;
  const diagram = chart(
    "Modularity of the network and of networks without communities",
    110,
    (picture, width, height) => {
      const { across } = axes(picture, width, height, {
        x: [ends[0] - pad, ends[1] + pad],
        y: [0, 1],
        yTicks: [],
        xTicks: ticks([ends[0] - pad, ends[1] + pad]).map((value) => [value, fixed(value)]),
        xName: name,
      });
      for (const value of evidence.null)
        picture.append(svg("circle", { cx: across(value), cy: 48, r: 5, fill: "var(--grey)", "fill-opacity": 0.6 }));
      picture.append(
        svg("line", {
          x1: across(evidence.modularity),
          x2: across(evidence.modularity),
          y1: 24,
          y2: 70,
          stroke: "var(--accent)",
          "stroke-width": 3,
        }),
      );
      picture.append(
        svg(
          "text",
          { class: "strong", x: Math.min(across(evidence.modularity), width - 30), y: 16, "text-anchor": "middle" },
          "found",
        ),
      );
    },
  );
  const chance = isKnown(evidence.p_value)
    ? ` Without communities, so high a ${name} would occur in ${evidence.p_value < 0.001 ? "less than 1 of 1,000" : `about ${(100 * evidence.p_value).toFixed(1)}% of`} networks.`
    : "";
  const certainty = isKnown(evidence.certainty)
    ? ` With many more of them the verdict would be the same with a probability of ${evidence.certainty >= 0.999 ? "more than 99.9%" : `${(100 * evidence.certainty).toFixed(1)}%`}.`
    : "";
  return panel(
    title,
    el("p", {}, `${verdict}${agreement}${chance}${explained}`),
    diagram,
    note(
      `Grey: ${quantity(evidence.null.length, "network")} of the same kind without communities, as they would be at the same mean weight of links.${certainty}`,
    ),
  );
}
