"""Take the picture of the report that the README shows: ``python docs/report_picture.py demo/results/report.html``."""

import shutil
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

TARGET = Path(__file__).parent / "_static" / "report.png"
WIDTH, COLOURS, GAP = 1280, 256, 24


def pictures(page: Page) -> list[Image.Image]:
    """Return screenshots of the overview, the triangles, the network, and the communities over time."""
    selectors = ["#overview .cards", "#volunteers .panel", "#networks .canvas", "#communities > .body > .chart"]
    elements = [page.locator(selector).first for selector in selectors]
    return [Image.open(BytesIO(element.screenshot())).convert("RGB") for element in elements]


def side_by_side(images: list[Image.Image], width: int) -> Image.Image:
    """Put images beside each other, all of one height and together of the given width."""
    shares = [image.width / image.height for image in images]
    height = round((width - GAP * (len(images) - 1)) / sum(shares))
    row, left = Image.new("RGB", (width, height), "white"), 0
    for image, share in zip(images, shares, strict=True):
        row.paste(image.resize((round(share * height), height), Image.Resampling.LANCZOS), (left, 0))
        left += round(share * height) + GAP
    return row


def main(report: str) -> None:
    """Open the report in a browser, and combine screenshots of it into one picture."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_page(viewport={"width": 1180, "height": 1000}, device_scale_factor=2)
        page.goto(Path(report).resolve().as_uri())
        cards, *others = pictures(page)
        browser.close()
    rows = [side_by_side([cards], WIDTH), side_by_side(others, WIDTH)]
    picture = Image.new("RGB", (WIDTH, sum(row.height for row in rows) + GAP), "white")
    picture.paste(rows[0], (0, 0))
    picture.paste(rows[1], (0, rows[0].height + GAP))
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(TARGET, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
