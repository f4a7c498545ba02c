"""The report in headless Chromium: no errors, no requests, figures that load, tables that sort; phone, dark, paper."""

from __future__ import annotations

import json
import re
import subprocess

import pytest

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=3000")

# Appended to a copy of the page (whose policy allows it there): clicks, measures, and writes what it saw into the DOM.
PROBE = """
<script>
window.addEventListener("load", () => {
  const seen = {};
  seen.images = [...document.images].map((image) => image.complete && image.naturalWidth > 0);
  seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const table = document.querySelector("#numbers table");
  const buttons = table.querySelectorAll("th button");
  const column = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[1].dataset.value));
  const names = () => [...table.tBodies[0].rows].map((row) => row.cells[0].textContent);
  buttons[1].click(); seen.up = column(); seen.aria = table.querySelectorAll("th")[1].getAttribute("aria-sort");
  buttons[1].click(); seen.down = column();
  buttons[0].click(); seen.names = names();
  seen.dark = matchMedia("(prefers-color-scheme: dark)").matches;
  seen.paper = getComputedStyle(document.body).backgroundColor;
  seen.requests = performance.getEntriesByType("resource").map((entry) => entry.name.slice(0, 40));
  seen.errors = window.failures;
  const out = document.createElement("pre"); out.id = "seen"; out.textContent = JSON.stringify(seen);
  document.body.append(out);
});
</script>
"""
EARLY = (
    '<script>window.failures = []; addEventListener("error", (e) => failures.push(String(e.message)), true);'
    ' addEventListener("securitypolicyviolation", (e) => failures.push("policy: " + e.blockedURI));</script>'
)


def browse(chromium, path, *flags, action="--dump-dom"):
    command = [chromium, *FLAGS, *flags, action, "--enable-logging=stderr", "--v=0", path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def console(ran):
    return [line for line in ran.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture(scope="module")
def probed(page, tmp_path_factory):
    """The page with a probe in it; its own policy without the hash, so that the probe may run."""
    path = tmp_path_factory.mktemp("probe") / "report.html"
    text = re.sub(r"script-src 'sha256-[^']+'", "script-src 'unsafe-inline'", page)
    text = text.replace("<title>", EARLY + "<title>", 1).replace("</body>", PROBE + "</body>")
    path.write_text(text, encoding="utf-8")
    return path


def seen(chromium, probed, *flags):
    ran = browse(chromium, probed, *flags)
    found = re.search(r'<pre id="seen">(.*?)</pre>', ran.stdout, re.S)
    assert found, ran.stderr[-2000:]
    import html

    return json.loads(html.unescape(found[1]))


def test_the_page_itself_loads_without_errors(chromium, report):
    ran = browse(chromium, report / "report.html")
    assert console(ran) == []
    assert ran.stdout.count("<figure") >= 10
    assert "</html>" in ran.stdout


def test_figures_tables_and_requests(chromium, probed):
    found = seen(chromium, probed, "--window-size=1200,900")
    assert found["images"]
    assert all(found["images"])
    assert found["errors"] == []
    assert found["aria"] == "ascending"
    assert found["up"] == sorted(found["up"])
    assert found["down"] == sorted(found["up"], reverse=True)
    assert len(found["names"]) == 4
    assert [name for name in found["requests"] if not name.startswith("data:")] == []
    assert found["overflow"] <= 0


def test_phone(chromium, probed):
    assert seen(chromium, probed, "--window-size=500,900")["overflow"] <= 0


def test_dark(chromium, probed):
    light = seen(chromium, probed)
    dark = seen(chromium, probed, "--blink-settings=preferredColorScheme=0")
    assert (light["dark"], dark["dark"]) == (False, True)
    assert light["paper"] != dark["paper"]


def test_prints(chromium, report, tmp_path):
    browse(chromium, report / "report.html", action=f"--print-to-pdf={tmp_path / 'r.pdf'}")
    pdf = (tmp_path / "r.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 50_000
