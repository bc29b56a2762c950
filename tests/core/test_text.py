"""What notebooks show: well-formed, escaped, without colours of its own, and true."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from builders import communities_of, crowd, network_of, track_of
from hypothesis import given
from hypothesis import strategies as st

import crowdgraph as cg
from crowdgraph.core._html import MAX_ROWS, facts_table, html_card, html_table
from crowdgraph.core._text import percent, time_sentence

EVIL = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</table>&amp;"]


class Page(HTMLParser):
    """The tags of a page, in which all must be closed, and the text of its tables row by row."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.rows, self.attributes, self.text = [], set(), [], set(), ""
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def checked(page):
    """The page, in which there is nothing but text, tables and how they are laid out."""
    parsed = Page(page)
    assert parsed.tags <= {"div", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert parsed.attributes <= {"style"}
    assert "color" not in page
    assert "background" not in page
    assert len(page) < 20_000
    return parsed


def evil_graph():
    rows = [(who, item) for who in EVIL for item in EVIL]
    return cg.CrowdGraph.from_responses(
        {
            "volunteer": [who for who, _ in rows],
            "item": [item for _, item in rows],
            "label": [EVIL[k % 2] for k in range(len(rows))],
        },
        gold={EVIL[0]: EVIL[0]},
    )


def groups(participation, **options):
    return communities_of(participation, ids=EVIL[: len(participation)], method=EVIL[0], **options)


def test_hostile_names_are_text_everywhere():
    graph = evil_graph()
    fit = cg.IBCC().fit(graph)
    communities = groups([[1, 0], [0.2, 0.8], [0, 1]], confusion=fit.confusion.latest(), support=[3, 3, 3])
    track = cg.CommunityTrack(
        ids=EVIL, times=[1], counts=[9], snapshots=[communities], clock=cg.Clock("number"), method=EVIL[1]
    )
    for result in (graph, fit, communities, track):
        assert any(name in checked(result._repr_html_()).text for name in EVIL)


def test_a_fit_shows_its_first_volunteers_and_items():
    graph = crowd(n_volunteers=8, n_items=30, n_responses=150).graph
    fit = cg.IBCC().fit(graph)
    page = checked(fit._repr_html_())
    assert repr(fit)[len("ModelFit(") : -1] in page.text
    best = fit.volunteers_to_frame().head(5)
    shown = [row for row in page.rows if row and row[0] in set(best["volunteer"])]
    assert [row[0] for row in shown] == best["volunteer"].tolist()
    for row, (_, expected) in zip(shown, best.iterrows(), strict=True):
        assert [float(cell) for cell in row[1:]] == pytest.approx(list(expected[["accuracy", "low", "high"]]), abs=6e-4)
    items = fit.to_frame()
    items = items.iloc[items[["p(no)", "p(yes)"]].max(axis=1).argsort(kind="stable")[:5]]
    assert [row[:2] for row in page.rows if row[0] in set(items["item"])] == items[["item", "class"]].values.tolist()
    assert "5 of 30 items" in page.text
    assert "5 of 8 volunteers" in page.text


def test_the_most_uncertain_items_come_first(graph, fit):
    for shown in (fit, graph.annotate(fit).items):
        page = checked(shown._repr_html_())
        rows = [row for row in page.rows if row[0] in ("x", "y", "z")]
        assert [[row[0], *row[-2:]] for row in rows] == [["z", "no", "0.5"], ["x", "yes", "0.8"], ["y", "no", "0.9"]]
    assert "3 items, the most uncertain first" in page.text
    assert "3 items, in their order" in checked(graph.items._repr_html_()).text


def test_confusion_is_shaded_by_its_shares(fit):
    matrix = fit.confusion.of("anna").latest()
    shades = re.findall(r"background:rgba\(0,114,178,([\d.]+)\)", matrix._repr_html_())
    assert [float(shade) for shade in shades] == pytest.approx(matrix.mean.ravel() / 2, abs=0.006)


def test_a_fit_without_volunteers_or_without_right_labels():
    graph = crowd(n_volunteers=4, n_items=10, n_responses=20).graph
    assert "volunteers" not in checked(cg.MajorityVote().fit(graph)._repr_html_()).text
    fit = cg.IBCC().fit(graph)
    confusion = replace(fit.confusion, labels=("sure", "unsure"))
    assert "volunteers" not in checked(replace(fit, confusion=confusion)._repr_html_()).text
    votes = {"sure": graph.classes[0], "unsure": graph.classes[1]}
    assert "4 volunteers" in checked(replace(fit, confusion=confusion, params={"votes": votes})._repr_html_()).text


def test_communities_show_sizes_centres_and_behaviour():
    snapshot = cg.ConfusionSnapshot(
        ids=EVIL,
        classes=["cat", "dog"],
        labels=["cat", "dog"],
        concentration=[[[99, 1], [1, 99]]] * 2 + [[[99, 1]] * 2],
    )
    page = checked(groups([[1, 0], [0.9, 0.1], [0, 1]], confusion=snapshot, support=[4_000, 1, 2])._repr_html_())
    assert page.rows == [
        ["community", "volunteers", "share", "responses", "most central", "in words"],
        ["0", "2", "0.667", "4,001", EVIL[0], "nearly always right"],
        ["1", "1", "0.333", "2", EVIL[2], 'says "cat" to nearly everything'],
    ]
    # Confusion of some members only cannot be put into words; those of no community have a row of their own.
    partly = replace(snapshot, ids=EVIL[:2], concentration=snapshot.concentration[:2])
    page = checked(groups([[1.0], [1.0], [1.0]], confusion=partly)._repr_html_())
    assert page.rows == [["community", "volunteers", "share", "most central"], ["0", "3", "1", EVIL[0]]]
    assert checked(groups([[1.0], [0.0]])._repr_html_()).rows[-1] == ["-1", "1", "", ""]
    assert checked(groups(np.zeros((2, 0)))._repr_html_()).rows[-1][:2] == ["-1", "2"]


def test_a_track_shows_sizes_and_events():
    page = checked(track_of([[0, 0, 0, 0, -1], [0, 0, 0, 1, 1], [0, 0, 0, 0, 0]])._repr_html_())
    _, first, second = page.rows
    assert first == ["0", "4 → 3 → 5", "born (1,000), shrank (2,000), grew (3,000)"]
    assert second == ["1", "0 → 2 → 0", "split from 0 (2,000), merged into 0 (3,000)"]


def test_long_lives_are_shortened():
    page = checked(track_of([[0, 0], [-1, 0]] * 10)._repr_html_())
    assert len(page.rows[1][1].split(" → ")) == 8
    assert page.rows[1][2].startswith("14 more, ")
    wide = checked(track_of([np.arange(50)])._repr_html_())
    assert len(wide.rows) == 21
    assert "20 of 50 communities" in wide.text


def test_what_just_fits_is_not_shortened():
    assert "more" not in checked(track_of([[0, 0], [-1, 0]] * 3)._repr_html_()).rows[1][2]
    wide = checked(track_of([np.arange(20)])._repr_html_())
    assert len(wide.rows) == 21
    assert "of 20 communities" not in wide.text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        *((0, "0%"), (0.0009, "less than 0.1%"), (0.05, "5.0%"), (0.1, "10%"), (0.5, "50%"), (0.9, "90%")),
        *((0.952, "95.2%"), (0.9995, "more than 99.9%"), (1, "100%")),
    ],
)
def test_shares_have_decimals_where_they_matter(share, text):
    assert percent(share) == text


def test_an_empty_track():
    empty = cg.CommunityTrack(ids=["a"], times=[], counts=[], snapshots=[], clock=cg.Clock("number"), method="m")
    assert len(checked(empty._repr_html_()).rows) == 1


@given(st.lists(st.text(alphabet="<>&\"'ab\n", max_size=6), min_size=1, max_size=4), st.floats())
def test_tables_show_any_text(words, number):
    columns = {"<w>": words, "n": [number] * len(words)}
    page = checked(
        html_card("<t>", words[0], html_table(columns, caption=words[0]), facts_table([(words[0], words[-1])]))
    )
    assert [row[0] for row in page.rows[1:-1]] == words
    assert page.rows[-1] == [words[0], words[-1]]
    assert page.rows[0][0] == "<w>"


def test_networks_over_time_are_shown_by_their_last_snapshots():
    network = network_of([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    times = np.arange(60)
    track = cg.NetworkTrack(
        ids=network.ids, times=times, counts=times + 1, snapshots=60 * [network], clock=cg.Clock("number"), method="m"
    )
    page = track._repr_html_()
    assert f"the last {MAX_ROWS} of 60 snapshots" in page
    rows = re.findall(r"<tr><td[^>]*>(\d+)<", page)
    assert rows == [str(time) for time in range(60 - MAX_ROWS, 60)]
    assert "<caption" not in replace(track, times=[1], counts=[1], snapshots=[network])._repr_html_()


def test_shares_that_are_hardly_any_or_all_are_not_rounded_to_none_or_all():
    assert [percent(share) for share in (0, 1e-9, 0.25, 1 - 1e-9, 1)] == [
        "0%",
        "less than 0.1%",
        "25%",
        "more than 99.9%",
        "100%",
    ]


def test_a_graph_without_responses_describes_itself():
    empty = crowd(n_volunteers=3, n_items=4, n_responses=9).graph.first(0)
    assert "0 responses" in str(empty)
    assert time_sentence(empty) == "no responses"
