"""Take pictures of the terminal, from real runs of the commands: ``python docs/terminal_picture.py``."""

import os
import re
import shutil
import subprocess
import sys
from io import BytesIO, StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

TARGETS = Path(__file__).parent / "_static"
COLUMNS, WIDTH, COLOURS = 104, 1280, 32
# The command of the Python that runs this.
COMMAND = [sys.executable, "-c", "from crowdgraph.cli.app import main; main()"]
SIMULATE = "crowdgraph simulate forest --volunteers 60 --items 300 --responses 4000 --gold 0.3 --communities 2 --seed 1"
PICTURES = {
    "terminal-analyse.png": "crowdgraph analyse forest/responses.csv --gold forest/gold.csv --out results",
    "terminal-demo.png": "crowdgraph demo",
}


def run(command: str, folder: str) -> str:
    """Run a command of crowdgraph in a folder, and return what it prints on a terminal with colours."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    done = subprocess.run(  # noqa: S603 - ours
        [*COMMAND, *command.split()[1:]],
        cwd=folder,
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = done.stdout.splitlines()
    # What is compiled is kept, so these lines are printed once on a machine.
    return "\n".join(line for line in lines if "this happens once on a machine" not in line)


def as_svg(command: str, printed: str) -> str:
    """Return a terminal with a command and what it printed, in fonts that are there."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text(f"$ {command}", style="bold"))
    console.print(Text.from_ansi(printed))
    drawn = console.export_svg(title="crowdgraph", theme=MONOKAI)
    drawn = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)
    return drawn.replace("Fira Code", "DejaVu Sans Mono")


def main() -> None:
    """Run the commands in a temporary folder, draw their terminals, and keep the pictures."""
    with TemporaryDirectory() as folder, sync_playwright() as play:
        run(SIMULATE, folder)
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 800}, device_scale_factor=1)
        for name, command in PICTURES.items():
            page.set_content(as_svg(command, run(command, folder)))
            shot = Image.open(BytesIO(page.locator("svg").screenshot())).convert("RGB")
            shot.quantize(COLOURS, dither=Image.Dither.NONE).save(TARGETS / name, optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
