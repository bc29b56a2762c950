"""Odd crowds by name: few of something, much of something, odd values, and graphs that came from somewhere else.

``ODD_CROWDS["one item"]()`` builds the graph, or raises one of our errors where such a crowd is refused.
"""

import atexit
import datetime as dt
import random
import tempfile
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

import crowdgraph as cg

CLASSES = ("no", "yes")
# Ids and labels that something on the way to a page, a table or a terminal may take for something else.
TEXTS = (
    "\U0001f600", "\U0001f469\u200d\U0001f467", "\u202eabc", "\u05e9\u05dc\u05d5\u05dd", "a\nb", "a\tb", "a\rb", " ",
    "", "nan", "NULL", "None", "true", "1e5", "</script><script>alert(1)</script>", "]]>", "&", "=cmd|' /C calc'!A0",
    "-1+1", "@SUM(A1)", 'a,b"c', "\x00x", "../../x", "C:\\x", "\xe9", "e\u0301", "\ufb01", "\ufeff", "\x1b]0;x\x07",
    "$", "$$", "$_$", "$10^$", r"\frac{1}{0}", "{}", "%s", "[bold]x[/bold]", "\u200b",
)  # fmt: skip


def truth_of(item):
    return CLASSES[item % 2]


def usually_right(volunteer, item, rng):
    return truth_of(item if rng.random() < 0.85 else item + 1)


def at_random(volunteer, item, rng):
    return rng.choice(CLASSES)


def always(label):
    return lambda volunteer, item, rng: label


def any_of(labels):
    return lambda volunteer, item, rng: rng.choice(labels)


def crowd_of(
    answer=usually_right,
    *,
    n=150,
    n_volunteers=8,
    n_items=20,
    volunteer="v{}".format,
    item="i{}".format,
    times=int,
    gold=None,
    **options,
):
    """Random volunteers answer random items; functions of their numbers name them, and give the times of rows.

    `gold` maps numbers of items to classes, and what is left are options of `CrowdGraph.from_responses`.
    """
    rng = random.Random(0)  # noqa: S311 - nothing here is secret
    pairs = [(rng.randrange(n_volunteers), rng.randrange(n_items)) for _ in range(n)]
    columns = {
        "volunteer": [volunteer(number) for number, _ in pairs],
        "item": [item(number) for _, number in pairs],
        "label": [answer(*pair, rng) for pair in pairs],
    }
    if times is not None:
        columns["time"] = [times(row) for row in range(n)]
    known = None if gold is None else {item(number): value for number, value in gold.items()}
    return cg.CrowdGraph.from_responses(columns, gold=known, **options)


def rows_of(rows, **options):
    """A crowd of rows of volunteer, item and label, one after another."""
    volunteers, items, labels = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {"volunteer": list(volunteers), "item": list(items), "label": list(labels)}
    return cg.CrowdGraph.from_responses({**columns, "time": list(range(len(rows)))}, **options)


def named(names):
    """Names for `crowd_of`."""
    return names.__getitem__


def sized(names, **options):
    """A crowd in which every volunteer and every item has one of these names."""
    return crowd_of(
        n=max(150, 8 * len(names)),
        n_volunteers=len(names),
        n_items=len(names),
        volunteer=named(names),
        item=named(names),
        **options,
    )


# Few of something, or much.
SHAPES = {
    "no responses": lambda: rows_of([], labels=CLASSES),
    "one response": lambda: rows_of([("anna", "x", "no")]),
    "one response of two labels": lambda: rows_of([("anna", "x", "no")], labels=CLASSES),
    "one volunteer": lambda: crowd_of(n_volunteers=1),
    "two volunteers": lambda: crowd_of(n_volunteers=2),
    "three volunteers": lambda: crowd_of(n_volunteers=3),
    "one item": lambda: crowd_of(n_items=1),
    "everybody answers once": lambda: rows_of([(f"v{row}", row % 6, truth_of(row)) for row in range(60)]),
    "every item answered once": lambda: rows_of([(row % 6, f"i{row}", truth_of(row)) for row in range(60)]),
    "nobody meets": lambda: rows_of([(row % 9, f"{row % 9} {row}", truth_of(row // 9)) for row in range(90)]),
    "one answered everything": lambda: rows_of(
        [("all", row, truth_of(row)) for row in range(3_000)]
        + [(f"v{row % 9}", row * 7, truth_of(row * 7 + row % 3)) for row in range(200)]
    ),
    "everybody answered everything": lambda: rows_of([(row % 9, row // 9, truth_of(row // 9)) for row in range(180)]),
    "two crowds that never meet": lambda: rows_of(
        [(f"{row % 2} {row % 10}", f"{row % 2} {row % 26}", truth_of(row % 26)) for row in range(300)]
    ),
    "volunteers and items without responses": lambda: crowd_of(
        volunteers={"volunteer": ["nobody", "no one"]}, items={"item": ["nothing"]}
    ),
    "contradictory repeats": lambda: rows_of([(row % 4, row // 4 % 5, CLASSES[row % 2]) for row in range(200)]),
    "nobody answered": lambda: rows_of([("anna", "x", None)] * 5, labels=CLASSES, missing="keep"),
    "a third unanswered": lambda: crowd_of(lambda *pair: pair[2].choice([None, *CLASSES]), missing="keep"),
    "same names for volunteers and items": lambda: crowd_of(volunteer=str, item=str, n_volunteers=20),
}

# What is said.
LABELS = {
    "everybody agrees": lambda: crowd_of(lambda volunteer, item, rng: truth_of(item)),
    "the same answer always": lambda: crowd_of(always("no"), labels=CLASSES),
    "one label": lambda: crowd_of(always("no")),
    "noise": lambda: crowd_of(at_random, n=300),
    "half lie": lambda: crowd_of(lambda volunteer, item, rng: truth_of(item + volunteer % 2), n=300),
    "half lie, with gold": lambda: crowd_of(
        lambda volunteer, item, rng: truth_of(item + volunteer % 2), n=300, gold={x: truth_of(x) for x in range(8)}
    ),
    "everybody repeats themselves": lambda: crowd_of(lambda volunteer, item, rng: CLASSES[volunteer % 2]),
    "copies of a program": lambda: rows_of(
        [(f"bot {row % 5}", row // 5, CLASSES[row // 5 * 7 % 3 % 2]) for row in range(200)]
        + [(f"human {row % 5}", row % 40, truth_of(row % 40)) for row in range(200)]
    ),
    "a label that nobody uses": lambda: crowd_of(labels=(*CLASSES, "maybe"), classes=CLASSES),
    "a class that nobody sees": lambda: crowd_of(classes=(*CLASSES, "neither"), gold={0: "no", 1: "yes"}),
    "one class": lambda: crowd_of(classes=["no"]),
    "labels unlike classes": lambda: crowd_of(any_of([-1, 1, 3]), classes=CLASSES, gold={0: "no", 1: "yes"}),
    "fewer labels than classes": lambda: crowd_of(classes=[*CLASSES, "perhaps", "neither"], n=300),
    "fifty classes": lambda: crowd_of(any_of(range(50)), n=1_500, n_items=60),
    "thirty labels of twenty classes": lambda: crowd_of(any_of(range(30)), n=900, n_items=60, classes=range(20)),
    "labels are booleans": lambda: crowd_of(any_of([True, False])),
    "labels are numbers": lambda: crowd_of(any_of([0.5, 1.5, -0.0])),
    "labels are huge numbers": lambda: crowd_of(any_of([2**70, -(2**70)])),
    "labels are tuples": lambda: crowd_of(any_of([(1, "a"), (2, "b")])),
    "labels are dates": lambda: crowd_of(any_of([dt.date(1, 1, 1), dt.date(9999, 12, 31)])),
    "labels of several types": lambda: crowd_of(any_of([1, "1", (1,), None, b"1"]), missing="keep"),
    "labels are odd texts": lambda: crowd_of(any_of(TEXTS), n=600),
    "labels are mathematics": lambda: crowd_of(any_of(["!@#$%^&*$", "$0-$10", "$$$", "$10^$"])),
    "a label of a megabyte": lambda: crowd_of(any_of(["x" * 1_000_000, "y"])),
    "a label is half a character": lambda: crowd_of(any_of(["\ud800", "y"])),
}

# What is known.
GOLD = {
    "all gold": lambda: crowd_of(gold={x: truth_of(x) for x in range(20)}),
    "all gold is wrong": lambda: crowd_of(gold={x: truth_of(x + 1) for x in range(20)}),
    "gold of one class": lambda: crowd_of(gold=dict.fromkeys(range(0, 20, 2), "no")),
    "one gold item": lambda: crowd_of(gold={0: "no"}),
    "gold of an item that nobody answered": lambda: crowd_of(gold={0: "no", 99: "yes"}, items={"item": ["i99"]}),
    "gold is undecided": lambda: crowd_of(gold={x: {"no": 0.5, "yes": 0.5} for x in range(20)}),
    "gold is nearly certain": lambda: crowd_of(gold={x: {"no": 1 - 1e-15, "yes": 1e-15} for x in range(20)}),
    "gold is nearly impossible": lambda: crowd_of(
        gold={x: {truth_of(x + 1): 1, truth_of(x): 1e-300} for x in range(20)}
    ),
    "gold that does not sum to one": lambda: crowd_of(gold={0: {"no": 0.5, "yes": 0.6}}),
    "gold is not a number": lambda: crowd_of(gold={0: {"no": float("nan"), "yes": 1.0}}),
    "certain and uncertain gold": lambda: crowd_of(gold={0: "no", 1: {"no": 0.3, "yes": 0.7}, 2: {"no": 0, "yes": 1}}),
}

# When it was said.
BERLIN = ZoneInfo("Europe/Berlin")
BC = np.datetime64("-0044-03-15", "us")
FAR = np.datetime64("12026-01-01", "us")


def every(start, step):
    return lambda row: start + row * step


def at(*moments):
    return lambda row: moments[row % len(moments)]


TIMES = {
    "no times": lambda: crowd_of(times=None),
    "all at once": lambda: crowd_of(times=at(5)),
    "backwards": lambda: crowd_of(times=lambda row: -row),
    "in no order": lambda: crowd_of(times=lambda row: row * 7919 % 101),
    "the largest and the smallest integer": lambda: crowd_of(times=at(-(2**63), 2**63 - 1)),
    "integers that are too large": lambda: crowd_of(times=at(2**63, -(2**70))),
    "the smallest floats": lambda: crowd_of(times=lambda row: row * 5e-324),
    "the largest floats": lambda: crowd_of(times=lambda row: row * 8e305),
    "floats of both signs and -0.0": lambda: crowd_of(times=at(-1.5, -0.0, 0.0, 1e-9)),
    "times that are not numbers": lambda: crowd_of(times=at(1.0, float("nan"), float("inf"))),
    "numbers as text": lambda: crowd_of(times=str),
    "dates": lambda: crowd_of(times=every(dt.date(2026, 1, 1), dt.timedelta(days=1))),
    "ISO texts": lambda: crowd_of(times=lambda row: f"2026-01-{1 + row % 28:02}T00:00:00+02:00"),
    "from the year 1 on": lambda: crowd_of(times=every(dt.datetime(1, 1, 1), dt.timedelta(days=18_000))),
    "the first day of the year 1": lambda: crowd_of(times=every(dt.datetime(1, 1, 1), dt.timedelta(minutes=1))),
    "the last day of the year 9999": lambda: crowd_of(times=every(dt.datetime(9999, 12, 31), dt.timedelta(minutes=9))),
    "before the year 1": lambda: crowd_of(times=every(BC, np.timedelta64(1, "D"))),
    "after the year 9999": lambda: crowd_of(times=every(FAR, np.timedelta64(1, "D"))),
    "nanoseconds": lambda: crowd_of(times=every(np.datetime64("2026-01-01", "ns"), np.timedelta64(1, "ns"))),
    "the limits of nanoseconds": lambda: crowd_of(
        times=at(np.datetime64(-(2**63) + 1, "ns"), np.datetime64(0, "ns"), np.datetime64(2**63 - 1, "ns"))
    ),
    "the repeated hour": lambda: crowd_of(
        times=at(*(dt.datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=fold) for fold in (0, 1)))
    ),
    "the hour that is left out": lambda: crowd_of(times=at(dt.datetime(2026, 3, 29, 2, 30, tzinfo=BERLIN))),
    "several zones": lambda: crowd_of(
        times=at(dt.datetime(2026, 1, 1, tzinfo=BERLIN), dt.datetime(2026, 1, 2, tzinfo=dt.UTC))
    ),
    "with and without zones": lambda: crowd_of(
        times=at(dt.datetime(2026, 1, 1, tzinfo=BERLIN), dt.datetime(2026, 1, 2))
    ),
    "one answer in 1970": lambda: crowd_of(
        times=lambda row: dt.datetime(2026, 1, 1) + dt.timedelta(hours=row) if row else dt.datetime(1970, 1, 1)
    ),
}


# What volunteers and items are called.
IDS = {
    "ids are integers": lambda: sized([0, -1, 2**62, -(2**63), 7, 8, 9]),
    "ids are huge integers": lambda: sized([2**70, 2**64, -(2**70), 1, 2, 3]),
    "ids are numbers": lambda: sized([1.5, -0.0, 1e-300, float("inf"), 1e300, 2.5]),
    "ids are booleans": lambda: sized([True, False]),
    "ids are tuples": lambda: sized([(1, "a"), ((1,), None), (1.5, True), ("x",), (), (b"x", dt.date(1, 1, 1))]),
    "ids are dates": lambda: sized(
        [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2026, 2, 28), dt.date(2026, 3, 1)]
    ),
    "ids are bytes": lambda: sized([b"", b"\0", b"x", b"\x7f"]),
    "ids are bytes that are no text": lambda: sized([b"", b"\0", b"x", b"\xff"]),
    "ids are sets": lambda: sized([frozenset({1}), frozenset(), frozenset({"a", 1}), frozenset({2})]),
    "ids of several types": lambda: sized([1, "1", 1.5, (1, 2), dt.date(2020, 1, 1), b"x", "q"]),
    "ids that are not equal to themselves": lambda: sized([float("nan"), 1.0, 2.0]),
    "not a number within an id": lambda: sized([(float("nan"), 1), (1.0, 2), (2.0, 3)]),
    "ids are odd texts": lambda: sized(TEXTS),
    "ids of a million characters": lambda: sized([character * 1_000_000 for character in "abcd"]),
    "an id is half a character": lambda: sized(["\ud800", "a", "b"]),
    "ids are lists": lambda: sized([[1], [2]]),
    "ids are arrays": lambda: sized([np.int64(3), np.str_("x"), np.float32(0.5), np.bool_(True)]),
}


# Graphs that came from somewhere else.
def folder():
    """A new folder that is there as long as the process."""
    scratch = tempfile.TemporaryDirectory(prefix="odd-crowds-")
    atexit.register(scratch.cleanup)
    return Path(scratch.name)


def usual():
    return crowd_of(n=200, gold={x: truth_of(x) for x in range(4)})


def loaded(**options):
    path = folder() / "graph.crowd"
    usual().save(path, **options)
    return cg.load(path)


def through_graphml():
    path = folder() / "graph.graphml"
    usual().to_graphml(path)
    return cg.read_graphml(path)


ORIGINS = {
    "a usual crowd": usual,
    "nothing yet": lambda: usual().before(0),
    "the first response": lambda: usual().first(1),
    "a window without responses": lambda: usual().window(10_000, None),
    "a window": lambda: usual().window(50, 120),
    "a subgraph of one volunteer": lambda: usual().subgraph(volunteers=["v0"]),
    "a subgraph of nobody": lambda: usual().subgraph(volunteers=[]),
    "a subgraph of some items": lambda: usual().subgraph(items=["i0", "i1", "i2"]),
    "a saved file": loaded,
    "a store on disk": lambda: loaded(format="columns"),
    "a window of a store": lambda: loaded(format="columns").window(50, 120),
    "GraphML": through_graphml,
    "networkx": lambda: cg.CrowdGraph.from_networkx(usual().to_networkx()),
    "an extended graph": lambda: usual().first(150).extend(usual().to_arrow().slice(150)),
    "odd attributes": lambda: crowd_of(
        n_volunteers=2,
        n_items=2,
        volunteers={"volunteer": ["v0", "v1"], "since": [None, dt.datetime(2026, 1, 1)], "score": [float("nan"), 1.5]},
        items={"item": ["i0", "i1"], "note": ["", None], "size": [2**62, None]},
    ),
}

ODD_CROWDS = {**SHAPES, **LABELS, **GOLD, **TIMES, **IDS, **ORIGINS}
