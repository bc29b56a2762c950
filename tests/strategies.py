"""Hypothesis strategies: tables of responses, whole graphs, and tables that are broken in one way."""

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import strategies as st

import crowdgraph as cg

text = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)
ids = {
    "int": st.integers(-(2**62), 2**62),
    "str": text,
    "tuple": st.tuples(st.integers(-5, 5), text),
    "date": st.dates(),
}
datetimes = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))
zones = st.sampled_from([ZoneInfo("Europe/Amsterdam"), ZoneInfo("UTC"), dt.timezone(dt.timedelta(hours=-3.5))])
times = {
    "none": st.none(),
    "int": st.integers(-(2**62), 2**62),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "naive": datetimes,
    "iso": datetimes.map(dt.datetime.isoformat),
}
attributes = {
    "count": st.integers(-(2**62), 2**62),
    "weight": st.floats(allow_nan=False),
    "flag": st.booleans(),
    "note": st.none() | text,
    "maybe": st.none() | st.integers(-(2**62), 2**62),
}


@st.composite
def tables(draw, *, id_kinds=tuple(ids), time_kinds=(*times, "zoned"), min_rows=1):
    """Columns of responses, and the options that go with them."""
    n_rows = draw(st.integers(min_rows, 12))
    columns = {}
    for name in ("volunteer", "item"):
        pool = draw(st.lists(ids[draw(st.sampled_from(id_kinds))], min_size=1, max_size=4, unique=True))
        columns[name] = draw(st.lists(st.sampled_from(pool), min_size=n_rows, max_size=n_rows))
    labels = draw(st.lists(st.integers(-3, 3) if draw(st.booleans()) else text, min_size=1, max_size=4, unique=True))
    columns["label"] = draw(st.lists(st.sampled_from(labels), min_size=n_rows, max_size=n_rows))
    kind = draw(st.sampled_from(time_kinds))
    if kind == "zoned":
        zone = draw(zones)
        moments = draw(st.lists(datetimes, min_size=n_rows, max_size=n_rows))
        columns["time"] = [moment.replace(tzinfo=zone) for moment in moments]
    elif kind != "none":
        columns["time"] = draw(st.lists(times[kind], min_size=n_rows, max_size=n_rows))
    for name in draw(st.lists(st.sampled_from(sorted(attributes)), unique=True, max_size=3)):
        columns[name] = draw(st.lists(attributes[name], min_size=n_rows, max_size=n_rows))
    return columns


@st.composite
def graphs(draw, **options):
    """Graphs with hard and soft gold, classes that may differ from labels, and attributes of nodes."""
    columns = draw(tables(**options))
    items = list(dict.fromkeys(columns["item"]))
    volunteers = list(dict.fromkeys(columns["volunteer"]))
    classes = draw(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=3, unique=True))
    gold = {}
    for item in draw(st.lists(st.sampled_from(items), unique=True)):
        if draw(st.booleans()):
            gold[item] = draw(st.sampled_from(classes))
        else:
            counts = np.array(draw(st.lists(st.integers(1, 9), min_size=len(classes), max_size=len(classes))))
            gold[item] = dict(zip(classes, (counts / counts.sum()).tolist(), strict=True))
    nodes = {
        "volunteer": volunteers,
        "since": draw(st.lists(attributes["maybe"], min_size=len(volunteers), max_size=len(volunteers))),
    }
    return cg.CrowdGraph.from_responses(columns, gold=gold, classes=classes, volunteers=nodes)


@st.composite
def answered_graphs(draw, *, soft=True):
    """Tiny graphs to fit models to: classes c0, c1, ..., labels 0, 1, ..., nobody answers an item twice."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_items, n_volunteers = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    n_classes, n_labels = draw(st.integers(2, 3)), draw(st.integers(1, 4))
    pairs = [(volunteer, item) for volunteer in range(n_volunteers) for item in range(n_items)]
    kept = [pairs[place] for place in np.flatnonzero(rng.random(len(pairs)) < 0.7)] or pairs[:1]
    classes = [f"c{code}" for code in range(n_classes)]
    gold = {}
    for item in np.flatnonzero(rng.random(n_items) < draw(st.sampled_from([0, 0.3]))).tolist():
        sure = not soft or rng.random() < 0.5
        probs = dict(zip(classes, rng.dirichlet(np.ones(n_classes)).tolist(), strict=True))
        gold[item] = classes[rng.integers(n_classes)] if sure else probs
    return cg.CrowdGraph.from_responses(
        {
            "volunteer": [volunteer for volunteer, _ in kept],
            "item": [item for _, item in kept],
            "label": rng.integers(0, n_labels, len(kept)).tolist(),
        },
        labels=range(n_labels),
        classes=classes,
        gold=gold,
        volunteers={"volunteer": list(range(n_volunteers))},
        items={"item": list(range(n_items))},
    )
