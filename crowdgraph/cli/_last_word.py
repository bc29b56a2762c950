"""What torchrun prints at its very end about a process that failed: it reads that from a file of the process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from crowdgraph.errors import CrowdGraphError
from crowdgraph.messages import wording

# The environment variable by which torchrun names the file.
ERROR_FILE = "TORCHELASTIC_ERROR_FILE"


class LastWord:
    """A sentence that is left for torchrun, in case that this process fails; without torchrun it goes nowhere.

    After our own sentence torchrun prints a traceback of its own, dozens of lines long, which ends with what it knows
    of the process that failed first. A process that is killed can no longer say anything, so it does before.

    Examples
    --------
    >>> LastWord().say("Nobody listens.")
    """

    def __init__(self) -> None:
        name = os.environ.get(ERROR_FILE)
        self._path = None if name is None else Path(name)

    def say(self, sentence: str) -> None:
        """Leave a sentence instead of the one before."""
        if self._path is None:
            return
        text = " ".join(wording(sentence, "cli").split())
        # As torch's own handler of errors writes it.
        details = {"py_callstack": text, "timestamp": str(int(time.time()))}
        part = self._path.with_name(f"{self._path.name}.part")
        part.write_text(json.dumps({"message": {"message": text, "extraInfo": details}}), encoding="utf-8")
        part.replace(self._path)

    def withdraw(self) -> None:
        """Leave nothing."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)


@contextmanager
def last_word(sentence: str) -> Iterator[LastWord]:
    """Leave a sentence for the case that this process is killed, or that of an error of ours if there is one."""
    word = LastWord()
    word.say(sentence)
    try:
        yield word
    except CrowdGraphError as error:
        word.say(error.message)
        raise
    except typer.Exit:
        raise
    except BaseException:
        # Python's own traceback says more.
        word.withdraw()
        raise
    word.withdraw()
