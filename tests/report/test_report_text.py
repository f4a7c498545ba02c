"""The report's text: what it must hold, nothing from outside, everything escaped."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

import numpy as np


class Seen(HTMLParser):
    """Tags with attributes, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def test_everything_is_there(page):
    text = " ".join(Seen(page).text)
    for heading in (
        "What was fitted",
        "What was left out",
        "Effects",
        "Where they look",
        "The normalising constants",
        "Consistency check",
        "Monte Carlo error",
        "Observed and simulated scanpaths",
        "held-out bits",
        "edf",
        "Repeat it",
    ):
        assert heading in text, heading
    assert re.search(r"195 transitions in 15 sequences", text)
    assert "unnorm fit" in text


def test_text_from_the_data_stays_text(page, hostile):
    seen = Seen(page)
    assert [one.get("type") for one in seen.all("script")] == ["application/json", None]
    assert not [a for tag, attributes in seen.tags for a in attributes if a.startswith("on")]
    assert {tag for tag, _ in seen.tags} <= {
        "html", "head", "meta", "link", "title", "style", "body", "header", "h1", "nav", "ul", "li", "a", "main",
        "section", "h2", "h3", "dl", "dt", "dd", "p", "div", "figure", "img", "figcaption", "table", "caption", "thead",
        "tr", "th", "button", "tbody", "td", "pre", "code", "span", "script",
    }  # fmt: skip
    cells = " ".join(seen.text)
    for name in hostile[:3]:
        assert name in cells
    assert "<i>subject</i>" in cells


def test_nothing_is_fetched(page):
    seen = Seen(page)
    for _, attributes in seen.tags:
        for name in ("src", "href", "data", "action", "srcset"):
            value = attributes.get(name)
            assert value is None or value.startswith(("data:", "#")), (name, value)
    assert "url(" not in page
    assert "@import" not in page
    policy = next(m["content"] for m in seen.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert len(page) < 3_000_000


def test_figures_have_words(page):
    images = Seen(page).all("img")
    assert len(images) >= 10
    for image in images:
        assert len(image["alt"]) > 20
        svg = base64.b64decode(image["src"].partition(",")[2]).decode("utf-8")
        assert "<svg" in svg
        assert "<script" not in svg
        assert "nan" not in image["alt"]


def test_colours_have_contrast(page):
    """WCAG AA, 4.5 : 1, for text and soft text on the paper and the cards, light and dark."""

    def luminance(colour):
        rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    schemes = re.findall(r":root \{([^}]*)\}", page)[:2]
    assert len(schemes) == 2
    for scheme in schemes:
        colour = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", scheme))
        for ink in ("ink", "soft", "link"):
            for paper in ("paper", "card"):
                high, low = sorted((luminance(colour[ink]), luminance(colour[paper])), reverse=True)
                assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, paper)


def test_halves_are_whole_sequences():
    from unnorm.data.observations import transitions
    from unnorm.results.held_out import halves

    rng = np.random.default_rng(0)
    table = {"s": np.repeat(np.arange(7), 5), "x": rng.random(35), "y": rng.random(35)}
    obs = transitions(table, y=("x", "y"), group="s")
    train, test = halves(obs)
    assert np.array_equal(train, ~test)
    assert not set(obs.sequence[train]) & set(obs.sequence[test])
    assert {len(set(obs.sequence[train])), len(set(obs.sequence[test]))} == {3, 4}
