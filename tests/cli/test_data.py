"""``crowdgraph inspect``, ``convert`` and ``simulate``: data looked at, converted and simulated."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.commands import run

import crowdgraph as cg

# Inspect


def test_findings_are_printed_in_the_words_of_the_command_line(crowd):
    result = run("inspect", crowd / "responses.csv")
    assert result.exit_code == 0
    assert "switching: no gold" in result.stdout
    assert "--gold FILE" in result.stdout
    assert "with_gold" not in result.stdout


def test_findings_are_printed_for_machines(crowd):
    result = run("inspect", crowd / "responses.csv", "--gold", crowd / "gold.csv", "--json")
    printed = json.loads(result.stdout)
    assert printed["responses"] == 200
    assert "no gold" not in [finding["name"] for finding in printed["findings"]]


def test_labels_that_are_not_classes_are_noted(tmp_path):
    responses, gold = tmp_path / "r.csv", tmp_path / "g.csv"
    rows = [(f"v{n % 7}", f"i{n * 31 % 50}", "yes" if n % 3 else "no") for n in range(90)]
    responses.write_text("\n".join(["volunteer,item,label", *map(",".join, rows)]))
    gold.write_text("item,label\n" + "".join(f"i{n * 31 % 50},{'good' if n % 3 else 'bad'}\n" for n in range(45)))
    result = run("inspect", responses, "--gold", gold)
    assert "Labels are not the classes; by" in result.stderr
    assert "yes for good" in result.stderr


# Convert


def test_responses_are_converted_to_a_store(crowd, tmp_path):
    """From several files, with guessed columns; the store is then read like any other file."""
    graph = cg.read_csv(crowd / "responses.csv", gold=crowd / "gold.csv")
    pq.write_table(graph.to_arrow()[:120].rename_columns(["worker", "task", "label", "time"]), tmp_path / "a.parquet")
    pq.write_table(graph.to_arrow()[120:].rename_columns(["worker", "task", "label", "time"]), tmp_path / "b.parquet")
    store = tmp_path / "x.store"
    options = ("--store", store, "--gold", crowd / "gold.csv", "--memory", "2GB")
    result = run("convert", tmp_path / "a.parquet", tmp_path / "b.parquet", *options)
    assert result.exit_code == 0, result.output
    assert "Read 200 rows: 200 responses, 0 left out." in result.stdout
    assert "worker for the volunteer" in result.stderr
    assert cg.load(store).equals(graph)
    assert run("convert", store, tmp_path / "back.crowd").exit_code == 0
    assert cg.load(tmp_path / "back.crowd").equals(graph)
    assert json.loads(run("inspect", store, "--json").stdout)["responses"] == 200
    assert "use --force to replace a store" in run("convert", tmp_path / "a.parquet", *options).stderr
    assert run("convert", tmp_path / "a.parquet", *options, "--force", "--no-time").exit_code == 0
    assert cg.open_store(store).clock.kind == "order"


def test_what_does_not_go_with_a_store(crowd, tmp_path):
    responses = crowd / "responses.csv"
    for words, message in (
        (("--gold-out", tmp_path / "g.csv"), "--gold-out does not go with --store"),
        (("--memory", "1MB"), "Raise it to --memory "),
        (("--labels", "nothing"), "Add them by --labels, one option for each"),
        (("--attribute", "score"), "no further column 'score'"),
        (("--format", "panoptes"), "Only tables of one kind"),
    ):
        result = run("convert", responses, "--store", tmp_path / "x.store", *words)
        assert result.exit_code == 1
        assert message in result.stderr
    assert "goes with --store" not in run("convert", responses, tmp_path / "x.crowd").stderr
    assert "go with --store" in run("convert", responses, tmp_path / "y.crowd", "--labels", "a").stderr
    assert "use --store DIRECTORY" in run("convert", responses, responses, responses).stderr
    assert not list(tmp_path.glob("*.store")) + list(tmp_path.glob(".*"))


def test_labels_of_a_store_may_be_numbers(tmp_path):
    pq.write_table(pa.table({"volunteer": ["a"], "item": ["x"], "label": [3]}), tmp_path / "r.parquet")
    result = run("convert", tmp_path / "r.parquet", "--store", tmp_path / "s", "--labels", "-1", "--labels", "3")
    assert result.exit_code == 0, result.output
    assert cg.open_store(tmp_path / "s").labels == (-1, 3)


def test_graphml_is_converted_back_with_gold_and_results(crowd, tmp_path):
    graph = cg.read_csv(crowd / "responses.csv", gold=crowd / "gold.csv")
    graph.annotate(cg.MajorityVote().fit(graph)).save(tmp_path / "g.crowd")
    assert run("convert", tmp_path / "g.crowd", tmp_path / "n.graphml").exit_code == 0
    result = run("convert", tmp_path / "n.graphml", tmp_path / "back.crowd")
    assert result.exit_code == 0, result.output
    back = cg.load(tmp_path / "back.crowd")
    assert back.equals(graph)
    assert list(back.annotations) == ["majority_vote"]
    assert "leave out their names" in run("convert", tmp_path / "n.graphml", tmp_path / "x.csv", "--item", "y").stderr


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".crowd"])
def test_responses_and_gold_are_converted_there_and_back(crowd, tmp_path, ending):
    graph = cg.read_csv(crowd / "responses.csv", gold=crowd / "gold.csv")
    target, gold = tmp_path / f"r{ending}", tmp_path / "g.parquet"
    result = run("convert", crowd / "responses.csv", target, "--gold", crowd / "gold.csv", "--gold-out", gold)
    assert result.exit_code == 0, result.output
    if ending == ".crowd":
        assert cg.load(target).equals(graph)
    else:
        assert run("convert", target, tmp_path / "back.crowd", "--gold", gold).exit_code == 0
        assert cg.load(tmp_path / "back.crowd").equals(graph)
    assert pq.read_table(gold).num_rows == len(graph.gold)
    assert "use --force" in run("convert", crowd / "responses.csv", target).stderr


@pytest.mark.parametrize("ending", [".graphml", ".gexf"])
def test_responses_are_converted_to_networks(crowd, tmp_path, ending):
    assert run("convert", crowd / "responses.csv", tmp_path / f"n{ending}").exit_code == 0
    assert "volunteer:volunteer-00" in (tmp_path / f"n{ending}").read_text()


def test_a_graph_comes_back_from_gexf(crowd, tmp_path):
    graph = cg.read_csv(crowd / "responses.csv", gold=crowd / "gold.csv")
    graph.annotate(cg.MajorityVote().fit(graph)).to_gexf(tmp_path / "g.gexf")
    assert run("convert", tmp_path / "g.gexf", tmp_path / "g.crowd").exit_code == 0
    again = cg.load(tmp_path / "g.crowd")
    assert again.equals(graph)
    assert list(again.annotations) == ["majority_vote"]
    assert "has no columns to name" in run("convert", tmp_path / "g.gexf", tmp_path / "h.crowd", "--item", "x").stderr


def test_what_a_table_cannot_hold_is_noted(crowd, tmp_path):
    graph = cg.read_csv(crowd / "responses.csv", gold=crowd / "gold.csv")
    graph.annotate(cg.MajorityVote().fit(graph)).save(tmp_path / "g.crowd")
    result = run("convert", tmp_path / "g.crowd", tmp_path / "m.csv")
    assert result.exit_code == 0
    words = f"m.csv holds responses only, without the gold of {len(graph.gold)} items (write it with --gold-out FILE)"
    assert words in result.stderr
    assert "the results majority_vote" in result.stderr
    with_gold = run("convert", tmp_path / "g.crowd", tmp_path / "n.csv", "--gold-out", tmp_path / "n_gold.csv")
    assert "the gold" not in with_gold.stderr
    assert "responses only" not in run("convert", tmp_path / "g.crowd", tmp_path / "o.crowd").stderr
    assert "responses only" not in run("convert", crowd / "responses.csv", tmp_path / "p.parquet").stderr


def test_times_are_left_out_of_any_format(crowd, tmp_path):
    assert run("convert", crowd / "responses.csv", tmp_path / "r.parquet").exit_code == 0
    for number, (source, *options) in enumerate(
        [(tmp_path / "r.parquet", "--no-time"), (crowd / "responses.csv", "--time", "")]
    ):
        target = tmp_path / f"{number}.csv"
        assert run("convert", source, target, *options).exit_code == 0
        assert target.read_text().startswith('"volunteer","item","label"\n')


# Simulate


def test_a_simulated_crowd_has_the_truth_and_gold_for_some_items(crowd):
    graph = cg.read_csv(crowd / "responses.csv", gold=crowd / "truth.csv")
    gold = cg.read_csv(crowd / "responses.csv", gold=crowd / "gold.csv").gold
    assert len(graph.gold) == len(graph.items)
    assert 0 < len(gold) < len(graph.items)
    assert all(graph.gold[item] == gold[item] for item in gold)


def test_a_simulated_crowd_is_replaced_only_when_asked(crowd, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(crowd, copy)
    assert run("simulate", copy).exit_code == 1
    assert run("simulate", copy, "--force", "--galaxy-zoo").exit_code == 0
    assert len(cg.read_csv(copy / "responses.csv").responses) == 26_558


def test_simulated_crowds_have_gold_for_a_fifth(tmp_path):
    sizes = ("--volunteers", 5, "--items", 100, "--responses", 300)
    assert run("simulate", tmp_path / "simulated", *sizes).exit_code == 0
    assert 5 < len((tmp_path / "simulated" / "gold.csv").read_text().splitlines()) < 40
