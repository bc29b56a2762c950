"""Files of gold: all doors read the same from them."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crowdgraph as cg
from crowdgraph.errors import ColumnError, GoldError, GoldWarning, InputError
from crowdgraph.io.any_file import convert, read

TEXT = {"volunteer": ["a", "b", "a", "b"], "item": ["007", "007", "8", "8"], "label": ["1", "0", "0", "0"]}
NUMBERS = {**TEXT, "item": [7, 7, 8, 8], "label": [1, 0, 0, 0]}

# What files hold, and what of it is known of the items 007 and 8, whose labels are 0 and 1.
FILES = {
    "plain.csv": ("item,label\n007,1\n8,0\n", {"007": "1", "8": "0"}),
    "semicolons.csv": ("item;label\n007;1\n8;0\n", {"007": "1", "8": "0"}),
    "other names.csv": ("Task,Truth,by\n007,1,anna\n8,0,\n", {"007": "1", "8": "0"}),
    "gaps.csv": ("item,label\n007,\n8,0\n", {"8": "0"}),
    "probabilities.csv": ("item,0,1\n007,0.25,0.75\n8,1,0\n", {"007": {"0": 0.25, "1": 0.75}, "8": "0"}),
    "gaps in probabilities.csv": ("item;0;1\n007;;\n8;1;0\n", {"8": "0"}),
    "text.parquet": ({"item": ["007", "8", "9"], "label": ["1", "0", None]}, {"007": "1", "8": "0"}),
    "whole numbers.parquet": ({"item": [8], "label": [1]}, {"8": "1"}),
    "numbers with gaps.parquet": ({"item": [9.0, 8.0], "label": [None, 1.0]}, {"8": "1"}),
    "probabilities.parquet": ({"subject_id": ["8", "007"], "1": [0.5, 1.0], "0": [0.5, 0.0]}, {
        "8": {"0": 0.5, "1": 0.5}, "007": "1"
    }),
}  # fmt: skip


def converted(responses, gold, folder):
    return cg.build_store(responses, folder / "crowd.store", gold=gold).graph()


def converted_by_command(responses, gold, folder):
    return convert([responses], folder / "crowd.store", gold=gold)[0].graph()


def with_gold(responses, gold, folder):
    return read(responses).graph.with_gold(gold)


def extended(responses, gold, folder):
    graph = read(responses).graph
    return graph.extend(graph.first(0), gold=gold)


DOORS = {
    "read_csv": ("csv", lambda responses, gold, folder: cg.read_csv(responses, gold=gold)),
    "read_parquet": ("parquet", lambda responses, gold, folder: cg.read_parquet(responses, gold=gold)),
    "from_responses": ("csv", lambda _, gold, folder: cg.CrowdGraph.from_responses(TEXT, gold=gold)),
    "command, csv": ("csv", lambda responses, gold, folder: read(responses, gold=gold).graph),
    "command, parquet": ("parquet", lambda responses, gold, folder: read(responses, gold=gold).graph),
    "build_store": ("parquet", converted),
    "convert": ("csv", converted_by_command),
    "with_gold": ("csv", with_gold),
    "extend": ("csv", extended),
}


def written(table, path):
    if path.suffix == ".csv" and not isinstance(table, str):
        table = "\n".join(map(",".join, [list(table), *zip(*table.values(), strict=True)])) + "\n"
    if isinstance(table, str):
        path.write_text(table)
    else:
        pq.write_table(pa.table(table), path)
    return path


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("file", FILES)
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.GoldWarning")
def test_every_door_reads_the_same(file, door, tmp_path):
    content, expected = FILES[file]
    kind, through = DOORS[door]
    gold = written(content, tmp_path / file)
    graph = through(written(TEXT, tmp_path / f"responses.{kind}"), gold, tmp_path)
    assert graph.classes == ("0", "1")
    assert dict(graph.gold) == expected


@pytest.mark.parametrize("door", ["read_parquet", "command, parquet", "build_store"])
@pytest.mark.parametrize("file", FILES)
@pytest.mark.filterwarnings("ignore::crowdgraph.errors.GoldWarning")
def test_every_door_finds_items_and_classes_that_are_numbers(file, door, tmp_path):
    content, expected = FILES[file]
    # Neither is 007 a number, nor 7 its name.
    expected = {
        int(item): {int(name): prob for name, prob in known.items()} if isinstance(known, dict) else int(known)
        for item, known in expected.items()
        if item != "007"
    }
    gold = written(content, tmp_path / file)
    graph = DOORS[door][1](written(NUMBERS, tmp_path / "responses.parquet"), gold, tmp_path)
    assert graph.classes == (0, 1)
    assert dict(graph.gold) == expected


def test_names_of_other_types_stay_what_they_are(tmp_path):
    """Where they are not written alike, nothing is guessed."""
    gold = written("item,label\n007,1\n8,0\n", tmp_path / "gold.csv")
    with pytest.warns(GoldWarning, match=r"1 item that nobody answered \('007'\)"):
        assert dict(cg.CrowdGraph.from_responses(NUMBERS, gold=gold).gold) == {8: 0}
    with pytest.warns(GoldWarning, match="Gold names items by str, the responses by int"):
        cg.CrowdGraph.from_responses(NUMBERS, gold={"8": 0})


def test_what_is_wrong_with_a_file_of_gold(tmp_path):
    graph = cg.CrowdGraph.from_responses(TEXT)
    with pytest.raises(ColumnError, match=r"gold.csv' has no column for the item among 'a', 'b'; call it 'item'"):
        graph.with_gold(written("a,b\n1,2\n", tmp_path / "gold.csv"))
    with pytest.raises(GoldError, match=r"Gold contradicts itself for item '8': '0' and '1'"):
        graph.with_gold(written("item,label\n8,0\n8,1\n", tmp_path / "gold.csv"))
    with pytest.raises(InputError, match=r"There is no file of gold '.*nowhere.csv'; is the name spelt right"):
        graph.with_gold(tmp_path / "nowhere.csv")
