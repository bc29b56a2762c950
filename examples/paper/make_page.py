"""Run every script in this folder and write a page with the paper's values beside ours: ``make paper``."""

import csv
import html
import importlib
import json
import re
import time
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
from entry import output_folder

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
SCRIPTS = [
    "table_methods",
    "figure_prototypes",
    "figure_task_communities",
    "figure_volunteers",
    "figure_pi_over_time",
    "figure_membership",
    "figure_tasks_over_time",
    "published",
]
PLATES = {
    "ibcc": "IBCC, by variational Bayes or Gibbs sampling",
    "dynibcc": "DynIBCC",
    "dynibcc_duplicates": "DynIBCC with repeated answers: one more frame, for the steps at which an item is met",
}
VERDICTS = {
    "exact": "as in the paper",
    "improved": "the paper's, and more or better",
    "explained": "not the same, or not shown by the same data; the sentence says why",
    "missing": "not there; the sentence says why",
}
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #333; }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: 1rem 0; }
td, th { text-align: left; padding: 0.25rem 1.5rem 0.25rem 0; border-bottom: 1px solid #ddd; vertical-align: top; }
.values td:first-child { min-width: 18rem; }
.claims { font-size: 0.85rem; table-layout: fixed; width: 100%; min-width: 46rem; }
.claims td, .claims th { padding-right: 0.8rem; overflow-wrap: anywhere; }
.claims :is(td, th):nth-child(3) { width: 5.5rem; }
figure { margin: 1.5rem 0; } img, svg { max-width: 100%; height: auto; } figcaption { color: #666; font-size: 0.9rem; }
.pairs { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1.5rem; }
code { font-size: 0.9em; } nav ul { columns: 2; }
@media (max-width: 40rem) {
  nav ul { columns: 1; } .pairs { display: block; }
  td, th { padding-right: 0.7rem; } .values { min-width: 34rem; } .values td:first-child { min-width: 12rem; }
  figure { overflow-x: auto; } figure img, figure svg { max-width: none; width: 44rem; }
}
@media (prefers-color-scheme: dark) {
  body { background: #1c1c1c; color: #ddd; } img { background: #fff; } figcaption { color: #aaa; } a { color: #8ab4f8; }
  td, th { border-color: #444; }
}
"""


def section(name, entry):
    """Return one figure or table as HTML."""
    rows = "".join(
        f"<tr><td>{html.escape(what)}</td><td>{html.escape(paper)}</td><td>{html.escape(ours)}</td></tr>"
        for what, paper, ours in entry["rows"]
    )
    figures = "".join(
        f'<figure><a href="{file}"><img src="{file}" alt="{html.escape(caption)}"></a>'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        for caption, file in entry["pictures"].items()
    )
    return (
        f'<h2 id="{name}">{html.escape(entry["title"])}</h2><p><b>The paper:</b> {html.escape(entry["paper"])}</p>'
        f'<div class="wide"><table class="values"><tr><th></th><th>paper</th><th>here</th></tr>{rows}</table></div>'
        f'<div class="{"pairs" if entry["side_by_side"] else ""}">{figures}</div>'
        f"<p><b>What this crowd can show:</b> {html.escape(entry['remark'])} "
        f"(<code>examples/paper/{name}.py</code>)</p>"
    )


def plates():
    """Return the plate diagrams as HTML."""
    figures = "".join(
        f"<figure>{(DOCS / '_static' / 'plates' / f'{name}.svg').read_text(encoding='utf-8')}"
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        for name, caption in PLATES.items()
    )
    return (
        '<h2 id="plates">Figures: graphical models</h2><p>Circles are unknown, shaded circles are observed, dots and '
        "squares are constants, and the black circle follows from what leads to it; a frame repeats its content for "
        "each of what it names. Dashed arrows lead to and from the volunteer's previous and next step; the noise has "
        f"the scale s and the drift d.</p>{figures}"
    )


def read_claims():
    """Return the claims of the paper, which the documentation shows, too."""
    with (DOCS / "paper_rows.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def claims():
    """Return the table of all claims as HTML."""
    rows, listed = read_claims(), []
    for index, row in enumerate(rows):
        if not index or row["section"] != rows[index - 1]["section"]:
            listed.append(f'<tr><th colspan="4">{html.escape(row["section"])}</th></tr>')
        cells = "".join(f"<td>{inline(row[name])}</td>" for name in ("in the paper", "in crowdgraph", "verdict", "how"))
        listed.append(f"<tr>{cells}</tr>")
    counts = Counter(row["verdict"] for row in rows)
    meanings = "; ".join(f"<b>{verdict}</b> ({counts[verdict]}): {text}" for verdict, text in VERDICTS.items())
    return (
        f'<h2 id="claims">Everything in the paper</h2><p>{len(rows)} rows. {meanings}.</p><div class="wide">'
        "<table class='claims'><tr><th>in the paper</th><th>in crowdgraph</th><th>verdict</th><th>how</th></tr>"
        f"{''.join(listed)}</table></div>"
    )


def inline(text):
    """Return a sentence of the documentation as HTML: names and code are in backticks there."""
    return re.sub(r"(`{1,2})(.+?)\1", lambda found: f"<code>{breakable(found[2])}</code>", html.escape(text))


def breakable(name):
    """Return a long name with places at which its line may break."""
    return re.sub(r"(?<=\w)([._])(?=\w)", r"\1<wbr>", name)


def write_page(out):
    """Write the page from what the scripts have written."""
    entries = {name: json.loads((out / f"{name}.json").read_text(encoding="utf-8")) for name in SCRIPTS}
    titles = {"plates": "Figures: graphical models"} | {name: entry["title"] for name, entry in entries.items()}
    titles["claims"] = "Everything in the paper"
    links = "".join(f'<li><a href="#{name}">{html.escape(title)}</a></li>' for name, title in titles.items())
    sections = [plates(), *(section(name, entry) for name, entry in entries.items()), claims()]
    page = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>The paper reproduced</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
        "<h1>The paper reproduced</h1><p>Simpson, Roberts, Psorakis and Smith: <i>Dynamic Bayesian Combination of "
        "Multiple Imperfect Classifiers</i>. The real Galaxy Zoo Supernovae data are not public; everything here is "
        "from simulated look-alikes, and each section says what they cannot show. If you have the real file, read it "
        f"with <code>crowdgraph.read_galaxy_zoo_supernovae</code>.</p><nav><ul>{links}</ul></nav>{''.join(sections)}"
        "</body></html>"
    )
    (out / "index.html").write_text(page, encoding="utf-8")


def main():
    """Run the scripts, each in turn, and write the page."""
    out, start, seconds = output_folder(), time.perf_counter(), {}
    for name in SCRIPTS:
        before = time.perf_counter()
        importlib.import_module(name).main()
        plt.close("all")
        seconds[name] = time.perf_counter() - before
    write_page(out)
    print("\nSeconds: " + ", ".join(f"{name} {value:.0f}" for name, value in seconds.items()))
    print(f"The paper reproduced in {time.perf_counter() - start:.0f} s: {(out / 'index.html').resolve()}")


if __name__ == "__main__":
    main()
