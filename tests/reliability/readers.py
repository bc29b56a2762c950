"""Everything that reads what somebody else may have written, with inputs for it.

A function of a folder and a generator of random numbers writes an input into the folder, and returns what reads it.
"""

import datetime as dt
import gzip
import io
import json
import zipfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from builders import crowd
from reliability.mutators import (
    TOKENS,
    archive_of,
    changed_archive,
    changed_json,
    changed_parquet,
    changed_parts,
    changed_table,
    changed_xml,
    damaged,
    pick,
)

import crowdgraph as cg
from crowdgraph.analysis.update import read_results
from crowdgraph.cli._output import write_table
from crowdgraph.io.any_file import read

Rng = np.random.Generator
Input = Callable[[], Any]

# Valid inputs


@cache
def graph() -> cg.CrowdGraph:
    """Return a small crowd with gold."""
    return crowd(n_volunteers=8, n_items=12, n_responses=40, gold=0.5).graph


@cache
def annotated() -> cg.CrowdGraph:
    """Return it with one result of each kind."""
    annotated = graph().annotate(cg.DynIBCC(max_iter=5).fit(graph()))
    network = cg.networks.pi_similarity(annotated, min_responses=1)
    annotated = annotated.annotate(network).annotate(cg.networks.task_cooccurrence(graph(), min_responses=1))
    annotated = annotated.annotate(cg.Leiden().detect(network, seed=0), name="communities")
    track = cg.dynamics.over_time(
        graph(),
        counts=[20, 40],
        model=cg.IBCC(max_iter=5),
        network=partial(cg.networks.pi_similarity, min_responses=1),
        detector=cg.Leiden(),
        seed=0,
    )
    return annotated.annotate(track, name="track")


@cache
def files() -> dict[str, bytes]:
    """Return valid files by their names."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_table(graph().to_arrow(), folder / "responses.csv")
        write_table(graph().to_arrow(), folder / "responses.parquet")
        write_table(graph().to_arrow(table="gold"), folder / "gold.csv")
        for kind in ("plain", *annotated().annotations):
            one = graph() if kind == "plain" else graph().annotate(annotated().annotations[kind], name=kind)
            one.save(folder / f"{kind}.crowd")
            one.to_graphml(folder / f"{kind}.graphml")
            one.to_gexf(folder / f"{kind}.gexf")
        network = annotated().network("pi_similarity")
        network.save(folder / "network.graphml", communities=annotated().communities())
        annotated().save(folder / "annotated.crowd")
        return parts_of(folder)


@cache
def folders() -> dict[str, dict[str, bytes]]:
    """Return the files of valid folders: a store, a fit of it, and checkpoints of that."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        graph().save(folder / "crowd.store", format="columns")
        cg.distributed.fit(MODEL, folder / "crowd.store", out=folder / "fit")
        (folder / "checkpoint").mkdir()
        cg.distributed.fit(MODEL, folder / "crowd.store", checkpoint=folder / "checkpoint" / "fit.npz", every=1)
        return {path.name: parts_of(path) for path in folder.iterdir()}


def prepare() -> None:
    """Make all valid inputs, so that forks need not."""
    files(), folders()


def parts_of(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by their names in it."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def panoptes_table() -> str:
    """Return an export of Zooniverse."""
    values = ('"Yes"', '"No"')
    rows = ["classification_id,user_name,user_id,workflow_id,created_at,annotations,subject_ids"]
    for number in range(12):
        annotations = f'[{{"task": "T0", "value": {values[number % len(values)]}}}]'.replace('"', '""')
        name = ("anna", "bert", "not-logged-in-1")[number % 3]
        rows.append(
            f'{number},{name},{number},1,2026-03-{number + 1:02} 12:00:00 UTC,"{annotations}",{10 + number % 4}'
        )
    return "\n".join(rows)


def galaxy_zoo_table(*, header: bool) -> str:
    """Return a table of Galaxy Zoo Supernovae."""
    rows = ["classification,agent id,asset id,PTF type,PTF class,score"] if header else []
    kinds = ("SN Ia,", "NULL,", ",not SN")
    rows += [
        f"{number},a{number % 4},x{number % 3},{kinds[number % 3]},{(-1, 1, 3)[number % 3]}" for number in range(12)
    ]
    return "\n".join(rows)


def annotation_exports() -> dict[str, list[dict[str, Any]]]:
    """Return exports of annotation tools by the names of their readers."""
    rows = [(f"v{number % 3}", number % 4, ("cat", "dog")[number % 2], number) for number in range(8)]
    day = "2026-03-{:02}T12:00:00Z"
    result = {"from_name": "q", "to_name": "image", "type": "choices"}
    return {
        "read_label_studio": [
            {
                "id": item,
                "data": {"image": "x.jpg"},
                "annotations": [
                    {
                        "completed_by": {"id": number, "email": who},
                        "result": [{**result, "value": {"choices": [label]}}],
                        "was_cancelled": number == 3,
                        "ground_truth": number == 2,
                        "created_at": day.format(number + 1),
                    }
                ],
            }
            for who, item, label, number in rows
        ],
        "read_argilla": [
            {"id": item, "fields": {}, "responses": {"q": [{"value": label, "user_id": who}]}}
            for who, item, label, _ in rows
        ],
        "read_prodigy": [
            {
                "options": [],
                "accept": [label],
                "answer": ("accept", "ignore")[number == 5],
                "_input_hash": item,
                "_task_hash": number,
                "_annotator_id": who,
                "_timestamp": 1_700_000_000 + number,
            }
            for who, item, label, number in rows
        ],
        "read_inaturalist": [
            {
                "taxon": {"id": number, "name": label},
                "user": {"id": number, "login": who},
                "observation": {"id": item},
                "current": number != 4,
                "created_at": day.format(number + 1),
            }
            for who, item, label, number in rows
        ],
        "read_doccano": [
            {
                "id": item,
                "text": "x",
                "annotations": [{"label": label, "user": who, "created_at": day.format(number + 1)}],
            }
            for who, item, label, number in rows
        ],
    }


# Inputs


def saved(ending: str, rng: Rng) -> bytes:
    """Return a valid graph as a file with an ending: without results, with one of some kind, or with all."""
    return files()[pick(rng, sorted(name for name in files() if name.endswith(ending) and name != "network.graphml"))]


def written(path: Path, content: bytes) -> Path:
    """Write a file and return its path."""
    path.write_bytes(content)
    return path


def written_folder(path: Path, parts: dict[str, bytes]) -> Path:
    """Write a folder of files and return its path."""
    for name, content in parts.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def responses(folder: Path, rng: Rng) -> Path:
    """Write a changed table of responses."""
    return written(folder / "responses.csv", changed_table(files()["responses.csv"].decode(), rng))


def intact(folder: Path) -> Path:
    """Write a table of responses that is as it should be."""
    return written(folder / "responses.csv", files()["responses.csv"])


def gold(folder: Path, rng: Rng) -> Path:
    """Write changed gold, with a class or with probabilities."""
    hard = files()["gold.csv"].decode().replace('"', "")
    soft = "item,no,yes\n" + "\n".join(f"item-{number},0.25,0.75" for number in range(5))
    return written(folder / "gold.csv", changed_table(pick(rng, (hard, soft)), rng))


def options(rng: Rng) -> dict[str, Any]:
    """Return some options of readers of tables."""
    chosen = {
        "duplicates": pick(rng, ("all", "first", "last", "error")),
        "missing": pick(rng, ("error", "drop", "keep")),
    }
    return chosen if rng.random() < 0.3 else {}


def csv(folder: Path, rng: Rng) -> Input:
    return partial(cg.read_csv, responses(folder, rng), **options(rng))


def csv_of_any_kind(folder: Path, rng: Rng) -> Input:
    if rng.random() < 0.3:
        return partial(graph_of_file, written(folder / "export.csv", changed_table(panoptes_table(), rng)))
    return partial(graph_of_file, responses(folder, rng), **options(rng))


def csv_with_gold(folder: Path, rng: Rng) -> Input:
    return partial(cg.read_csv, intact(folder), gold=gold(folder, rng))


def any_with_gold(folder: Path, rng: Rng) -> Input:
    return partial(graph_of_file, intact(folder), gold=gold(folder, rng))


def parquet(folder: Path, rng: Rng) -> Input:
    path = written(folder / "responses.parquet", changed_parquet(files()["responses.parquet"], rng))
    return partial(pick(rng, (cg.read_parquet, graph_of_file)), path, **options(rng))


def panoptes(folder: Path, rng: Rng) -> Input:
    path = written(folder / "export.csv", changed_table(panoptes_table(), rng))
    malformed, anonymous = pick(rng, ("error", "skip")), pick(rng, ("keep", "drop", "pool"))
    return partial(cg.read_panoptes, path, task="T0", malformed=malformed, anonymous=anonymous, **options(rng))


def galaxy_zoo(folder: Path, rng: Rng) -> Input:
    table = galaxy_zoo_table(header=rng.random() < 0.5)
    return partial(cg.read_galaxy_zoo_supernovae, written(folder / "table.csv", changed_table(table, rng)))


def annotations(folder: Path, rng: Rng) -> Input:
    """Write a changed export of an annotation tool, as an array or as lines."""
    name = pick(rng, tuple(annotation_exports()))
    records = annotation_exports()[name]
    content = "\n".join(map(json.dumps, records)) if rng.random() < 0.3 else json.dumps(records)
    changed = damaged(content.encode(), rng) if rng.random() < 0.3 else changed_json(json.dumps(records).encode(), rng)
    path = written(folder / "export.json", changed)
    if rng.random() < 0.2:
        return partial(graph_of_file, path)
    return partial(getattr(cg, name), path, malformed=pick(rng, ("error", "skip")))


def graphml(folder: Path, rng: Rng) -> Input:
    return partial(cg.read_graphml, written(folder / "g.graphml", changed_xml(saved(".graphml", rng).decode(), rng)))


def gexf(folder: Path, rng: Rng) -> Input:
    return partial(cg.read_gexf, written(folder / "g.gexf", changed_xml(saved(".gexf", rng).decode(), rng)))


def crowd_bytes(folder: Path, rng: Rng) -> Input:
    return partial(cg.load, written(folder / "graph.crowd", damaged(saved(".crowd", rng), rng)))


def crowd_members(folder: Path, rng: Rng) -> Input:
    return partial(cg.load, written(folder / "graph.crowd", changed_archive(saved(".crowd", rng), rng)))


def store(folder: Path, rng: Rng) -> Input:
    return partial(cg.load, changed_store(folder / "crowd.store", rng))


def store_fitted(folder: Path, rng: Rng) -> Input:
    return partial(cg.distributed.fit, MODEL, changed_store(folder / "crowd.store", rng))


def changed_store(path: Path, rng: Rng) -> Path:
    """Write a store of which files are changed, and perhaps named with the sizes that they have then."""
    return written_folder(path, with_true_sizes(changed_parts(folders()["crowd.store"], rng), rng))


def with_true_sizes(parts: dict[str, bytes], rng: Rng) -> dict[str, bytes]:
    """Return parts whose manifest mostly names their sizes, as that of a crafted store would."""
    try:
        manifest = json.loads(parts["manifest.json"])
        for name, facts in manifest["files"].items():
            facts["bytes"] = len(parts[name])
    except (KeyError, TypeError, ValueError, AttributeError):
        return parts
    return {**parts, "manifest.json": json.dumps(manifest).encode()} if rng.random() < 0.9 else parts


def partitions(folder: Path, rng: Rng) -> Input:
    written_folder(folder / "crowd.store", folders()["crowd.store"])
    parts = with_true_sizes(changed_parts(folders()["fit"], rng), rng)
    return partial(cg.load, written_folder(folder / "fit", parts))


def checkpoint(folder: Path, rng: Rng) -> Input:
    path = written_folder(folder / "crowd.store", folders()["crowd.store"])
    valid = folders()["checkpoint"]["fit.npz"]
    content = damaged(valid, rng) if rng.random() < 0.2 else changed_checkpoint(valid, rng)
    file = written(folder / "fit.checkpoint", content)
    return partial(cg.distributed.fit, MODEL, path, checkpoint=file, resume=True)


def changed_checkpoint(content: bytes, rng: Rng) -> bytes:
    """Return a checkpoint whose header, which is JSON in an array, or whose arrays are changed."""
    if rng.random() < 0.5:
        return changed_archive(content, rng)
    with np.load(io.BytesIO(content)) as valid:
        arrays = dict(valid)
    header = changed_json(bytes(arrays["header"]), rng)
    file = io.BytesIO()
    np.savez(file, **{**arrays, "header": np.frombuffer(header, np.uint8)})
    return file.getvalue()


def results(folder: Path, rng: Rng) -> Input:
    record = {
        "settings": {"model": "ibcc", "seed": 0},
        "source": {"updates": []},
        "commands": [["analyse", "responses.csv"]],
        "files": ["graph.crowd"],
    }
    written(folder / "graph.crowd", files()["plain.crowd"])
    written(folder / "run.json", changed_json(json.dumps(record).encode(), rng))
    return lambda: read_results(folder).graph


def conversion(folder: Path, rng: Rng) -> Input:
    if rng.random() < 0.5:
        path = written(folder / "responses.parquet", changed_parquet(files()["responses.parquet"], rng))
    else:
        path = responses(folder, rng)
    return lambda: cg.build_store(path, folder / "crowd.store", **options(rng)).graph()


def network(folder: Path, rng: Rng) -> Input:
    path = written(folder / "n.graphml", changed_xml(files()["network.graphml"].decode(), rng))
    return partial(cg.VolunteerNetwork.load, path)


def columns(folder: Path, rng: Rng) -> Input:
    table = graph().to_arrow().to_pydict()
    for _ in range(pick(rng, (1, 1, 2, 5))):
        column = table[pick(rng, list(table))]
        if rng.random() < 0.2:
            column[:] = [odd_value(rng)] * len(column)
        elif column:
            column[int(rng.integers(len(column)))] = odd_value(rng)
    return partial(cg.CrowdGraph.from_responses, table, **options(rng))


def networkx(folder: Path, rng: Rng) -> Input:
    network = annotated().to_networkx() if rng.random() < 0.3 else graph().to_networkx()
    for _ in range(pick(rng, (1, 1, 2, 5))):
        pick(rng, (change_nodes, change_edges, change_settings))(network, rng)
    return partial(cg.CrowdGraph.from_networkx, network)


def change_nodes(network: Any, rng: Rng) -> None:
    """Change an attribute of a node, or which nodes there are."""
    if len(network) and rng.random() < 0.8:
        attributes = network.nodes[pick(rng, list(network))]
        attributes[pick(rng, ("kind", "bipartite", "id", "gold", "confusion", "x", 5, *attributes))] = odd_value(rng)
    elif len(network) and rng.random() < 0.5:
        network.remove_node(pick(rng, list(network)))
    else:
        network.add_node(odd_name(rng), kind=pick(rng, ("item", "volunteer", odd_value(rng))))


def change_edges(network: Any, rng: Rng) -> None:
    """Change an attribute of an edge, or which edges there are."""
    edges = list(network.edges(keys=True))
    if edges and rng.random() < 0.8:
        attributes = network.edges[pick(rng, edges)]
        attributes[pick(rng, ("label", "time", "position", "volunteer", "x", *attributes))] = odd_value(rng)
    elif len(network):
        network.add_edge(pick(rng, list(network)), pick(rng, list(network)), label=odd_value(rng))


def change_settings(network: Any, rng: Rng) -> None:
    """Change what a graph says about itself."""
    if rng.random() < 0.2 or not isinstance(network.graph.get("crowdgraph"), dict):
        network.graph[pick(rng, ("crowdgraph", "crowdgraph_annotations", *network.graph))] = odd_value(rng)
    else:
        settings = dict(network.graph["crowdgraph"])
        settings[pick(rng, (*settings, "attributes"))] = odd_value(rng)
        network.graph["crowdgraph"] = settings


def odd_name(rng: Rng) -> Any:
    """Return something that can be the name of a node."""
    names = (
        1,
        "x",
        (1, 2),
        ("volunteer", "x"),
        ("item", float("nan")),
        True,
        3.5,
        "\ud800",
        b"b",
        frozenset([1]),
        10**30,
    )
    return pick(rng, names)


def odd_value(rng: Rng) -> Any:
    """Return something that can be an attribute."""
    values = (None, float("nan"), float("inf"), [1], {}, {"no": 0.5, "yes": 0.5}, {"a": 1}, dt.date(1, 1, 1))
    values += (dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC), np.array([1.0]), *TOKENS)
    return odd_name(rng) if rng.random() < 0.4 else pick(rng, values)


def bomb(folder: Path, rng: Rng) -> Input:
    """Write a small file that unpacks to much more than a process may take, or that is nested very deeply."""
    kind = pick(rng, ("manifest", "array", "table", "repeated", "nested", "checkpoint"))
    if kind == "table":
        with gzip.open(folder / "responses.csv.gz", "wb", compresslevel=1) as file:
            write_zeros(file, b"volunteer,item,label\n", b"a,b,c\n")
        return partial(cg.read_csv, folder / "responses.csv.gz")
    if kind == "repeated":
        n_rows = 12_000
        text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n_rows, np.int32)), pa.array(["x" * 100_000]))
        ids = pa.array(range(n_rows))
        table = pa.table({"volunteer": ids, "item": ids, "label": ids, pick(rng, ("label", "note")): text})
        pq.write_table(table, folder / "responses.parquet", store_schema=False)
        return partial(cg.read_parquet, folder / "responses.parquet")
    if kind == "checkpoint":
        store = written_folder(folder / "crowd.store", folders()["crowd.store"])
        file = with_large_member(folder / "fit.checkpoint", folders()["checkpoint"]["fit.npz"], "state_0.npy")
        return partial(cg.distributed.fit, MODEL, store, checkpoint=file, resume=True)
    if kind == "nested":
        nested = {"manifest.json": b'{"format": "crowdgraph", "version": 1, "classes": ' + b"[" * 2_000_000}
        return partial(cg.load, written(folder / "graph.crowd", archive_of(nested)))
    member = {"manifest": "manifest.json", "array": "arrays/0.npy"}[kind]
    return partial(cg.load, with_large_member(folder / "graph.crowd", files()["annotated.crowd"], member))


def with_large_member(path: Path, content: bytes, large: str) -> Path:
    """Write an archive of which one member goes on with very many zeros."""
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            with new.open(name, "w", force_zip64=True) as file:
                file.write(old.read(name))
                if name == large:
                    write_zeros(file, b"", b"\0" * 8)
    return path


def write_zeros(file: IO[bytes], begin: bytes, unit: bytes) -> None:
    """Write a unit again and again, until it is more than a process may take."""
    file.write(begin)
    block = unit * (2**20 // len(unit))
    for _ in range(1_200):
        file.write(block)


def graph_of_file(path: Path, **chosen: Any) -> cg.CrowdGraph:
    """Read a file as the command line does."""
    return read(path, **chosen).graph


MODEL = cg.IBCC(max_iter=3)
# By the names in the table; what the first version did with each.
READERS: dict[str, tuple[Callable[[Path, Rng], Input], str]] = {
    "read_csv": (csv, "0 of 3,500"),
    "any_file": (csv_of_any_kind, "0 of 3,000"),
    "gold": (csv_with_gold, "3 of 2,000"),
    "any_file_gold": (any_with_gold, "1 of 2,000"),
    "read_parquet": (parquet, "1 of 4,000"),
    "read_panoptes": (panoptes, "0 of 2,000"),
    "read_galaxy_zoo": (galaxy_zoo, "9 of 2,000"),
    "from_responses": (columns, ""),
    "from_networkx": (networkx, "44 of 2,500"),
    "read_graphml": (graphml, ""),
    "read_gexf": (gexf, ""),
    "network_load": (network, ""),
    "load_bytes": (crowd_bytes, "0 of 1,500"),
    "load_members": (crowd_members, "7 of 3,000"),
    "load_store": (store, ""),
    "fit_store": (store_fitted, ""),
    "build_store": (conversion, ""),
    "load_fit": (partitions, ""),
    "checkpoint": (checkpoint, ""),
    "results": (results, ""),
    "bombs": (bomb, "2 of 13"),
    "annotation_tools": (annotations, ""),
}
# Those of which few inputs are enough: they take seconds each, and the short form leaves them out.
FEW = {"bombs": 20}
