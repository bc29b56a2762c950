// What next: how long it takes, what to retire, whom to ask about what, whom to train and to thank.

function drawNext() {
  const body = bodyOf("next");
  const plan = data.next;
  if (plan.missing) {
    body.append(missing(plan.missing));
    return;
  }
  body.append(
    el("h3", {}, "How many more answers"),
    ...nextForecast(plan),
    el("h3", {}, "Retire items"),
    plan.retire ? el("p", {}, plan.retire) : missing(plan.reasons.retirable),
    el("h3", {}, "Ask these questions"),
    ...nextQuestions(plan),
    el("h3", {}, "Who could be trained"),
    ...nextLearners(plan),
    el("h3", {}, "Whom to thank"),
    ...nextThanks(plan),
  );
}

function nextQuestions({ questions, reasons }) {
  if (!questions.item.length) return [missing(reasons.questions)];
  const columns = [
    {
      name: "ask",
      kind: "name",
      value: (row) => questions.volunteer[row],
      cell: (row) => button(questions.volunteer[row], () => openVolunteer(questions.volunteer[row]), { class: "link" }),
    },
    {
      name: "about",
      kind: "name",
      value: (row) => questions.item[row],
      cell: (row) => button(questions.item[row], () => openItem(questions.item[row]), { class: "link" }),
    },
    { name: "likeliest class", wide: true, value: (row) => questions.class[row], cell: (row) => questions.class[row] },
    {
      name: "sure now",
      kind: "number",
      value: (row) => questions.probability[row],
      cell: (row) => percent(questions.probability[row]),
    },
    {
      name: "after the answer",
      kind: "number",
      value: (row) => questions.expected[row],
      cell: (row) => percent(questions.expected[row]),
    },
    {
      name: "uncertainty removed",
      kind: "number",
      wide: true,
      value: (row) => questions.removed[row],
      cell: (row) => (questions.removed[row] < 0.005 ? "<1%" : percent(questions.removed[row])),
    },
  ];
  const asked = quantity(new Set(questions.volunteer).size, "volunteer");
  return [
    el(
      "p",
      {},
      `${quantity(questions.item.length, "question")} to ${asked}, the most useful first. “Sure now” is how probable the item’s likeliest class is; “after the answer” is how probable the likeliest class will be on average, whatever the answer. Each question is taken alone.`,
    ),
    makeTable({
      name: "Questions to ask next",
      noun: "questions",
      count: questions.item.length,
      columns,
      text: (row) => `${questions.volunteer[row]} ${questions.item[row]}`,
      pageSize: questions.item.length,
    }).node,
  ];
}

function nextForecast({ forecast, reasons, settled_from: least }) {
  if (!forecast) return [missing(reasons.forecast)];
  return [
    el(
      "p",
      {},
      `An item is settled once a class is at least ${percent(least)} probable. This assumes that volunteers who were active of late go on answering, as often as they did, and that only items that are not settled get answers. It was simulated many times.`,
    ),
    el("ul", { class: "story" }, ...forecast.map((words) => el("li", {}, words))),
  ];
}

function nextLearners({ learners, reasons }) {
  if (!learners.length) return [missing(reasons.learners)];
  return [
    el(
      "ul",
      { class: "story" },
      ...learners.map(([volunteer, answers, share, teachers]) =>
        el(
          "li",
          {},
          `${volunteer} (${quantity(answers, "answer")}) could learn from ${teachers.join(", ")}, who answered some of the same items: ${
            share < 0.05
              ? `answers of ${volunteer} say almost nothing about the items`
              : `an answer of ${volunteer} tells ${percent(share)} of what an answer of the teachers’ community tells`
          }.`,
        ),
      ),
    ),
    note("Nothing here shows that training works, nor why they answer as they do: look at their answers together first."),
  ];
}

function nextThanks({ thanks, by_information: byInformation }) {
  if (!thanks.length) return [missing("Nobody has answered yet.")];
  return [
    el(
      "ul",
      { class: "story" },
      ...thanks.map(([volunteer, answers, share]) =>
        el("li", {}, `${volunteer}: ${quantity(answers, "answer")}, ${percent(share)} of ${byInformation ? "all information about the items" : "all answers"}.`),
      ),
    ),
    note(
      byInformation
        ? "Counted is what the answers tell about the items: how many there are, how well their volunteer answers, and less where many others answered the same item."
        : "Counted are answers.",
    ),
  ];
}
