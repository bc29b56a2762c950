"""Fits of crowds on disk: the same answers as in memory, within a limit that is checked before anything is read."""

import numpy as np
import pytest
from builders import crowd
from hypothesis import given
from hypothesis import strategies as st
from strategies import graphs

import crowdgraph as cg
from crowdgraph.core import _arrays
from crowdgraph.core._maps import release, scratch_array, scratch_copy
from crowdgraph.core._memory import memory_in_bytes
from crowdgraph.errors import ParameterError, StoreError
from crowdgraph.models import _step_blocks, _tensors
from crowdgraph.models._resources import current_resources

MODELS = [
    cg.IBCC(),
    cg.IBCC(confusion_prior=(4, 1)),
    cg.IBCC(dtype="float32", confusion_prior=(4, 1)),
    cg.DawidSkene(),
    cg.DawidSkene(smoothing=0.0),
    cg.MajorityVote(),
    cg.MajorityVote(output="winner"),
]


@pytest.fixture(scope="module")
def in_memory():
    return crowd(0.9, 0.7, 0.4, gold=0.1, n_items=120).graph


@pytest.fixture(scope="module")
def stored(in_memory, tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "crowd.store"
    in_memory.save(path, format="columns")
    return cg.load(path)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of some responses, so that even a small crowd has many."""
    monkeypatch.setattr(_tensors, "MAX_BLOCK", 37)
    monkeypatch.setattr(_step_blocks, "MAX_STEPS", 90)
    monkeypatch.setattr(_arrays, "ROWS_PER_BLOCK", 11)


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("n_responses", [800, 333])
@pytest.mark.usefixtures("small_blocks")
def test_streamed_fits_are_those_in_memory(model, n_responses, in_memory, stored):
    expected = model.fit(in_memory.first(n_responses))
    fit = model.fit(stored.first(n_responses), memory="8GB")
    atol = 1e-5 if "float32" in repr(model) else 1e-11
    assert np.allclose(fit.item_probs, expected.item_probs, rtol=0, atol=atol)
    assert fit.n_iter == expected.n_iter
    if expected.confusion is not None:
        ours, theirs = (part.confusion.latest().concentration for part in (fit, expected))
        assert np.allclose(ours, theirs, rtol=1e-3 if atol > 1e-6 else 1e-9)
    assert isinstance(fit.item_probs.base, np.memmap) or isinstance(fit.item_probs, np.memmap)
    assert not fit.item_probs.flags.writeable


DYNAMIC_MODELS = [
    cg.DynIBCC(tol=1e-11),
    cg.DynIBCC(inference="filtered", repeat_span=20.0, accelerate=False),
    cg.DynIBCC(published=True, published_bound=0.01),
    cg.DynIBCC(drift_per_time=0.05, time_unit="hour", confusion_prior="gold"),
    cg.DynIBCC(dtype="float32", confusion_prior=(4, 1)),
    cg.DynIBCC(confusion_prior={None: (4, 1), "volunteer-03": (9, 2)}),
]


def untidy():
    """A crowd with repeated answers, items that were only shown, gold, and volunteers who said nothing or very much."""
    rng = np.random.default_rng(3)
    size = 900
    volunteer = np.minimum((rng.pareto(0.7, size) * 3).astype(int), 30)
    item = rng.integers(0, 70, size)
    label = np.where(rng.random(size) < 0.6, item % 3, rng.integers(0, 3, size))
    answer = [None if rng.random() < 0.1 or who == 2 else int(said) for who, said in zip(volunteer, label, strict=True)]
    times = np.datetime64("2020-01-01", "s") + np.sort(rng.integers(0, 10**6, size)).astype("m8[s]")
    return cg.CrowdGraph.from_responses(
        {"volunteer": [f"volunteer-{who:02}" for who in volunteer], "item": item, "label": answer, "time": times},
        time="time",
        gold={int(code): code % 3 for code in range(0, 70, 4)},
        classes=range(3),
        labels=range(3),
        missing="keep",
    )


@pytest.fixture(scope="module")
def untidy_crowd(tmp_path_factory):
    graph = untidy()
    path = tmp_path_factory.mktemp("stores") / "untidy.store"
    graph.save(path, format="columns")
    return graph, cg.load(path)


def agree(fit, expected, *, atol=1e-9, rtol=1e-7):
    """Whether two fits of volunteers who change are the same, at every step."""
    assert np.allclose(fit.item_probs, expected.item_probs, rtol=0, atol=atol)
    assert fit.n_iter == expected.n_iter
    assert fit.converged
    ours, theirs = fit.confusion, expected.confusion
    for name in ("ids", "starts", "times"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name))
    assert np.allclose(ours.initial, theirs.initial, rtol=rtol)
    assert np.allclose(ours.concentration, theirs.concentration, rtol=rtol)
    for name in ("mean", "covariance", "noise"):
        assert np.allclose(getattr(fit.forward, name), getattr(expected.forward, name), rtol=rtol, atol=rtol)
    assert np.array_equal(fit.forward.times, expected.forward.times)
    for name, value in expected.diagnostics.items():
        if isinstance(value, float) and name != "change":
            assert fit.diagnostics[name] == pytest.approx(value, rel=rtol)


@pytest.mark.parametrize("model", DYNAMIC_MODELS, ids=repr)
@pytest.mark.usefixtures("small_blocks")
def test_volunteers_who_change_stream_as_well(model, untidy_crowd):
    graph, stored = untidy_crowd
    precise = model.dtype == "float64"
    for view in ("all", "first"):
        part, stored_part = (one if view == "all" else one.first(500) for one in (graph, stored))
        fit = model.fit(stored_part, memory="8GB")
        agree(fit, model.fit(part), **({} if precise else {"atol": 1e-3, "rtol": 2e-2}))
        for values in (fit.item_probs, fit.confusion.concentration):
            assert isinstance(values.base, np.memmap) or isinstance(values, np.memmap)
            assert not values.flags.writeable


@pytest.mark.usefixtures("small_blocks")
def test_no_more_steps_than_those_of_a_block_or_a_volunteer_are_read_at_once(stored, monkeypatch):
    read, lengths = _step_blocks.StepColumns.read, []

    def counted(columns, rows):
        item, label, time = read(columns, rows)
        lengths.append(len(item))
        return item, label, time

    monkeypatch.setattr(_step_blocks.StepColumns, "read", counted)
    cg.DynIBCC(tol=0.1).fit(stored, memory="8GB")
    busiest = int(np.diff(stored.responses.by_volunteer.starts).max())
    assert max(lengths) <= max(90, busiest) < len(stored.responses)


@pytest.mark.parametrize("limit", [10**5, 2_500])
def test_the_noise_is_chosen_block_by_block(limit, monkeypatch, tmp_path):
    """From all answers, and from a sample that is refined on all of them."""
    monkeypatch.setattr(_step_blocks, "MAX_STEPS", 900)
    for module in ("kernels.dynibcc", "kernels.step_blocks", "models._step_blocks"):
        monkeypatch.setattr(f"crowdgraph.{module}.MAX_CHOICE_STEPS", limit)
    graph = crowd(n_volunteers=20, n_items=300, n_responses=[200] * 20, drift="step").graph
    graph.save(tmp_path / "crowd.store", format="columns")
    model = cg.DynIBCC(noise_scale="auto")
    expected, fit = model.fit(graph), model.fit(cg.load(tmp_path / "crowd.store"), memory="8GB")
    assert expected.diagnostics["noise_scale"] > 0
    agree(fit, expected)


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.RepeatedAnswersWarning")
@pytest.mark.parametrize("noise_scale", [1.0, "auto"])
@pytest.mark.usefixtures("small_blocks")
def test_volunteers_are_followed_block_by_block_given_calibrated_classes(noise_scale, untidy_crowd):
    graph, stored = untidy_crowd
    start = cg.IBCC().fit(graph.first(900)).calibrated(rho=0.3)
    model = cg.DynIBCC(update_classes=False, noise_scale=noise_scale)
    agree(model.fit(stored, start=start, memory="8GB"), model.fit(graph, start=start))


@pytest.mark.usefixtures("small_blocks")
def test_later_responses_are_filtered_on_from_an_earlier_fit(untidy_crowd):
    graph, stored = untidy_crowd
    earlier = cg.DynIBCC().fit(graph.first(600))
    model = cg.DynIBCC(confusion_prior=earlier, drift_per_time=0.05, time_unit="day")
    fit = model.fit(stored._rows(600, 900), memory="8GB")
    agree(fit, model.fit(graph._rows(600, 900)))


@pytest.mark.usefixtures("small_blocks")
def test_warm_starts_stream_as_well(in_memory, stored):
    model = cg.IBCC(confusion_prior=(4, 1))
    start = model.fit(in_memory.first(700))
    fit = model.fit(stored, start=start, memory="8GB")
    assert np.allclose(fit.item_probs, model.fit(in_memory, start=start).item_probs, rtol=0, atol=1e-11)


@given(graphs(id_kinds=("int", "str")), st.integers(1, 9), st.data())
def test_answers_by_item_are_the_answers(tmp_path_factory, graph, block, data):
    """The blocks of a slice hold its answers: each once, item by item and in order of time."""
    path = tmp_path_factory.mktemp("stores") / "graph.store"
    graph.save(path, format="columns")
    loaded = cg.load(path)
    assert loaded.equals(graph)
    start = data.draw(st.integers(0, graph.n_responses))
    stop = data.draw(st.integers(start, graph.n_responses))
    view, stored_view = graph._rows(start, stop), loaded._rows(start, stop)
    answers, found = view.answers, []
    for part in stored_view.responses.table.stored.answers_by_item(block):
        item = np.repeat(np.arange(part.first, part.last), np.diff(part.starts))
        assert len(item) == len(part.label)
        found += zip(item.tolist(), part.volunteer.tolist(), part.label.tolist(), strict=True)
    order = answers.by_item.order
    columns = (column[order].tolist() for column in (answers.item, answers.volunteer, answers.label))
    assert found == list(zip(*columns, strict=True))


def test_memory_is_an_amount():
    assert memory_in_bytes("4GB") == memory_in_bytes(4_000_000_000) == memory_in_bytes(" 4 gb ") == 4 * 10**9
    assert memory_in_bytes("1.5GiB") == 1.5 * 2**30
    for wrong in ("", "much", "4 apples", "-3GB", 0, -1, 2.5, None, True):
        with pytest.raises(ParameterError, match="is not an amount of memory"):
            memory_in_bytes(wrong)


@pytest.mark.parametrize("model", [cg.IBCC(), cg.DawidSkene(), cg.MajorityVote()], ids=repr)
def test_limits_below_one_block_are_refused(model, stored):
    with pytest.raises(ParameterError, match=r"A memory limit of 5\.0 MB is too low .* needs .* Raise it to memory="):
        model.fit(stored, memory="5MB")


def test_limits_that_cannot_be_met_are_refused(in_memory, stored):
    with pytest.raises(ParameterError, match="this graph is in memory already"):
        cg.IBCC().fit(in_memory, memory="4GB")
    with pytest.raises(ParameterError, match="this graph is in memory already"):
        cg.MajorityVote().fit(stored.subgraph(items=stored.items.ids[:5]), memory="4GB")
    with pytest.raises(ParameterError, match="GibbsIBCC needs all responses in memory"):
        cg.GibbsIBCC().fit(stored, memory="4GB")
    for model in (cg.IBCC(backend="torch"), cg.DynIBCC(backend="torch")):
        with pytest.raises(ParameterError, match="compiled code on CPUs"):
            model.fit(stored, memory="4GB")
    assert current_resources().memory is None


def test_a_store_that_changes_under_way_is_noticed(in_memory, tmp_path):
    path = tmp_path / "crowd.store"
    in_memory.save(path, format="columns")
    graph = cg.load(path)
    column = path / "by_item" / "label.npy"
    column.write_bytes(column.read_bytes())
    with pytest.raises(StoreError, match="changed while it was read"):
        cg.MajorityVote().fit(graph, memory="4GB")


def test_labels_out_of_range_do_not_reach_compiled_code(in_memory, tmp_path):
    path = tmp_path / "crowd.store"
    in_memory.save(path, format="columns")
    labels = np.load(path / "by_item" / "label.npy", mmap_mode="r+")
    labels[5] = 1_000
    labels.flush()
    with pytest.raises(StoreError, match="'by_item/label' run from 0 to 1000; expected 0 to 1"):
        cg.IBCC().fit(cg.load(path), memory="4GB")
    in_memory.save(tmp_path / "other.store", format="columns")
    items = np.load(tmp_path / "other.store" / "by_volunteer" / "item.npy", mmap_mode="r+")
    items[5] = -1
    items.flush()
    with pytest.raises(StoreError, match="items run from -1 to 119; expected 0 to 119"):
        cg.DynIBCC().fit(cg.load(tmp_path / "other.store"), memory="4GB")


def test_scratch_arrays():
    array = scratch_array((3_000, 2), np.float64)
    assert not array.any()
    array[:] = np.arange(6_000).reshape(3_000, 2)
    release(array)
    release(array, 10, 20)
    assert np.array_equal(array[:, 1], np.arange(1, 6_000, 2))
    copy = scratch_copy(array, np.float32)
    assert copy.dtype == np.float32
    assert np.array_equal(copy, array)
    assert scratch_array((0, 3), np.int8).shape == (0, 3)
    release(np.zeros(5))
    with pytest.raises(StoreError, match=r"no room for .* Free some space"):
        scratch_array((2**36, 2**20), np.float64)
