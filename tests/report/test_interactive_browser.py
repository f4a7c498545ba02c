"""The report in a reader's hands: pointer, keys, switches, tables and downloads in Chromium, on hostile names."""

from __future__ import annotations

import csv
import io
import re
import shlex
from xml.etree import ElementTree

import numpy as np
import pytest

FIRST = "document.querySelector('#effects figure.live')"
PANELS = "document.querySelector('#subjects figure.live')"
NUMBER = r"[−\d.]+"


def number(text):
    return float(text.replace("−", "-"))


@pytest.fixture(scope="module")
def effects(report):
    """effects.csv: (by, term) → step, estimate, lower, upper."""
    out = {}
    with open(report / "effects.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["term"] == "s(step)":
                out.setdefault(row["by"], []).append([float(row[n]) for n in ("step", "estimate", "lower", "upper")])
    return {by: np.array(rows) for by, rows in out.items()}


@pytest.fixture
def page(browser, report):
    """The report, opened anew on a desk."""
    browser.open(report / "report.html")
    yield browser
    assert browser.complaints == []
    assert browser.requests == []
    assert not [event for event in browser.events if event.get("method") == "Page.javascriptDialogOpening"]


def read(page, figure=FIRST):
    """What the readout says: who, x, value, lower, upper."""
    text = page.js(f"{figure}.querySelector('.readout').textContent")
    found = re.fullmatch(rf"(.*) at step ({NUMBER}): ({NUMBER}), 95 % band ({NUMBER}) to ({NUMBER})", text)
    assert found, text
    return found[1], *(number(one) for one in found.groups()[1:])


def agrees(seen, rows):
    """One of the rows of the table has the numbers of the readout, to what the picture shows."""
    gaps = np.abs(rows - np.array(seen)) / np.ptp(rows, axis=0)
    return gaps.max(axis=1).min() < 1 / 2000


def test_the_pointer_reads_the_curve_it_is_at(page, effects, hostile):
    left, top, width, height = page.box(f"{FIRST}.querySelector('svg')")
    page.move(left + 0.5 * width, top + 0.3 * height)
    who, *seen = read(page)
    name = who.removeprefix("<i>subject</i> ")
    assert name in (*hostile[:3], "group", "plain mean")
    assert agrees(seen, effects[name])
    assert page.js(f"{FIRST}.querySelectorAll('[data-cursor] circle').length") == 1
    first = seen[0]
    page.move(left + 0.8 * width, top + 0.3 * height)
    assert read(page)[1] > first
    page.move(left, top - 30)
    assert page.js(f"{FIRST}.querySelectorAll('[data-cursor] *').length") == 0


def test_the_pointer_finds_every_curve(page):
    """At a vertex of a line, the mark is on that line, whoever it belongs to."""
    left, top, width, height = page.box(f"{FIRST}.querySelector('svg')")
    size = page.js(f"{FIRST}.querySelector('svg').getAttribute('viewBox')").split()[2:]
    lines = page.js(f"[...{FIRST}.querySelectorAll('polyline')].map((one) => one.getAttribute('points'))")
    who = set()
    for line in lines:
        x, y = (float(one) for one in line.split()[90].split(","))
        page.move(left + width * x / float(size[0]), top + height * y / float(size[1]))
        mark = f"{FIRST}.querySelector('[data-cursor] circle')"
        assert float(page.js(f"{mark}.getAttribute('cy')")) == pytest.approx(y, abs=0.2)
        who.add(page.js(f"{FIRST}.querySelector('.readout').textContent").partition(" at step ")[0])
    assert len(who) >= len(lines) - 1  # two may meet there


def test_keys_move_along_and_between_curves(page, effects):
    page.js(f"{FIRST}.querySelector('input').focus()")
    start = read(page)
    assert start[0] == "group"
    assert agrees(start[1:], effects["group"])
    page.key("ArrowRight")
    after = read(page)
    assert after[0] == "group"
    assert after[1] > start[1]
    page.key("Home")
    assert read(page)[1] == pytest.approx(effects["group"][0, 0], abs=0.1)
    page.key("ArrowUp")  # from the first curve to the last
    who, *seen = read(page)
    assert who.startswith("<i>subject</i> ")
    assert agrees(seen, effects[who.removeprefix("<i>subject</i> ")])
    assert page.js(f"{FIRST}.querySelector('input').getAttribute('aria-valuetext')") == page.js(
        f"{FIRST}.querySelector('.readout').textContent"
    )


def test_switches_show_and_hide_a_level_everywhere(page, hostile):
    lines, shown = f"{FIRST}.querySelectorAll('polyline').length", f"{PANELS}.querySelectorAll('svg').length"
    assert (page.js(lines), page.js(shown)) == (5, 3)  # group, plain mean, three subjects
    buttons = "[...document.querySelectorAll('#effects .switches button')]"
    assert page.js(f"{buttons}.map((one) => one.textContent)") == ["all", "none", *sorted(hostile[:3])]
    page.press(f"{buttons}[2]")
    assert (page.js(lines), page.js(shown)) == (4, 2)
    pressed = "[...document.querySelectorAll('.switches [aria-pressed]')]"
    assert (
        page.js(f"{pressed}.map((one) => one.getAttribute('aria-pressed'))") == ["false", "true", "true"] * 2
    )  # the other section's switches follow
    page.press(f"{buttons}[2]")
    assert (page.js(lines), page.js(shown)) == (5, 3)
    page.press(f"{buttons}[1]")
    assert (page.js(lines), page.js(shown)) == (2, 0)
    page.js(f"{PANELS}.querySelector('input').focus()")  # nothing is left to read: nothing breaks
    page.key("ArrowDown")
    page.press(f"{buttons}[0]")
    assert (page.js(lines), page.js(shown)) == (5, 3)
    assert page.js("document.activeElement.textContent") == "all"
    page.key("ArrowRight")
    page.key("ArrowRight")
    assert page.js("document.activeElement.textContent") == sorted(hostile[:3])[0]
    assert page.js(f"{buttons}.map((one) => one.tabIndex)") == [-1, -1, 0, -1, -1]  # one stop of the tab key
    page.key("End")
    page.key("ArrowRight")
    assert page.js("document.activeElement.textContent") == "all"


def test_panels_read_all_levels_at_one_place(page, effects):
    left, top, width, height = page.box(f"{PANELS}.querySelectorAll('svg')[1]")
    page.move(left + 0.6 * width, top + 0.5 * height)
    who, *seen = read(page, PANELS)
    assert agrees(seen, effects[who.removeprefix("<i>subject</i> ")])
    assert page.js(f"[...{PANELS}.querySelectorAll('svg')].map((one) => one.querySelectorAll('circle').length)") == [
        1,
        1,
        1,
    ]


def test_tables_sort_with_gaps_last_and_filter(page):
    table = "document.querySelector('#scores table')"
    cells = (
        f"[...{table}.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.cells[1].dataset.value ?? null)"
    )
    heads = f"{table}.tHead.rows[0].cells"
    page.js(
        f"(() => {{ const cell = {table}.tBodies[0].rows[0].cells[1]; "
        "delete cell.dataset.value; cell.textContent = '–'; })()"
    )
    for order in ("ascending", "descending"):
        page.press(f"{heads}[1].querySelector('button')")
        *values, last = page.js(cells)
        values = [float(value) for value in values]
        assert last is None
        assert values == sorted(values, reverse=order == "descending")
        assert page.js(f"[...{heads}].map((one) => one.getAttribute('aria-sort'))") == [None, order, None, None]
    page.js("document.querySelector('#scores input[type=search]').focus()")
    for letter in "nss":
        page.key(letter)
    assert len(page.js(cells)) == 2
    assert page.js("document.querySelector('#scores [role=status]').textContent") == "2 of 7 rows"


def saved(page, folder, act):
    page.downloads(folder)
    page.js(act)
    return (folder / page.downloaded()).read_bytes()


def details(figure, name):
    return f"[...{figure}.querySelectorAll('.save button')].find((one) => one.textContent === '{name}').click()"


def test_numbers_are_downloaded(page, effects, hostile, tmp_path):
    page.press("[...document.querySelectorAll('#effects .switches button')][2]")
    rows = list(csv.reader(io.StringIO(saved(page, tmp_path, details(FIRST, "CSV")).decode("utf-8"))))
    assert rows[0] == ["curve", "step", "estimate", "lower", "upper"]
    names = {row[0] for row in rows[1:]}
    assert names == {"group", "plain mean", *sorted(hostile[:3])[1:]}
    for name in names - {"plain mean"}:
        found = np.array([[float(cell) for cell in row[1:]] for row in rows[1:] if row[0] == name])
        span = np.ptp(np.concatenate(list(effects.values())), axis=0)
        span[1:] = span[1:].max()  # estimates and bands have one unit
        assert np.all(np.abs(found - effects[name]) <= 0.51 * span / 2000)
    table = "document.querySelector('#numbers .tools button').click()"
    rows = list(csv.reader(io.StringIO(saved(page, tmp_path, table).decode("utf-8"))))
    assert rows[0][:2] == ["<i>subject</i>", "transitions"]
    assert {row[0] for row in rows[1:]} == {"group", *hostile[:3]}
    assert {row[1] for row in rows[1:]} == {"195.0", "65.0"}


@pytest.mark.parametrize("figure", [FIRST, PANELS, "document.querySelector('#places figure')"])
def test_figures_are_downloaded(page, tmp_path, figure):
    svg = ElementTree.fromstring(saved(page, tmp_path, details(figure, "SVG")))
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    assert not [one for one in svg.iter() if "data-cursor" in one.attrib or one.tag.endswith("script")]
    png = saved(page, tmp_path, details(figure, "PNG"))
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(png[i : i + 4], "big") for i in (16, 20))
    assert min(width, height) > 300
    assert len(png) > 5_000


def test_the_command_is_copied_as_it_is_typed(page, report):
    """No line breaks where words wrap, even on a phone."""
    page.open(report / "report.html", width=390)
    page.js("getSelection().selectAllChildren(document.querySelector('#repeat pre code'))")
    copied = page.js("getSelection().toString()")
    assert copied == page.js("document.querySelector('#repeat pre code').textContent")
    assert shlex.split(copied)[:2] == ["unnorm", "fit"]


def test_readers_of_screens_are_told(page):
    page.js(f"{FIRST}.querySelector('input').focus()")
    tree = page.ask("Accessibility.getFullAXTree")["nodes"]
    nodes = [(one["role"]["value"], one["name"]["value"], one) for one in tree if not one["ignored"] and "name" in one]

    def states(one):
        return {state["name"]: state["value"].get("value") for state in one.get("properties", ())}

    (slider, *_) = [one for role, name, one in nodes if role == "slider" and name == "step: s(step)"]
    assert states(slider)["focused"]
    assert slider["description"]["value"].startswith("Left and right move along the curve")
    assert [
        name for role, name, _ in nodes if role == "slider" and name.startswith("Map of log preference over x $1 and")
    ]
    bars = [name for role, name, _ in nodes if role == "toolbar"]
    assert bars == ["Show each <i>subject</i>"] * 2
    pressed = [
        states(one)["pressed"]
        for role, _, one in nodes
        if role in ("button", "ToggleButton") and "pressed" in states(one)
    ]
    assert pressed == ["true"] * 6
    images = [name for role, name, _ in nodes if role in ("img", "image")]
    assert len(images) >= 10
    assert all(len(name) > 20 for name in images)
    saves = [name for role, name, _ in nodes if role == "DisclosureTriangle"]
    assert saves
    assert all(re.match(r"Download .", name) for name in saves)
    fields = [name for role, name, _ in nodes if role in ("searchbox", "textbox")]
    assert fields
    assert all(name.startswith("Filter rows of ") for name in fields)


def test_without_scripts_the_static_figures_stand(browser, report):
    browser.open(report / "report.html", script=False)
    root = browser.ask("DOM.getDocument")["root"]["nodeId"]

    def found(selector):
        return browser.ask("DOM.querySelectorAll", nodeId=root, selector=selector)["nodeIds"]

    assert len(found("figure img")) >= 10
    for one in found("figure img"):
        assert browser.ask("DOM.getBoxModel", nodeId=one)["model"]["width"] > 150
    assert found("button, input, details") == []  # nothing that would not work


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_phones_and_desks_light_and_dark(browser, report, width, dark):
    browser.open(report / "report.html", width=width, dark=dark)
    assert browser.js("document.documentElement.scrollWidth - innerWidth") <= 0
    buttons = "[...document.querySelectorAll('.switches button, .tools button')]"
    assert min(browser.js(f"{buttons}.map((one) => one.getBoundingClientRect().height)")) >= 24  # for fingers
    wide = browser.js(f"{FIRST}.querySelector('svg').getBoundingClientRect().width")
    assert wide > 250
    assert browser.js("getComputedStyle(document.body).backgroundColor") == (
        "rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)"
    )
    filters = "(which) => getComputedStyle(document.querySelector(which + ' .card')).filter"
    assert browser.js(f"({filters})('#effects figure')") == ("invert(1) hue-rotate(180deg)" if dark else "none")
    assert browser.js(f"({filters})('#places figure')") == "none"  # maps keep their scales of colour
    assert browser.complaints == []


# --- maps ------------------------------------------------------------------------------------------------------------

MAPS = ("#places figure", "#simulated figure:nth-of-type(3)", "#constants figure:nth-of-type(3)")
AT = re.compile(rf"At x \$1 ({NUMBER}), y</title> ({NUMBER}): (.+?) ({NUMBER})")


def said(page, figure):
    text = page.js(f"{figure}.querySelector('.readout').textContent")
    found = AT.fullmatch(text)
    assert found, text
    return number(found[1]), number(found[2]), found[3], number(found[4])


def cells(page, folder, figure):
    """The numbers of a map, downloaded."""
    head, *rows = csv.reader(io.StringIO(saved(page, folder, details(figure, "CSV")).decode("utf-8")))
    return head, np.array(rows, dtype=float)


@pytest.mark.parametrize("selector", MAPS)
def test_the_pointer_and_keys_read_a_map(page, tmp_path, selector):
    figure = f"document.querySelector('{selector}')"
    head, table = cells(page, tmp_path, figure)
    assert head[:2] == ["x $1", "y</title>"]
    assert len(head) == 3
    dx, dy = (np.diff(np.unique(table[:, k])).min() for k in (0, 1))
    left, top, width, height = page.box(f"{figure}.querySelector('.map')")
    seen = []
    for across, down in ((0.3, 0.3), (0.5, 0.6)):
        page.move(left + across * width, top + down * height)
        x, y, what, value = said(page, figure)
        assert what == head[2]
        (row,) = table[(np.abs(table[:, 0] - x) < dx / 2) & (np.abs(table[:, 1] - y) < dy / 2)]
        assert abs(row[2] - value) <= 1e-9 + 1e-3 * np.ptp(table[:, 2])
        seen.append((x, y))
    # the picture is linear, y grows downwards: what is further right and lower has larger coordinates
    assert seen[1][0] > seen[0][0]
    assert seen[1][1] > seen[0][1]
    page.js(f"{figure}.querySelector('input').focus()")
    x, y, *_ = said(page, figure)
    page.key("ArrowRight")
    page.key("ArrowDown")
    after = said(page, figure)
    assert abs(after[0] - x - dx) < 0.01 * dx + 0.2
    assert abs(after[1] - y - dy) < 0.01 * dy + 0.2
    assert page.js(f"{figure}.querySelector('input').getAttribute('aria-valuetext')") == page.js(
        f"{figure}.querySelector('.readout').textContent"
    )
    page.js(f"{figure}.querySelector('input').blur()")
    assert page.js(f"{figure}.querySelector('.readout').textContent").startswith("Point at the map")


def test_a_map_is_read_where_the_picture_has_it(page, tmp_path, report):
    """Half-way between the ticks' ends of the picture lies the middle of the window."""
    figure = f"document.querySelector('{MAPS[0]}')"
    box, limits = page.js(
        "(({ box, limits }) => [box, limits])"
        "(JSON.parse(document.getElementById('curves').textContent).maps['places-1'])"
    )
    assert limits == pytest.approx([0, 0, 800, 600], abs=0.5)
    left, top, width, height = page.box(f"{figure}.querySelector('.map')")
    for share in (0.02, 0.5, 0.98):
        page.move(
            left + width * (box[0] + share * (box[2] - box[0])), top + height * (box[1] + share * (box[3] - box[1]))
        )
        x, y, *_ = said(page, figure)
        assert x == pytest.approx(800 * share, abs=11)
        assert y == pytest.approx(600 * share, abs=11)
    page.move(left + 0.99 * width, top + 0.5 * height)  # the colour bar
    assert page.js(f"{figure}.querySelector('.readout').textContent").startswith("Point at the map")


def test_the_numbers_of_a_map_are_those_of_the_data(page, tmp_path, report):
    """The share of points in each cell, counted from the table."""
    with open(report.parent / "data & <b>.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["fix"] != "0"]
    x, y = (np.array([float(row[name]) for row in rows]) for name in ("x $1", "y</title>"))
    count, *edges = np.histogram2d(x, y, bins=(32, 24), range=((0, 800), (0, 600)))
    head, table = cells(page, tmp_path, f"document.querySelector('{MAPS[1]}')")
    assert head[2] == "% of points"
    assert len(table) == 32 * 24
    i, j = (np.digitize(table[:, k], edges[k]) - 1 for k in (0, 1))
    np.testing.assert_allclose(table[:, 2], 100 * count[i, j] / len(x), atol=1e-3)
