"""Every message that advises, as the command line words it: a table of commands, exit codes and sentences."""

import re
import warnings

import pytest
from builders import crowd, fitted
from cli.commands import assert_one_sentence, run

import crowdgraph as cg
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
    "one_label.csv": "volunteer,item,label\na,x,yes\nb,x,yes\nc,y,yes\n",
    "three.csv": "volunteer,item,label\na,x,yes\nb,x,no\nc,y,no\n",
    "few_gold.csv": "item,label\ni0,yes\ni1,no\ni2,no\n",
    "other_gold.csv": "item,label\ni0,good\ni31,bad\ni12,bad\n",
    "mixed_gold.csv": "item,label\ni0,yes\ni31,bad\n",
    "no_gold.csv": "item,label\n",
    "gold_of_others.csv": "item,label\nx1,yes\nx2,no\n",
    "panoptes.csv": "user_name,workflow_id,created_at,subject_ids,annotations\n"
    'anna,1,2026-01-01 00:00:00 UTC,5,"not JSON"\n',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of files, good and bad, in which commands run."""
    folder = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "latin.csv").write_bytes(PLAIN.replace("yes", "j\xe5").encode("latin-1"))
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("x")
    (folder / "folder.csv").mkdir()
    graph = cg.read_csv(folder / "r.csv")
    graph.save(folder / "r.crowd")
    graph.with_gold({"i0": {"yes": 0.75, "no": 0.25}}).save(folder / "soft.crowd")
    return folder


# Commands, their exit codes, and what they say: 1 for what users can mend, 2 for usage, 0 for notes and advice.
MESSAGES = [
    # Reading
    ("inspect nothing.csv", 1, "There is no file"),
    ("inspect r.csv --gold nothing.csv", 1, "There is no file"),
    ("inspect gaps.csv", 1, "use --missing drop to leave these rows out", "or --missing keep for null labels"),
    ("inspect no_item.csv", 1, "use --missing drop to leave these rows out"),
    ("inspect r.csv --missing never", 1, "--missing never is not a choice"),
    ("inspect repeats.csv --duplicates error", 1, "Use --duplicates first"),
    ("inspect r.csv --duplicates never", 1, "--duplicates never is not a choice"),
    ("inspect r.csv --format xml", 1, "--format xml is not a choice"),
    ("inspect latin.csv", 1, "--encoding latin-1"),
    ("inspect r.csv --encoding klingon", 1, "--encoding klingon is not a known encoding; use one"),
    ("inspect semicolons.csv --delimiter ,", 1, "Name it with --volunteer COLUMN"),
    ("inspect strange.csv", 1, "--volunteer COLUMN"),
    ("inspect r.csv --volunteer user", 1, "has no column 'user'"),
    ("inspect timed.csv --no-time --time time", 1, "give one of both"),
    (
        "inspect panoptes.csv --format panoptes",
        1,
        "The annotations in line 2 are not readable",
        "use --malformed skip to leave such rows out",
    ),
    # Gold
    ("inspect r.csv --gold other_gold.csv --class yes --class no", 1, "Add them to --class NAME"),
    *(
        (
            f"analyse {source} --gold gold_of_others.csv --out new",
            1,
            *("None of the 2 items", "('x1', 'x2', ...)", "('i0', 'i31', 'i12', ...)", "Give the gold of these items"),
        )
        for source in ("r.csv", "r.crowd")
    ),
    # Labels that are not classes
    ("allocate r.csv --class a --class b", 1, "which class a label votes for: --vote LABEL=CLASS"),
    ("allocate r.csv --vote yes=maybe --vote no=no", 1, "--vote names 'maybe'", "with --class NAME"),
    ("allocate r.csv --vote yes=yes", 1, "--vote misses 'no'"),
    ("allocate r.csv --vote yes", 1, "--vote yes has no '='; write LABEL=CLASS"),
    ("analyse r.csv --vote yes --out new", 1, "--vote yes has no '='; write LABEL=CLASS"),
    # Models
    ("allocate one_label.csv", 1, "Name all classes that may be true with --class NAME"),
    ("allocate r.csv --model nix", 1, "--model nix is not a choice"),
    ("analyse r.csv --model dynibc --out new", 1, "--model dynibc is not a choice", "Did you mean 'dynibcc'?"),
    (
        "allocate r.csv --model weighted_majority",
        1,
        "Add some with --gold FILE, or use --model majority_vote or --model mean_score",
    ),
    # Priors
    *(
        (f"{command} --prior {prior}", 1, f"--prior {prior} must be crowd, gold, or two numbers such as 4,1.")
        for command in ("allocate r.csv", "analyse r.csv --out new", "evaluate r.csv --gold gold.csv")
        for prior in ("4", "a,b", "4,1,1", "Crowd", "4;1")
    ),
    *(
        (f"allocate r.csv --prior {prior}", 1, f"--prior {prior} must be made of numbers above zero, such as 4,1.")
        for prior in ("0,1", "1,0", "inf,1", "nan,1", "1,-2")
    ),
    ("allocate r.csv --prior 1e-20,1", 1, "numbers above zero (pseudo-counts)"),
    ("allocate r.csv --prior gold", 1, "Add gold with --gold FILE, or leave --prior out"),
    (
        "allocate r.csv --model majority_vote --prior 4,1",
        1,
        "The model 'majority_vote' has no prior of confusion.",
        "Leave --prior out, or use --model ibcc",
    ),
    # Evaluation
    ("evaluate r.csv", 1, "give a file of items and their classes with --gold"),
    ("evaluate soft.crowd", 1, "Add some with --gold FILE"),
    (
        "evaluate r.csv --gold few_gold.csv --folds 9",
        1,
        *("--folds 9", "only 3 items have gold", "se --folds 3 or fewer"),
    ),
    # Allocation
    ("allocate r.csv --policy best", 1, "--policy best is not a choice"),
    *(
        (
            f"allocate r.csv {option} {value}",
            1,
            f"{option} needs times, and there are none; name the column that has them with --time",
        )
        for option, value in (("--active-since", "2026-01-01"), ("--likely-within", 30))
    ),
    (
        "allocate timed.csv --active-since 2027-01-01",
        1,
        "Nobody has answered since 2027-01-01; the last response is of 2026-03-28",
    ),
    (
        "allocate timed.csv --active-since soon",
        1,
        "--active-since soon is not a date; write it like 2026-03-01 or 2026-03-01T12:00.",
    ),
    ("allocate timed.csv --likely-within -1", 1, "--likely-within -1 must be"),
    # Writing
    ("analyse r.csv --out full", 1, "name another directory, or use --force to replace"),
    ("analyse r.csv --out r.csv", 1, "is a file; name a directory"),
    ("analyse r.csv --out r.csv/x", 1, "since 'r.csv' is a file"),
    ("convert r.csv timed.csv", 1, "is there already; name another file, or use --force to replace it"),
    ("convert r.csv x.ods", 1, "must end in .csv"),
    ("convert r.csv new/x.csv", 1, "make it first"),
    ("convert r.csv folder.csv", 1, "is a directory"),
    ("allocate r.csv --out gold.csv", 1, "is there already; name another file, or use --force to replace it"),
    ("allocate r.csv --out r.csv/x", 1, "r.csv' is a file"),
    ("allocate r.csv --out x.txt", 1, "must end in .csv"),
    # Simulated crowds
    (
        "simulate new --volunteers 2 --items 2 --responses 100",
        1,
        "--responses 100 cannot be shared among 2 volunteers",
    ),
    ("simulate new --volunteers 2 --communities 5", 1, "--communities 5 is more than there are volunteers or items"),
    ("simulate new --drift sideways", 1, "--drift sideways is not a choice"),
    *(
        (f"simulate new --galaxy-zoo --{option} 1", 1, f"--{option} does not go with --galaxy-zoo")
        for option in ("volunteers", "items", "responses", "gold", "communities")
    ),
    # Usage
    *((command, 2, "Usage:") for command in ("nix", "inspect --colour", "demo --seed x", "demo --seed -1")),
    # Notes
    ("inspect r.csv --gold no_gold.csv", 0, "'no_gold.csv' names no class of any item, so there is no gold"),
    ("inspect r.csv --gold mixed_gold.csv", 0, "Say --class NAME if items can be something else"),
    (
        "inspect r.csv --class a --class b",
        0,
        "gold does not show which class each of them votes for; say it with --vote LABEL=CLASS",
    ),
    (
        "allocate repeats.csv",
        0,
        "Keep one of each with --duplicates first or --duplicates last",
        "or use --model dynibcc",
    ),
    ("allocate r.csv --model dynibcc", 0, "Name a column with --time if they were given in another order"),
    (
        "analyse three.csv --out small --snapshots 0",
        0,
        "No volunteer has 10 answers or more",
        "ower --min-responses",
    ),
]


@pytest.mark.parametrize(("command", "code", "sentences"), [(*row[:2], row[2:]) for row in MESSAGES])
def test_messages_are_in_the_words_of_the_command_line(command, code, sentences, folder, monkeypatch):
    monkeypatch.chdir(folder)
    entries = set(folder.iterdir())
    result = run(*command.split())
    assert result.exit_code == code, result.output
    printed = " ".join(result.output.split())
    for sentence in sentences:
        assert sentence in printed
    assert "Traceback" not in result.output
    # The arguments of Python, such as n_responses, are options here.
    assert not re.search(r"\bn_[a-z]", result.stderr)
    if code == 1:
        assert_one_sentence(result, sentences[0])
    if code:
        assert set(folder.iterdir()) == entries


def on_the_command_line(problem):
    return wording(problem.message, "cli")


TABLE = {"volunteer": list("abcabc"), "item": list("xxxyyy"), "label": ["yes", "no", "yes", "no", "no", "yes"]}
REPEATS = {"volunteer": list("aab"), "item": list("xxx"), "label": ["yes", "no", "yes"]}
SIZES = {"n_volunteers": 6, "n_items": 20, "n_responses": 60}


def small(**options):
    return crowd(**SIZES, **options).graph


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: cg.IBCC(max_iter=2).fit(small(gold=0)), "In Python, raise max_iter, or tol"),
        (
            lambda: cg.GibbsIBCC(chains=2, burn_in=1, max_draws=20).fit(small(gold=0), seed=0),
            "In Python, raise max_draws or",
        ),
        (
            lambda: cg.BayesianNMF(max_iter=2).detect(cg.networks.task_cooccurrence(small(), min_responses=1), seed=0),
            "In Python, raise max_iter (now 2)",
        ),
        (lambda: cg.DynIBCC().fit(cg.CrowdGraph.from_responses(TABLE)), "Name a column with --time"),
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


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda _: cg.networks.task_cooccurrence(small(), min_responses=99),
            "ower --min-responses",
        ),
        (
            lambda _: cg.IBCC(confusion_prior="gold").fit(small(gold=0)),
            "Add gold with --gold FILE, or leave --prior out",
        ),
        (lambda _: cg.allocation.calibrated_retirement(small(gold=0)), "Add gold with --gold FILE"),
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
            lambda _: cg.allocation.GreedyValue().assign(fitted(**SIZES), budget=3, capacity=0),
            "aise --capacity",
        ),
        (lambda _: small(gold=0).select_experienced(), "--class NAME"),
    ],
)
def test_errors_on_the_command_line(call, sentence, folder):
    with pytest.raises(cg.errors.CrowdGraphError) as raised:
        call(folder)
    assert sentence in on_the_command_line(raised.value)
