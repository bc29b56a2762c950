"""Zooniverse exports like those of real projects: every question, every row, and everything that goes wrong."""

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from zooniverse import ANIMAL, DOING, NO_ANIMAL, UNSURE, Export, entry, realistic, subject_data

import crowdgraph as cg
from crowdgraph.errors import ColumnError, DroppedRowsWarning, InputError, ParameterError

SKIP = {"malformed": "skip"}
pytestmark = pytest.mark.filterwarnings("ignore::crowdgraph.errors.DroppedRowsWarning")


@pytest.fixture(scope="module")
def source():
    return realistic()


@pytest.fixture(scope="module")
def export(source, tmp_path_factory):
    return cg.open_panoptes(source.write(tmp_path_factory.mktemp("zooniverse") / "export.csv"))


def export_of(folder, *annotations, **cells):
    """An export of one row for each annotation."""
    source = Export()
    for number, text in enumerate(annotations):
        own = {name: values[number] for name, values in cells.items()}
        source.add("row", annotations=text if isinstance(text, str) else json.dumps(text), **own)
    return cg.open_panoptes(source.write(folder / "export.csv"))


# What there is


def test_questions_are_listed_with_their_kinds(export):
    kinds = {(one.workflow, one.task): one.kind for one in export.questions}
    assert kinds == {
        ("21001", "T0"): "single choice",
        ("21001", "T1"): "multiple choice",
        ("21001", "T2"): "number",
        ("21001", "T3"): "free text",
        ("21002", "T0"): "survey",
    }
    first, second, *_ = export.questions
    assert first.text == "Is there an animal in the picture?"
    assert set(first.options) == {ANIMAL, NO_ANIMAL, UNSURE}
    assert set(second.options) == set(DOING)
    assert set(first.versions) == {"12.35", "14.41"}
    assert dict(export.workflows) == {"21001": "Animal or not", "21002": "Which species?"}
    shown = repr(export)
    assert "T3 of workflow 21001 'Anything else?' (free text" in shown
    assert "annotations not readable: 3 rows (lines 738, 739, 740)" in shown
    assert export.to_frame(kind="arrow").num_rows == len(export.questions)


@pytest.mark.parametrize(
    ("workflow", "task", "option", "sorts"),
    [
        ("21001", "T0", None, ("animal", "repeated")),
        ("21001", "T1", "Eating", ()),
        ("21002", "T0", None, ("survey",)),
        ("21002", "T0", "LION", ("survey",)),
    ],
)
def test_every_row_is_read_or_accounted_for(export, source, workflow, task, option, sorts):
    reading = export.read(workflow=workflow, task=task, option=option, **SKIP)
    account = reading.account
    assert account.rows == len(source.rows)
    assert account.read == len(reading.graph.responses)
    assert account.read + sum(account.skipped.values()) == account.rows
    if sorts:
        assert account.read == sum(source.counts[sort] for sort in sorts)
    if workflow == "21001":
        assert account.skipped["of another workflow"] == source.counts["survey"]
        assert account.skipped["annotations not readable"] == source.counts["broken"]
        assert account.lines["annotations not readable"] == (738, 739, 740)
    if task == "T0" and workflow == "21001":
        assert account.skipped["gold standard"] == source.counts["gold"]
        assert account.skipped["not answered"] == source.counts["unanswered"]
    assert str(account).startswith(f"Of {account.rows} rows, {account.read} were read; ")


def test_all_questions_are_read_one_by_one(export):
    readings, refused = export.read_all(**SKIP)
    assert [one.title.rpartition("? ")[2] for one in readings] == [
        "Is there an animal in the picture?",
        *export.questions[1].options,
        "Which species?",
    ]
    assert len(refused) == 2
    assert any("Free text" in reason for reason in refused.values())
    each, _ = export.read_all(workflow="Which species?", survey="each", **SKIP)
    assert [one.option for one in each] == list(export.questions[-1].options)
    some, _ = export.read_all(tasks=["T1"], options=["eating"], **SKIP)
    assert [one.option for one in some] == ["Eating"]
    with pytest.raises(InputError, match="line 738"):
        export.read_all()


# Kinds of answers


def test_nothing_ticked_is_an_answer(tmp_path):
    rows = [entry("T1", ticked) for ticked in (["Eating"], [], ["Eating", "Moving"], None)]
    export = export_of(tmp_path, *([one] for one in rows))
    reading = export.read(option="Eating")
    assert [response.label for response in reading.graph.responses] == ["yes", "no", "yes"]
    assert dict(reading.account.skipped) == {"not answered": 1}
    # An option that everybody chose can be denied, too.
    assert export.read(option="moving").graph.labels == ("no", "yes")


def test_a_survey_has_the_species_and_what_was_said_of_it(tmp_path):
    zebra = {"choice": "ZEBRA", "answers": {"HWMN": "3", "DNG": ["MVNG", "TNG"], "label": "x"}}
    lion = {"choice": "LION", "answers": {"HWMN": "1"}}
    export = export_of(tmp_path, *([entry("T0", value)] for value in ([zebra], [zebra, lion], [], [lion, lion])))
    graph = export.read().graph
    assert [response.label for response in graph.responses] == ["ZEBRA", "several", "nothing chosen", "LION"]
    assert graph.responses[0].attributes["HWMN"] == "3"
    assert graph.responses[0].attributes["DNG"] == "MVNG + TNG"
    assert graph.responses[0].attributes["answer_label"] == "x"
    lions = export.read(option="LION").graph
    assert [response.label for response in lions.responses] == ["no", "yes", "no", "yes"]
    assert [response.attributes["HWMN"] for response in lions.responses] == [None, "1", None, "1 + 1"]


def test_numbers_are_divided(export):
    graph = export.read(task="T2", bins=[10, 50.5], **SKIP).graph
    assert graph.labels == ("below 10", "10 to 50.5", "50.5 or more")
    raw = export.read(task="T2", label=float, **SKIP).graph
    expected = np.searchsorted([10, 50.5], [response.label for response in raw.responses], side="right")
    assert [graph.labels.index(response.label) for response in graph.responses] == expected.tolist()
    with pytest.raises(InputError, match=r"Numbers are no labels.*bins=\[10, 50\]"):
        export.read(task="T2", **SKIP)
    for bins in ([], [3, 3], [5, 1], ["a"], "10,50", 7, [float("nan")]):
        with pytest.raises(ParameterError, match=r"bins=.* must be numbers that grow"):
            export.read(task="T2", bins=bins, **SKIP)
    with pytest.raises(InputError, match=r"are no numbers; leave out bins=[.]"):
        export.read(workflow=21002, bins=[1], **SKIP)


def test_free_text_is_refused_with_a_reason(export):
    with pytest.raises(InputError, match=r"T3 .*'Anything else\?'.*free text.*label="):
        export.read(task="T3", **SKIP)
    assert export.read(task="T3", label=bool, **SKIP).graph.labels == (False, True)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["Yes", "No", "Yes"], "single choice"),
        (["1", "2", "2", "3"], "single choice"),
        ([str(number) for number in range(30)], "number"),
        ([f"remark {number}" for number in range(30)], "free text"),
        (["it's blurry", ""], "free text"),
        ([[{"x": 1, "y": 2}], []], "drawing"),
        ([[{"value": "a", "option": True}], [{"value": "b", "label": "B", "option": True}]], "dropdown"),
    ],
)
def test_kinds_are_recognised(tmp_path, values, kind):
    export = export_of(tmp_path, *([entry("T0", value)] for value in values))
    assert [one.kind for one in export.questions] == [kind]


def test_newer_exports_say_the_kind(tmp_path):
    export = export_of(tmp_path, *([entry("T0", text, taskType="text")] for text in ("a", "b", "a")))
    assert export.questions[0].kind == "free text"


# Which rows


def test_workflows_are_never_mixed(export, source):
    with pytest.raises(InputError, match=r"asks several questions: T0 of workflow 21001 .*T0 of workflow 21002"):
        export.read(task="T0", **SKIP)
    by_name = export.read(task="T0", workflow=" which SPECIES? ", **SKIP)
    assert by_name.graph.equals(export.read(task="T0", workflow=21002, **SKIP).graph)
    with pytest.raises(InputError, match=r"'21001' \(Animal or not\).* Did you mean 'Which species\?'"):
        export.read(workflow="Which specie?", **SKIP)


def test_versions_are_noted_and_separable(export):
    reading = export.read(workflow=21001, task="T0", **SKIP)
    assert any("12.35" in note and "version='14.41' reads one" in note for note in reading.notes)
    parts = [export.read(workflow=21001, task="T0", version=name, **SKIP) for name in ("12", 14.41)]
    assert sum(len(part.graph.responses) for part in parts) == len(reading.graph.responses)
    assert set(parts[0].graph.responses.attributes["workflow_version"].tolist()) == {"12.35"}
    assert parts[0].account.skipped["of another version"] > 0
    with pytest.raises(InputError, match=r"No row is of version '13'; workflow 21001 has '12.35', '14.41'"):
        export.read(workflow=21001, task="T0", version=13, **SKIP)


def test_an_option_that_a_version_lacks_is_noted(tmp_path):
    rows = [[entry("T1", ["Eating"] if number % 2 else [])] for number in range(60)]
    versions = ["1.1" if number % 2 else "2.1" for number in range(60)]
    reading = export_of(tmp_path, *rows, workflow_version=versions).read(option="Eating")
    assert any("In version 2.1 nobody chose Eating" in note for note in reading.notes)
    # Few answers may lack it by chance.
    reading = export_of(tmp_path, *rows[:30], workflow_version=versions).read(option="Eating")
    assert not any("nobody chose" in note for note in reading.notes)


def test_gold_standard_rows_are_gold(export, source):
    graph = export.read(workflow=21001, task="T0", **SKIP).graph
    assert len(graph.gold) == source.counts["gold"]
    assert all(graph.gold[item] == source.truth[item] for item in graph.gold)
    assert "the_owner" not in graph.volunteers
    as_answers = export.read(workflow=21001, task="T0", gold_standard="answers", **SKIP).graph
    assert as_answers.n_responses == graph.n_responses + source.counts["gold"]
    assert "the_owner" in as_answers.volunteers
    assert not len(export.read(workflow=21001, task="T0", gold_standard="drop", **SKIP).graph.gold)


def test_experts_may_differ_and_own_gold_counts_more(tmp_path):
    rows = [[entry("T0", answer)] for answer in ("Yes", "No", "Yes", "No", "Yes", "No")]
    cells = {
        "subject_ids": ["1", "1", "1", "2", "2", "1"],
        "gold_standard": ["true", "true", "True", "true", "", "false"],
    }
    export = export_of(tmp_path, *rows, **cells)
    gold = export.read().graph.gold
    assert gold["1"] == pytest.approx({"No": 1 / 3, "Yes": 2 / 3})
    assert gold["2"] == "No"
    assert dict(export.read(gold={"1": "No"}).graph.gold) == {"1": "No", "2": "No"}


def test_retirement_and_metadata_are_attributes_of_items(export):
    graph = export.read(workflow=21001, task="T0", **SKIP).graph
    facts = graph.items["9010"].attributes
    assert facts == {"retired": True, "Filename": "cam-9010.jpg", "#site": "north"}
    assert not graph.items["9011"].attributes["retired"]


def test_unreadable_metadata_is_no_error(tmp_path):
    rows = [[entry("T0", "Yes")]] * 3
    data = ["{", json.dumps({"2": {"kind": "x", "n": [1], "empty": ""}}), "[1]"]
    graph = export_of(tmp_path, *rows, subject_ids=["1", "2", "3"], subject_data=data).read().graph
    assert graph.items["2"].attributes == {"retired": False, "subject_kind": "x", "n": "[1]", "empty": None}
    assert graph.items["1"].attributes["n"] is None


# Visitors


def visits(folder):
    """Three strangers about one subject, of whom the first answers twice; one of them about another; and anna."""
    users = ["not-logged-in-a", "not-logged-in-b", "not-logged-in-c", "not-logged-in-a", "not-logged-in-c", "anna"]
    sessions = [json.dumps({"session": name}) for name in ("s1", "s2", "s3", "s4", "s3")]
    return export_of(
        folder,
        *([entry("T0", answer)] for answer in ("Yes", "No", "Yes", "Yes", "No", "No")),
        user_name=users,
        subject_ids=["1", "1", "1", "1", "2", "1"],
        metadata=[*sessions, "{"],
    )


def test_pooled_strangers_never_become_one_who_repeats(tmp_path):
    export = visits(tmp_path)
    pooled = export.read(anonymous="pool").graph
    assert [response.volunteer for response in pooled.responses] == [
        *("not-logged-in", "not-logged-in 2", "not-logged-in 3", "not-logged-in", "not-logged-in", "anna")
    ]
    for duplicates, n_responses in (("first", 5), ("last", 5), ("all", 6)):
        # Only the answers of the stranger who came twice are repeated.
        assert export.read(anonymous="pool", duplicates=duplicates).graph.n_responses == n_responses
    assert pooled.volunteers.attributes["anonymous"].tolist() == [True, True, True, False]


def test_sessions_are_volunteers(tmp_path):
    reading = visits(tmp_path).read(anonymous="session")
    names = [response.volunteer for response in reading.graph.responses]
    assert names == [*(f"not-logged-in-session-{name}" for name in ("s1", "s2", "s3", "s4", "s3")), "anna"]
    source = Export()
    source.add("row", user_name="not-logged-in-a", metadata="nothing", annotations=json.dumps([entry("T0", "Yes")]))
    reading = cg.open_panoptes(source.write(tmp_path / "no.csv")).read(anonymous="session")
    assert list(reading.graph.volunteers) == ["not-logged-in-a"]
    assert "The session of 1 answer is not known" in reading.notes[0]


# Bad input


def test_other_files_are_named(tmp_path):
    path = tmp_path / "file.csv"
    for text, error, words in (
        ('[{"task": "T0"}]', InputError, "is JSON, and a Zooniverse classification export is a CSV file"),
        ("workflow_id,display_name,tasks\n1,a,b\n", ColumnError, "looks like the workflow export"),
        ("subject_id,locations\n1,a\n", ColumnError, "looks like the subject export"),
        ("volunteer,item,label\na,x,y\n", ColumnError, "not a Zooniverse classification export.*read_csv"),
    ):
        path.write_text(text)
        with pytest.raises(error, match=words):
            cg.open_panoptes(path)


def test_unknown_options_are_refused(export):
    with pytest.raises(InputError, match=r"Nobody chose 'Sleeping'.*'Resting'"):
        export.read(task="T1", option="Sleeping", **SKIP)
    with pytest.raises(InputError, match=r"has no options to read one by one; leave out option=[.]"):
        export.read(task="T0", workflow=21001, option=ANIMAL, **SKIP)
    for name in ("anonymous", "malformed", "gold_standard"):
        with pytest.raises(ParameterError, match=f"{name}='never' is not a choice"):
            export.read(task="T0", workflow=21001, **{name: "never"})
    with pytest.raises(InputError, match=r"Nobody chose 'Sleeping'"):
        export.read_all(options=["Sleeping"], **SKIP)


def test_gold_of_several_questions_names_its_tasks(export, source):
    rows = [("9001", "T0", None, "21001", source.truth["9001"]), ("9001", "T1", "Eating", "21001", "no")]
    columns = dict(
        zip(("item", "task", "option", "workflow", "label"), map(list, zip(*rows, strict=True)), strict=True)
    )
    readings, _ = export.read_all(gold=columns, gold_standard="drop", **SKIP)
    golds = {(one.question.task, one.option): dict(one.graph.gold) for one in readings if len(one.graph.gold)}
    assert golds == {("T0", None): {"9001": source.truth["9001"]}, ("T1", "Eating"): {"9001": "no"}}
    with pytest.raises(ColumnError, match=r"several questions.*lacks 'task'"):
        export.read_all(gold={"item": ["9001"], "label": ["no"]}, **SKIP)


VALUES = st.one_of(
    st.none(),
    st.sampled_from(["Yes", "No", ""]),
    st.lists(st.sampled_from(["a", "b"]), max_size=2),
    st.lists(st.fixed_dictionaries({"choice": st.sampled_from("xy")}), min_size=1, max_size=2),
    st.integers(0, 3),
    st.just([{"x": 1}]),
)
ROWS = st.tuples(
    st.sampled_from(["anna", "not-logged-in-1", "not-logged-in-2"]),
    st.sampled_from(["1", "2"]),
    st.sampled_from(["10", "20"]),
    st.sampled_from(["1.1", "1.2", "2.1"]),
    st.sampled_from(["", "true"]),
    st.lists(st.tuples(st.sampled_from(["T0", "T1"]), VALUES), max_size=2) | st.just("{broken"),
)


@given(
    rows=st.lists(ROWS, min_size=1, max_size=12),
    options=st.fixed_dictionaries(
        {},
        optional={
            "anonymous": st.sampled_from(["keep", "drop", "pool", "session"]),
            "duplicates": st.sampled_from(["all", "first", "last"]),
            "gold_standard": st.sampled_from(["gold", "answers", "drop"]),
            "version": st.sampled_from(["1", "1.1"]),
        },
    ),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.CrowdGraphWarning")
def test_read_and_skipped_rows_are_all_rows(tmp_path, rows, options):
    source = Export()
    for user, subject, workflow, version, mark, annotations in rows:
        text = annotations if isinstance(annotations, str) else json.dumps([entry(*one) for one in annotations])
        names = {"user_name": user, "subject_ids": subject, "subject_data": subject_data(subject)}
        source.add("row", **names, workflow_id=workflow, workflow_version=version, gold_standard=mark, annotations=text)
    export = cg.open_panoptes(source.write(tmp_path / "random.csv"))
    for question in export.questions:
        for option in [None, *question.options] if question.kind in ("multiple choice", "survey") else [None]:
            choice = {"workflow": question.workflow, "task": question.task, "option": option}
            try:
                reading = export.read(**choice, **options, **SKIP)
            except InputError:
                continue
            account = reading.account
            assert account.rows == len(rows)
            assert account.read + sum(account.skipped.values()) == len(rows)
            assert account.read == reading.graph.n_responses


def test_warnings_count_and_name_lines(export):
    with pytest.warns(DroppedRowsWarning, match=r"3 rows have annotations that are not readable.*lines 738, 739, 740"):
        export.read(workflow=21001, task="T0", **SKIP)
