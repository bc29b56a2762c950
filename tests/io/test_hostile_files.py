"""Files of strangers: what a saved graph says about itself is checked before anything is computed from it."""

import gzip
import io
import json
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from builders import communities_of, crowd

import crowdgraph as cg
from crowdgraph.errors import InputError, ParameterError, StoreError
from crowdgraph.io import _unpacked

# Short fits are enough to have something to damage.
pytestmark = pytest.mark.filterwarnings("ignore::crowdgraph.errors.ConvergenceWarning")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The parts of a saved graph with results of many kinds, by their names."""
    graph = crowd(n_volunteers=8, n_items=30, n_responses=120).graph
    ibcc, dynamic = cg.IBCC().fit(graph), cg.DynIBCC(max_iter=3).fit(graph)
    draws = cg.GibbsIBCC(stop_change=0.5, max_draws=20, burn_in=5, keep_draws=5, chains=2).fit(graph, seed=0)
    ids = graph.volunteers.ids
    groups = communities_of([0, 0, 0, 0, 1, 1, 1, 1], ids=ids)
    track = cg.CommunityTrack(
        ids=ids, times=[1, 2], counts=[3, 6], snapshots=(groups, groups), clock=cg.Clock("number"), method="t"
    )
    graph = graph.annotate(ibcc, name="ibcc").annotate(dynamic, name="dynibcc").annotate(draws, name="gibbs")
    network = cg.networks.task_cooccurrence(graph, validate=0.99, min_responses=1)
    graph = graph.annotate(network, name="network").annotate(groups, name="groups").annotate(track, name="track")
    path = tmp_path_factory.mktemp("hostile") / "graph.crowd"
    graph.save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path, parts, **options):
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def npy(array):
    file = io.BytesIO()
    np.lib.format.write_array(file, array)
    return file.getvalue()


def fields_of(manifest, *names):
    """The fields of a stored result, found by its name and those of the results within."""
    node = dict(manifest["annotations"])[names[0]]["fields"]
    for name in names[1:]:
        node = node[name]
        node = (node["tuple"][0] if "tuple" in node else node)["fields"]
    return node


def with_array(parts, owner, name, change):
    """The parts with an array changed; of a sparse array, `name` is a pair."""
    node = fields_of(json.loads(parts["manifest.json"]), *owner)
    file = (node[name] if isinstance(name, str) else node[name[0]]["csr"][name[1]])["array"]
    array = np.lib.format.read_array(io.BytesIO(parts[file])).copy()
    return {**parts, file: npy(change(array))}


def with_value(parts, owner, name, value):
    manifest = json.loads(parts["manifest.json"])
    fields_of(manifest, *owner)[name] = value
    return {**parts, "manifest.json": json.dumps(manifest).encode()}


def first(value):
    def change(array):
        array[(0,) * array.ndim] = value
        return array

    return change


def last(value):
    def change(array):
        array[-1] = value
        return array

    return change


def test_the_parts_as_they_are_make_a_graph(parts, tmp_path):
    assert len(cg.load(written(tmp_path / "g", parts)).annotations) == 6


@pytest.mark.parametrize(
    ("owner", "name", "change"),
    [
        (["network"], ("weights", "indices"), first(500_000_000)),
        (["network"], ("weights", "indices"), first(-1)),
        (["network"], ("weights", "indices"), lambda array: array.astype(np.float64)),
        (["network"], ("weights", "indptr"), first(3)),
        (["network"], ("weights", "indptr"), last(10**6)),
        (["network"], ("weights", "indptr"), last(-1)),
        (["network"], ("weights", "indptr"), lambda array: np.append(array[::-1][1:], array[-1])),
        (["network"], ("weights", "data"), first(np.nan)),
        (["network"], ("weights", "data"), lambda array: array.astype(np.complex128)),
        (["network"], ("p_values", "indices"), first(500_000_000)),
        (["network"], ("p_values", "indptr"), last(-1)),
        (["network", "model"], ("incidence", "indices"), first(10**6)),
        (["network", "model"], ("incidence", "data"), first(np.nan)),
        (["network"], "support", lambda array: array.astype("datetime64[s]")),
        (["dynibcc", "confusion"], "starts", last(10**9)),
        # Differences of short integers overflow, so that these seem to rise.
        (["dynibcc", "confusion"], "starts", lambda _: np.array([0, 100, -100, 0, 20, 40, 60, 90, 120], np.int8)),
        (["dynibcc", "confusion"], "times", lambda array: array.astype("datetime64[25s]")),
        (["dynibcc", "forward"], "times", lambda array: np.full(len(array), np.nan)),
        (["dynibcc", "forward"], "times", lambda array: array.astype(bool)),
        (["ibcc", "state"], "n_answers", first(-1)),
        (["ibcc", "state"], "n_answers", lambda array: array[:-1]),
        (["ibcc", "state", "stages"], "item_probs", first(np.inf)),
        (["ibcc", "state", "stages"], "item_probs", lambda array: array[:, :1]),
        (["ibcc", "state", "stages"], "counts", lambda array: array[1:]),
        (["gibbs", "draws"], "item_classes", lambda array: array + 100),
        (["gibbs", "draws"], "item_classes", lambda array: array.astype(np.float64)),
        (["gibbs", "draws"], "confusion", first(np.nan)),
        (["track"], "counts", lambda array: array[None]),
    ],
)
def test_arrays_that_cannot_be_are_refused(parts, tmp_path, owner, name, change):
    path = written(tmp_path / "g", with_array(parts, owner, name, change))
    with pytest.raises(StoreError, match="is damaged: its parts do not fit together"):
        cg.load(path)


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (["ibcc"], "prior", 5),
        (["ibcc"], "prior", {"float": "0x1p+0"}),
        (["ibcc"], "converged", 1),
        (["ibcc"], "n_iter", True),
        (["ibcc"], "classifier", "a network"),
        (["ibcc"], "model", None),
        (["ibcc"], "params", {"tuple": []}),
        (["groups"], "evidence", "much"),
        (["groups"], "modularity", "high"),
        (["track"], "snapshots", {"tuple": [1, 2]}),
        (["track"], "apparent", {"tuple": [{"tuple": [0, 0, 10**6]}]}),
        (["network"], "model", "lost"),
        (["network", "model"], "level", {"float": "0x1p+4"}),
        (["network", "model"], "link_test", "guess"),
        (["network", "model"], "prior", {"tuple": [-1, 2]}),
        (["network"], "weights", {"csr": {"data": 1, "indices": 2, "indptr": 3}, "shape": [8, 8]}),
    ],
)
def test_values_of_other_types_are_refused(parts, tmp_path, owner, name, value):
    path = written(tmp_path / "g", with_value(parts, owner, name, value))
    with pytest.raises(StoreError, match="is damaged"):
        cg.load(path)


@pytest.mark.parametrize("number", ["1e999999999", "-1e999999999", "1e-999999999"])
def test_numbers_that_would_take_hours_are_refused(parts, tmp_path, number):
    manifest = json.loads(parts["manifest.json"])
    manifest["gold"]["items"] = {"objects": [{"decimal": number}]}
    path = written(tmp_path / "g", {**parts, "manifest.json": json.dumps(manifest)})
    with pytest.raises(StoreError, match="is too large or too small"):
        cg.load(path)


@pytest.mark.parametrize(
    "content",
    [
        npy(np.zeros(4))[:-1],
        npy(np.zeros(4)) + b"x",
        npy(np.zeros(4)).replace(b"(4,)", b"(4_000_000_000,)"),
        npy(np.zeros(4)).replace(b"(4,)", b"(-4,)"),
        npy(np.zeros(4)).replace(b"'<f8'", b"'<U0'"),
        npy(np.zeros(4)).replace(b"'<f8'", b"'|O'"),
        npy(np.zeros(4, dtype=[("a", "f8")])),
    ],
)
def test_arrays_whose_headers_lie_are_refused(parts, tmp_path, content):
    with pytest.raises(StoreError, match="is damaged"):
        cg.load(written(tmp_path / "g", {**parts, "arrays/0.npy": content}))


def test_arrays_of_another_byte_order_are_read(parts, tmp_path):
    def swapped(array):
        return array.astype(array.dtype.newbyteorder())

    one = cg.load(written(tmp_path / "g", with_array(parts, ["network"], "support", swapped))).network("network")
    expected = cg.load(written(tmp_path / "g", parts)).network("network").support
    assert np.array_equal(one.support, expected)
    assert one.support.dtype.isnative


@pytest.fixture
def allow(monkeypatch):
    """Set how much files of any size may unpack to."""

    def set_limits(n_bytes, ratio=2):
        monkeypatch.setattr(_unpacked, "ALWAYS_ALLOWED", n_bytes)
        monkeypatch.setattr(_unpacked, "MAX_RATIO", ratio)

    return set_limits


UNPACKS = r"unpacks to more than .* set the environment variable CROWDGRAPH_MAX_UNPACKED"


def test_archives_that_unpack_to_too_much_are_refused(parts, tmp_path, allow, monkeypatch):
    allow(10**5)
    padded = {**parts, "manifest.json": parts["manifest.json"] + b" " * 10**6}
    path = written(tmp_path / "g", padded, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(StoreError, match=UNPACKS):
        cg.load(path)
    monkeypatch.setenv("CROWDGRAPH_MAX_UNPACKED", "10MB")
    assert len(cg.load(path).annotations) == 6
    monkeypatch.setenv("CROWDGRAPH_MAX_UNPACKED", "plenty")
    with pytest.raises(StoreError, match="CROWDGRAPH_MAX_UNPACKED='plenty' is not an amount of memory"):
        cg.load(path)


def test_an_array_that_is_named_again_and_again_counts_each_time(parts, tmp_path, allow):
    allow(10**5)
    again = {"tuple": [{"array": "arrays/0.npy"}] * 10**4}
    path = written(tmp_path / "g", with_value(parts, ["groups"], "params", {"dict": [["more", again]]}))
    with pytest.raises(StoreError, match=UNPACKS):
        cg.load(path)


def test_tables_that_repeat_one_value_without_end_are_refused(write, tmp_path, allow):
    path = tmp_path / "responses.parquet"
    pq.write_table(pa.table({name: ["a"] * 10**5 for name in ("volunteer", "item", "label")}), path)
    assert cg.read_parquet(path).n_responses == 10**5
    allow(10**5, ratio=100)
    for read in (cg.read_parquet, lambda source: cg.build_store(source, tmp_path / "a.store")):
        with pytest.raises(InputError, match=UNPACKS):
            read(path)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x" * 10**4] * 10**3),
        pa.array([["x" * 10**4]] * 10**3),
        pa.array([{"a": "x" * 10**4}] * 10**3),
        pa.array([[("a", "x" * 10**4)]] * 10**3, pa.map_(pa.string(), pa.string())),
        pa.array([b"x" * 10**4] * 10**3),
        pa.array([b"x" * 10**4] * 10**3, pa.binary(10**4)),
    ],
    ids=["text", "lists", "records", "maps", "bytes", "bytes of one length"],
)
def test_tables_that_hold_a_long_text_once_and_repeat_it_are_refused(column, tmp_path, allow):
    path, n_rows = tmp_path / "responses.parquet", len(column)
    ids = [f"{number}" for number in range(n_rows)]
    table = pa.table({"volunteer": ids, "item": ids, "label": ["a"] * n_rows, "note": column})
    pq.write_table(table, path, row_group_size=300)
    assert path.stat().st_size < 10**5
    assert cg.read_parquet(path).n_responses == n_rows
    allow(5 * 10**6)
    for read in (cg.read_parquet, lambda source: cg.build_store(source, tmp_path / "a.store")):
        with pytest.raises(InputError, match=UNPACKS):
            read(path)
    allow(10**8)
    assert cg.read_parquet(path).n_responses == n_rows


@pytest.mark.parametrize("form", ["file", "columns"])
def test_saved_graphs_that_repeat_a_long_text_are_refused(form, tmp_path, allow):
    graph = cg.CrowdGraph.from_responses(
        {"volunteer": list(range(1000)), "item": list(range(1000)), "label": ["a"] * 1000},
        volunteers={"volunteer": list(range(1000)), "note": ["x" * 10**4] * 1000},
    )
    graph.save(tmp_path / "graph", format=form)
    assert cg.load(tmp_path / "graph").equals(graph)
    allow(5 * 10**6)
    with pytest.raises(StoreError, match=UNPACKS):
        cg.load(tmp_path / "graph").volunteers  # noqa: B018 - a store reads when it is asked


def test_tables_of_which_one_text_is_long_are_read(tmp_path, allow):
    path, n_rows = tmp_path / "responses.parquet", 1000
    ids = [f"{number}" for number in range(n_rows)]
    notes = ["x" * 10**4, *["a", "b", "c"] * 333]
    pq.write_table(pa.table({"volunteer": ids, "item": ids, "label": ["a"] * n_rows, "note": notes}), path)
    allow(10**5)
    assert cg.read_parquet(path).responses.attributes["note"].tolist() == notes


def test_compressed_text_that_unpacks_to_too_much_is_refused(write, tmp_path, allow, monkeypatch):
    path = write(gzip.compress(b"volunteer,item,label\n" + b"a,b,c\n" * 10**5), "responses.csv.gz")
    assert cg.read_csv(path).n_responses == 10**5
    allow(10**5)
    for read in (cg.read_csv, lambda source: cg.build_store(source, tmp_path / "a.store")):
        with pytest.raises(InputError, match=UNPACKS):
            read(path)
    monkeypatch.setenv("CROWDGRAPH_MAX_UNPACKED", "1 MB")
    assert cg.read_csv(path).n_responses == 10**5
    monkeypatch.setenv("CROWDGRAPH_MAX_UNPACKED", "-1")
    with pytest.raises(ParameterError, match="CROWDGRAPH_MAX_UNPACKED='-1'"):
        cg.read_csv(path)


def test_a_file_that_unpacks_to_too_much_is_refused_before_much_of_it_is_read(write, allow):
    path = write(gzip.compress(b"a,b,c\n" * 10**6), "responses.csv.gz")
    allow(10**5, ratio=100)
    n_read = 0
    with _unpacked.text_source(path) as source:

        def read():
            nonlocal n_read
            while block := source.read(1000):
                n_read += len(block)

        with pytest.raises(InputError, match=UNPACKS):
            read()
    assert n_read <= 10**5


def test_a_compressed_file_that_is_cut_short_behind_what_is_always_allowed_is_said_to_be(write, allow):
    rows = "".join(f"a{number},b,c\n" for number in range(10**5))
    path = write(gzip.compress(f"volunteer,item,label\n{rows}".encode())[:-1000], "responses.csv.gz")
    allow(10**5, ratio=100)
    with pytest.raises(InputError, match="is cut short"):
        cg.read_csv(path)
