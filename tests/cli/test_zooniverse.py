"""A Zooniverse export by commands alone: questions, pages, retirement files and pseudonyms."""

import csv
import json
import re

import pytest
from cli.commands import assert_one_sentence, figures_left_out, run
from zooniverse import realistic

import crowdgraph as cg

FAST = ("--snapshots", 0, "--model", "ibcc", "--quiet")


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    return realistic(n_subjects=24).write(tmp_path_factory.mktemp("zooniverse") / "export.csv")


@pytest.fixture(scope="module")
def results(export, tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "out"
    key = out.with_name("key.csv")
    with figures_left_out():
        result = run("analyse", export, "--malformed", "skip", "--pseudonyms", key, "--out", out, *FAST)
    assert result.exit_code == 0, result.output
    return out, result, key


def test_inspect_lists_the_questions(export):
    result = run("inspect", export)
    assert result.exit_code == 0
    assert "T1 of workflow 21001 'What is it doing?' (multiple choice" in result.stdout
    assert "such as --bins 10,50" in result.stdout
    assert "name it with --workflow, --task and --option" in result.stdout
    questions = json.loads(run("inspect", export, "--json").stdout)["questions"]
    assert [one["task"] for one in questions] == ["T0", "T1", "T2", "T3", "T0"]


def test_inspect_of_one_question_accounts_for_the_rows(export):
    result = run(
        "inspect", export, "--workflow", "Animal or not", "--task", "T1", "--option", "eating", "--malformed", "skip"
    )
    assert result.exit_code == 0, result.output
    rows = re.search(r"Of (\d+) rows, (\d+) were read; (\d+) were not", result.stderr)
    n_rows, n_read, n_skipped = map(int, rows.groups())
    assert n_read + n_skipped == n_rows
    assert f"{n_read} responses" in result.stdout
    assert "--version 14.41 reads one of them" in result.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "Say which, such as --workflow 21001 --task T0; analyse reads all of them."),
        (("--workflow", 21001, "--task", "T0"), "use --malformed skip to leave such rows out"),
        (("--workflow", "Animals"), "'21001' (Animal or not), '21002' (Which species?)"),
        (("--task", "T7"), "the export asks T0 of workflow 21001 'Is there an animal in the picture?'"),
        (("--task", "T1"), "Read one as yes or no, such as --option"),
        (("--task", "T3"), "read it in Python, where label="),
        (("--task", "T2", "--bins", "a"), "--bins a must be numbers with commas between them"),
        (("--task", "T2", "--bins", "5,3"), "--bins [5.0, 3.0] must be numbers that grow"),
        (("--task", "T0", "--task", "T1"), "--task names 2, and this command reads one"),
        (("--task", "T0", "--workflow", 21002, "--anonymous", "never"), "--anonymous never is not a choice"),
        (("--reuse-pseudonyms", "--task", "T0", "--workflow", 21002), "--reuse-pseudonyms is for the key"),
    ],
)
def test_errors_are_in_the_words_of_the_command_line(export, options, words):
    assert_one_sentence(run("evaluate", export, *options), words)


def test_options_of_exports_are_for_exports(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("volunteer,item,label\na,x,yes\nb,x,no\n")
    assert_one_sentence(run("inspect", path, "--workflow", 3), "--workflow is for Zooniverse exports")
    assert_one_sentence(run("inspect", path, "--gold-standard", "gold"), "--gold-standard is for Zooniverse exports")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", "[]", "is JSON, but not a file of"),
        ("a.csv", "workflow_id,tasks\n1,x\n", "looks like the workflow export"),
        ("a.csv", "subject_id,locations\n1,x\n", "looks like the subject export"),
    ],
)
def test_other_files_of_a_project_are_named(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    assert_one_sentence(run("inspect", tmp_path / name), words)


def test_what_is_about_one_question_is_refused_for_several(export, results, tmp_path):
    out, _, _ = results
    several = ("analyse", export, "--malformed", "skip", "--out", tmp_path / "new")
    assert_one_sentence(run(*several, "--class", "yes"), "--class is about one question")
    assert_one_sentence(run(*several, "--survey", "many"), "--survey many is not a choice")
    (tmp_path / "gold.csv").write_text("item,label\n9001,yes\n")
    assert_one_sentence(run(*several, "--gold", tmp_path / "gold.csv"), "it lacks 'task'. Add a column 'task'")
    assert not (tmp_path / "new").exists()
    assert_one_sentence(run("inspect", out), "holds several analyses; give the folder of one")


def test_one_question_of_several_is_not_enough_to_retire(export, tmp_path):
    choice = ("--workflow", 21001, "--task", "T0", "--malformed", "skip", "--model", "ibcc", "--budget", 1)
    result = run("allocate", export, *choice, "--retire-to", tmp_path / "retire.txt", "--quiet")
    assert result.exit_code == 0, result.output
    assert "Retired subjects get no answers to these either" in result.stderr


def test_every_question_has_a_report_and_the_index_leads_to_them(results):
    out, result, _ = results
    assert f"Open {out / 'index.html'}" in result.stdout
    page = (out / "index.html").read_text()
    links = re.findall(r'href="([^"]+)"', page)
    assert all((out / link).is_file() for link in links if not link.startswith("data:"))
    folders = ["21001-T0", "21001-T1-Eating", "21001-T1-Moving", "21001-T1-Resting", "21002-T0"]
    assert sorted(link for link in set(links) if link.endswith("report.html")) == [
        f"{one}/report.html" for one in folders
    ]
    assert "Free text cannot be compared" in page
    assert "<script" not in page
    for folder in folders:
        rows = json.loads((out / folder / "run.json").read_text())["source"]["rows"]
        assert rows["read"] + sum(rows["skipped"].values()) == rows["rows"]


def test_items_have_their_metadata(results):
    out, _, _ = results
    rows = {row["item"]: row for row in read_csv(out / "21001-T0" / "items.csv")}
    assert rows["9010"]["Filename"] == "cam-9010.jpg"
    assert (rows["9010"]["retired"], rows["9011"]["retired"]) == ("true", "false")
    # What Zooniverse shows to nobody is not published.
    assert "#site" not in rows["9010"]
    assert "cam-9011.jpg" in (out / "21001-T0" / "report.html").read_text()


def test_nothing_that_is_published_names_volunteers(results):
    out, _, key = results
    names = [row["volunteer"] for row in read_csv(key)]
    assert "user_5" in names
    for path in out.rglob("*"):
        if path.suffix in (".csv", ".html", ".json", ".graphml"):
            assert not re.search(r"\buser_\d|not-logged-in-[0-9a-f]", path.read_text()), path
    assert "user_id" not in cg.load(out / "21001-T0" / "graph.crowd").responses.attributes


def test_subjects_are_retired_if_no_question_needs_them(results, tmp_path):
    out, _, _ = results
    assert_one_sentence(run("allocate", out), "are of the workflows '21001', '21002'")
    files = ("--retire-to", tmp_path / "retire.txt", "--subject-set-to", tmp_path / "again.txt")
    result = run("allocate", out, "--workflow", 21001, *files)
    assert result.exit_code == 0, result.output
    assert "xargs panoptes workflow retire-subjects --reason consensus 21001" in result.stdout
    retire, again = ((tmp_path / name).read_text().split() for name in ("retire.txt", "again.txt"))
    assert not set(retire) & set(again)
    assert set(retire)
    for folder in out.glob("21001-*"):
        graph = cg.load(folder / "graph.crowd")
        probs = dict(zip(graph.items, graph.fit().calibrated(graph).item_probs.max(axis=1), strict=True))
        for item in retire:
            assert item not in graph.items or probs[item] >= 0.9 or item in graph.gold
        assert not any(graph.items[item].attributes["retired"] for item in (*retire, *again) if item in graph.items)


def test_nobody_is_asked_who_cannot_answer(results, tmp_path):
    out, _, _ = results
    folder, path = out / "21001-T0", tmp_path / "next.csv"
    files = ("--out", path, "--retire-to", tmp_path / "retire.csv")
    result = run("allocate", folder, "--budget", 10, "--capacity", 9, *files)
    assert result.exit_code == 0, result.output
    graph = cg.load(folder / "graph.crowd")
    questions = [*read_csv(path), *read_csv(folder / "next_questions.csv")]
    assert questions
    for row in questions:
        assert not graph.volunteers[row["volunteer"]].attributes["anonymous"]
        assert not graph.items[row["item"]].attributes["retired"]
    first = read_csv(tmp_path / "retire.csv")[0]
    assert list(first) == ["extractor_key", "subject_id", "workflow_version", "data"]
    assert json.loads(first["data"])["retire"] == 1


def test_results_with_pseudonyms_are_updated_with_the_key(results, export, tmp_path):
    out, _, key = results
    assert_one_sentence(run("update", out, export), "holds several analyses")
    # A later export repeats all that the earlier one holds.
    new = realistic(n_subjects=30).write(tmp_path / "new.csv")
    folder = out / "21001-T0"
    assert_one_sentence(run("update", folder, new), "--pseudonyms KEY --reuse-pseudonyms")
    before = cg.load(folder / "graph.crowd")
    result = run("update", folder, new, "--pseudonyms", key, "--reuse-pseudonyms", "--quiet")
    assert result.exit_code == 0, result.output
    assert f"{before.n_responses:,} of its responses are known already" in result.stderr
    # What the export is read by is known from the results.
    assert "old item" in result.stdout
    graph = cg.load(folder / "graph.crowd")
    assert graph.n_items == 30
    ids = graph.responses.attributes["classification_id"].tolist()
    assert len(set(ids)) == len(ids) > before.n_responses
    assert not any(str(name).startswith("user_") for name in graph.volunteers)


def test_keys_are_kept_out_of_results_and_never_replaced(results, export, tmp_path):
    _, _, key = results
    choice = ("--workflow", 21002, "--task", "T0")
    inside = ("--out", tmp_path / "new", "--pseudonyms", tmp_path / "new" / "key.csv")
    assert_one_sentence(run("analyse", export, *choice, *inside), "would be passed on with the results")
    assert_one_sentence(
        run("inspect", export, *choice, "--pseudonyms", key), "Use its pseudonyms with --reuse-pseudonyms"
    )


def test_a_class_that_no_gold_item_has_is_noted(tmp_path):
    rows = [(f"v{n % 20}", f"i{n // 5}", ("yes", "no", "can't tell")[n % 3]) for n in range(300)]
    text = "\n".join(["volunteer,item,label", *(",".join(row) for row in rows)])
    (tmp_path / "r.csv").write_text(text)
    gold = "\n".join(["item,label", *(f"i{n},{'yes' if n % 2 else 'no'}" for n in range(30))])
    (tmp_path / "gold.csv").write_text(gold)
    result = run("inspect", tmp_path / "r.csv", "--gold", tmp_path / "gold.csv", "--quiet")
    sentence = 'No gold item is "can\'t tell", though volunteers say so: it is a class here.'
    assert sentence in result.stderr
    assert "--class no --class yes" in result.stderr
    named = run(
        "inspect", tmp_path / "r.csv", "--gold", tmp_path / "gold.csv", "--class", "yes", "--class", "no", "--quiet"
    )
    assert "No gold item is" not in named.stderr
