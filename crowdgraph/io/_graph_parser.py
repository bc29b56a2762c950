"""What the parsers of GraphML and GEXF share: reading by expat, and refusing what is not a graph of responses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, NoReturn
from xml.parsers import expat

from crowdgraph.errors import InputError
from crowdgraph.io._files import parse_xml


class GraphParser(ABC):
    """Read a file of a graph by expat; subclasses collect its nodes and edges in `_start`, `_end` and `_text_part`."""

    #: What a file must be, to end messages with.
    expected: ClassVar[str]

    def __init__(self, path: str) -> None:
        self._path = path
        self._has_root = False
        self._nodes: list[dict[str, Any]] = []

    def _parse(self) -> None:
        """Read the file; document type declarations are refused before any entity is expanded."""
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text_part
        parser.ProcessingInstructionHandler = self._instruction
        parser.StartDoctypeDeclHandler = self._refuse_declarations
        parser.EntityDeclHandler = self._refuse_declarations
        try:
            with Path(self._path).open("rb") as file:
                parse_xml(parser, file)
        except InputError:
            raise
        except (expat.ExpatError, LookupError, ValueError) as error:
            kind = "is cut short or damaged" if self._has_root else "is not XML"
            raise InputError(f"{self._path!r} {kind} ({error}); {self.expected}.") from error
        except OSError as error:
            raise InputError(f"{self._path!r} cannot be read: {error.strerror}.") from error

    def _check_nodes(self) -> None:
        if not self._nodes:
            raise InputError(f"{self._path!r} has no nodes; {self.expected}.")

    def _refuse_declarations(self, *_: Any) -> NoReturn:
        raise InputError(
            f"{self._path!r} has a document type declaration (<!DOCTYPE ...>), which is refused, since the entities "
            "that it declares could expand without end; delete the declaration."
        )

    @abstractmethod
    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take the start of an element."""

    @abstractmethod
    def _end(self, tag: str) -> None:
        """Take the end of an element."""

    @abstractmethod
    def _text_part(self, text: str) -> None:
        """Take a part of the text of an element."""

    def _instruction(self, target: str, text: str) -> None:  # noqa: B027 - GraphML has none
        """Take a processing instruction."""
