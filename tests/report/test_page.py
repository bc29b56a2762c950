"""The page in a real browser: it works without a network, by mouse, by keyboard and on a phone."""

import re
import shutil
from itertools import combinations

import pytest
from report.pages import HOSTILE, TITLE, hostile_graph

import crowdgraph as cg
from crowdgraph import report
from crowdgraph.analysis import analyse
from crowdgraph.report.write import payload

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [pytest.mark.browser, pytest.mark.skipif(BROWSER is None, reason="there is no chromium")]

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


class Visit:
    """A page that is open, and all that it complained about or asked for."""

    def __init__(self, browser, path, **options):
        self.page = browser.new_page(**{"viewport": WIDE, **options})
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]")
        # Pictures are drawn once their width is known.
        self.page.wait_for_function("document.querySelector('.chart svg, .missing') !== null")


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def path(graph, calibrated, tmp_path_factory):
    written = tmp_path_factory.mktemp("report") / "page.html"
    run = {"seed": 1, "commands": ["crowdgraph demo"]}
    checks = cg.evaluation.predictive_checks(graph, n_replicates=100)
    report.write(graph, written, title=TITLE, calibration=calibrated, predictive=checks, run=run)
    return written


@pytest.fixture(scope="module")
def visit(browser, path):
    return Visit(browser, path)


@pytest.fixture
def page(visit):
    """The open page as it was at the start."""
    visit.complaints.clear()
    visit.requests.clear()
    visit.page.reload()
    visit.page.wait_for_selector("html[data-ready]")
    visit.page.wait_for_selector("#ternary circle[cx]")
    return visit.page


def column(page, table, number):
    return page.locator(f"{table} .grid > tbody > tr > td:nth-child({number})").all_inner_texts()


def tab_to(page, text, most=60):
    """Press the tab key until something with this text has the focus; returns how often."""
    for count in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == text:
            return count + 1
    raise AssertionError(f"{text!r} cannot be reached by keyboard")


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def tallest_row(page, table):
    """Return the height of the highest row of a table."""
    return page.evaluate(
        f"Math.max(...[...document.querySelectorAll('{table} .grid > tbody > tr')].map((row) => row.offsetHeight))"
    )


# The tables that are wider than their frames.
SIDEWAYS = """[...document.querySelectorAll(".scroll")].filter((frame) => frame.scrollWidth > frame.clientWidth)
    .map((frame) => frame.getAttribute("aria-label"))"""
# The headings that nothing follows: neither words nor a picture.
EMPTY = """[...document.querySelectorAll("main h2, main h3, main h4")].filter((heading) => {
    const next = heading.nextElementSibling;
    const said = next && (next.innerText.trim() || next.querySelector("svg, canvas"));
    return !said || (/^H\\d$/.test(next.tagName) && next.tagName <= heading.tagName);
  }).map((heading) => heading.innerText)"""
# What is read by a team: all but the checks and the record, which are for experts.
WORDS = """["header", "nav", "main > section:not(#checks, #provenance)"]
    .flatMap((part) => [...document.querySelectorAll(part)]).map((node) => node.innerText).join("\\n")"""
JARGON = re.compile(
    r"\b(nats?|bits?|entropy|posterior|prior|sharpened|modularity|bound to watch|log[_ ]\w+|likelihood|rho|nmi|kl)\b",
    re.IGNORECASE,
)


def jargon(page):
    """Return what is said in words that a team need not know."""
    return [line for line in page.evaluate(WORDS).splitlines() if JARGON.search(line)]


def test_loads_without_complaints_or_requests(visit, page, path):
    assert page.title() == TITLE
    assert page.locator("#overview .card").count() >= 5
    assert [section for section in visit.requests if section not in (path.as_uri(), "data:,")] == []
    assert visit.complaints == []
    for section in ("items", "volunteers", "networks", "communities", "checks", "doctor", "provenance"):
        assert page.locator(f"#{section} .body").inner_text().strip()
        assert page.locator(f"#{section} .missing").count() == 0
    assert page.evaluate(EMPTY) == []
    assert jargon(page) == []


def test_nothing_can_be_fetched_even_if_asked(page):
    blocked = "fetch('http://127.0.0.1:9/').then(() => 'fetched', () => 'blocked')"
    assert page.evaluate(blocked) == "blocked"
    assert page.evaluate("document.querySelector('meta[http-equiv]').content").startswith("default-src 'none'")


def test_search_finds_a_volunteer(page):
    page.locator("#volunteers input[type=search]").fill("TEER-17")
    assert column(page, "#volunteer-table", 1) == ["volunteer-17"]
    page.locator("#volunteers input[type=search]").fill("nobody at all")
    assert page.locator("#volunteer-table tbody").inner_text() == "no volunteers found"


def test_tables_sort(page, graph):
    heading = page.locator("#volunteer-table th", has_text="right")
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    accuracy = graph.fit().volunteers_to_frame()
    assert column(page, "#volunteer-table", 1) == accuracy["volunteer"].head(25).tolist()
    heading.locator("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert column(page, "#volunteer-table", 1)[0] == accuracy["volunteer"].iloc[-1]


def test_tables_page(page, graph):
    first = column(page, "#items .table", 1)
    assert page.locator("#items .count").inner_text() == "1\u201325 of 100"
    back, forth = (page.locator("#items .pager button", has_text=text) for text in ("Previous", "Next"))
    assert back.is_disabled()
    seen = list(first)
    while forth.is_enabled():
        forth.click()
        seen += column(page, "#items .table", 1)
    assert sorted(seen) == sorted(graph.items.ids.tolist())
    back.click()
    assert page.locator("#items .count").inner_text() == "51\u201375 of 100"


def test_the_slider_moves_the_points(page):
    slider, dots = page.locator("input[type=range]"), "#ternary .panel:first-child circle"
    read = (
        f"[...document.querySelectorAll({dots!r})].map(dot => [dot.getAttribute('visibility'), dot.getAttribute('cx')])"
    )
    at_last, time = page.evaluate(read), page.locator("output").inner_text()
    slider.fill("3")
    early = page.evaluate(read)
    assert len(early) == 60
    assert page.locator("output").inner_text() != time
    assert sum(before != after for before, after in zip(early, at_last, strict=True)) > 30
    assert sum(visible == "hidden" for visible, _ in early) > sum(visible == "hidden" for visible, _ in at_last) == 0
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert slider.input_value() == "4"


def test_dots_stand_where_the_shares_are(page, graph):
    corners = (
        "[...document.querySelectorAll('#ternary .panel:first-child .frame')].map(frame => frame.getAttribute('d'))[0]"
    )
    numbers = [float(part) for part in page.evaluate(corners).replace("M", " ").replace("L", " ").strip("Z ").split()]
    left, top, right = zip(numbers[::2], numbers[1::2], strict=True)
    busiest = page.evaluate("JSON.parse(document.getElementById('data').textContent).volunteers.id[0]")
    shares = graph.confusion().of(busiest).latest().mean[0]
    expected = [sum(s * corner[axis] for s, corner in zip(shares, (left, top, right), strict=True)) for axis in (0, 1)]
    dot = page.locator("#ternary .panel:first-child circle").first
    got = [float(dot.get_attribute(name)) for name in ("cx", "cy")]
    assert got == pytest.approx(expected, abs=0.6)


def test_a_community_filters_the_volunteers(page, graph):
    page.locator("[data-show='2']").click()
    members = graph.communities().members(2)
    assert sorted(column(page, "#volunteer-table", 1)) == sorted(members)
    assert page.locator("#volunteers [data-community='2'][aria-pressed=true]").count() == 1
    page.keyboard.press("Enter")
    assert page.locator("#volunteer-table .count").inner_text() == "1\u201325 of 60"


def test_a_name_opens_details_and_escape_closes_them(page, graph):
    page.locator("#volunteers input[type=search]").fill("volunteer-17")
    page.locator("#volunteer-table .link").click()
    details = page.locator("#details")
    assert details.is_visible()
    assert details.locator("h3").inner_text() == "volunteer-17"
    matrix = graph.volunteers["volunteer-17"].confusion.latest().mean
    assert details.locator(".matrix td").all_inner_texts() == [f"{100 * share:.0f}%" for share in matrix.ravel()]
    assert details.locator(".chart svg path").count() == 2
    page.keyboard.press("Escape")
    assert not details.is_visible()


def wait_for_frames(page):
    """Wait until what was asked for is drawn."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_networks_zoom_and_move_by_keyboard(page):
    canvas = page.locator("#networks canvas").first
    canvas.scroll_into_view_if_needed()
    wait_for_frames(page)
    pictures = [canvas.screenshot()]
    canvas.focus()
    for key in ("+", "ArrowLeft", "0"):
        page.keyboard.press(key)
        wait_for_frames(page)
        page.evaluate("document.activeElement.blur()")
        pictures.append(canvas.screenshot())
        canvas.focus()
    assert pictures[0] != pictures[1] != pictures[2]
    assert pictures[3] == pictures[0]


def test_a_dot_of_the_network_opens_its_volunteer(page, graph):
    canvas = page.locator("#networks canvas").first
    canvas.scroll_into_view_if_needed()
    position = page.evaluate(
        """() => {
          const network = JSON.parse(document.getElementById("data").textContent).networks.pictures[0];
          const canvas = document.querySelector("#networks canvas"), box = canvas.getBoundingClientRect();
          const [wide, tall] = [network.x, network.y].map((values) => Math.max(...values.map(Math.abs)));
          const scale = Math.min((box.width / 2 - 24) / wide, (box.height / 2 - 24) / tall);
          return [box.left + box.width / 2 + scale * network.x[5], box.top + box.height / 2 - scale * network.y[5]];
        }"""
    )
    page.mouse.click(*position)
    assert page.locator("#details h3").inner_text() == str(graph.network("pi_similarity").ids[5])


def test_flow_and_lifelines_are_drawn(page, graph):
    track = graph.community_track()
    assert page.locator("#communities .events li").count() == len(track.events)
    bars = page.locator("#communities .chart[class=chart] rect").count()
    assert bars >= int((track.sizes > 0).sum())
    # Of the first column every block has its number, however small, on its left.
    left = page.evaluate(
        """[...document.querySelectorAll("#communities svg[aria-label^='Volunteers who stay'] text[text-anchor=end]")]
          .map((text) => Number(text.textContent))"""
    )
    assert left == [k for k, size in enumerate(track.sizes[0].tolist()) if size]
    assert "Moves that may be chance are drawn, but not listed below." in page.locator("#communities").inner_text()


def test_events_do_not_overlap(page):
    columns = page.evaluate(
        """[...document.querySelectorAll(".events li")].map((item) => {
          const range = document.createRange();
          range.selectNodeContents(item);
          return [item.getBoundingClientRect().left, range.getBoundingClientRect().right];
        })"""
    )
    lefts = sorted({left for left, _ in columns})
    assert len(lefts) == 2
    # The marks of the second column stand to the left of its words.
    assert max(right for left, right in columns if left == lefts[0]) < lefts[1] - 20


def test_the_task_network_has_its_own_legend(page):
    legends = page.locator("#networks .legend").all_inner_texts()
    assert legends[0].split("\n") == [f"community {k}" for k in range(5)]
    assert legends[1].split("\n") == ["task community 0", "task community 1"]


def test_predictive_checks_have_a_row_each(page):
    rows = page.locator("#checks table.checks tbody tr")
    assert rows.count() == 6
    assert "errors in common" in rows.nth(1).inner_text()


def test_two_modularities_have_two_names(page):
    evidence = page.locator("#checks .panel").last.inner_text()
    assert "The sharpened modularity, 0.450," in evidence
    assert "the modularity of these communities, 0.300," in evidence


def test_the_overview_links_to_what_it_says(page):
    assert page.locator("#overview .story a").first.get_attribute("href") == "#checks"
    assert page.locator("#overview .story a").last.get_attribute("href") == "#doctor"


def test_items_open_with_the_most_uncertain(page):
    assert (
        "The most uncertain items come first, those with gold last; they keep it."
        in page.locator("#items").inner_text()
    )
    shares = [float(text.removesuffix("%")) for text in column(page, "#items .table", 5)]
    assert shares == sorted(shares, reverse=True)
    assert set(column(page, "#items .table", 6)) == {"\u2013"}


def test_the_theme_turns(page):
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.locator("#theme").click()
    dark = page.evaluate(background)
    assert light == "rgb(255, 255, 255)" != dark
    page.locator("#theme").click()
    assert page.evaluate(background) == light


def test_everything_can_be_reached_by_keyboard(page):
    page.evaluate("window.scrollTo(0, 0)")
    assert tab_to(page, "Skip to the overview") == 1
    tab_to(page, "Items")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.keyboard.press("Enter")
    assert page.url.endswith("#items")
    tab_to(page, "uncertainty")
    page.keyboard.press("Enter")
    assert page.locator("#items th[aria-sort=descending]").inner_text() == "uncertainty"


def test_buttons_and_pictures_have_names(page):
    unnamed = """[...document.querySelectorAll("button, a, input, canvas, svg, [role=img]")].filter((node) =>
      !node.textContent.trim() && !node.getAttribute("aria-label") && !node.closest("label, [role=img]"))
      .map((node) => node.outerHTML)"""
    assert page.evaluate(unnamed) == []


def test_a_phone_scrolls_down_only(browser, path):
    visit = Visit(browser, path, viewport=PHONE, color_scheme="dark")
    visit.page.wait_for_selector("#ternary circle[cx]")
    assert overflow(visit.page) <= 0
    assert 20 < tallest_row(visit.page, "#items") < 80
    assert 20 < tallest_row(visit.page, "#volunteer-table") < 80
    assert visit.page.evaluate(SIDEWAYS) == []
    visit.page.locator("#volunteer-table .link").first.click()
    assert overflow(visit.page) <= 0
    assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert visit.complaints == []
    visit.page.close()


def test_print_leaves_out_what_is_pressed(page):
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert page.locator("#overview .cards").is_visible()
    assert page.locator("#communities .group").first.is_visible()
    assert not page.locator("#communities .group > button").first.is_visible()
    after = "[...document.querySelectorAll('h2, h3, h4')].map((heading) => getComputedStyle(heading).breakAfter)"
    assert set(page.evaluate(after)) == {"avoid"}
    page.emulate_media(media="screen")


def test_hostile_ids_show_as_text(browser, tmp_path):
    report.write(hostile_graph(), tmp_path / "page.html", title=HOSTILE[0], run={HOSTILE[1]: HOSTILE[0]})
    visit = Visit(browser, tmp_path / "page.html")
    assert visit.page.locator("h1").inner_text() == HOSTILE[0]
    assert set(HOSTILE) <= set(column(visit.page, "#volunteer-table", 1))
    assert set(HOSTILE) <= set(column(visit.page, "#items .table", 1))
    visit.page.locator("#volunteer-table .link", has_text="<img").click()
    assert visit.page.locator("#details h3").inner_text() == HOSTILE[1]
    assert HOSTILE[0] in visit.page.locator("#provenance").inner_text()
    assert visit.page.locator("main img, main b, main script").count() == 0
    assert visit.complaints == []
    visit.page.close()


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
def test_a_bare_graph_says_what_is_missing(browser, tmp_path, bare, viewport):
    report.write(bare, tmp_path / "page.html")
    visit = Visit(browser, tmp_path / "page.html", viewport=viewport)
    for section in ("items", "volunteers", "networks", "communities", "checks"):
        assert "graph.annotate(" in visit.page.locator(f"#{section} .missing").first.inner_text()
    assert visit.complaints == []
    assert overflow(visit.page) <= 0
    visit.page.close()


def test_two_labels_have_lines(browser, tmp_path):
    graph = cg.simulate.crowd(n_volunteers=6, n_items=40, n_responses=150, drift="ramp", gold=0.0, seed=0).graph
    report.write(graph.annotate(cg.DynIBCC().fit(graph)), tmp_path / "page.html")
    visit = Visit(browser, tmp_path / "page.html")
    lines = visit.page.locator("#skill svg path, #skill svg circle")
    lines.first.wait_for()
    assert lines.count() == 6
    assert visit.page.locator("#ternary").count() == 0
    assert "keep it" not in visit.page.locator("#items").inner_text()
    assert visit.complaints == []
    visit.page.close()


def test_high_lines_have_an_axis_that_starts_high(browser, tmp_path):
    graph = cg.simulate.crowd(n_volunteers=4, n_items=200, n_responses=400, seed=0).graph
    graph = graph.annotate(cg.DynIBCC(confusion_prior=[[90, 10], [10, 90]]).fit(graph))
    report.write(graph, tmp_path / "page.html")
    visit = Visit(browser, tmp_path / "page.html")
    lowest = min(share for row in payload(graph)["histories"]["accuracy"] for share in row if share is not None)
    start = f"{10 * int(10 * lowest)}%"
    assert lowest > 0.5
    assert f"on an axis that starts at {start}." in visit.page.locator("#skill .note").inner_text()
    ticks = visit.page.locator("#skill svg text[text-anchor=end]")
    ticks.first.wait_for()
    assert start in ticks.all_text_contents()
    visit.page.close()


def test_details_say_who_changed(browser, tmp_path):
    crowd = cg.simulate.crowd(n_volunteers=8, n_items=400, n_responses=[300] * 8, drift="step", seed=0)
    graph = crowd.graph.annotate(cg.DynIBCC().fit(crowd.graph))
    changes = graph.fit().changes()
    report.write(graph, tmp_path / "page.html", changes=changes)
    visit = Visit(browser, tmp_path / "page.html")
    name = changes[0].volunteer
    visit.page.locator("#volunteer-table .link", has_text=name).click()
    details = visit.page.locator("#details")
    data = payload(graph, changes=changes)
    assert data["volunteers"]["change"][data["volunteers"]["id"].index(name)] in details.inner_text()
    # The band and the line of the skill, and those of the change.
    assert details.locator(".chart svg path").count() == 4
    details.locator(".close").click()
    # The overview leads to the list of all who changed, and their names to the details.
    visit.page.locator("#overview .story a[href='#who-changed']").click()
    assert visit.page.locator("#who-changed").is_visible()
    listed = visit.page.get_by_role("region", name="Volunteers who changed").locator("tbody tr")
    assert listed.count() == len(changes)
    assert f"{changes[-1].after:.0%}" in listed.last.inner_text()
    listed.last.locator(".link").click()
    assert details.locator("h3").inner_text() == changes[-1].volunteer
    assert visit.complaints == []


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
def test_what_next_lists_questions(browser, graph, tmp_path, viewport):
    written = tmp_path / "next.html"
    report.write(graph, written, plan=cg.allocation.next_steps(graph, seed=0))
    visit = Visit(browser, written, viewport=viewport)
    assert len(column(visit.page, "#next", 1)) >= 20
    titles = visit.page.locator("#next h3").all_inner_texts()
    assert titles[:3] == ["How many more answers", "Retire items", "Ask these questions"]
    assert len(titles) == 5
    assert visit.page.evaluate("document.scrollingElement.scrollWidth <= window.innerWidth")
    assert tallest_row(visit.page, "#next") < 80
    assert visit.page.evaluate(SIDEWAYS) == []
    assert visit.complaints == []
    visit.page.close()


# Small and unusual crowds


def analysed(n_volunteers=9, *, timed=True, **options):
    """Return the analysis of a few volunteers."""
    settings = {"n_items": 60, "n_responses": 45 * n_volunteers, "gold": 0.2, "seed": 0}
    graph = cg.simulate.crowd(n_volunteers=n_volunteers, **{**settings, **options}).graph
    if not timed:
        columns = {name: graph.to_arrow()[name] for name in ("volunteer", "item", "label")}
        graph = cg.CrowdGraph.from_responses(columns, gold=graph.gold)
    return analyse(graph, snapshots=2)


def unanswered():
    """Return the analysis of items that were shown to two volunteers who did not answer."""
    columns = {"volunteer": ["anna", "bert"], "item": ["x", "y"], "label": [None, None]}
    return analyse(cg.CrowdGraph.from_responses(columns, labels=["no", "yes"], missing="keep"))


SURE = cg.simulate.Group(name="sure", confusion=[[0.98, 0.02], [0.02, 0.98]])
CROWDS = {
    "without gold": lambda: analysed(gold=0.0),
    "without times": lambda: analysed(timed=False),
    "one volunteer": lambda: analysed(1),
    "two volunteers": lambda: analysed(2, classes=("A", "B", "tie")),
    "all gold": lambda: analysed(gold=1.0),
    "nothing to ask": lambda: analysed(12, n_items=20, n_responses=190, groups=[SURE]),
    "no answers": unanswered,
}


@pytest.fixture(scope="module")
def reader(browser):
    """A page that visits one crowd after another."""
    page = browser.new_page(viewport=PHONE)
    page.complaints = []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    yield page
    page.close()


def read(page, crowd, path):
    """Open the page of a crowd, once its pictures are drawn."""
    report.write(crowd, path)
    page.complaints.clear()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


@pytest.mark.parametrize("name", CROWDS)
def test_unusual_crowds_have_sentences(reader, tmp_path, name):
    read(reader, CROWDS[name](), tmp_path / "page.html")
    assert reader.complaints == []
    assert reader.evaluate(EMPTY) == []
    assert reader.evaluate("document.scrollingElement.scrollWidth <= window.innerWidth")
    assert jargon(reader) == []
    assert not re.search(r"undefined|NaN|\bnull\b|Infinity", reader.evaluate("document.body.innerText"))


def test_small_crowds_have_names_and_pairs(reader, tmp_path):
    crowd = analysed(9, n_items=100, n_responses=700, classes=("A", "B", "tie"), gold=0.3)
    read(reader, crowd, tmp_path / "page.html")
    assert reader.locator("#communities h2, #sections a[href='#communities']").all_inner_texts() == ["Pairs"] * 2
    pairs = reader.locator("#communities").inner_text()
    assert "9 volunteers are too few for communities, which need 30." in pairs
    assert reader.locator("#communities h3").all_inner_texts()[:2] == [
        "Who behaves most alike",
        "Who behaves least alike",
    ]
    boxes = reader.evaluate(
        """[...document.querySelectorAll("#ternary .panel:first-child .names text")].map((text) => {
          const { left, right, top, bottom } = text.getBoundingClientRect();
          return [text.dataset.name, left, right, top, bottom];
        })"""
    )
    assert sorted(name for name, *_ in boxes) == sorted(crowd.graph.volunteers.ids)
    for (_, *a), (_, *b) in combinations(boxes, 2):
        across, up = min(a[1], b[1]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[2], b[2])
        assert min(across, up) <= 1
    # A model that nobody checked is not drawn as certain.
    plain = cg.IBCC().fit(crowd.graph.with_gold(None))
    read(reader, crowd.graph.with_gold(None).annotate(plain), tmp_path / "page.html")
    assert "calibrated_fit=graph.fit().calibrated()" in reader.locator("#items").inner_text()
    report_with = {"calibrated_fit": plain.calibrated()}
    report.write(crowd.graph.with_gold(None).annotate(plain), tmp_path / "page.html", **report_with)
    reader.reload()
    reader.locator("#items .link").first.click()
    head = reader.locator("#details .matrix thead").inner_text().split()
    assert head == ["class", "calibrated", "ibcc"]
    assert reader.complaints == []
