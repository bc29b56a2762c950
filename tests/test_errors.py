"""Messages with hints, in the words of Python and of the command line."""

import copy
import pickle
import warnings

import pytest

from crowdgraph import CrowdGraph, errors
from crowdgraph.errors import (
    CrowdGraphError,
    CrowdGraphWarning,
    GoldWarning,
    NoTimesWarning,
    ParameterError,
    check_choice,
    collect_warnings,
    warn,
)
from crowdgraph.messages import Hint, Message, argument, quote, short, wording

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, CrowdGraphError | CrowdGraphWarning)
]
HINT = Hint("Lower min_responses.", cli="Lower --min-responses.")


@pytest.mark.parametrize("kind", KINDS)
def test_errors_and_warnings_carry_their_hints(kind):
    problem = kind(argument("n_items", 1) + " is too few.", hint=HINT)
    for one in (problem, pickle.loads(pickle.dumps(problem)), copy.copy(problem)):  # noqa: S301
        assert type(one) is kind
        assert str(one) == one.message == "n_items=1 is too few. Lower min_responses."
        assert one.message.wording("python") == str(one)
        assert one.message.wording("cli") == "--items 1 is too few. Lower --min-responses."


@pytest.mark.parametrize("kind", KINDS)
def test_messages_may_come_without_a_hint(kind):
    assert (str(kind()), str(kind("Wrong."))) == ("", "Wrong.")
    assert kind("Wrong.", hint="Mend it.").message.wording("cli") == "Wrong. Mend it."


def test_messages_are_text_and_keep_both_forms_when_text_is_added():
    message = "So: " + HINT + " (And 3 more.)"
    assert message == "So: Lower min_responses. (And 3 more.)"
    assert message.wording("cli") == "So: Lower --min-responses. (And 3 more.)"
    assert (HINT + HINT).cli == "Lower --min-responses.Lower --min-responses."
    assert Message(HINT).cli == HINT.cli
    assert type(str(HINT)) is type(f"{HINT}") is str
    assert pickle.loads(pickle.dumps(HINT)).cli == HINT.cli  # noqa: S301
    assert wording("plain", "cli") == "plain"


def test_options_may_have_other_names_than_arguments():
    with pytest.raises(ParameterError, match="kind='csw' is not a choice") as raised:
        check_choice("kind", "csw", ("csv", "parquet"), option="format")
    assert raised.value.message.cli.startswith(
        "--format csw is not a choice; use one of 'csv', 'parquet'. Did you mean"
    )


def test_an_error_can_go_on_with_the_message_of_another():
    first = GoldWarning("No gold.", hint=HINT)
    assert CrowdGraphError(first.message, hint="Stop.").message.cli == "No gold. Lower --min-responses. Stop."


def test_warnings_show_the_python_form():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn("Few gold.", GoldWarning, hint=HINT)
    assert str(caught[0].message) == "Few gold. Lower min_responses."
    assert caught[0].category is GoldWarning
    assert caught[0].filename == __file__
    assert caught[0].message.message.wording("cli") == "Few gold. Lower --min-responses."


def test_collected_warnings_keep_both_forms():
    messages = []
    with collect_warnings(messages):
        for number in (1, 2, 3, 2):
            warn(f"Gold {number}.", GoldWarning, hint=HINT)
    assert messages == ["Gold 1. Lower min_responses. (And 2 more like this.)"]
    assert wording(messages[0], "cli") == "Gold 1. Lower --min-responses. (And 2 more like this.)"


def test_warnings_of_two_kinds_from_one_line_are_both_collected():
    messages = []
    with collect_warnings(messages):
        for kind in (GoldWarning, NoTimesWarning):
            warn(f"A {kind.__name__}.", kind)
    assert messages == ["A GoldWarning.", "A NoTimesWarning."]


def test_data_in_messages_is_cut():
    long = "x" * 10_000
    assert quote([long, "y"]) == f"'{'x' * 37} ... {'x' * 36}', 'y'"
    assert len(argument("name", long)) < 100
    assert len(argument("name", long).cli) < 100
    error = ParameterError(f"The label {long!r} is odd.", hint=HINT)
    assert len(str(error)) < 1_600
    assert str(error).startswith("The label 'xxx")
    assert str(error).endswith("xxx' is odd. Lower min_responses.")
    assert error.message.cli.endswith("xxx' is odd. Lower --min-responses.")


@pytest.mark.parametrize("length", range(20, 40))
def test_cut_texts_are_as_long_as_allowed(length):
    assert len(short("y" * 30, most=length)) == min(length, 30)


def test_gold_with_many_classes_has_a_short_message():
    """An error that quotes all probabilities of a row."""
    names = [f"class {number}" for number in range(1_000)]
    columns = {"volunteer": ["a"], "item": ["x"], "label": [names[0]]}
    gold = {"item": ["x", "x"], **{name: [0.001, 0.001] for name in names}}
    gold[names[0]], gold[names[1]] = [0.002, 0.001], [0.0, 0.001]
    with pytest.raises(errors.GoldError, match="Gold contradicts itself for item 'x'") as raised:
        CrowdGraph.from_responses(columns, gold=gold, classes=names)
    assert len(str(raised.value)) < 1_600
