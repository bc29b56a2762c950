"""Take the pictures of the report that README and documentation show.

``python docs/report_picture.py demo/results/report.html`` takes them of the report of ``make demo``.
Every picture shows whole parts of the page, with some space around them.
"""

import shutil
import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

TARGETS = Path(__file__).parent / "_static"
WIDTH, COLOURS, GAP, SPACE = 1280, 256, 24, 12
# So many questions are enough to see what they are like.
N_QUESTIONS = 6
PHONE = {"width": 390, "height": 780}


def open_page(browser: Browser, report: str, viewport: dict[str, int], bar: str = "sticky") -> Page:
    """Open the report with a few of its questions only, and with its bar at the top or, if it is static, above all."""
    page = browser.new_page(viewport=viewport, device_scale_factor=2)
    page.goto(Path(report).resolve().as_uri())
    page.wait_for_selector("#ternary circle[cx]")
    page.evaluate(
        """([most, bar]) => {
          document.documentElement.style.scrollBehavior = "auto";
          document.querySelector(".bar").style.position = bar;
          [...document.querySelectorAll("#next tbody tr")].slice(most).forEach((row) => row.remove());
          const count = document.querySelector("#next .count");
          count.textContent = count.textContent.replace(/^1.\\d+/, (shown) => `${shown.slice(0, 2)}${most}`);
        }""",
        [N_QUESTIONS, bar],
    )
    return page


def picture(page: Page, selector: str) -> Image.Image:
    """Return an element and some space around it, in which nothing else is seen."""
    element = page.locator(selector).first
    element.scroll_into_view_if_needed()
    page.wait_for_timeout(100)
    box = element.evaluate(
        """(node) => {
          for (const other of [node.previousElementSibling, node.nextElementSibling])
            if (other) other.style.visibility = "hidden";
          const { x, y, width, height } = node.getBoundingClientRect();
          return { x: x + scrollX, y: y + scrollY, width, height };
        }"""
    )
    clip = {
        "x": max(box["x"] - SPACE, 0),
        "y": box["y"] - SPACE,
        "width": box["width"] + 2 * SPACE,
        "height": box["height"] + 2 * SPACE,
    }
    shot = Image.open(BytesIO(page.screenshot(clip=clip, full_page=True))).convert("RGB")
    page.evaluate("document.querySelectorAll('main *').forEach((node) => node.style.removeProperty('visibility'))")
    return shot


def screen(page: Page, section: str) -> Image.Image:
    """Return what a reader sees who goes to a section, in a frame."""
    page.evaluate(f"document.querySelector('#{section}').scrollIntoView()")
    page.wait_for_timeout(200)
    shot = Image.open(BytesIO(page.screenshot())).convert("RGB")
    framed = Image.new("RGB", (shot.width + 4, shot.height + 4), "#b9c2cc")
    framed.paste(shot, (2, 2))
    return framed


def side_by_side(images: list[Image.Image], width: int) -> Image.Image:
    """Put images beside each other, all of one height and together of the given width."""
    shares = [image.width / image.height for image in images]
    height = round((width - GAP * (len(images) - 1)) / sum(shares))
    row, left = Image.new("RGB", (width, height), "white"), 0
    for image, share in zip(images, shares, strict=True):
        row.paste(image.resize((round(share * height), height), Image.Resampling.LANCZOS), (left, 0))
        left += round(share * height) + GAP
    return row


def stacked(rows: list[Image.Image]) -> Image.Image:
    """Put rows of one width below each other."""
    whole = Image.new("RGB", (rows[0].width, sum(row.height + GAP for row in rows) - GAP), "white")
    top = 0
    for row in rows:
        whole.paste(row, (0, top))
        top += row.height + GAP
    return whole


def save(image: Image.Image, name: str) -> None:
    """Save a picture that is small enough to be kept with the code."""
    small = image.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(TARGETS / name, optimize=True)


def main(report: str) -> None:
    """Open the report in a browser, on a desk and on a phone, and take pictures of it."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        desk = open_page(browser, report, {"width": 1180, "height": 1000}, bar="static")
        cards, triangles, network = (
            picture(desk, name) for name in ("#overview .cards", "#ternary", "#networks .canvas")
        )
        questions, flow = (picture(desk, name) for name in ("#next .scroll", "#communities > .body > .chart"))
        rows = [[cards], [triangles, network], [questions, flow]]
        save(stacked([side_by_side(images, WIDTH) for images in rows]), "report.png")
        save(side_by_side([picture(desk, "#next")], WIDTH), "page-next.png")
        phone = open_page(browser, report, PHONE)
        save(side_by_side([screen(phone, name) for name in ("overview", "next", "items")], WIDTH), "page-phone.png")
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
