"""The provenance of the page: settings in words, and names of files without their directories."""

import pytest

from crowdgraph.report.write import payload


def test_settings_are_in_words(bare):
    run = {"notes": ["One is.", "Two are."], "classes": None, "labels": ["no", "yes"], "sizes": [1, 2]}
    shown = payload(bare, run=run)["provenance"]["run"]
    assert shown == [["notes", "One is. Two are."], ["classes", "\u2013"], ["labels", "no, yes"], ["sizes", "[1, 2]"]]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("crowdgraph analyse /home/anna/a.csv --gold /data/g.csv", "crowdgraph analyse a.csv --gold g.csv"),
        ("crowdgraph analyse '/home/anna b/a c.csv' --gold=/x/g.csv", "crowdgraph analyse 'a c.csv' --gold=g.csv"),
        ('graph = cg.read_csv("/home/anna b/a.csv")', 'graph = cg.read_csv("a.csv")'),
        (r"crowdgraph analyse C:\Users\anna\a.csv", "crowdgraph analyse a.csv"),
        ("/home/anna b/a.csv", "a.csv"),
        ("crowdgraph analyse data/a.csv --out ./results/b", "crowdgraph analyse data/a.csv --out ./results/b"),
        ("see https://example.org/a/b and/or 1 / 2", "see https://example.org/a/b and/or 1 / 2"),
    ],
)
def test_directories_are_nobodys_business(command, shown, bare):
    run = {"commands": command, "source": {"responses": command}}
    provenance = payload(bare, run=run)["provenance"]
    assert provenance["commands"] == [shown]
    assert provenance["run"] == [["source", [["responses", shown]]]]
