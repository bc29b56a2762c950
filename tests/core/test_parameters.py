"""Settings that are checked where they are declared, and seeds of igraph."""

import random
from dataclasses import dataclass, replace

import igraph
import numpy as np
import pytest

from crowdgraph.core._parameters import (
    Configured,
    boolean,
    choice,
    converted,
    fraction,
    instance,
    integer,
    non_negative,
    number,
    positive,
)
from crowdgraph.core._random import igraph_seed
from crowdgraph.errors import ParameterError


@dataclass(frozen=True, kw_only=True)
class Settings(Configured):
    tol: float = positive(1e-5)
    span: float | None = positive(None)
    sharpness: float | str = positive("auto")
    weight: float = non_negative(1.0)
    share: float = fraction(0.5)
    factor: float = number(0.5, valid=lambda value: 0 < value < 1, expected="lie between 0 and 1")
    max_iter: int = integer(100, minimum=2)
    limit: int | None = integer(None)
    fast: bool = boolean(True)
    dtype: str = choice("float64", ("float64", "float32"))
    unit: str | None = choice(None, ("day", "week"))
    names: tuple | None = instance(None, tuple, expected="names in a tuple")
    device: str = converted("cpu", str)

    def _check_settings(self):
        if self.limit is not None and self.limit > self.max_iter:
            raise ParameterError("limit is larger than max_iter.")


def test_defaults_and_words_are_valid():
    settings = Settings()
    assert (settings.tol, settings.span, settings.sharpness, settings.limit) == (1e-5, None, "auto", None)
    assert replace(settings, sharpness=2, tol=np.float32(1), max_iter=np.int64(7)).max_iter == 7


def test_values_can_be_converted():
    assert Settings(device=7).device == "7"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"tol": 0}, "tol=0 must be a number above zero."),
        ({"tol": np.inf}, "tol=inf must be a number above zero."),
        ({"tol": "1"}, "tol='1' must be a number above zero."),
        ({"tol": True}, "tol=True must be a number above zero."),
        ({"tol": None}, "tol=None must be a number above zero."),
        ({"span": -1}, "span=-1 must be a number above zero."),
        ({"sharpness": "much"}, "sharpness='much' must be a number above zero, or 'auto'."),
        ({"sharpness": None}, "sharpness=None must be a number above zero, or 'auto'."),
        ({"weight": -0.1}, "weight=-0.1 must be a finite number of at least 0."),
        ({"share": 1.1}, "share=1.1 must be a share from 0 to 1."),
        ({"factor": 1}, "factor=1 must lie between 0 and 1."),
        ({"max_iter": 1}, "max_iter=1 must be a whole number from 2 up."),
        ({"max_iter": 2.0}, "max_iter=2.0 must be a whole number from 2 up."),
        ({"limit": False}, "limit=False must be a whole number from 1 up."),
        ({"fast": 1}, "fast=1 must be True or False."),
        ({"dtype": "float"}, "dtype='float' is not a choice; use one of 'float64', 'float32'. Did you mean"),
        ({"unit": "Day"}, "unit='Day' is not a choice; use one of 'day', 'week'."),
        ({"names": []}, "names= takes names in a tuple; got a list."),
        ({"limit": 101}, "limit is larger than max_iter."),
    ],
)
def test_wrong_settings_are_named(wrong, words):
    with pytest.raises(ParameterError) as raised:
        Settings(**wrong)
    assert str(raised.value).startswith(words)


def test_settings_are_options_on_the_command_line():
    with pytest.raises(ParameterError) as raised:
        Settings(max_iter=1)
    assert raised.value.message.wording("cli") == "--max-iter 1 must be a whole number from 2 up."


# Seeds of igraph, which draws from Python's source of random numbers.


def some_edges():
    return igraph.Graph.Erdos_Renyi(n=40, m=60).get_edgelist()


def test_a_seed_gives_the_same_draws():
    drawn = []
    for seed in (0, 0, 1):
        with igraph_seed(seed):
            drawn.append(some_edges())
    assert drawn[0] == drawn[1] != drawn[2]


def test_pythons_source_is_neither_used_nor_lost():
    state = random.getstate()
    with igraph_seed(0):
        some_edges()
    assert random.getstate() == state
    with pytest.raises(ZeroDivisionError), igraph_seed(0):
        1 / 0  # noqa: B018
    random.seed(5)
    expected = some_edges()
    random.seed(5)
    assert some_edges() == expected
    assert random.getstate() != state
    random.setstate(state)
    # The lock was given back, too.
    with igraph_seed(None):
        assert some_edges() != expected
