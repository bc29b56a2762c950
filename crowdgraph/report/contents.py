"""The page that leads to several reports: what each is about, what is known by now, and what became of every row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from typing import Any

import numpy as np

from crowdgraph.core._text import quantity
from crowdgraph.core.graph import CrowdGraph
from crowdgraph.io._files import atomic_file
from crowdgraph.io.accounts import RowAccount
from crowdgraph.messages import Interface, wording
from crowdgraph.report._results import SETTLED_PROBABILITY, GraphResults, to_texts
from crowdgraph.report.provenance import without_directories
from crowdgraph.report.write import STYLES, _hash, _palette, _source

__all__ = ["Chapter", "write_contents"]

# A bar shows at most this many classes, the most frequent ones; beyond them all look the same.
MAX_CLASSES = 7
BAR_WIDTH, BAR_HEIGHT = 600, 14


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One of the reports that the page leads to.

    Attributes
    ----------
    title, about
        What it is about, and of which kind that is.
    folder
        Its folder beside the page.
    graph
        The annotated graph.
    account
        What became of every row of the file.
    files
        The names of its tables.
    """

    title: str
    about: str
    folder: str
    graph: CrowdGraph
    account: RowAccount | None = None
    files: Sequence[str] = field(default_factory=tuple)


def write_contents(
    chapters: Sequence[Chapter],
    path: str | PathLike[str],
    *,
    title: str,
    left_out: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    commands: Sequence[str] = (),
    interface: Interface = "python",
) -> None:
    """Write a page that leads to several reports: one HTML file without scripts, which needs no network.

    Parameters
    ----------
    chapters
        The reports.
    path
        The file; an existing one is replaced once the new one is complete.
    title
        The title of the page.
    left_out
        Why something has no report, by what it is.
    notes, commands
        What was decided, in sentences, and the commands that repeat the run.
    interface
        For whom advice is worded: ``"python"``, or ``"cli"`` for users of the command line.
    """
    style = "\n".join([_palette(), *map(_source, STYLES), _source("contents.css")])
    body = "\n".join(
        [
            *map(_chapter, chapters),
            *_listing("Without a report", left_out or {}, interface),
            *_sentences("Decided without being asked", [wording(note, interface) for note in notes]),
            *_commands(commands),
        ]
    )
    n_reports = quantity(len(chapters), "question")
    values = {
        "title": escape(title),
        "policy": f"default-src 'none'; img-src data:; style-src {_hash(style)}",
        "style": style,
        "headline": f"{n_reports}, each with a report of its own.",
        "body": body,
    }
    page = re.sub(r"\{\{ (\w+) \}\}", lambda slot: values[slot[1]], _source("contents.html"))
    with atomic_file(path) as part:
        part.write_text(page, encoding="utf-8")


def _chapter(chapter: Chapter) -> str:
    graph, folder = chapter.graph, escape(chapter.folder, quote=True)
    sizes = ", ".join(
        quantity(n, noun)
        for n, noun in (
            (graph.n_volunteers, "volunteer"),
            (graph.n_items, "item"),
            (len(graph.answers), "answer"),
        )
    )
    links = [f'<a class="open" href="{folder}/report.html">Open the report</a>']
    links += [f'<a href="{folder}/{escape(name, quote=True)}">{escape(name)}</a>' for name in chapter.files]
    parts = [
        '<section class="chapter">',
        f'<p class="eyebrow">{escape(chapter.about)}</p>',
        f'<h2><a href="{folder}/report.html">{escape(chapter.title)}</a></h2>',
        f'<p class="sizes">{sizes}</p>',
        *_classes(graph),
        f'<p class="links">{" ".join(links)}</p>',
        *([] if chapter.account is None else _account(chapter.account)),
        "</section>",
    ]
    return "\n".join(parts)


def _classes(graph: CrowdGraph) -> Iterator[str]:
    """Yield how many items are settled, by class, as a bar and in words."""
    results = GraphResults(graph)
    fit = results.better_fit or results.fit
    if fit is None:
        yield '<p class="sizes">What the items are is not known: no model could be fitted.</p>'
        return
    best, is_sure = fit.item_probs.argmax(axis=1), fit.item_probs.max(axis=1) >= SETTLED_PROBABILITY
    counts = np.bincount(best[is_sure], minlength=len(fit.classes))
    order = np.argsort(-counts, kind="stable")[:MAX_CLASSES]
    shown = [
        (name, int(counts[code])) for name, code in zip(to_texts(graph.classes[c] for c in order), order, strict=True)
    ]
    # A class has the same colour on every bar, whatever its share.
    hues = [code % MAX_CLASSES for code in order.tolist()]
    pieces = [(f"hue-{hue}", name, n) for hue, (name, n) in zip(hues, shown, strict=True) if n]
    others = int(counts.sum()) - sum(n for _, _, n in pieces)
    pieces += [("other", "other classes", others)] if others else []
    pieces += [("open", f"less than {SETTLED_PROBABILITY:.0%} certain", int(len(best) - is_sure.sum()))]
    pieces = [piece for piece in pieces if piece[2]]
    words = ", ".join(f"{name}: {n:,}" for _, name, n in pieces)
    yield (
        f'<svg class="bar-of-classes" viewBox="0 0 {BAR_WIDTH} {BAR_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(words, quote=True)}">'
    )
    left = 0.0
    for kind, _, n in pieces:
        width = BAR_WIDTH * n / len(best)
        yield f'<rect class="{kind}" x="{left:.2f}" y="0" width="{width:.2f}" height="{BAR_HEIGHT}"/>'
        left += width
    yield "</svg>"
    legend = "".join(
        f'<li><svg class="swatch-of-class" viewBox="0 0 10 10"><rect class="{kind}" width="10" height="10"/></svg>'
        f"{escape(name)} <b>{n:,}</b></li>"
        for kind, name, n in pieces
    )
    yield f'<ul class="classes">{legend}</ul>'


def _account(account: RowAccount) -> Iterator[str]:
    """Yield a table of what became of every row."""
    yield "<details>"
    yield f"<summary>What became of the {quantity(account.rows, 'row')} of the file</summary>"
    yield '<div class="scroll"><table class="account">'
    rows: list[tuple[str, int, Sequence[int]]] = [("read", account.read, ())]
    rows += [(reason, n, account.lines.get(reason, ())) for reason, n in account.skipped.items()]
    for reason, n, lines in rows:
        where = (
            f" (line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}{', ...' * (n > len(lines))})" if lines else ""
        )
        yield f'<tr><th scope="row">{escape(reason)}{where}</th><td class="number">{n:,}</td></tr>'
    yield f'<tr class="sum"><th scope="row">all rows</th><td class="number">{account.rows:,}</td></tr>'
    yield "</table></div></details>"


def _listing(heading: str, reasons: Mapping[str, str], interface: Interface) -> Iterator[str]:
    if not reasons:
        return
    yield f'<section class="chapter"><h2>{escape(heading)}</h2><dl class="reasons">'
    for name, reason in reasons.items():
        yield f"<dt>{escape(name)}</dt><dd>{escape(wording(reason, interface))}</dd>"
    yield "</dl></section>"


def _sentences(heading: str, sentences: Sequence[Any]) -> Iterator[str]:
    if sentences:
        items = "".join(f"<li>{escape(without_directories(str(one)))}</li>" for one in sentences)
        yield f'<section class="chapter"><h2>{escape(heading)}</h2><ul>{items}</ul></section>'


def _commands(commands: Sequence[str]) -> Iterator[str]:
    if commands:
        code = escape("\n".join(map(without_directories, commands)))
        yield f'<section class="chapter"><h2>To repeat it</h2><pre tabindex="0"><code>{code}</code></pre></section>'
