"""Render examples as pages: first the picture, then the cells, whose comments become text."""

import re
from pathlib import Path
from typing import Any

from docutils.nodes import Element, Node
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

EXAMPLES = Path(__file__).parent.parent / "examples"
PICTURES = "/_static/gallery"


def title_and_text(source: str) -> tuple[str, str]:
    """Return the title, which starts the docstring as ``# Title``, and the rest of the docstring."""
    title, _, text = source.split('"""')[1].removeprefix("# ").partition("\n")
    return title, text.strip()


def cells(source: str) -> list[tuple[str, str]]:
    """Return the text and the code of each cell, which begins with ``# %%``."""
    parts = re.split(r"^# %% ?(.*)\n", source, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], [code.strip("\n") for code in parts[1::2]], strict=True))


def page(name: str, source: str) -> list[str]:
    """Return an example as lines of reStructuredText."""
    title, text = title_and_text(source)
    lines = [title, "=" * len(title), "", *text.splitlines(), ""]
    lines += [f".. image:: {PICTURES}/{name}.png", f"   :alt: The picture that the example “{title}” draws", ""]
    for text, code in cells(source):
        lines += [text, "", ".. code-block:: python", "", *(f"   {line}" for line in code.splitlines()), ""]
    return [*lines, f"The complete script is ``examples/{name}.py``; it runs in seconds.", ""]


def card(name: str, source: str) -> list[str]:
    """Return a card with the picture, the title and the first sentence, which links to the page of an example."""
    title, text = title_and_text(source)
    sentence = re.split(r"(?<=[.?])\s", text)[0]
    options = {"img-top": f"{PICTURES}/{name}.png", "link": f"/tutorials/{name}", "link-type": "doc"}
    lines = [f".. grid-item-card:: {title}", *(f"   :{key}: {value}" for key, value in options.items())]
    lines += [f"   :img-alt: The picture of {title}", "   :class-img-top: gallery-picture", ""]
    return [f"   {line}" for line in [*lines, *(f"   {line}" for line in sentence.splitlines()), ""]]


class GeneratedDirective(SphinxDirective):
    """Base of both directives: replaces the directive by lines of reStructuredText."""

    def parse_lines(self, lines: list[str]) -> list[Node]:
        """Return the nodes of the lines, which may have titles."""
        parent = Element()
        self.state.nested_parse(StringList(lines, source=self.get_source_info()[0]), 0, parent, match_titles=True)
        return parent.children

    def source(self, path: Path) -> str:
        """Return the text of a file, and rebuild the page if the file, or this module, changes."""
        for dependency in (path, Path(__file__)):
            self.env.note_dependency(str(dependency))
        return path.read_text()


class Example(GeneratedDirective):
    """``.. example:: 06_communities``: an example as a page, followed by the directive's own text."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[Node]:
        """Return the page."""
        name = self.arguments[0]
        return self.parse_lines([*page(name, self.source(EXAMPLES / f"{name}.py")), *self.content])


class Gallery(GeneratedDirective):
    """``.. gallery::``: cards of all numbered examples."""

    def run(self) -> list[Node]:
        """Return the cards."""
        lines = [".. grid:: 1 2 2 2", "   :gutter: 3", ""]
        for path in sorted(EXAMPLES.glob("[0-9]*.py")):
            lines += card(path.stem, self.source(path))
        return self.parse_lines(lines)


def setup(app: Any) -> dict[str, Any]:
    """Register both directives with Sphinx."""
    app.add_directive("example", Example)
    app.add_directive("gallery", Gallery)
    return {"parallel_read_safe": True}
