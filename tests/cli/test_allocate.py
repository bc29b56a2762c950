"""``crowdgraph allocate``: who is asked about what, who is still there, and why."""

import datetime as dt
import json

import pytest
from cli.commands import run

import crowdgraph as cg


def questions(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["questions"]


def pairs(result):
    return [(row["volunteer"], row["item"]) for row in questions(result)]


@pytest.fixture(scope="module")
def responses(tmp_path_factory):
    """A file of ten volunteers: the first five answer only in January, the others until the end of June."""
    path = tmp_path_factory.mktemp("responses") / "r.csv"
    rows = ["volunteer,item,label,time"]
    for number in range(200):
        volunteer = number % 10
        days = number * 180 // 200 if volunteer >= 5 else number * 30 // 200
        label = "no" if (number * 7 % 41) % 2 and number % 9 else "yes"
        rows.append(f"v{volunteer},i{number * 7 % 41},{label},{dt.date(2026, 1, 1) + dt.timedelta(days=days)}")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def graph(responses):
    """The graph of these responses, with the fit that the command makes."""
    graph = cg.read_csv(responses)
    return graph.annotate(cg.Calibrated().fit(graph, seed=0))


LATE = {f"v{number}" for number in range(5, 10)}


# What is asked


def test_questions_are_those_of_the_policy_with_the_reason(crowd):
    asked = questions(run("allocate", crowd / "responses.csv", "--gold", crowd / "gold.csv", "--budget", 5, "--json"))
    graph = cg.read_csv(crowd / "responses.csv", gold=crowd / "gold.csv")
    fit = cg.Calibrated().fit(graph)
    expected = cg.allocation.GreedyValue().assign(graph.annotate(fit), budget=5, seed=0)
    assert [(row["volunteer"], row["item"]) for row in asked] == list(expected)
    certain = fit.item_probs.max(axis=1)[graph.items.codes([row["item"] for row in asked])]
    reasons = [f"class {share:.0%} certain; highest value among the remaining questions" for share in certain]
    assert [row["why"] for row in asked] == reasons


def test_a_round_smaller_than_its_budget_says_so(crowd):
    n_volunteers = len(cg.read_csv(crowd / "responses.csv").volunteers)
    short = run("allocate", crowd / "responses.csv", "--budget", 500)
    assert f"{n_volunteers} of 500 questions are asked; --capacity 1 limits each volunteer." in " ".join(
        short.stderr.split()
    )
    assert "questions are asked" not in run("allocate", crowd / "responses.csv", "--budget", 2).stderr


def test_the_fit_on_a_graph_is_used(analysed):
    out, _ = analysed
    from_graph = run("allocate", out / "graph.crowd", "--budget", 2)
    assert "carries is used" in from_graph.stderr
    explanation, *table = from_graph.stdout.splitlines()
    assert "gain: nats" in explanation
    assert len(table) == 3
    from_results = run("allocate", out, "--budget", 2)
    assert "graph.crowd' is read" in from_results.stderr
    assert from_results.stdout == from_graph.stdout


def test_a_file_is_replaced_only_when_asked(responses, tmp_path):
    out = tmp_path / "next.csv"
    out.write_text("mine")
    command = ("allocate", responses, "--budget", 3, "--policy", "random", "--out", out)
    refused = run(*command)
    assert refused.exit_code == 1
    assert "is there already; name another file, or use --force to replace it" in refused.stderr
    assert out.read_text() == "mine"
    assert run(*command, "--force").exit_code == 0
    assert len(out.read_text().splitlines()) == 4


def test_the_table_gives_reasons(responses):
    command = ("allocate", responses, "--budget", 12, "--capacity", 3)
    explanation, header, *rows = run(*command).stdout.splitlines()
    assert "1 nat is 1.44 bits" in explanation
    assert header.split() == ["volunteer", "item", "gain", "chance", "others", "why"]
    asked = questions(run(*command, "--json"))
    assert len(rows) == len(asked) == 12
    for row, question in zip(rows, asked, strict=True):
        assert row.startswith(f"{question['volunteer']} ")
        assert row.endswith(question["why"])
        assert question["others"] in row


def test_long_lists_of_names_are_cut_in_the_table(tmp_path):
    """Of nine volunteers eight have yet to see the item y, so all of them are asked about it."""
    path = tmp_path / "r.csv"
    path.write_text("volunteer,item,label\nvolunteer-0,y,no\n" + "".join(f"volunteer-{n},x,yes\n" for n in range(9)))
    command = ("allocate", path, "--policy", "random", "--budget", 8)
    others = [question["others"].split(", ") for question in questions(run(*command, "--json"))]
    _, _, *rows = run(*command).stdout.splitlines()
    assert [len(names) for names in others] == [7] * 8
    for row, names in zip(rows, others, strict=True):
        assert f"  {names[0]}, {names[1]}, ...  class" in row


# Who is still there


def test_without_an_option_those_who_left_are_noted(responses, graph):
    result = run("allocate", responses, "--budget", 10, "--json")
    assert pairs(result) == list(cg.allocation.GreedyValue().assign(graph, budget=10, seed=0))
    assert "Of the 10 volunteers asked, 5 were not seen in the last 18 days before the last response" in result.stderr
    assert "half of them 151 days or more" in result.stderr
    assert "--active-since DATE" in result.stderr
    assert "--likely-within DAYS" in result.stderr


def test_only_those_who_still_answer_are_asked(responses, graph):
    result = run("allocate", responses, "--budget", 10, "--capacity", 2, "--active-since", "2026-06-01", "--json")
    expected = cg.allocation.GreedyValue().assign(graph, budget=10, capacity=dict.fromkeys(sorted(LATE), 2), seed=0)
    assert pairs(result) == list(expected)
    assert {volunteer for volunteer, _ in pairs(result)} == LATE
    assert "not seen" not in result.stderr


def test_questions_count_by_the_chance_that_they_are_answered(responses, graph):
    result = run("allocate", responses, "--budget", 5, "--likely-within", 30, "--json")
    likely = cg.allocation.availability(graph, horizon=dt.timedelta(days=30))
    expected = cg.allocation.GreedyValue().assign(graph, budget=5, available=likely, seed=0)
    assert pairs(result) == list(expected)
    chances = [row["chance"] for row in questions(result)]
    assert chances == pytest.approx(expected.chance.tolist())
    assert max(chances) < 1
    assert {volunteer for volunteer, _ in pairs(result)} == LATE
    assert "not seen" not in result.stderr


def test_times_may_be_numbers(tmp_path):
    path = tmp_path / "r.csv"
    rows = [f"v{n % 5},i{n * 3 % 23},{n % 3 % 2},{n if n % 5 else n % 7}" for n in range(60)]
    path.write_text("volunteer,item,label,time\n" + "\n".join(rows) + "\n")
    result = run("allocate", path, "--budget", 5, "--active-since", "30", "--json")
    assert {volunteer for volunteer, _ in pairs(result)} == {"v1", "v2", "v3", "v4"}
    assert "1 were not seen in the last 5.9 units of time" in run("allocate", path, "--budget", 5).stderr
    assert run("allocate", path, "--budget", 5, "--likely-within", 10).exit_code == 0
    assert "is not a number" in run("allocate", path, "--active-since", "2026-06-01").stderr


def test_without_times_nobody_is_said_to_have_left(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("volunteer,item,label\na,x,1\nb,x,0\nb,y,0\n")
    assert "units of time" not in run("allocate", path, "--budget", 1).stderr
