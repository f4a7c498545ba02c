"""A report on hostile data: subjects and columns with markup, quotes and dollar signs in their names."""

from __future__ import annotations

import csv
import shutil

import numpy as np
import pytest
from devtools import Browser

HOSTILE = ("<script>alert(1)</script>", '"><img src=x onerror=alert(2)>', "$\\frac{", "{{ 7*7 }}", "ünï&amp;")


@pytest.fixture(scope="session")
def hostile():
    return HOSTILE


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """The output folder of a run with levels."""
    from unnorm.cli import main

    rng = np.random.default_rng(4)
    home = tmp_path_factory.mktemp("report")
    path = home / "data & <b>.csv"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["<i>subject</i>", "image", "fix", "x $1", "y</title>"])
        for subject in HOSTILE[:3]:
            for image in range(5):
                at = rng.uniform((200, 150), (600, 450))
                for fix in range(14):
                    writer.writerow([subject, image, fix, *at.round(1).tolist()])
                    at = np.clip(at + rng.normal(0, 90, 2), 1, [799, 599])
    out = home / "out"
    tokens = ["--y", "x $1,y</title>", "--order", "fix", "--group", "<i>subject</i>,image", "--by", "<i>subject</i>"]
    light = ["--terms", "s(step, k=5) + s(dcenter, k=5)", "--normaliser", "s(x_prev, y_prev, k=8)", "--references", "5"]
    main(["fit", str(path), *tokens, *light, "--window", "0,800,0,600", "--y-down", "--out", str(out), "-q"])
    return out


@pytest.fixture(scope="session")
def page(report) -> str:
    return (report / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def chromium() -> str:
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if found is None:
        pytest.skip("no Chromium on this machine: the report is checked by its text only")
    return found


@pytest.fixture(scope="session")
def browser(chromium, tmp_path_factory):
    opened = Browser(chromium, tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()
