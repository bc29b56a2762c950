"""Exports of annotation tools: small files in the documented layouts, and what is wrong with others.

The layouts follow, as of November 2026:

- Label Studio: https://labelstud.io/guide/task_format and https://labelstud.io/guide/export (JSON, JSON_MIN, CSV)
- Argilla 2: `Record.to_dict` in argilla/src/argilla/records/_resource.py of https://github.com/argilla-io/argilla at
  0991739bc0b1; Argilla 1: https://docs.v1.argilla.io, feedback records
- doccano: backend/data_export of https://github.com/doccano/doccano (a zip with ``<username>.jsonl``), and the
  ``annotations`` of its version 1.0
- Prodigy: https://prodi.gy/docs/api-interfaces and https://prodi.gy/docs/api-database (db-out)
- iNaturalist: https://api.inaturalist.org/v1/docs, /identifications and /observations
"""

import gzip
import json
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.analysis import read
from crowdgraph.errors import DroppedRowsWarning, GoldError, InputError, LabelError, ParameterError, TimeError
from crowdgraph.io._annotations import records_of

LABEL_STUDIO = [
    {
        "id": 1,
        "data": {"image": "https://example.com/1.jpg"},
        "created_at": "2026-03-09T21:52:49.513742Z",
        "project": 83,
        "annotations": [
            {
                "id": 1001,
                "completed_by": {"id": 10, "email": "anna@example.com", "first_name": "", "last_name": ""},
                "result": [
                    {
                        "id": "Dx_aB91ISN",
                        "from_name": "animal",
                        "to_name": "image",
                        "type": "choices",
                        "origin": "manual",
                        "value": {"choices": ["cat"]},
                    }
                ],
                "was_cancelled": False,
                "ground_truth": True,
                "created_at": "2026-03-09T22:16:08.728353Z",
                "lead_time": 4.288,
            },
            {
                "id": 1002,
                "completed_by": 11,
                "result": [
                    {
                        "from_name": "animal",
                        "to_name": "image",
                        "type": "choices",
                        "value": {"choices": ["dog", "cat"]},
                    },
                    {
                        "from_name": "box",
                        "to_name": "image",
                        "type": "rectanglelabels",
                        "value": {"x": 50.8, "y": 5.8, "width": 12.4, "height": 10.4, "rectanglelabels": ["head"]},
                    },
                ],
                "was_cancelled": False,
                "ground_truth": False,
                "created_at": "2026-03-09T22:18:00Z",
            },
            {"id": 1003, "completed_by": 12, "result": [], "was_cancelled": True, "created_at": "2026-03-09T22:19:00Z"},
        ],
        "predictions": [{"model_version": "m1", "result": []}],
    },
    {"id": 2, "data": {"image": "https://example.com/2.jpg"}, "annotations": [], "predictions": []},
]
LABEL_STUDIO_MIN = [
    {
        "id": 1,
        "animal": {"choices": ["cat", "dog"]},
        "annotator": 1,
        "annotation_id": 7,
        "created_at": "2026-03-09T22:16:08Z",
        "updated_at": "2026-03-09T22:16:08Z",
        "lead_time": 4.3,
    },
    {"id": 2, "animal": "dog", "annotator": 1, "annotation_id": 8, "created_at": "2026-03-09T22:17:08Z"},
]
LABEL_STUDIO_CSV = (
    "annotation_id,animal,annotator,created_at,id,image,lead_time,updated_at\n"
    '7,"{""choices"": [""cat"", ""dog""]}",1,2026-03-09T22:16:08Z,1,/1.jpg,4.3,2026-03-09T22:16:08Z\n'
    "8,dog,1,2026-03-09T22:17:08Z,2,/2.jpg,2.5,2026-03-09T22:17:08Z\n"
)
ARGILLA = [
    {
        "id": "r1",
        "fields": {"text": "Hello"},
        "metadata": {},
        "suggestions": {"tone": {"value": "kind", "score": 0.9, "agent": "m"}},
        "responses": {
            "tone": [{"value": "kind", "user_id": "u1"}, {"value": "rude", "user_id": "u2"}],
            "spans": [{"value": [{"start": 0, "end": 3, "label": "x"}], "user_id": "u1"}],
        },
        "vectors": {},
        "status": "completed",
        "_server_id": "5a1f",
    },
    {"id": "r2", "fields": {"text": "Bye"}, "responses": {}, "suggestions": {}, "metadata": {}, "vectors": {}},
]
ARGILLA_1 = [
    {
        "external_id": "r1",
        "fields": {"text": "Hello"},
        "responses": [
            {"user_id": "u1", "values": {"tone": {"value": ["kind", "dry"]}}, "status": "submitted"},
            {"user_id": "u2", "values": {}, "status": "discarded"},
        ],
    }
]
DOCCANO = {
    "anna.jsonl": [
        {"id": 1, "text": "Great", "label": ["good"], "Comments": []},
        {"id": 2, "text": "Meh", "label": [], "Comments": []},
    ],
    "bert.jsonl": [{"id": 1, "text": "Great", "label": ["good", "short"], "Comments": ["sure"]}],
}
DOCCANO_1 = [
    {
        "id": 1,
        "text": "Great",
        "annotations": [
            {"label": 2, "user": 1, "created_at": "2021-01-10T13:20:21.681338Z"},
            {"label": 1, "user": 1, "created_at": "2021-01-10T13:20:38.605696Z"},
            {"label": 2, "user": 5, "created_at": "2021-01-11T13:20:38.605696Z"},
        ],
        "meta": {},
        "annotation_approver": None,
    }
]
PRODIGY = [
    {
        "text": "Hi",
        "options": [{"id": "kind", "text": "Kind"}, {"id": "rude", "text": "Rude"}],
        "_input_hash": -15,
        "_task_hash": 99,
        "accept": ["kind"],
        "answer": "accept",
        "_timestamp": 1700000000,
        "_annotator_id": "tone-anna",
        "_session_id": "tone-anna",
    },
    {
        "text": "Hi",
        "options": [{"id": "kind"}, {"id": "rude"}],
        "_input_hash": -15,
        "_task_hash": 99,
        "accept": [],
        "answer": "ignore",
        "_timestamp": 1700000060,
        "_annotator_id": "tone-bert",
    },
]
PRODIGY_BINARY = [
    {"text": "Hi", "label": "KIND", "_input_hash": 1, "_task_hash": 2, "answer": answer, "_session_id": who}
    for answer, who in (("accept", "anna"), ("reject", "bert"))
]
IDENTIFICATION = {
    "id": 9,
    "uuid": "5a1f",
    "created_at": "2026-05-02T16:11:46-05:00",
    "current": True,
    "hidden": False,
    "category": "leading",
    "disagreement": None,
    "taxon": {"id": 12716, "name": "Turdus merula", "rank": "species", "preferred_common_name": "Blackbird"},
    "user": {"id": 1, "login": "anna"},
    "observation": {"id": 77},
}
WITHDRAWN = {**IDENTIFICATION, "id": 10, "current": False, "user": {"id": 2, "login": "bert"}}
INATURALIST = {"total_results": 2, "page": 1, "per_page": 200, "results": [IDENTIFICATION, WITHDRAWN]}

# The function, the content of a file, and what is read: volunteer, item and label; and the warning, if there is one.
GOOD = {
    "label studio": (
        cg.read_label_studio,
        LABEL_STUDIO,
        [("anna@example.com", "1", "cat"), ("11", "1", "cat + dog")],
        r"1 of 3 annotations are left out: 1 were skipped by the volunteer \(line 1\)",
    ),
    "label studio, minimal": (cg.read_label_studio, LABEL_STUDIO_MIN, [("1", "1", "cat + dog"), ("1", "2", "dog")], ""),
    "argilla": (cg.read_argilla, ARGILLA, [("u1", "r1", "kind"), ("u2", "r1", "rude")], ""),
    "argilla 1": (
        cg.read_argilla,
        ARGILLA_1,
        [("u1", "r1", "dry + kind")],
        "1 of 2 annotations are left out: 1 are drafts or were discarded",
    ),
    "doccano 1.0": (cg.read_doccano, DOCCANO_1, [("1", "1", "1 + 2"), ("5", "1", 2)], None),
    "prodigy": (
        cg.read_prodigy,
        PRODIGY,
        [("tone-anna", "-15", "kind")],
        "1 of 2 annotations are left out: 1 were ignored by the volunteer",
    ),
    "prodigy, binary": (cg.read_prodigy, PRODIGY_BINARY, [("anna", "2", "accept"), ("bert", "2", "reject")], ""),
    "inaturalist": (
        cg.read_inaturalist,
        [INATURALIST],
        [("anna", "77", "Turdus merula")],
        r"1 of 2 annotations are left out: 1 were withdrawn \(line 1\)",
    ),
    "inaturalist, observations": (
        cg.read_inaturalist,
        [{"id": 77, "species_guess": "bird", "identifications": [IDENTIFICATION]}],
        [("anna", "77", "Turdus merula")],
        "",
    ),
}
GOOD.pop("doccano 1.0")  # its labels are of two types, which `test_doccano` reads


def answers_of(graph):
    return [(one.volunteer, one.item, one.label) for one in graph.responses]


def as_lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def written(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def check_read(function, path, answers, warning, **options):
    if warning:
        with pytest.warns(DroppedRowsWarning, match=warning):
            graph = function(path, **options)
    else:
        graph = function(path, **options)
    assert answers_of(graph) == answers
    return graph


@pytest.mark.parametrize("name", GOOD)
def test_documented_layouts(name, tmp_path):
    function, records, answers, warning = GOOD[name]
    for number, content in enumerate((json.dumps(records), json.dumps(records, indent=2), as_lines(records))):
        text = "\ufeff" + content if number == 1 else content
        path = written(tmp_path / f"{number}.json", text)
        kind = function.__name__.removeprefix("read_")
        if number == 0:
            check_read(function, path, answers, warning)
            packed = tmp_path / "packed.json.gz"
            packed.write_bytes(gzip.compress(content.encode()))
            check_read(lambda path: read(path).graph, packed, answers, "")
        reading = read(path)
        assert (reading.kind, answers_of(reading.graph)) == (kind, answers)
        assert bool(warning) == any("are left out" in note for note in reading.notes)


def test_label_studio(tmp_path):
    path = written(tmp_path / "export.json", LABEL_STUDIO)
    with pytest.warns(DroppedRowsWarning):
        graph = cg.read_label_studio(path)
    assert dict(graph.gold) == {"1": "cat"}
    assert str(graph.responses[1].time) == "2026-03-09 22:18:00+00:00"
    with pytest.warns(DroppedRowsWarning):
        assert dict(cg.read_label_studio(path, gold={"1": "cat + dog"}).gold) == {"1": "cat + dog"}
    table = written(tmp_path / "export.csv", LABEL_STUDIO_CSV)
    answers = [("1", "1", "cat + dog"), ("1", "2", "dog")]
    assert answers_of(cg.read_label_studio(table, question="animal")) == answers
    assert read(table, task="animal").kind == "label_studio"
    with pytest.raises(InputError, match=r"answers several questions: 'animal', 'image'.*question=NAME") as raised:
        cg.read_label_studio(table)
    assert "--task NAME" in raised.value.message.wording("cli")
    with pytest.raises(InputError, match="answers the question 'sex'; it answers 'animal', 'image'"):
        cg.read_label_studio(table, question="sex")


def test_label_studio_kinds_of_answers(tmp_path):
    values = {
        "stars": ("rating", {"rating": 4}, 4),
        "place": ("taxonomy", {"taxonomy": [["Europe", "Alps"]]}, "Europe > Alps"),
        "count": ("number", {"number": 12}, 12),
        "note": ("textarea", {"text": ["clear"]}, "clear"),
    }
    result = [{"from_name": name, "type": kind, "value": value} for name, (kind, value, _) in values.items()]
    annotation = {"completed_by": 1, "result": result, "ground_truth": True}
    task = {"id": "t", "data": {}, "annotations": [annotation, {"completed_by": 2, "result": result[:1]}]}
    path = written(tmp_path / "export.json", [task])
    for name, (_, _, label) in values.items():
        graph = cg.read_label_studio(path, question=name) if name == "stars" else None
        if graph is None:
            with pytest.warns(DroppedRowsWarning, match="1 of 2 .*: 1 do not answer the question"):
                graph = cg.read_label_studio(path, question=name)
        assert graph.labels == (label,)
        assert dict(graph.gold) == {"t": label}
    result = [{**result[0], "value": {"rating": 1}}]
    path = written(
        tmp_path / "truths.json",
        [{**task, "annotations": [annotation, {**annotation, "completed_by": 3, "result": result}]}],
    )
    with pytest.raises(GoldError, match="'t'"):
        cg.read_label_studio(path, question="stars")


def test_doccano(tmp_path):
    answers = [("anna", "1", "good"), ("bert", "1", "good + short")]
    warning = r"1 of 3 annotations are left out: 1 have no label \(line 2 of 'anna.jsonl'\)"
    folder = tmp_path / "members"
    folder.mkdir()
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for name, records in DOCCANO.items():
            written(folder / name, as_lines(records))
            archive.writestr(name, as_lines(records))
    check_read(cg.read_doccano, folder, answers, warning)
    check_read(cg.read_doccano, tmp_path / "export.zip", answers, warning)
    reading = read(tmp_path / "export.zip")
    assert (reading.kind, answers_of(reading.graph)) == ("doccano", answers)
    single = folder / "bert.jsonl"
    with pytest.raises(InputError, match=r"does not say who labelled.*volunteer='NAME'"):
        cg.read_doccano(single)
    assert answers_of(cg.read_doccano(single, volunteer="bert")) == answers[1:]
    old = written(tmp_path / "old.json", as_lines([{**DOCCANO_1[0], "annotations": DOCCANO_1[0]["annotations"][1:]}]))
    graph = cg.read_doccano(old)
    assert answers_of(graph) == [("1", "1", 1), ("5", "1", 2)]
    assert str(graph.responses[1].time).startswith("2021-01-11")
    with pytest.raises(LabelError, match=r"mixes types.*in line 1"):
        cg.read_doccano(written(tmp_path / "mixed.json", as_lines(DOCCANO_1)))


def test_argilla_repeats_and_questions(tmp_path):
    record = {
        "id": 4,
        "fields": {},
        "responses": {
            "tone": [{"value": "kind", "user_id": "u1"}, {"value": "rude", "user_id": "u1"}],
            "length": [{"value": 3, "user_id": "u1"}],
        },
    }
    path = written(tmp_path / "records.json", [record])
    assert answers_of(cg.read_argilla(path, question="tone")) == [("u1", "4", "kind"), ("u1", "4", "rude")]
    with pytest.raises(InputError, match="several questions: 'tone', 'length'"):
        cg.read_argilla(path)
    with pytest.warns(DroppedRowsWarning, match="1 of 2 .*do not answer the question"):
        cg.read_argilla(path, question="length")
    assert answers_of(read(path, task="length").graph) == [("u1", "4", 3)]


# What is wrong


def test_files_of_another_tool_are_named(tmp_path):
    files = {name: (function, written(tmp_path / f"{i}.json", as_lines(records)), function)
             for i, (name, (function, records, _, _)) in enumerate(GOOD.items())}  # fmt: skip
    files["doccano"] = (cg.read_doccano, written(tmp_path / "d.json", as_lines(DOCCANO["bert.jsonl"])), None)
    titles = {"label_studio": "Label Studio", "inaturalist": "iNaturalist", "doccano": "doccano"}
    for function, path, _ in files.values():
        kind = function.__name__.removeprefix("read_")
        for other in {one for one, _, _ in files.values()} - {function}:
            name = titles.get(kind, kind.capitalize())
            message = rf"is a file of {name}, not of .*crowdgraph\.{function.__name__}"
            with pytest.raises(InputError, match=message) as raised:
                other(path)
            assert f"--format {kind}" in raised.value.message.wording("cli")
            with pytest.raises(InputError, match=f"is a file of {name}, not of"):
                read(path, kind=other.__name__.removeprefix("read_"))


def changed(records, *keys, to):
    """A copy of records in which what the keys lead to is something else; without `to`, it is not there."""
    copy = json.loads(json.dumps(records))
    part = copy
    for key in keys[:-1]:
        part = part[key]
    if to is KeyError:
        del part[keys[-1]]
    else:
        part[keys[-1]] = to
    return copy


FIRST = (0, "annotations", 0)
CHOSEN = (*FIRST, "result", 0, "value")
USER = "does not name the volunteer"
MALFORMED = [
    (cg.read_label_studio, changed(LABEL_STUDIO, *FIRST, "completed_by", to=None), USER),
    (cg.read_label_studio, changed(LABEL_STUDIO, *FIRST, "completed_by", to=[1]), USER),
    (cg.read_label_studio, changed(LABEL_STUDIO, *FIRST, "result", to={}), "needs a list under 'result', and has {}"),
    (cg.read_label_studio, changed(LABEL_STUDIO, *FIRST, to=5), "is not an object but 5"),
    (cg.read_label_studio, changed(LABEL_STUDIO, *FIRST, "created_at", to=5), "needs a time as text under"),
    (cg.read_label_studio, changed(LABEL_STUDIO, *FIRST, "created_at", to=KeyError), "has no time, though others have"),
    (cg.read_label_studio, changed(LABEL_STUDIO, *CHOSEN, to="x"), "needs an object under 'value'"),
    (cg.read_label_studio, changed(LABEL_STUDIO, *CHOSEN, "choices", to=[{}]),
     "has an answer that cannot be a label"),
    (cg.read_argilla, changed(ARGILLA, 0, "responses", "tone", to="kind"), "needs a list of objects with value"),
    (cg.read_argilla, changed(ARGILLA, 0, "responses", to=5), "needs an object under 'responses'"),
    (cg.read_argilla, changed(ARGILLA, 0, "id", to=None), r"does not name the item \(None\)"),
    (cg.read_argilla, changed(ARGILLA, 0, "responses", "tone", 0, "user_id", to=None), "does not name the volunteer"),
    (cg.read_argilla, changed(ARGILLA_1, 0, "responses", 0, "values", to=None), "needs an object under 'values'"),
    (cg.read_doccano, changed(DOCCANO_1, 0, "annotations", 0, "user", to=None), "needs an object with label and user"),
    (cg.read_prodigy, changed(PRODIGY, 0, "answer", to="yes"), "has the answer 'yes', not accept, reject or ignore"),
    (cg.read_prodigy, changed(PRODIGY, 0, "_timestamp", to=1e300), "needs seconds since 1970 under '_timestamp'"),
    (cg.read_prodigy, changed(PRODIGY, 0, "_timestamp", to="now"), "needs seconds since 1970 under '_timestamp'"),
    (cg.read_prodigy, changed(PRODIGY, 0, "_annotator_id", to=[1]), "does not name the volunteer"),
    (cg.read_inaturalist, changed([INATURALIST], 0, "results", 0, "taxon", to=None), "needs an object under 'taxon'"),
    (cg.read_inaturalist, changed([INATURALIST], 0, "results", 0, "taxon", "name", to=7), "needs text under 'name'"),
    (cg.read_inaturalist, changed([INATURALIST], 0, "results", to=7), "needs a list under 'results'"),
    (cg.read_inaturalist, [INATURALIST, 17], "line 2: what is there is not an object but 17"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.DroppedRowsWarning")
@pytest.mark.parametrize(("function", "records", "message"), MALFORMED)
def test_malformed_annotations(function, records, message, tmp_path):
    path = written(tmp_path / "export.jsonl", as_lines(records))
    with pytest.raises(InputError, match=message) as raised:
        function(path)
    assert "line 1" in str(raised.value) or "line 2" in message
    assert "malformed='skip'" in str(raised.value)
    good = (
        GOOD["label studio" if function is cg.read_label_studio else function.__name__.removeprefix("read_")][1]
        if function is not cg.read_doccano
        else [{**DOCCANO_1[0], "annotations": DOCCANO_1[0]["annotations"][2:]}]
    )
    both = written(tmp_path / "both.jsonl", as_lines([*records, *good]))
    with pytest.warns(DroppedRowsWarning, match="annotations are left out: .*malformed: "):
        function(both, malformed="skip")


@pytest.mark.parametrize("function", [cg.read_label_studio, cg.read_argilla, cg.read_prodigy, cg.read_inaturalist])
def test_what_is_not_an_export(function, tmp_path):
    for content, message in (
        ("", "there is nothing to make a graph of|has no answer that can be a label"),
        ("[]", "has no answer that can be a label"),
        ("{", "is not JSON: line 1 cannot be read"),
        ("volunteer,item\na,b\n", "is not JSON: line 1"),
        ("[1, 2]", "is not an export of .*: it begins with 1"),
        ('{"a": 1}', "is not an export of .*: its first record has 'a'.*crowdgraph.read_csv"),
        ("\n\n" + "[" * 100_000, "line 3 cannot be read|nested too deeply"),
        ("9" * 5_000, "is not JSON: line 1"),
    ):
        with pytest.raises(InputError, match=message):
            function(written(tmp_path / "export.json", content))
    (tmp_path / "latin.json").write_bytes(b'[\n{"a": "\xe9"}]')
    with pytest.raises(InputError, match="is not text in UTF-8: line 2 has the byte 0xe9"):
        function(tmp_path / "latin.json")
    (tmp_path / "cut.json.gz").write_bytes(gzip.compress(b"[]" * 100)[:20])
    with pytest.raises(InputError, match="cut short"):
        function(tmp_path / "cut.json.gz")
    for path in (tmp_path / "absent.json", tmp_path, 5):
        with pytest.raises(InputError, match="is not a file; give the path of an export"):
            function(path)
    with pytest.raises(ParameterError, match="malformed='ignore' is not a choice"):
        function(tmp_path / "latin.json", malformed="ignore")
    with pytest.raises(TypeError, match="has no option 'tiem'"):
        function(tmp_path / "latin.json", tiem="x")


def test_unreadable_lines_are_counted(tmp_path):
    path = written(tmp_path / "export.jsonl", as_lines(PRODIGY[:1]) + "{broken\n" + as_lines(PRODIGY_BINARY[:1] * 0))
    with pytest.raises(InputError, match="is not JSON: line 2"):
        cg.read_prodigy(path)
    with pytest.warns(DroppedRowsWarning, match=r"1 of 2 .*: 1 malformed: is not JSON \(.*\) \(line 2\)"):
        assert len(cg.read_prodigy(path, malformed="skip").responses) == 1


def test_errors_of_values_name_their_lines(tmp_path):
    rows = [changed(PRODIGY, 0, "accept", to=[label])[0] for label in ("kind", 5)]
    with pytest.raises(LabelError, match=r"mixes types: 'kind' in line 1 .*, 5 in line 2"):
        cg.read_prodigy(written(tmp_path / "mixed.jsonl", as_lines(rows)))
    tasks = changed([INATURALIST], 0, "results", 0, "created_at", to="soon")
    with pytest.raises(TimeError, match="'soon' in line 1"), pytest.warns(DroppedRowsWarning):
        cg.read_inaturalist(written(tmp_path / "times.jsonl", as_lines(tasks)))


def test_unknown_json_is_explained(tmp_path):
    for content, message in (
        ("[]", "it holds nothing"),
        ("[3]", "it begins with 3"),
        ('[{"x": 1}]', "its first record has 'x'"),
    ):
        with pytest.raises(InputError, match=f"is JSON, but not a file of 'Prodigy', .*{message}"):
            read(written(tmp_path / "some.json", content))
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("anna.jsonl", b"0" * 70_000_000)
    with pytest.raises(InputError, match="unpacks to more than"):
        cg.read_doccano(tmp_path / "bomb.zip")
    content = (tmp_path / "bomb.zip").read_bytes()
    (tmp_path / "cut.zip").write_bytes(b"PK\3\4" + content[-60:])
    with pytest.raises(InputError):
        cg.read_doccano(tmp_path / "cut.zip")


# Any file at all

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(values, max_size=5), st.sampled_from([None, 0, 2]))
def test_records_are_those_of_json(records, indent):
    text = json.dumps(records, indent=indent)
    found = list(records_of(text, "x"))
    assert [record.value for record in found] == records
    for record in found:
        line = int(record.position.removeprefix("line "))
        assert text.splitlines()[line - 1].strip(" ,") != ""
    objects = [{"x": record} for record in records]
    lines = list(records_of(as_lines(objects), "x"))
    assert [record.position for record in lines] == [f"line {number + 1}" for number in range(len(records))]
    assert [record.value for record in lines] == objects


@given(st.text(alphabet='[]{},:"1a \n', max_size=15))
def test_text_is_json_or_an_error(text):
    try:
        expected = json.loads(text)
    except ValueError:
        expected = None
    try:
        found = [record.value for record in records_of(text, "x")]
    except InputError:
        assert expected is None
        return
    if isinstance(expected, list):
        assert found == expected
    elif expected is not None:
        assert found == [expected]


people, things, words = st.integers(1, 4), st.integers(1, 5), st.sampled_from(["cat", "dog", "cat and dog"])
crowds = st.lists(st.tuples(people, things, words | st.none()), min_size=1, max_size=12)


def export_of(tool, rows):
    """Rows of who, what and which label (None: skipped) as a tool writes them, in the order in which they are read."""
    if tool == "prodigy":
        return [
            {"_input_hash": item, "_task_hash": 1, "options": [], "accept": [label or ""], "_annotator_id": f"v{who}",
             "answer": "accept" if label else "ignore"}
            for who, item, label in rows
        ]  # fmt: skip
    if tool == "inaturalist":
        return [
            {"taxon": {"name": label or "x"}, "user": {"login": f"v{who}"}, "observation": {"id": item},
             "current": label is not None}
            for who, item, label in rows
        ]  # fmt: skip
    if tool == "argilla":
        return [
            {"id": item, "fields": {}, "responses": [{"user_id": f"v{who}", "values": {"q": {"value": label}},
             "status": "submitted" if label else "draft"}]}
            for who, item, label in rows
        ]  # fmt: skip
    result = {"from_name": "q", "type": "choices"}
    return [
        {"id": item, "data": {}, "annotations": [{"completed_by": f"v{who}", "was_cancelled": label is None,
         "result": [{**result, "value": {"choices": [label]}}] if label else []}]}
        for who, item, label in rows
    ]  # fmt: skip


@pytest.mark.parametrize("tool", ["prodigy", "inaturalist", "argilla", "label_studio"])
@given(rows=crowds, indent=st.sampled_from([None, 1]))
def test_nothing_is_lost(tool, rows, indent, tmp_path_factory):
    """What is read and what is left out are together all that is in the file."""
    path = written(tmp_path_factory.getbasetemp() / f"{tool}.json", json.dumps(export_of(tool, rows), indent=indent))
    expected = [(f"v{who}", str(item), label) for who, item, label in rows if label]
    if not expected:
        with pytest.raises(InputError):
            read(path)
        return
    reading = read(path)
    assert reading.kind == tool
    assert answers_of(reading.graph) == expected
    n_left_out = len(rows) - len(expected)
    left_out = [note for note in reading.notes if "are left out" in note]
    assert len(left_out) == bool(n_left_out)
    assert all(f"{n_left_out} of {len(rows)} annotations" in note for note in left_out)


@given(rows=crowds)
def test_nothing_is_lost_of_the_members_of_a_doccano_project(rows, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "members.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for member in sorted({who for who, _, _ in rows}):
            records = [
                {"id": item, "text": "x", "label": [label] if label else []}
                for who, item, label in rows
                if who == member
            ]
            archive.writestr(f"v{member}.jsonl", as_lines(records))
    expected = [(f"v{who}", str(item), label) for who, item, label in sorted(rows, key=lambda row: row[0]) if label]
    if not expected:
        with pytest.raises(InputError):
            read(path)
        return
    reading = read(path)
    assert answers_of(reading.graph) == expected
    n_left_out = len(rows) - len(expected)
    assert any(f"{n_left_out} of {len(rows)} annotations" in note for note in reading.notes) == bool(n_left_out)


@given(rows=crowds)
def test_nothing_is_lost_of_a_table_of_label_studio(rows, tmp_path_factory):
    lines = [f"{n},{label or ''},v{who},{item},2.5" for n, (who, item, label) in enumerate(rows)]
    content = "\n".join(["annotation_id,animal,annotator,id,lead_time", *lines]) + "\n"
    path = written(tmp_path_factory.getbasetemp() / "table.csv", content)
    expected = [(f"v{who}", str(item), label) for who, item, label in rows if label]
    if not expected:
        with pytest.raises(InputError):
            read(path)
        return
    reading = read(path)
    assert (reading.kind, answers_of(reading.graph)) == ("label_studio", expected)
    n_left_out = len(rows) - len(expected)
    assert any(f"{n_left_out} of {len(rows)} annotations" in note for note in reading.notes) == bool(n_left_out)


def test_options_of_other_files_are_refused_in_the_words_of_the_door(tmp_path):
    path = written(tmp_path / "export.jsonl", as_lines(PRODIGY))
    for options, words in (
        ({"workflow": 3}, "--workflow is for Zooniverse exports"),
        ({"task": "animal"}, "--task is for Zooniverse exports"),
        ({"probability": "sure"}, "has no columns of probabilities. Leave --probability out."),
    ):
        with pytest.raises(ParameterError) as raised:
            read(path, **options)
        assert words in raised.value.message.wording("cli")
    assert read(path, malformed="skip").kind == "prodigy"
