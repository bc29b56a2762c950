"""Run the examples and copy the first picture of each, reduced, into the documentation.

``python docs/thumbnails.py`` does this for all examples, ``python docs/thumbnails.py 06_communities`` for one.
"""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

EXAMPLES = Path(__file__).parent.parent / "examples"
PICTURES = Path(__file__).parent / "_static" / "gallery"
WIDTH = 800
COLOURS = 128


def first_picture(path: Path) -> str:
    """Return the name of the picture that an example draws first."""
    return re.findall(r"(\w+\.png)", path.read_text())[0]


def shrink(source: Path, target: Path) -> None:
    """Save a copy that is small enough to be kept with the code: less wide, with fewer colours."""
    with Image.open(source) as picture:
        size = (WIDTH, round(picture.height * WIDTH / picture.width))
        small = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    small.quantize(COLOURS, dither=Image.Dither.NONE).save(target, optimize=True)


def main(names: list[str]) -> None:
    """Run the examples in a temporary folder, and keep their pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for path in sorted(EXAMPLES.glob("[0-9]*.py")):
        if names and path.stem not in names:
            continue
        with TemporaryDirectory() as folder:
            subprocess.run([sys.executable, path], cwd=folder, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - ours
            shrink(Path(folder) / "demo" / first_picture(path), PICTURES / f"{path.stem}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
