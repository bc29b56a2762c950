"""Settings and fixtures for all tests."""

import math
import os

# Small arrays are done sooner with one thread, and the other core is for the other worker. Tests of threads set theirs.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import crowdgraph as cg
from crowdgraph.core import _progress

mpl.use("agg")
# HYPOTHESIS_PROFILE=thorough looks longer.
for name, most in (("usual", 25), ("thorough", 1_000)):
    settings.register_profile(name, max_examples=most, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))
# How long tests take must not decide what is printed; tests of the lines of a log have their own clock.
_progress.LOG_SECONDS = math.inf


@pytest.fixture
def every_line(monkeypatch):
    """Progress is written to the error stream at every step."""
    monkeypatch.setattr(_progress, "LOG_SECONDS", 0.0)


@pytest.fixture
def columns():
    """Three volunteers, three items, six responses out of order, two of them at one time."""
    return {
        "volunteer": ["cleo", "anna", "bert", "anna", "bert", "anna"],
        "item": ["y", "x", "x", "y", "z", "x"],
        "label": ["no", "yes", "no", "no", "yes", "yes"],
        "time": [5, 1, 2, 3, 3, 9],
    }


@pytest.fixture
def graph(columns):
    return cg.CrowdGraph.from_responses(columns, gold={"x": "yes", "y": "no"})


@pytest.fixture
def fit(graph):
    """A made-up fit for `graph`, with a confusion that changes at every response."""
    rows = graph.responses.by_volunteer
    concentration = 1.0 + np.arange(len(graph.responses) * 4).reshape(-1, 2, 2)
    track = cg.ConfusionTrack(
        ids=graph.volunteers.ids,
        starts=rows.starts,
        times=graph.responses.time[rows.order],
        concentration=concentration,
        initial=[[2.0, 1.0], [1.0, 2.0]],
        classes=graph.classes,
        labels=graph.labels,
        clock=graph.responses.clock,
    )
    return cg.ModelFit(
        model="made-up",
        items=graph.items.ids,
        classes=graph.classes,
        item_probs=[[0.2, 0.8], [0.9, 0.1], [0.5, 0.5]],
        class_probs=[0.5, 0.5],
        confusion=track,
        bound=[-10.0, -9.0],
        n_iter=2,
        params={"tol": 1e-3},
    )
