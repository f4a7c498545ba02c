"""The README's picture of the report: a screenshot of `unnorm demo`'s, taken by Chromium with the pointer on a curve.

unnorm demo && python docs/report_picture.py [demo-output/report.html] [docs/report.png]
"""

from __future__ import annotations

import base64
import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "report"))

from devtools import Browser  # noqa: E402  # pyright: ignore[reportMissingImports]

WIDTH, COLOURS = 1080, 128
TALL = 6000  # all of the clip: a window that grows for the screenshot takes the pointer off the curve


def main(report: Path, out: Path) -> None:
    """From the heading of the effects to the end of the first figure of single subjects."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Expected Chromium on the path, found none. Install it (Debian: apt install chromium).")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        browser = Browser(chromium, Path(home))
        try:
            browser.open(report.resolve(), width=WIDTH, height=TALL)
            left, top, width, height = browser.box("document.querySelector('#effects figure.live svg')")
            browser.move(left + 0.3 * width, top + 0.5 * height)
            start = browser.js("document.querySelector('#effects h2').getBoundingClientRect().top + scrollY")
            end = browser.js("document.querySelector('#subjects .card').getBoundingClientRect().bottom + scrollY")
            clip = {"x": 0, "y": start, "width": WIDTH, "height": end - start + 4, "scale": 1}
            shot = browser.ask("Page.captureScreenshot", format="png", clip=clip)
        finally:
            browser.close()
    picture = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(out, optimize=True)
    print(f"{out}: {picture.width} x {picture.height}, {out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    given = [Path(word) for word in sys.argv[1:]]
    main(given[0] if given else Path("demo-output/report.html"), given[1] if len(given) > 1 else HERE / "report.png")
