"""``crowdgraph allocate``: who is still there, what is said of why, and files that are there already."""

import datetime as dt
import json

import pytest
from typer.testing import CliRunner

import crowdgraph as cg
from crowdgraph.cli import app
from crowdgraph.cli.allocate import _cut


def run(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def pairs(done):
    assert done.exit_code == 0, done.output
    return [(row["volunteer"], row["item"]) for row in json.loads(done.stdout)["questions"]]


@pytest.fixture(scope="module")
def responses(tmp_path_factory):
    """Ten volunteers: the first five answer only in January, the others until the end of June."""
    path = tmp_path_factory.mktemp("responses") / "r.csv"
    rows = ["volunteer,item,label,time"]
    for number in range(200):
        place = number % 10
        day = dt.date(2026, 1, 1) + dt.timedelta(days=(number * 180 // 200) if place >= 5 else number * 30 // 200)
        said = "no" if (number * 7 % 41) % 2 and number % 9 else "yes"
        rows.append(f"v{place},i{number * 7 % 41},{said},{day}")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def graph(responses):
    graph = cg.read_csv(responses)
    return graph.annotate(cg.IBCC().fit(graph, seed=0))


LATE = {f"v{place}" for place in range(5, 10)}


def test_without_an_option_those_who_left_are_told(responses, graph):
    done = run("allocate", responses, "--budget", 10, "--json")
    expected = cg.allocation.GreedyValue().assign(graph, budget=10, seed=0)
    assert pairs(done) == list(expected)
    assert "Of the 10 volunteers asked, 5 were not seen in the last 18 days before the last response" in done.stderr
    assert "half of them 151 days or more" in done.stderr
    assert "--active-since DATE" in done.stderr
    assert "--likely-within DAYS" in done.stderr


def test_only_those_who_still_answer_are_asked(responses, graph):
    done = run("allocate", responses, "--budget", 10, "--capacity", 2, "--active-since", "2026-06-01", "--json")
    expected = cg.allocation.GreedyValue().assign(graph, budget=10, capacity=dict.fromkeys(sorted(LATE), 2), seed=0)
    assert pairs(done) == list(expected)
    assert {volunteer for volunteer, _ in pairs(done)} == LATE
    assert "not seen" not in done.stderr


def test_questions_count_by_the_chance_that_they_are_answered(responses, graph):
    done = run("allocate", responses, "--budget", 5, "--likely-within", 30, "--json")
    likely = cg.allocation.availability(graph, horizon=dt.timedelta(days=30))
    expected = cg.allocation.GreedyValue().assign(graph, budget=5, available=likely, seed=0)
    assert pairs(done) == list(expected)
    chances = [row["chance"] for row in json.loads(done.stdout)["questions"]]
    assert chances == pytest.approx(expected.chance.tolist())
    assert max(chances) < 1
    assert {volunteer for volunteer, _ in pairs(done)} == LATE
    assert "not seen" not in done.stderr


def test_times_that_are_numbers(tmp_path):
    path = tmp_path / "r.csv"
    rows = [f"v{n % 5},i{n * 3 % 23},{n % 3 % 2},{n if n % 5 else n % 7}" for n in range(60)]
    path.write_text("volunteer,item,label,time\n" + "\n".join(rows) + "\n")
    done = run("allocate", path, "--budget", 5, "--active-since", "30", "--json")
    assert {volunteer for volunteer, _ in pairs(done)} == {"v1", "v2", "v3", "v4"}
    assert "1 were not seen in the last 5.9 units of time" in run("allocate", path, "--budget", 5).stderr
    assert run("allocate", path, "--budget", 5, "--likely-within", 10).exit_code == 0
    assert "is not a number" in run("allocate", path, "--active-since", "2026-06-01").stderr


def test_who_is_there_cannot_be_told(responses, tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("volunteer,item,label\na,x,1\nb,x,0\nb,y,0\n")
    for option in (("--active-since", "2026-01-01"), ("--likely-within", 30)):
        done = run("allocate", path, *option)
        assert done.exit_code == 1
        assert f"{option[0]} needs times, and there are none; name the column that has them with --time" in done.stderr
    assert "units of time" not in run("allocate", path, "--budget", 1).stderr
    nobody = run("allocate", responses, "--active-since", "2027-01-01")
    assert "Nobody has answered since 2027-01-01; the last response is of 2026-06-29" in nobody.stderr
    assert "'soon'" in run("allocate", responses, "--active-since", "soon").stderr
    assert "--likely-within -1 must be" in run("allocate", responses, "--likely-within", -1).stderr


def test_a_file_is_replaced_only_when_asked(responses, tmp_path):
    out = tmp_path / "next.csv"
    out.write_text("mine")
    refused = run("allocate", responses, "--budget", 3, "--out", out)
    assert refused.exit_code == 1
    assert "is there already; name another file, or use --force to replace it" in refused.stderr
    assert out.read_text() == "mine"
    assert run("allocate", responses, "--budget", 3, "--out", out, "--force").exit_code == 0
    assert len(out.read_text().splitlines()) == 4


def test_the_table_tells_why(responses):
    told, header, *rows = run("allocate", responses, "--budget", 12, "--capacity", 3).stdout.splitlines()
    assert "1 nat is 1.44 bits" in told
    assert header.split() == ["volunteer", "item", "gain", "chance", "others", "why"]
    found = json.loads(run("allocate", responses, "--budget", 12, "--capacity", 3, "--json").stdout)["questions"]
    assert len(rows) == len(found) == 12
    for row, question in zip(rows, found, strict=True):
        assert row.startswith(f"{question['volunteer']} ")
        assert row.endswith(question["why"])
        assert question["others"] in row


def test_long_lists_of_names_are_cut():
    assert _cut("anna, bert") == "anna, bert"
    assert _cut(", ".join(f"volunteer-{n}" for n in range(9))) == "volunteer-0, volunteer-1, ..."
