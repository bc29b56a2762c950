"""Every message that advises, as the command line says it: a table of calls, exit codes and sentences."""

import ast
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import crowdgraph as cg
from crowdgraph.cli import app
from crowdgraph.messages import wording

PLAIN = "volunteer,item,label\n" + "".join(f"v{n % 7},i{n * 31 % 50},{'yes' if n % 3 else 'no'}\n" for n in range(90))
TIMED = "volunteer,item,label,time\n" + "".join(
    f"v{n % 7},i{n * 31 % 50},{'yes' if n % 3 else 'no'},2026-03-{n % 28 + 1:02}\n" for n in range(90)
)
GOLD = "item,label\n" + "".join(f"i{n},{'yes' if n % 2 else 'no'}\n" for n in range(30))
FILES = {
    "r.csv": PLAIN,
    "timed.csv": TIMED,
    "gold.csv": GOLD,
    "gaps.csv": PLAIN + "v1,i1,\n",
    "no_item.csv": PLAIN + "v1,,yes\n",
    "repeats.csv": PLAIN + "v0,i0,yes\nv0,i0,yes\nv1,i31,no\n",
    "semicolons.csv": PLAIN.replace(",", ";"),
    "strange.csv": "who,what,said\na,x,yes\n",
    "dates.csv": TIMED.replace("2026-03-", "13/02/"),
    "one_label.csv": "volunteer,item,label\na,x,yes\nb,x,yes\nc,y,yes\n",
    "three.csv": "volunteer,item,label\na,x,yes\nb,x,no\nc,y,no\n",
    "few_gold.csv": "item,label\ni0,yes\ni1,no\ni2,no\n",
    "other_gold.csv": "item,label\ni0,good\ni31,bad\ni12,bad\n",
    "mixed_gold.csv": "item,label\ni0,yes\ni31,bad\n",
    "panoptes.csv": "user_name,workflow_id,created_at,subject_ids,annotations\n"
    'anna,1,2026-01-01 00:00:00 UTC,5,"not JSON"\n',
}


def run(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "utf16.csv").write_bytes(PLAIN.encode("utf-16"))
    (folder / "latin.csv").write_bytes(PLAIN.replace("yes", "j\xe5").encode("latin-1"))
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("x")
    graph = cg.read_csv(folder / "r.csv")
    graph.with_gold({"i0": {"yes": 0.75, "no": 0.25}}).save(folder / "soft.crowd")
    return folder


@pytest.mark.parametrize(
    ("command", "code", "sentences"),
    [
        # Reading
        ("inspect gaps.csv", 1, ["use --missing drop to leave these rows out", "or --missing keep for null labels"]),
        ("inspect no_item.csv", 1, ["use --missing drop to leave these rows out"]),
        ("inspect r.csv --missing never", 1, ["--missing never is not a choice"]),
        ("inspect repeats.csv --duplicates error", 1, ["Use --duplicates first"]),
        ("inspect r.csv --duplicates never", 1, ["--duplicates never is not a choice"]),
        ("inspect r.csv --format xml", 1, ["--format xml is not a choice"]),
        ("inspect utf16.csv", 1, ["use --encoding utf-16"]),
        ("inspect latin.csv", 1, ["--encoding latin-1"]),
        ("inspect r.csv --encoding klingon", 1, ["--encoding klingon is not a known encoding"]),
        ("inspect semicolons.csv --delimiter ,", 1, ["Name it with --volunteer COLUMN"]),
        ("inspect strange.csv", 1, ["--volunteer COLUMN"]),
        ("inspect r.csv --volunteer user", 1, ["has no column 'user'"]),
        ("inspect dates.csv", 1, ["Or leave the times out: --no-time."]),
        ("inspect panoptes.csv --format panoptes", 1, ["leave such rows out, in Python with malformed='skip'"]),
        ("inspect r.csv --gold other_gold.csv --class yes --class no", 1, ["Add them to --class NAME"]),
        ("inspect r.csv --gold mixed_gold.csv", 0, ["Say --class NAME if items can be something else"]),
        # Labels that are not classes
        ("inspect r.csv --class a --class b", 0, ["say it with --vote LABEL=CLASS"]),
        ("allocate r.csv --class a --class b", 1, ["which class a label votes for: --vote LABEL=CLASS"]),
        (
            "allocate r.csv --vote yes=maybe --vote no=no",
            1,
            ["--vote names 'maybe'", "with --class NAME"],
        ),
        ("allocate r.csv --vote yes=yes", 1, ["--vote misses 'no'"]),
        ("allocate r.csv --vote yes", 1, ["--vote yes has no '='; write LABEL=CLASS"]),
        # Models
        ("allocate one_label.csv", 1, ["Name all classes that may be true with --class NAME"]),
        ("allocate r.csv --model nix", 1, ["--model nix is not a choice"]),
        ("analyse r.csv --model nix --out new", 1, ["--model nix is not a choice"]),
        (
            "allocate r.csv --model weighted_majority",
            1,
            ["Add some with --gold FILE, or use --model majority_vote or --model mean_score"],
        ),
        (
            "allocate repeats.csv",
            0,
            ["Keep one of each with --duplicates first or --duplicates last", "or use --model dynibcc"],
        ),
        ("allocate r.csv --model dynibcc", 0, ["Name a column with --time if they were given in another order"]),
        # Communities
        (
            "analyse three.csv --out small --snapshots 0",
            0,
            ["No volunteer has 10 answers or more", "ower --min-responses"],
        ),
        # Evaluation
        ("evaluate r.csv", 1, ["give a file of items and their classes with --gold"]),
        ("evaluate soft.crowd", 1, ["Add some with --gold FILE"]),
        (
            "evaluate r.csv --gold few_gold.csv --folds 9",
            1,
            ["--folds 9", "only 3 items have gold", "se --folds 3 or fewer"],
        ),
        # Allocation
        ("allocate r.csv --policy best", 1, ["--policy best is not a choice"]),
        # Writing
        ("analyse r.csv --out full", 1, ["name another directory, or use --force to replace"]),
        ("convert r.csv timed.csv", 1, ["name another file, or use --force to replace it"]),
        ("allocate r.csv --out gold.csv", 1, ["name another file, or use --force to replace it"]),
        # Simulated crowds
        (
            "simulate new --volunteers 2 --items 2 --responses 100",
            1,
            ["--responses 100 cannot be shared among 2 volunteers"],
        ),
        (
            "simulate new --volunteers 2 --communities 5",
            1,
            ["--communities 5 is more than there are volunteers or items"],
        ),
    ],
)
def test_messages_of_commands(command, code, sentences, folder, monkeypatch):
    monkeypatch.chdir(folder)
    done = run(*command.split())
    said = " ".join(done.output.split())
    assert done.exit_code == code, done.output
    for sentence in sentences:
        assert sentence in said
    assert not (folder / "new").exists()


def on_the_command_line(problem):
    return wording(problem.message, "cli")


def crowd(**options):
    return cg.simulate.crowd(**{"n_volunteers": 6, "n_items": 20, "n_responses": 60, "seed": 0, **options}).graph


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: cg.IBCC(max_iter=2).fit(crowd(gold=0)), "In Python, raise max_iter, or tol"),
        (
            lambda: cg.GibbsIBCC(chains=2, burn_in=1, max_draws=20).fit(crowd(gold=0), seed=0),
            "In Python, raise max_draws or",
        ),
        (
            lambda: cg.BayesianNMF(max_iter=2).detect(cg.networks.task_cooccurrence(crowd(), min_responses=1), seed=0),
            "In Python, raise max_iter (now 2)",
        ),
        (lambda: cg.DynIBCC().fit(cg.CrowdGraph.from_responses({**TABLE})), "Name a column with --time"),
        (
            lambda: cg.IBCC().fit(cg.CrowdGraph.from_responses(REPEATS)),
            "--duplicates first or --duplicates last, or use --model dynibcc",
        ),
    ],
)
def test_warnings_on_the_command_line(call, sentence):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert any(sentence in on_the_command_line(warning.message) for warning in caught), [str(w.message) for w in caught]


TABLE = {"volunteer": list("abcabc"), "item": list("xxxyyy"), "label": ["yes", "no", "yes", "no", "no", "yes"]}
REPEATS = {"volunteer": list("aab"), "item": list("xxx"), "label": ["yes", "no", "yes"]}


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda _: cg.networks.task_cooccurrence(crowd(), min_responses=99),
            "ower --min-responses",
        ),
        (
            lambda _: cg.IBCC(confusion_prior="gold").fit(crowd(gold=0)),
            "Add gold with --gold FILE, or give the prior as numbers",
        ),
        (lambda _: cg.allocation.calibrated_retirement(crowd(gold=0)), "Add gold with --gold FILE"),
        (lambda folder: cg.read_csv(folder / "semicolons.csv", delimiter=","), "use --delimiter ;"),
        (
            lambda folder: cg.read_csv(folder / "semicolons.csv", delimiter="ab"),
            "--delimiter ab must be a single ASCII character",
        ),
        (
            lambda _: cg.CrowdGraph.from_responses({**TABLE, "label": list("101010")}, gold={"x": 1, "y": 0}),
            "or say with --class NAME what items can be",
        ),
        (
            lambda _: cg.allocation.GreedyValue().assign(fitted(), budget=3, capacity=0),
            "aise --capacity",
        ),
        (lambda _: crowd(gold=0).select_experienced(), "--class NAME"),
    ],
)
def test_errors_on_the_command_line(call, sentence, folder):
    with pytest.raises(cg.errors.CrowdGraphError) as raised:
        call(folder)
    assert sentence in on_the_command_line(raised.value)


def fitted(**options):
    graph = crowd(**options)
    return graph.annotate(cg.IBCC().fit(graph))


def columns(graph):
    frame = graph.to_pandas()
    return {name: frame[name].to_numpy().copy() for name in frame.columns}


def large(**options):
    return cg.simulate.crowd(n_volunteers=60, n_items=300, n_responses=4_000, stays="long", seed=0, **options).graph


def fast():
    graph = large()
    rows = columns(graph)
    name = graph.volunteers.ids[graph.volunteers.n_responses.argmax()]
    own = np.flatnonzero(rows["volunteer"] == name)
    rows["time"] = rows["time"].astype("datetime64[ms]")
    rows["time"][own] = rows["time"][own[0]] + np.arange(len(own)) * np.timedelta64(500, "ms")
    return cg.CrowdGraph.from_responses(rows, gold=dict(graph.gold))


def one_for_all():
    graph = large()
    rows = columns(graph)
    again = {name: np.append(column, column[::2]) for name, column in rows.items()}
    again["volunteer"][len(rows["item"]) :] = "busy"
    return cg.CrowdGraph.from_responses(again, gold=dict(graph.gold))


def rows_twice():
    rows = columns(large())
    return cg.CrowdGraph.from_responses({name: np.append(column, column[:900]) for name, column in rows.items()})


def inconsistent():
    rows = columns(large())
    again = {name: np.append(column, column[:900]) for name, column in rows.items()}
    again["label"][-900:] = np.random.default_rng(0).permutation(again["label"][-900:])
    again["time"][-900:] += np.timedelta64(1, "D")
    return cg.CrowdGraph.from_responses(again)


def pause():
    rows = columns(large())
    late = rows["time"] > np.median(rows["time"].astype("int64")).astype(rows["time"].dtype)
    rows["time"][late] += np.timedelta64(900, "D")
    return cg.CrowdGraph.from_responses(rows)


def stray():
    rows = columns(large())
    rows["time"][:2] = np.datetime64("1970-01-01")
    return cg.CrowdGraph.from_responses(rows)


def untimed():
    rows = columns(large())
    del rows["time"]
    return cg.CrowdGraph.from_responses(rows)


def lone_items():
    rows = columns(large())
    rows["item"] = np.array([f"item {n}" if n % 2 else name for n, name in enumerate(rows["item"])], dtype=object)
    return cg.CrowdGraph.from_responses(rows)


def unnamed():
    return cg.CrowdGraph.from_responses(columns(large()), classes=["whale", "ship"])


@pytest.mark.parametrize(
    ("make", "name", "advice"),
    [
        (fast, "fast answers", "leave their rows out of the file if"),
        (one_for_all, "very active volunteers", "Compare with and without them. Ask others"),
        (rows_twice, "rows twice", "--duplicates first"),
        (inconsistent, "repeated answers", "--duplicates last"),
        (lambda: crowd(gold=0), "ruled by the prior", "--min-responses"),
        (lambda: crowd(gold=0), "ruled by the prior", "in Python, learn it with IBCC("),
        (lambda: large(gold=0), "no gold", "Add the classes of some items with --gold FILE"),
        (unnamed, "no gold", "or say what labels mean with --vote LABEL=CLASS"),
        (untimed, "no times", "name it: --time created_at"),
        (pause, "pauses", "Look at both sides on their own, as two files"),
        (stray, "stray times", "leave their rows out of the file if"),
        (lone_items, "items with one answer", "crowdgraph allocate"),
    ],
)
def test_advice_of_the_data_doctor(make, name, advice, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make().save(tmp_path / "c.crowd")
    done = run("inspect", tmp_path / "c.crowd")
    assert done.exit_code == 0, done.output
    _, found, rest = done.stdout.partition(f": {name}\n")
    assert found, done.stdout
    assert advice in " ".join(rest.split("\n\n")[0].split())


CALL = re.compile(r"\w[(]|[a-z_]=|\bcg\.|\bgraph\.\w")


def texts(node):
    """The text of all string constants below a node of a syntax tree."""
    constants = (part for part in ast.walk(node) if isinstance(part, ast.Constant))
    return " ".join(part.value for part in constants if isinstance(part.value, str))


def test_advice_for_the_command_line_names_no_calls():
    """Neither in the form of a hint for it nor in advice with a single form, unless it says that it is Python."""
    hints, advice = [], []
    for path in Path(cg.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Hint", "Message"):
                hints += [texts(keyword.value) for keyword in node.keywords if keyword.arg == "cli"]
            if isinstance(node, ast.keyword) and node.arg == "advice" and path.parent.name == "diagnosis":
                advice += [texts(node.value)] if "Hint(" not in ast.unparse(node.value) else []
    assert len(hints) > 40
    assert len(advice) > 5
    assert [text for text in hints + advice if CALL.search(text) and "in python" not in text.lower()] == []
