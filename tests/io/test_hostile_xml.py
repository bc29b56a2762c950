"""XML files that were made to harm or are damaged: refused in our words, and never read as a smaller graph."""

import numpy as np
import pytest
from builders import crowd, mirrored, network_of

import crowdgraph as cg
from crowdgraph.errors import InputError

READERS = {
    "graph.graphml": cg.read_graphml,
    "graph.gexf": cg.read_gexf,
    "network.graphml": cg.VolunteerNetwork.load,
    "network.gexf": cg.VolunteerNetwork.load,
}
readers = pytest.mark.parametrize("name", READERS)
ENTITIES = "".join(f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">' for k in range(1, 12))
LAUGHS = f'<!DOCTYPE z [<!ENTITY a0 "ha">{ENTITIES}]>'
NODE = "<graph><nodes><node id='a'/></nodes></graph>"
BRACKETS = "[" * 100_000
# Each with the root element of the format instead of ROOT.
HOSTILE = {
    "billion laughs": f"<?xml version='1.0'?>{LAUGHS}<ROOT>&a11;</ROOT>".encode(),
    "after comments": f"<?xml version='1.0'?><!-- c --><?p i?>{LAUGHS}<ROOT>&a11;</ROOT>".encode(),
    "UTF-16": f"<?xml version='1.0' encoding='UTF-16'?>{LAUGHS}<ROOT>&a11;</ROOT>".encode("utf-16"),
    "external entity": b"<!DOCTYPE z [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><ROOT>&x;</ROOT>",
    "external document type": b"<!DOCTYPE z SYSTEM 'http://example.invalid/z.dtd'><ROOT/>",
    "parameter entity": b"<!DOCTYPE z [<!ENTITY % p SYSTEM 'file:///etc/passwd'> %p;]><ROOT/>",
    "deep elements": b"<ROOT>" + b"<a>" * 50_000 + b"</a>" * 50_000 + b"</ROOT>",
    "long attribute": b"<ROOT><graph><nodes><node id='" + b"x" * 10**7 + b"'/></nodes></graph></ROOT>",
    "deep settings": f"<ROOT>{NODE}<?crowdgraph {BRACKETS}?></ROOT>".encode(),
    "deep settings of a network": f"<ROOT><meta><keywords>{BRACKETS}</keywords></meta>{NODE}</ROOT>".encode(),
    "unknown encoding": b"<?xml version='1.0' encoding='none'?><ROOT/>",
    "zeros": bytes(1000),
}


@readers
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_are_refused(tmp_path, name, kind):
    root = name.rpartition(".")[2]
    encoding = "utf-16" if kind == "UTF-16" else "latin-1"
    content = HOSTILE[kind].decode(encoding).replace("ROOT", root).encode(encoding)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        READERS[name](tmp_path / name)
    assert len(str(caught.value)) < 600
    assert "root:" not in str(caught.value)
    if b"<!DOCTYPE" in HOSTILE[kind] or kind == "UTF-16":
        assert "document type" in str(caught.value)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    graph = crowd(n_volunteers=4, n_items=8, n_responses=20).graph
    graph = graph.annotate(cg.IBCC().fit(graph))
    network = network_of(mirrored(np.full((4, 4), 0.5)), p_values=mirrored(np.full((4, 4), 0.01)), support=[1, 2, 3, 4])
    graph.to_graphml(folder / "graph.graphml")
    graph.to_gexf(folder / "graph.gexf")
    network.save(folder / "network.graphml")
    network.save(folder / "network.gexf")
    return folder


@readers
def test_files_cut_anywhere_are_refused(tmp_path, written, name):
    content = (written / name).read_bytes().rstrip()
    for length in (*range(0, len(content), 50), len(content) - 1):
        (tmp_path / name).write_bytes(content[:length])
        with pytest.raises(InputError):
            READERS[name](tmp_path / name)
