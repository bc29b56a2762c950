"""Run every script in this folder and write a page with the paper's values beside ours: ``make paper``."""

import html
import json
import subprocess
import sys
import time
from pathlib import Path

from entry import output_folder

HERE = Path(__file__).parent
SCRIPTS = [
    "table_methods",
    "figure_prototypes",
    "figure_task_communities",
    "figure_volunteers",
    "figure_pi_over_time",
    "figure_membership",
    "figure_tasks_over_time",
]
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #333; }
table { border-collapse: collapse; margin: 1rem 0; }
td, th { text-align: left; padding: 0.25rem 1.5rem 0.25rem 0; border-bottom: 1px solid #ddd; vertical-align: top; }
figure { margin: 1.5rem 0; } img { max-width: 100%; } figcaption { color: #666; font-size: 0.9rem; }
@media (prefers-color-scheme: dark) { body { background: #1c1c1c; color: #ddd; } img { background: #fff; } }
"""


def section(entry):
    """Return one figure or table as HTML."""
    rows = "".join(
        f"<tr><td>{html.escape(what)}</td><td>{html.escape(paper)}</td><td>{html.escape(ours)}</td></tr>"
        for what, paper, ours in entry["rows"]
    )
    figures = "".join(
        f'<figure><img src="{file}" alt=""><figcaption>{html.escape(caption)}</figcaption></figure>'
        for caption, file in entry["pictures"].items()
    )
    return (
        f"<h2>{html.escape(entry['title'])}</h2><p><b>The paper:</b> {html.escape(entry['paper'])}</p>"
        f"<table><tr><th></th><th>paper</th><th>here</th></tr>{rows}</table>{figures}"
        f"<p><b>What this crowd can show:</b> {html.escape(entry['remark'])}</p>"
    )


def main():
    out = output_folder()
    start = time.perf_counter()
    for name in SCRIPTS:
        subprocess.run([sys.executable, HERE / f"{name}.py", out], check=True)
    sections = [section(json.loads((out / f"{name}.json").read_text(encoding="utf-8"))) for name in SCRIPTS]
    page = (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>The paper reproduced</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
        "<h1>The paper reproduced</h1><p>Simpson, Roberts, Psorakis and Smith: <i>Dynamic Bayesian Combination of "
        "Multiple Imperfect Classifiers</i>. The real Galaxy Zoo Supernovae data are not public; everything here is "
        "from simulated look-alikes, and each section says what they cannot show. If you have the real file, read it "
        f"with <code>crowdgraph.read_galaxy_zoo_supernovae</code>.</p>{''.join(sections)}</body></html>"
    )
    (out / "index.html").write_text(page, encoding="utf-8")
    print(f"\nThe paper reproduced in {time.perf_counter() - start:.0f} s: {(out / 'index.html').resolve()}")


if __name__ == "__main__":
    main()
