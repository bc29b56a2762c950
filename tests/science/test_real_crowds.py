"""Real crowds, where they are present, come through the doors with the numbers that their description gives."""

import pytest
from science.real import load

import crowdgraph as cg

# Volunteers, items, responses, labels, gold items and repeated answers, as counted by whoever prepared the files.
CROWDS = {
    "medrel_treat": (468, 3_231, 50_962, 2, 621, 736),
    "medrel_treat_l3": (468, 3_231, 50_962, 3, 621, 736),
    "mvh_cueconflict": (10, 1_280, 12_800, 17, 1_280, 0),
    "nyt_rel_2p": (59, 120, 3_596, 2, 120, 802),
    "predictionbook": (2_226, 18_667, 63_592, 3, 15_225, 11_139),
    "snapshots_at_sea_q1": (527, 5_999, 36_131, 2, 0, 3_513),
    "act_ms": (44, 700, 2_945, 10, 700, 0),
    "act_zencrowd_all": (78, 2_040, 21_855, 2, 2_040, 1_730),
    "bluebird": (39, 108, 4_212, 2, 108, 0),
    "dawid_skene_1979": (5, 45, 315, 4, 0, 90),
    "gal_adult2": (825, 11_040, 92_721, 4, 333, 2_922),
    "fact_eval": (57, 42_624, 216_725, 3, 576, 1_810),
    "opendomain_rel_multi": (711, 77_900, 1_169_108, 2, 0, 0),
}


@pytest.mark.science
@pytest.mark.filterwarnings("ignore:Gold names classes that are not labels")
@pytest.mark.parametrize("name", CROWDS)
def test_real_crowds(name, tmp_path):
    graph = load(name)
    counts = (len(graph.volunteers), len(graph.items), len(graph.responses), len(graph.labels), len(graph.gold))
    assert (*counts, int(graph.responses.is_repeat.sum())) == CROWDS[name]
    graph.save(tmp_path / "graph")
    assert cg.load(tmp_path / "graph").equals(graph)
    assert cg.CrowdGraph.from_responses(
        graph.to_arrow(),
        gold=graph.to_arrow(table="gold"),
        classes=graph.classes,
        labels=graph.labels,
        items=graph.to_arrow(table="items"),
    ).equals(graph)
