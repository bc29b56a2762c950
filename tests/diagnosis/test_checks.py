"""Each fault is planted into a crowd that is in order: the doctor finds it there, and nothing without it."""

import numpy as np
import pytest

import crowdgraph as cg
from crowdgraph.diagnosis import bots
from crowdgraph.diagnosis.doctor import finding_names


def crowd(seed=0, **options):
    """A crowd in order. Volunteers stay long: of those who do not, simulated ones may answer in no time at all."""
    sizes = {"n_volunteers": 60, "n_items": 300, "n_responses": 4_000}
    return cg.simulate.crowd(**sizes, stays="long", seed=seed, **options).graph


def columns_of(graph):
    responses = graph.responses
    labels = np.array(graph.labels, dtype=object)
    return {
        "volunteer": graph.volunteers.ids[responses.volunteer],
        "item": graph.items.ids[responses.item],
        "label": labels[responses.label],
        "time": responses.time.copy(),
    }


def rebuilt(columns, graph, **options):
    given = {"gold": dict(graph.gold) or None, **options}
    return cg.CrowdGraph.from_responses(columns, **given)


def with_rows(columns, rows):
    return {name: np.append(columns[name], np.array(rows[name], dtype=columns[name].dtype)) for name in columns}


def busiest(graph, n=1):
    return graph.volunteers.ids[np.argsort(-graph.volunteers.n_responses, kind="stable")[:n]]


def fast(graph):
    """The busiest volunteer answers twice a second."""
    columns = columns_of(graph)
    own = np.flatnonzero(columns["volunteer"] == busiest(graph)[0])
    start = columns["time"][own[0]].astype("datetime64[ms]")
    columns["time"] = columns["time"].astype("datetime64[ms]")
    columns["time"][own] = start + np.arange(len(own)) * np.timedelta64(500, "ms")
    return rebuilt(columns, graph), busiest(graph)


def constant(graph):
    """The two busiest volunteers always say yes."""
    columns = columns_of(graph)
    columns["label"][np.isin(columns["volunteer"], busiest(graph, 2))] = "yes"
    return rebuilt(columns, graph), busiest(graph, 2)


def copies(graph):
    """A third of the answers of a busy volunteer's double differ from the crowd; all are the volunteer's."""
    columns = columns_of(graph)
    own = columns["volunteer"] == busiest(graph)[0]
    rows = {name: columns[name][own] for name in columns}
    rows["volunteer"] = np.full(own.sum(), "the double", dtype=object)
    return rebuilt(with_rows(columns, rows), graph), [*busiest(graph), "the double"]


def guessing(graph):
    """Everybody answers blindly, and there is no gold."""
    columns = columns_of(graph)
    columns["label"] = np.random.default_rng(1).permutation(columns["label"])
    return rebuilt(columns, graph, gold=None), []


def reversed_labels(graph):
    """Yes means no in the file, but not in gold."""
    columns = columns_of(graph)
    columns["label"] = np.where(columns["label"] == "yes", "no", "yes").astype(object)
    return rebuilt(columns, graph), None


def one_contrary(graph):
    """The busiest volunteer says yes for no."""
    columns = columns_of(graph)
    own = columns["volunteer"] == busiest(graph)[0]
    truth = np.array([graph.gold[item] for item in columns["item"]], dtype=object)
    columns["label"][own] = np.where(truth == "yes", "no", "yes")[own]
    return rebuilt(columns, graph), busiest(graph)


def unnamed_classes(graph):
    """No gold, and labels that do not name the classes."""
    return rebuilt(columns_of(graph), graph, gold=None, classes=["whale", "ship"]), []


def foreign_gold(graph):
    """Most gold is of items that are written differently."""
    gold = {f"0{item}" if index else item: label for index, (item, label) in enumerate(graph.gold.items())}
    with pytest.warns(cg.errors.GoldWarning):
        return rebuilt(columns_of(graph), graph, gold=gold), []


def lonely_gold(graph):
    """A class without gold that no label names."""
    gold = {item: "yes" for item, label in graph.gold.items() if label == "yes"}
    return rebuilt(columns_of(graph), graph, gold=gold, classes=["yes", "whale"]), ["whale"]


def rare_gold(graph):
    """Three of the gold items are yes."""
    no = [item for item, label in graph.gold.items() if label == "no"]
    yes = [item for item, label in graph.gold.items() if label == "yes"][:3]
    return rebuilt(columns_of(graph), graph, gold={**dict.fromkeys(no, "no"), **dict.fromkeys(yes, "yes")}), None


def two_parts(graph):
    """A third of the volunteers work on items of their own, without gold."""
    columns = columns_of(graph)
    apart = graph.volunteers.ids[::3]
    own = np.isin(columns["volunteer"], apart)
    columns["item"][own] = np.array([f"other {item}" for item in columns["item"][own]], dtype=object)
    return rebuilt(columns, graph), apart


def misspelt(graph):
    """Some write Yes for yes."""
    columns = columns_of(graph)
    columns["label"][::7] = np.array([label.title() for label in columns["label"][::7]], dtype=object)
    return rebuilt(columns, graph, gold=None), ["No", "Yes", "no", "yes"]


def rare_label(graph):
    """Three answers say maybe."""
    columns = columns_of(graph)
    columns["label"][:3] = "maybe"
    return rebuilt(columns, graph), ["maybe"]


def filtered(graph):
    """Only those who said yes are left."""
    columns = columns_of(graph)
    only_yes = {name: column[columns["label"] == "yes"] for name, column in columns.items()}
    return rebuilt(only_yes, graph, gold=None, classes=["no", "yes"]), ["yes"]


def blind_repeats(graph):
    """Half of the answers are given again, blindly."""
    columns, rng = columns_of(graph), np.random.default_rng(0)
    rows = {name: column[::2] for name, column in columns.items()}
    rows["label"] = rng.choice(["no", "yes"], len(rows["item"])).astype(object)
    rows["time"] = rows["time"] + np.timedelta64(100, "D")
    return rebuilt(with_rows(columns, rows), graph), None


def exported_twice(graph):
    """A tenth of the rows are there twice."""
    columns = columns_of(graph)
    return rebuilt(with_rows(columns, {name: column[::10] for name, column in columns.items()}), graph), []


def shared_id(graph):
    """The busiest volunteer is called anonymous."""
    columns = columns_of(graph)
    columns["volunteer"][columns["volunteer"] == busiest(graph)[0]] = "Anonymous"
    return rebuilt(columns, graph), ["Anonymous"]


def visitors(graph):
    """Some did not log in."""
    columns = columns_of(graph)
    new = {name: f"not-logged-in-{k}a3f" for k, name in enumerate(busiest(graph, 5))}
    columns["volunteer"] = np.array([new.get(name, name) for name in columns["volunteer"]], dtype=object)
    return rebuilt(columns, graph), list(new.values())


def looked_in(graph):
    """Forty volunteers looked in once."""
    columns = columns_of(graph)
    rows = {name: column[:40] for name, column in columns.items()}
    rows["volunteer"] = np.array([f"guest of the day {k}" for k in range(40)], dtype=object)
    return rebuilt(with_rows(columns, rows), graph), list(rows["volunteer"])


def one_for_all(graph):
    """Half of the answers come from one volunteer, who answered every item nearly seven times."""
    columns = columns_of(graph)
    rows = {name: column[::2] for name, column in columns.items()}
    rows["volunteer"] = np.full(len(rows["item"]), "busy", dtype=object)
    return rebuilt(with_rows(columns, rows), graph), ["busy"]


def never_answered(graph):
    """The items are many more than were answered."""
    more = {"item": [*graph.items.ids, *(f"new {k}" for k in range(400))]}
    return rebuilt(columns_of(graph), graph, items=more), [f"new {k}" for k in range(400)]


def answered_once(graph):
    """A hundred items more, each with an answer."""
    columns = columns_of(graph)
    rows = {name: column[:100] for name, column in columns.items()}
    rows["item"] = np.array([f"new {k}" for k in range(100)], dtype=object)
    return rebuilt(with_rows(columns, rows), graph), list(rows["item"])


def skipped(graph):
    """A tenth of the items were shown but not answered."""
    columns = columns_of(graph)
    columns["label"][::10] = None
    return rebuilt(columns, graph, missing="keep"), []


def summer(graph):
    """The project rests for two months in the middle."""
    columns = columns_of(graph)
    columns["time"][2000:] += np.timedelta64(60, "D")
    return rebuilt(columns, graph), []


def stray(graph):
    """An empty date was read as 1970."""
    columns = columns_of(graph)
    columns["time"][-2:] = np.datetime64("1970-01-01")
    return rebuilt(columns, graph), []


def by_the_day(graph):
    """Only days are known."""
    columns = columns_of(graph)
    columns["time"] = columns["time"].astype("datetime64[D]").astype("datetime64[s]")
    return rebuilt(columns, graph), []


# The fault, the finding, its severity.
FAULTS = [
    (fast, "fast answers", "warning"),
    (constant, "constant answers", "warning"),
    (copies, "copied answers", "warning"),
    (guessing, "no agreement", "warning"),
    (reversed_labels, "worse than chance", "warning"),
    (one_contrary, "contrary volunteers", "note"),
    (unnamed_classes, "no gold", "warning"),
    (foreign_gold, "gold without answers", "warning"),
    (lonely_gold, "classes with little gold", "warning"),
    (rare_gold, "skewed gold", "note"),
    (two_parts, "disconnected parts", "warning"),
    (misspelt, "labels spelt alike", "warning"),
    (rare_label, "rare labels", "note"),
    (filtered, "one label", "warning"),
    (blind_repeats, "inconsistent repeats", "warning"),
    (exported_twice, "rows twice", "warning"),
    (shared_id, "shared id", "warning"),
    (visitors, "visitors", "note"),
    (looked_in, "one-timers", "note"),
    (one_for_all, "very active volunteers", "note"),
    (never_answered, "items without answers", "warning"),
    (answered_once, "items with one answer", "note"),
    (skipped, "shown but not answered", "note"),
    (summer, "pauses", "note"),
    (stray, "stray times", "warning"),
    (by_the_day, "answers at the same moment", "note"),
]


@pytest.mark.parametrize(("plant", "name", "severity"), FAULTS, ids=[plant.__name__ for plant, *_ in FAULTS])
def test_a_planted_fault_is_found(plant, name, severity):
    graph = crowd()
    assert not graph.diagnose().of(name)
    ill, concerned = plant(graph)
    (finding,) = ill.diagnose().of(name)
    assert finding.severity == severity
    assert finding.why
    assert finding.advice
    if concerned is not None:
        assert set(finding.ids.tolist()) == set(concerned)


@pytest.mark.parametrize(("plant", "name", "severity"), FAULTS, ids=[plant.__name__ for plant, *_ in FAULTS])
def test_other_checks_stay_calm(plant, name, severity):
    """A fault is reported once: no other warning comes with it."""
    ill, _ = plant(crowd())
    others = {finding.name for finding in ill.diagnose().at_least("warning")} - {name}
    assert not others


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"duplicates": 0.3, "difficulty": 0.3},
        {"gold": 0.0},
        {"gold": 0.2, "class_probs": [0.93, 0.07]},
        {"difficulty": 0.4},
        {"drift": "step"},
        {"classes": ["a", "b", "c", "d"]},
        {"n_casual": 30},
        {
            "groups": [
                cg.simulate.Group(name="experts", confusion=[[0.99, 0.01], [0.01, 0.99]], share=0.2),
                cg.simulate.Group(name="sloppy", confusion=[[0.6, 0.4], [0.4, 0.6]], share=0.8),
            ]
        },
    ],
    ids=str,
)
def test_crowds_in_order_raise_no_warning(options, seed):
    findings = crowd(seed, **options).diagnose()
    assert not findings.at_least("warning")
    assert not findings.of("bots").at_least("note")


def test_the_paper_crowd_raises_no_warning():
    """Its groups contradict each other so much that volunteers do not agree; gold tells who is right."""
    findings = cg.simulate.galaxy_zoo_supernovae_auc_table(seed=1).graph.diagnose()
    assert not findings.at_least("warning")
    assert findings.of("no agreement").worst == "note"
    assert not findings.of("bots")


def test_swapped_classes_of_several():
    graph = crowd(classes=["a", "b", "c", "d"])
    columns = columns_of(graph)
    swap = {"b": "c", "c": "b"}
    columns["label"] = np.array([swap.get(label, label) for label in columns["label"]], dtype=object)
    findings = rebuilt(columns, graph).diagnose()
    assert findings.of("swapped classes")[0].ids.tolist() == ["b", "c"]
    assert not graph.diagnose().of("swapped classes")


def test_parts_that_gold_ties_are_no_warning():
    graph, _ = two_parts(crowd())
    gold = {item: ("no", "yes")[place % 2] for place, item in enumerate(graph.items)}
    (finding,) = graph.with_gold(gold).diagnose().of("parts")
    assert finding.severity == "note"


def test_copies_are_sought_among_the_busiest_if_there_are_too_many(monkeypatch):
    graph, both = copies(crowd())
    monkeypatch.setattr(bots, "MAX_MEETINGS", 2_000)
    monkeypatch.setattr(bots, "PAIR_BLOCK", 4)
    findings = graph.diagnose()
    (left_out,) = findings.of("copies not examined")
    assert 0 < len(left_out.ids) < len(graph.volunteers)
    assert set(findings.of("copied answers")[0].ids.tolist()) == set(both)
    assert not set(both) & set(left_out.ids.tolist())


def test_small_blocks_change_nothing(monkeypatch):
    graph, _ = copies(crowd())
    expected = graph.diagnose().to_dict()
    monkeypatch.setattr(bots, "PAIR_BLOCK", 100)
    assert graph.diagnose().to_dict() == expected


def test_a_whole_crowd_that_is_fast_is_no_warning():
    """It is the way in which answers are sent."""
    graph = crowd()
    columns = columns_of(graph)
    columns["time"] = np.datetime64("2026-01-01", "ms") + np.arange(len(columns["time"])) * np.timedelta64(3, "ms")
    assert rebuilt(columns, graph).diagnose().of("fast answers").worst == "note"


def test_pages_sent_together_are_not_fast():
    """Ten answers at a time, a page a minute."""
    graph = crowd()
    columns = columns_of(graph)
    order = np.argsort(columns["volunteer"], kind="stable")
    columns = {name: column[order] for name, column in columns.items()}
    columns["time"] = np.datetime64("2026-01-01", "s") + (np.arange(len(order)) // 10) * np.timedelta64(60, "s")
    assert not rebuilt(columns, graph).diagnose().of("bots")


def full_table(label):
    """A graph in which everybody answered everything, from labels of shape (volunteers, items)."""
    volunteer, item = np.indices(label.shape)
    return cg.CrowdGraph.from_responses({"volunteer": volunteer.ravel(), "item": item.ravel(), "label": label.ravel()})


def test_a_shared_taste_is_no_copy():
    """Two volunteers find the same sixty of a thousand items special, but err on their own elsewhere."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 1_000)
    label = np.where(rng.random((20, 1_000)) < 0.1, 1 - truth, truth)
    label[:2] = np.where(rng.random((2, 1_000)) < 0.015, 1 - truth, truth)
    label[:2, :60] = np.where(rng.random((2, 60)) < 0.9, 1 - truth[:60], truth[:60])
    assert not full_table(label).diagnose().of("copied answers")
    label[1] = label[0]
    assert full_table(label).diagnose().of("copied answers")[0].ids.tolist() == [0, 1]


def test_constant_where_items_are_alike_is_no_bot():
    """All but three items are of one class, so whoever never sees the others looks constant."""
    rng = np.random.default_rng(0)
    truth = np.arange(60) < 3
    label = np.where(rng.random((20, 60)) < 0.03, ~truth, truth)
    label[0] = False
    assert not full_table(label.astype(int)).diagnose().of("constant answers")
    truth = np.arange(60) < 20
    label[1:] = np.where(rng.random((19, 60)) < 0.03, ~truth, truth)
    assert full_table(label.astype(int)).diagnose().of("constant answers")[0].ids.tolist() == [0]


def test_stragglers_after_the_end_are_no_pause():
    graph = crowd()
    columns = columns_of(graph)
    columns["time"][-100:] += np.timedelta64(30, "D")
    assert not rebuilt(columns, graph).diagnose().of("pauses")


@pytest.mark.parametrize("seed", [1, 3])
def test_copies_are_not_sought_where_the_crowd_says_nothing(seed):
    """Two good volunteers among many who contradict each other would look like copies."""
    graph = cg.simulate.galaxy_zoo_supernovae_auc_table(seed=seed).graph
    findings = graph.with_gold(None, classes=graph.labels).diagnose()
    assert findings.of("copies not examined")
    assert not findings.of("copied answers")


def test_names_of_faults_are_all_known():
    planted = {name for _, name, _ in FAULTS}
    assert planted <= {name for names in finding_names().values() for name in names}


def test_repeats_at_other_moments_are_no_rows_twice():
    """Volunteers who are consistent are in order, where times show that they answered again."""
    columns = columns_of(crowd())
    rows = {name: column[::10] for name, column in columns.items()}
    later = with_rows(columns, rows | {"time": rows["time"] + np.timedelta64(100, "D")})
    findings = rebuilt(later, crowd()).diagnose()
    assert findings.of("repeated answers")[0].numbers["same"] == 1
    assert not findings.of("rows twice")
    del later["time"]
    (finding,) = rebuilt(later, crowd()).diagnose().of("rows twice")
    assert finding.numbers["answers"] == 400


@pytest.mark.parametrize("seed", range(5))
def test_small_blind_crowds_are_not_passed_over(seed):
    """20 volunteers who toss a coin: too few to be sure that they are blind, but nothing shows that they are not."""
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(20 * 60)[:600]
    said = rng.choice(["no", "yes"], 600)
    graph = cg.CrowdGraph.from_responses({"volunteer": pairs // 60, "item": pairs % 60, "label": said})
    (finding,) = graph.diagnose().of("no agreement")
    assert finding.severity in ("note", "warning")
    assert "classes" in finding.why


@pytest.mark.parametrize("seed", range(5))
def test_small_crowds_in_order_agree(seed):
    graph = cg.simulate.crowd(n_volunteers=20, n_items=60, n_responses=600, seed=seed).graph
    assert graph.diagnose().of("agreement").worst == "info"


def test_one_answer_for_each_item_checks_nothing():
    table = {"volunteer": np.arange(100) % 7, "item": np.arange(100), "label": ["no", "yes"] * 50}
    (finding,) = cg.CrowdGraph.from_responses(table).diagnose().of("items with one answer")
    assert "Hardly anything can be checked" in finding.why
