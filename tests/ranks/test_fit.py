"""Fits by several ranks, here threads or one process alone: shares, checkpoints, results, and what can be wrong."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from builders import crowd
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from ranks.thread_ranks import run_together
from typer.testing import CliRunner

import crowdgraph as cg
from crowdgraph.cli.app import app as commands
from crowdgraph.cli.distributed import app
from crowdgraph.distributed import _checkpoints, fitting
from crowdgraph.distributed._checkpoints import CheckpointFile, open_checkpoint
from crowdgraph.distributed._shares import item_share, shares
from crowdgraph.errors import CollapsedFitWarning, LostRankError, ParameterError, RepeatedAnswersWarning, StoreError
from crowdgraph.io import _unpacked
from crowdgraph.io.columns import MANIFEST
from crowdgraph.models import _step_blocks
from crowdgraph.models._resources import using

MODELS = [cg.IBCC(), cg.IBCC(confusion_prior=(4, 1)), cg.DawidSkene(), cg.DawidSkene(smoothing=0.0)]


@pytest.fixture(scope="module")
def graph():
    return crowd(0.9, 0.7, 0.4, gold=0.1).graph


@pytest.fixture(scope="module")
def store(graph, tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "crowd.store"
    graph.save(path, format="columns")
    return path


def fit_together(model, store, n_ranks, *, memory=None):
    """The fits of each of several threads."""
    opened = cg.open_store(store)

    def fit(ranks):
        with using(ranks=ranks, memory=memory):
            return fitting._fit_share(model, opened, ranks, on_disk=memory is not None, visible=False).fit

    return run_together(fit, n_ranks)


# Shares


@given(st.lists(st.integers(0, 20), min_size=1, max_size=30), st.data())
def test_shares_cover_everything_once_and_are_even(sizes, data):
    n_ranks = data.draw(st.integers(1, len(sizes)))
    starts = np.append(0, np.cumsum(sizes))
    parts = shares(starts, n_ranks, kind="item")
    assert [item for part in parts for item in part] == list(range(len(sizes)))
    assert all(parts)
    if n_ranks <= 3 and min(sizes) > 0 and len(sizes) > 6 * n_ranks:
        counts = [starts[part.stop] - starts[part.start] for part in parts]
        assert max(counts) <= starts[-1] / n_ranks + 2 * max(sizes)


def test_more_ranks_than_items_are_refused():
    with pytest.raises(ParameterError, match=r"3 ranks cannot share 2 items: each needs at least one. Start at most 2"):
        shares(np.array([0, 1, 2]), 3, kind="item")


def test_a_share_is_the_graph_of_its_items(graph, store, monkeypatch):
    monkeypatch.setattr("crowdgraph.core._arrays.ROWS_PER_BLOCK", 7)
    opened = cg.open_store(store)
    for on_disk in (False, True):
        share = item_share(opened, range(30, 55), on_disk=on_disk)
        assert share.items.ids.tolist() == graph.items.ids[30:55].tolist()
        assert np.array_equal(share.answers.n_by_item, graph.answers.n_by_item[30:55])
        assert np.array_equal(share.gold.probs, graph.gold.probs[30:55], equal_nan=True)
        mine = (graph.responses.item >= 30) & (graph.responses.item < 55)
        counts = np.bincount(graph.responses.volunteer[mine], minlength=graph.n_volunteers)
        assert np.array_equal(share.answers.n_by_volunteer, counts)
        blocks = list(share.responses.table.stored.answers_by_item(10))
        assert np.array_equal(np.concatenate([block.label for block in blocks]), share.answers.label)
        assert (blocks[0].first, blocks[-1].last) == (0, 25)
        assert share.responses.table.slice(0, 5).stored is None


# Answers


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    ("model", "n_ranks"),
    [*((model, 3) for model in MODELS), (MODELS[0], 2), (MODELS[0], 4)],
    ids=["crowd's prior, 3", "own prior, 3", "Dawid-Skene, 3", "maximum likelihood, 3", "2 ranks", "4 ranks"],
)
def test_ranks_give_the_answer_of_one_process(model, n_ranks, graph, store):
    """As far as thirty sweeps lead."""
    model = replace(model, max_iter=30)
    expected, fits = model.fit(graph), fit_together(model, store, n_ranks)
    probs = np.concatenate([fit.item_probs for fit in fits])
    assert np.allclose(probs, expected.item_probs, rtol=0, atol=1e-9)
    for fit in fits:
        assert np.array_equal(fit.confusion.initial, fits[0].confusion.initial)
        assert np.allclose(fit.confusion.initial, expected.confusion.initial, rtol=1e-9)
        assert fit.n_iter == expected.n_iter


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=4)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(2, 3), st.integers(1, 4), st.integers(2, 4))
def test_ranks_give_the_answer_of_one_process_for_any_crowd(
    tmp_path_factory, seed, n_items, n_classes, n_labels, n_ranks
):
    rng = np.random.default_rng(seed)
    n_responses = int(rng.integers(n_items, 40))
    # Every item has a response, and some of these are no answers.
    items = np.append(np.arange(n_items), rng.integers(0, n_items, n_responses - n_items))
    labels = [None if rng.random() < 0.1 else int(rng.integers(n_labels)) for _ in items]
    gold = {int(item): dict(enumerate(rng.dirichlet(np.ones(n_classes)).tolist())) for item in items[:n_items:3]}
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": rng.integers(0, 5, n_responses), "item": items, "label": labels},
        classes=range(n_classes),
        labels=range(n_labels),
        gold=gold,
        missing="keep",
    )
    assume(len(graph.answers))
    path = tmp_path_factory.mktemp("any") / "crowd.store"
    graph.save(path, format="columns")
    model = cg.IBCC(max_iter=20, confusion_prior=rng.uniform(0.5, 5, (n_classes, n_labels)))
    fits = fit_together(model, path, min(n_ranks, n_items))
    probs = np.concatenate([fit.item_probs for fit in fits])
    assert np.allclose(probs, model.fit(graph).item_probs, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("model", "memory"),
    [
        (cg.DynIBCC(), None),
        (cg.DynIBCC(), 8 * 10**9),
        (cg.DynIBCC(confusion_prior="gold", inference="filtered", repeat_span=20.0, published_bound=0.1), None),
        (cg.DynIBCC(backend="torch", max_iter=2, noise_scale=0.5), None),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.ConvergenceWarning")
def test_ranks_share_volunteers_who_change(model, memory, graph, store, monkeypatch):
    monkeypatch.setattr(_step_blocks, "MAX_STEPS", 100)
    expected, fits = model.fit(graph), fit_together(model, store, 3, memory=memory)
    assert np.allclose(np.concatenate([fit.item_probs for fit in fits]), expected.item_probs, rtol=0, atol=1e-9)
    tracks = [fit.confusion for fit in fits]
    assert [name for track in tracks for name in track.ids] == graph.volunteers.ids.tolist()
    assert np.array_equal(np.concatenate([track.times for track in tracks]), expected.confusion.times)
    steps = np.concatenate([track.concentration for track in tracks])
    assert np.allclose(steps, expected.confusion.concentration, rtol=1e-7)
    for fit in fits:
        assert fit.n_iter == expected.n_iter
        for name in {"score", "log_predictive", "published_bound"} & expected.diagnostics.keys():
            assert fit.diagnostics[name] == pytest.approx(expected.diagnostics[name], rel=1e-9)


@pytest.mark.parametrize("limit", [10**5, 2_500])
def test_ranks_choose_the_noise_of_one_process(limit, monkeypatch, tmp_path):
    """From all answers, and from a sample of the volunteers of all ranks that is refined on all of them."""
    for module in ("kernels.dynibcc", "kernels.step_blocks"):
        monkeypatch.setattr(f"crowdgraph.{module}.MAX_CHOICE_STEPS", limit)
    monkeypatch.setattr("crowdgraph.models._tensors.MAX_TYPICAL_VOLUNTEERS", 7)
    graph = crowd(n_volunteers=20, n_items=300, n_responses=[200] * 20, drift="step").graph
    graph.save(tmp_path / "crowd.store", format="columns")
    model = cg.DynIBCC(noise_scale="auto")
    expected, fits = model.fit(graph), fit_together(model, tmp_path / "crowd.store", 3)
    assert expected.diagnostics["noise_scale"] > 0
    assert np.allclose(np.concatenate([fit.item_probs for fit in fits]), expected.item_probs, rtol=0, atol=1e-9)
    for fit in fits:
        assert fit.diagnostics["noise_scale"] == pytest.approx(expected.diagnostics["noise_scale"], rel=1e-9)
        assert fit.n_iter == expected.n_iter


@pytest.mark.parametrize("accelerate", [True, False])
def test_passes_over_time_are_resumed(accelerate, store, tmp_path, copies):
    """By one rank with the same bits, and by three with the same answer."""
    model, opened, path = cg.DynIBCC(accelerate=accelerate), cg.open_store(store), tmp_path / "fit.checkpoint"
    expected = cg.distributed.fit(model, store, checkpoint=path, every=1)
    with np.load(path) as arrays:
        assert list(json.loads(bytes(arrays["header"]))["stages"])[-1] == "DynIBCC"

    def fit(ranks):
        checkpoints = open_checkpoint(path, model, opened, every=1000, resume=True, ranks=ranks)
        with using(ranks=ranks, checkpoints=checkpoints):
            return fitting._fit_share(model, opened, ranks, on_disk=False, visible=False).fit

    for content in (copies[-1], copies[-4]):
        path.write_bytes(content)
        resumed = cg.distributed.fit(model, store, checkpoint=path, resume=True)
        assert np.array_equal(resumed.item_probs, expected.item_probs)
        assert np.array_equal(resumed.confusion.concentration, expected.confusion.concentration)
        assert (resumed.n_iter, resumed.diagnostics["change"]) == (expected.n_iter, expected.diagnostics["change"])
        path.write_bytes(content)
        fits = run_together(fit, 3)
        probs = np.concatenate([fit.item_probs for fit in fits])
        assert np.allclose(probs, expected.item_probs, rtol=0, atol=1e-9)
        assert {fit.n_iter for fit in fits} == {expected.n_iter}


def test_results_of_volunteers_who_change(graph, store, tmp_path):
    model = cg.DynIBCC()
    cg.distributed.fit(model, store, out=tmp_path / "results")
    loaded, expected = cg.load(tmp_path / "results").fit(), model.fit(graph)
    for name in ("starts", "times", "initial", "concentration"):
        ours, theirs = (getattr(fit.confusion, name) for fit in (loaded, expected))
        assert np.array_equal(ours, theirs) or np.allclose(ours, theirs, rtol=1e-9)
    assert dict(loaded.params) == model.settings()


def test_ranks_agree_on_whether_a_fit_has_collapsed(graph, store):
    model = cg.IBCC(confusion_prior=[[1e8, 1e8], [1e8, 1e8]])
    with pytest.warns(CollapsedFitWarning):
        model.fit(graph)
    with pytest.warns(CollapsedFitWarning):
        fit_together(model, store, 2)


def test_repeated_answers_are_counted_in_the_store(tmp_path):
    cg.CrowdGraph.from_responses(
        {"volunteer": list("aabb"), "item": list("xxyy"), "label": ["yes", "no", "no", "yes"]}
    ).save(tmp_path / "crowd.store", format="columns")
    with pytest.warns(RepeatedAnswersWarning, match="2 of 4 responses"):
        cg.distributed.fit(cg.DawidSkene(), tmp_path / "crowd.store")


# Checkpoints


@pytest.fixture
def copies(monkeypatch):
    """Every checkpoint that is written, one after the other."""
    copies, write = [], _checkpoints._write

    def write_and_copy(path, *args):
        write(path, *args)
        copies.append(path.read_bytes())

    monkeypatch.setattr(_checkpoints, "_write", write_and_copy)
    return copies


@pytest.mark.parametrize("model", MODELS[::2], ids=repr)
def test_a_resumed_fit_has_the_same_bits(model, store, tmp_path, copies):
    path = tmp_path / "fit.checkpoint"
    expected = cg.distributed.fit(model, store, checkpoint=path, every=1)
    assert len(copies) > 5
    for content in copies[::4] + copies[-1:]:
        path.write_bytes(content)
        resumed = cg.distributed.fit(model, store, checkpoint=path, resume=True)
        assert np.array_equal(resumed.item_probs, expected.item_probs)
        assert np.array_equal(resumed.confusion.initial, expected.confusion.initial)
        assert np.array_equal(resumed.bound, expected.bound)
        assert resumed.n_iter == expected.n_iter


def test_a_fit_is_resumed_by_another_number_of_ranks(store, tmp_path, copies):
    model, opened, path = cg.IBCC(), cg.open_store(store), tmp_path / "fit.checkpoint"
    expected = cg.distributed.fit(model, store, checkpoint=path, every=1)
    for content in (copies[2], copies[-3]):
        path.write_bytes(content)

        def fit(ranks):
            checkpoints = open_checkpoint(path, model, opened, every=1000, resume=True, ranks=ranks)
            with using(ranks=ranks, checkpoints=checkpoints):
                return fitting._fit_share(model, opened, ranks, on_disk=False, visible=False).fit

        fits = run_together(fit, 3)
        probs = np.concatenate([fit.item_probs for fit in fits])
        assert np.allclose(probs, expected.item_probs, rtol=0, atol=1e-9)
        assert fits[0].n_iter == expected.n_iter


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        (cg.DawidSkene(), {}, "is of the model 'ibcc', and 'dawid_skene' is to be fitted"),
        (cg.IBCC(tol=1e-3), {}, "was written with tol=1e-05, not 0.001"),
        (cg.IBCC(), {"crowdgraph": "0.0.1"}, "was written by crowdgraph 0.0.1; this is crowdgraph"),
        (cg.IBCC(), {"crowd": "none"}, "is of another crowd than the store"),
        (cg.IBCC(), {"version": 99}, "is damaged (it is of another format)"),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(model, change, message, store, tmp_path):
    path = tmp_path / "fit.checkpoint"
    cg.distributed.fit(cg.IBCC(), store, checkpoint=path)
    with np.load(path) as arrays:
        contents = dict(arrays)
    header = {**json.loads(bytes(contents["header"])), **change}
    contents["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez(file, **contents)
    with pytest.raises(StoreError) as raised:
        cg.distributed.fit(model, store, checkpoint=path, resume=True)
    assert message in str(raised.value)
    assert "Name another file with checkpoint=" in str(raised.value)


def test_a_damaged_or_forgotten_checkpoint_is_refused(store, tmp_path):
    path = tmp_path / "fit.checkpoint"
    cg.distributed.fit(cg.IBCC(), store, checkpoint=path)
    with pytest.raises(StoreError, match=r"is there already. Go on from it with resume=True"):
        cg.distributed.fit(cg.IBCC(), store, checkpoint=path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(StoreError, match="is damaged"):
        cg.distributed.fit(cg.IBCC(), store, checkpoint=path, resume=True)


@pytest.mark.filterwarnings("ignore::crowdgraph.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    ("model", "part", "changed", "message"),
    [
        (cg.IBCC(), "state_0", lambda state: state[:2], "a state of shape"),
        (cg.IBCC(), "state_0", lambda state: state.astype(np.float32), "a state of shape .* of torch.float32"),
        (cg.IBCC(), "state_0", lambda state: state * np.nan, "finite and not negative"),
        (cg.DynIBCC(max_iter=3), "last", lambda state: state[:, :5], "a state of shape"),
        (cg.IBCC(), "stages", lambda stage: {**stage, "n_steps": -1}, "is damaged"),
        (cg.IBCC(), "stages", lambda stage: {**stage, "objectives": ["x"]}, "is damaged"),
        (cg.IBCC(), "stages", lambda stage: {**stage, "ended": 1}, "is damaged"),
    ],
)
def test_checkpoints_that_nobody_wrote_are_refused(model, part, changed, message, store, tmp_path, copies):
    path = tmp_path / "fit.checkpoint"
    cg.distributed.fit(model, store, checkpoint=path, every=1)
    path.write_bytes(copies[-1 if part == "last" else 0])
    with np.load(path) as arrays:
        contents = dict(arrays)
    part = max(contents) if part == "last" else part
    if part == "stages":
        header = json.loads(bytes(contents["header"]))
        header["stages"] = {name: changed(stage) for name, stage in header["stages"].items()}
        contents["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    else:
        contents[part] = changed(contents[part])
    with path.open("wb") as file:
        np.savez(file, **contents)
    with pytest.raises(StoreError, match=message):
        cg.distributed.fit(model, store, checkpoint=path, resume=True)


def test_checkpoints_that_unpack_to_too_much_are_refused(store, tmp_path, monkeypatch):
    path = tmp_path / "fit.checkpoint"
    monkeypatch.setattr(_unpacked, "ALWAYS_ALLOWED", 10**5)
    with path.open("wb") as file:
        np.savez_compressed(file, header=np.zeros(10**6, np.uint8))
    with pytest.raises(StoreError, match=r"fit.checkpoint' .* unpacks to more than 0.1 MB"):
        cg.distributed.fit(cg.IBCC(), store, checkpoint=path, resume=True)


def test_where_a_checkpoint_cannot_be_written(store, tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "_fit_share", None)  # nothing is fitted in vain
    with pytest.raises(StoreError, match=r"Cannot write to '.*nowhere': .*Create the directory first"):
        cg.distributed.fit(cg.IBCC(), store, checkpoint=tmp_path / "nowhere" / "fit.checkpoint")
    # It must not advise to remove the store.
    with pytest.raises(StoreError, match="is a directory; give the path of a file") as raised:
        cg.distributed.fit(cg.IBCC(), store, checkpoint=store)
    assert "remove" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == []


def test_all_ranks_are_told_that_the_disk_is_full(store, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    opened, path = cg.open_store(store), tmp_path / "fit.checkpoint"

    def fit(ranks):
        checkpoints = open_checkpoint(path, cg.IBCC(), opened, every=1, resume=True, ranks=ranks)
        with (
            using(ranks=ranks, checkpoints=checkpoints),
            pytest.raises(
                StoreError, match=r"could not be written: No space left.*free some space, or write elsewhere"
            ),
        ):
            fitting._fit_share(cg.IBCC(), opened, ranks, on_disk=False, visible=False)

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        run_together(fit, 2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("path", "n_written", "message"),
    [
        (None, 0, "Nothing was kept; name a file with checkpoint="),
        ("fit.checkpoint", 0, "Nothing was written to the checkpoint 'fit.checkpoint' yet; fit again"),
        ("fit.checkpoint", 1, "Go on from the checkpoint 'fit.checkpoint' with resume=True"),
        ("fit.checkpoint", None, "goes on from the checkpoint 'fit.checkpoint' if that is there, and begins anew"),
    ],
)
def test_a_lost_rank_says_how_to_go_on(path, n_written, message):
    resumption = fitting._Resumption(path)
    if path is not None and n_written is not None:
        stages = dict.fromkeys(range(n_written))
        resumption.checkpoints = CheckpointFile(path, {}, every=1, ranks=None, store=None, stages=stages)
    with pytest.raises(LostRankError, match=message), resumption:
        raise LostRankError("A rank was lost.")


# Results


@pytest.fixture
def results(store, tmp_path):
    cg.distributed.fit(cg.IBCC(), store, out=tmp_path / "results")
    return tmp_path / "results"


def test_results_are_loaded_as_an_annotated_graph(graph, results):
    loaded, expected = cg.load(results), cg.IBCC().fit(graph)
    fit = loaded.fit()
    assert loaded.equals(graph.annotate(fit))
    for name in ("item_probs", "class_probs", "bound", "class_concentration"):
        assert np.array_equal(getattr(fit, name), getattr(expected, name))
    assert np.array_equal(fit.confusion.initial, expected.confusion.initial)
    assert dict(fit.params) == dict(expected.params)
    assert fit.predict() == expected.predict()


def test_a_missing_or_short_partition_is_named(results):
    part = results / "items-00000-of-00001.parquet"
    content = part.read_bytes()
    part.write_bytes(content[:-1])
    with pytest.raises(StoreError, match=r"partition 'items-00000-of-00001.parquet' of .* has .* bytes; expected"):
        cg.load(results)
    part.unlink()
    with pytest.raises(StoreError, match=r"lacks its partition 'items-00000-of-00001.parquet'"):
        cg.load(results)


def test_results_are_read_on_the_command_line(results, tmp_path):
    run = CliRunner().invoke(commands, ["convert", str(results), str(tmp_path / "crowd.graphml")])
    assert run.exit_code == 0, run.output
    next(results.glob("items-*")).unlink()
    run = CliRunner().invoke(commands, ["convert", str(results), str(tmp_path / "again.graphml")])
    assert run.exit_code == 1
    assert "lacks its partition 'items-00000-of-00001.parquet': copy it" in " ".join(run.output.split())


def test_results_of_another_crowd_or_version_are_refused(results):
    manifest = json.loads((results / MANIFEST).read_text())
    for change, message in (
        ({"store": {**manifest["store"], "fingerprint": "x"}}, "is a fit of another crowd"),
        ({"version": 99}, "holds results of version 99"),
        ({"format": "x"}, "cannot be read: it is of another format"),
    ):
        (results / MANIFEST).write_text(json.dumps({**manifest, **change}))
        with pytest.raises(StoreError, match=message):
            cg.load(results)


def test_results_are_not_written_over_other_files(store, results, tmp_path):
    with pytest.raises(StoreError, match="holds finished results or a store already"):
        cg.distributed.fit(cg.IBCC(), store, out=results)
    cg.distributed.fit(cg.IBCC(), store, out=results, resume=True)
    assert cg.load(results).fit().converged
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(StoreError, match=r"holds other files \('thesis.txt'\)"):
        cg.distributed.fit(cg.IBCC(), store, out=tmp_path / "mine")
    with pytest.raises(StoreError, match="is a file; name a directory"):
        cg.distributed.fit(cg.IBCC(), store, out=tmp_path / "mine" / "thesis.txt")


# Bad input


def test_what_ranks_cannot_fit(graph, store):
    with pytest.raises(ParameterError, match=r"Ranks fit .* together; got MajorityVote"):
        cg.distributed.fit(cg.MajorityVote(), store)
    with pytest.raises(ParameterError, match="restarts=2 draws class probabilities of all items"):
        cg.distributed.fit(cg.IBCC(restarts=2), store)
    with pytest.raises(ParameterError, match=r"A memory limit of 1.0 MB is too low"):
        cg.distributed.fit(cg.DynIBCC(), store, memory="1MB")
    with pytest.raises(ParameterError, match="every=0"):
        cg.distributed.fit(cg.IBCC(), store, every=0)
    with pytest.raises(ParameterError, match=r"A memory limit of 1.0 MB is too low"):
        cg.distributed.fit(cg.IBCC(), store, memory="1MB")


def test_a_store_that_changes_meanwhile_is_noticed(graph, tmp_path, monkeypatch):
    path = tmp_path / "crowd.store"
    graph.save(path, format="columns")
    file = path / "by_item" / "label.npy"
    write = _checkpoints._write

    def write_and_touch(*args):
        write(*args)
        os.utime(file, ns=(1, 1))

    monkeypatch.setattr(_checkpoints, "_write", write_and_touch)
    with pytest.raises(StoreError, match=r"'by_item/label.npy' .* changed while it was read"):
        cg.distributed.fit(cg.IBCC(), path, checkpoint=tmp_path / "fit.checkpoint", every=1)


def test_a_damaged_store_is_noticed(graph, tmp_path):
    path = tmp_path / "crowd.store"
    graph.save(path, format="columns")
    labels = np.load(path / "by_item" / "label.npy", mmap_mode="r+")
    labels[0] = 7
    with pytest.raises(StoreError, match="codes in 'label' run from 0 to 7"):
        cg.distributed.fit(cg.IBCC(), path)
    (path / "by_item" / "label.npy").write_bytes(b"")
    with pytest.raises(StoreError, match=r"'by_item/label.npy' .* has 0 bytes"):
        cg.distributed.fit(cg.IBCC(), path)


# The command


def test_the_command(store, tmp_path):
    out = tmp_path / "results"
    options = ["--out", out, "--checkpoint", tmp_path / "fit.checkpoint", "--prior", "4,1"]
    run = CliRunner().invoke(app, ["fit", str(store), *map(str, options)])
    assert run.exit_code == 0, run.output
    assert "ibcc: converged after" in run.output
    assert cg.load(out).fit().params["confusion_prior"] == (4.0, 1.0)
    again = CliRunner().invoke(app, ["fit", str(store), *map(str, options)])
    assert again.exit_code == 1
    assert "Go on from it with --resume" in " ".join(again.output.split()) or "holds finished results" in again.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "magic"], "--model magic is not a choice"),
        (["--model", "dawid-skene", "--prior", "crowd"], "--prior is for models with a prior"),
        (["--noise-scale", "auto"], "--noise-scale is for volunteers who change, and in ibcc nobody does"),
        (["--model", "dynibcc", "--noise-scale", "much"], "--noise-scale much is not a choice; the only word it can"),
        (["--model", "dynibcc", "--noise-scale", "-1"], "--noise-scale -1.0 must be a number from 0 to 1e+06"),
        (["--device", "abacus"], "--device abacus is not available here"),
        (["--dtype", "half"], "--dtype half is not a choice; use one of 'float64', 'float32'"),
    ],
)
def test_wrong_options_of_the_command(options, message, store, tmp_path):
    run = CliRunner().invoke(app, ["fit", str(store), "--out", str(tmp_path / "results"), *options])
    assert run.exit_code == 1
    assert message in " ".join(run.output.split())
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["dynibcc", "--noise-scale", "auto"], {"noise_scale": "auto"}),
        (["dynibcc", "--noise-scale", "0.5", "--device", "cpu:0"], {"noise_scale": 0.5, "device": "cpu:0"}),
        (["ibcc", "--dtype", "float32"], {"dtype": "float32"}),
    ],
)
def test_options_of_the_command_are_settings_of_the_model(options, settings, store, tmp_path):
    run = CliRunner().invoke(app, ["fit", str(store), "--out", str(tmp_path / "results"), "--model", *options])
    assert run.exit_code == 0, run.output
    params = cg.load(tmp_path / "results").fit().params
    assert {name: params[name] for name in settings} == settings


def test_ranks_whose_volunteers_said_nothing_have_no_steps(tmp_path):
    table = {"volunteer": ["anna"] * 4, "item": list("wxyz"), "label": ["yes", "no", "yes", "no"], "time": range(4)}
    graph = cg.CrowdGraph.from_responses(table, volunteers={"volunteer": ["anna", "ben"]})
    graph.save(tmp_path / "crowd.store", format="columns")
    fits = fit_together(cg.DynIBCC(), tmp_path / "crowd.store", 2)
    assert [len(fit.confusion.times) for fit in fits] == [4, 0]


def test_a_complete_fit_leaves_no_checkpoint(store, tmp_path):
    for night in ("monday", "tuesday"):
        cg.distributed.fit(cg.IBCC(), store, out=tmp_path / night, checkpoint=tmp_path / "fit.checkpoint")
        assert not (tmp_path / "fit.checkpoint").exists()
