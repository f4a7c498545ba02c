"""Checks the pages: every link, every example, every command, and that measured figures say how they were measured.

python docs/check.py                      # without running examples: seconds
python docs/check.py --run                # and every example, by the tests that run them: minutes
python docs/check.py --site [FOLDER]      # the built site: every link, anchor, picture and name (build.py does it)
python docs/check.py --times [PAGE ...]   # how long the Python of each tutorial takes, each in a new process

A link to a file or a heading must lead there; one to the web must be well formed (nothing is fetched). A page with
Python must be run by a test, and its Python must compile. A command must name files and options that exist. A section
with a time, a size in memory or a speed must name the command or the test that measured it, there or in the opening of
its page. A page begins with what the reader gets, a tutorial with the time it takes too. Other pages are linked to, not
named by their files.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
MADE = ("reference/", "_tables/")  # by the build
TUTORIALS = ("eye", "scanpaths", "conditions", "steps", "patterns", "directions", "graphs", "bits", "words")
CODE = ("tests", "benchmarks", "examples", "paper", "docs", ".ci")  # folders whose files pages name

FENCE = re.compile(r"^```.*?^```[ ]*$|(?:^ {4}[^\n]*(?:\n|\Z))+", re.S | re.M)  # fenced, or indented by four
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()]*\))?)[^)]*\)")
SPAN = re.compile(r"`+([^`]+)`+")
MEASURED = re.compile(
    r"(?<![\w.,·-])\.?\d[\d.,·⁰¹²³⁴⁵⁶⁷⁸⁹]*[ \u00a0](?:ns|µs|ms|s|seconds|minutes|kB|MB|GB|KiB|MiB|GiB)(?![\w/²⁻])"
    r"|\d times as (?:fast|long|much)|×\d"
)
EVIDENCE = re.compile(
    r"^(?:\S+=\S+ )*(?:python|pytest|unnorm|Rscript|\.ci/)|^(?:tests|benchmarks|examples|paper)/|^--\w"
)


def pages() -> list[Path]:
    """What is read: the README, the guide for contributors and the site."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "paper" / "README.md", *sorted(DOCS.glob("*.md"))]


def prose(text: str) -> str:
    """The text without its blocks of code, line for line."""
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)


def blocks(text: str, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.S | re.M)


# --- links -----------------------------------------------------------------------------------------------------------


def anchors(text: str) -> set[str]:
    """The fragments of a page's headings, as MyST and the hosts of Markdown make them."""
    found: set[str] = set()
    for title in re.findall(r"^#{1,6} +(.+?) *#*$", prose(text), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title.replace("`", ""))
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        again = (f"{slug}-{i}" for i in range(1, 100))
        found.add(slug if slug not in found else next(one for one in again if one not in found))
    return found


def links(page: Path) -> Iterator[str]:
    """Links that lead nowhere."""
    text = page.read_text(encoding="utf-8")
    for target in LINK.findall(re.sub(SPAN, "", prose(text))):
        if "://" in target or target.startswith("mailto:"):
            parts = urlsplit(target)
            if parts.scheme not in ("http", "https") or not re.fullmatch(r"[\w-]+(\.[\w-]+)+(:\d+)?", parts.netloc):
                yield f"{target} is no address"
            continue
        file, _, fragment = target.partition("#")
        if file.startswith(MADE):
            continue
        there = (page.parent / file).resolve() if file else page
        if not there.exists():
            yield f"links to {target}, which is not there"
        elif fragment and there.suffix == ".md" and fragment not in anchors(there.read_text(encoding="utf-8")):
            yield f"links to {target}; that page has no such heading"


def files(page: Path) -> Iterator[str]:
    """Files of the repository that a page names and that are not there."""
    text = prose(page.read_text(encoding="utf-8"))
    named = re.findall(rf"(?<![\w/.~-])((?:{'|'.join(map(re.escape, CODE))})/[\w./-]*\w)", text)
    for name in dict.fromkeys(named):
        if not any((folder / name).exists() for folder in (ROOT, ROOT / "src" / "unnorm")) and "_build" not in name:
            yield f"names {name}, which is not there"


# --- examples --------------------------------------------------------------------------------------------------------


def tests_of(page: Path) -> list[Path]:
    """The files of tests that read a page."""
    name = re.compile(rf"""["'/ ]{re.escape(page.name)}["' ]""")
    where = sorted((ROOT / "tests").rglob("test_*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in where}
    return [path for path, text in texts.items() if "exec(" in text and name.search(text)]


def examples(page: Path) -> Iterator[str]:
    """Python that does not compile, or that no test runs."""
    text = page.read_text(encoding="utf-8")
    python = blocks(text, "python")
    for i, block in enumerate(python):
        try:
            compile(block, page.name, "exec")
        except SyntaxError as error:
            yield f"its block {i + 1} of Python does not compile: {error}"
    if python and not tests_of(page):
        yield "has Python that no test runs"


def commands(page: Path) -> Iterator[str]:
    """Commands whose script or options do not exist."""
    text = page.read_text(encoding="utf-8")
    shell = [line for block in blocks(text, "sh") for line in block.replace("\\\n", " ").splitlines()]
    for line in [*SPAN.findall(prose(text)), *shell]:
        found = re.match(r"(?:\S+=\S+ )*(?:\S*/)?python3? (\S+\.py)\b(.*)", " ".join(line.split()))
        if found is None:
            continue
        script = next((one for one in (ROOT / found[1], page.parent / found[1]) if one.exists()), None)
        if script is None:
            yield f"`{line}` runs {found[1]}, which is not there"
            continue
        source = script.read_text(encoding="utf-8")
        helpers = [one.read_text(encoding="utf-8") for one in script.parent.glob("*.py")]
        for option in re.findall(r"(?<!\S)(--[a-z][\w-]*)", found[2]):
            if not any(option in one or option[2:].replace("-", "_") in one for one in (source, *helpers)):
                yield f"`{line}` has {option}, which {found[1]} does not know"


# --- figures ---------------------------------------------------------------------------------------------------------


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Headings with the text below each, up to the next heading; the opening has the page's title."""
    parts = re.split(r"^(#{1,6} .+)$", prose(text), flags=re.M)
    yield from zip(parts[1::2], parts[2::2])


def figures(page: Path) -> Iterator[str]:
    """Sections with measured figures that do not say how they were measured."""
    opening = True
    shown = False  # the opening names a command
    for heading, body in sections(page.read_text(encoding="utf-8")):
        named = [span for span in SPAN.findall(body) if EVIDENCE.match(span.strip())]
        evident = bool(named)
        if opening:  # a tutorial's own time says nothing of the figures below it
            shown, opening = any("docs/check.py" not in span for span in named), False
        found = MEASURED.findall(SPAN.sub("", body))
        if found and not (evident or shown):
            some = ", ".join(dict.fromkeys(one.strip() for one in found[:3]))
            yield f"{heading.strip('# ')!r} has figures ({some}) and no command that measured them"


def openings(page: Path) -> Iterator[str]:
    """Pages that do not begin with what the reader gets; tutorials also with how long it takes."""
    if page.parent != DOCS or page.stem == "index":
        return
    begin = page.read_text(encoding="utf-8").partition("\n## ")[0]
    if page.stem in TUTORIALS:
        if "*You get:*" not in begin or f"docs/check.py --times {page.stem}`" not in begin:
            yield f"does not begin with '*You get:*' and '*Time:*' (`python docs/check.py --times {page.stem}`)"
    elif not re.match(r"# .+\n\nYou get: ", begin):
        yield "does not begin with 'You get: ' below its title"


def elsewhere(page: Path) -> Iterator[str]:
    """Pages of the site that a page names by their files: readers of the site have no such files."""
    if page.parent == DOCS:
        for name in re.findall(r"docs/(\w+\.md)", prose(page.read_text(encoding="utf-8"))):
            yield f"names docs/{name}: link to it, [title]({name})"


CHECKS = (links, files, examples, commands, figures, openings, elsewhere)


def problems() -> list[str]:
    """All that is wrong, a line each."""
    return [f"{page.relative_to(ROOT)}: {what}" for page in pages() for check in CHECKS for what in check(page)]


# --- the built site ---------------------------------------------------------------------------------------------------


class Read(HTMLParser):
    """What a built page has and asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.parts: list[str] = []  # pictures, scripts and styles
        self.unresolved: list[str] = []  # names in the code's font that should be links
        self._anchors = 0
        self._reading = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a":
            self._anchors += 1
            self.links += [given["href"]] if "href" in given else []
        elif tag in ("img", "script"):
            self.parts += [given["src"]] if "src" in given else []
        elif tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon"):
            self.parts.append(given["href"])
        elif tag == "code":
            self._reading = "xref py" in given.get("class", "") and not self._anchors

    def handle_endtag(self, tag: str) -> None:
        self._anchors -= tag == "a"
        self._reading = self._reading and tag != "code"

    def handle_data(self, data: str) -> None:
        if self._reading and data.strip():
            self.unresolved.append(data.strip())


def read(path: Path) -> Read:
    found = Read()
    found.feed(path.read_text(encoding="utf-8"))
    return found


def site(folder: Path) -> list[str]:
    """What is wrong with a built site: links and anchors that lead nowhere, missing files, names that are no links,
    and anything that a page would fetch from the network."""
    made = [path for path in sorted(folder.rglob("*.html")) if "_static" not in path.relative_to(folder).parts]
    pages, wrong = {path.resolve(): read(path) for path in made}, []
    for path, page in pages.items():
        where = path.relative_to(folder.resolve())
        wrong += [f"{where}: {name} is not linked" for name in page.unresolved]
        for part in page.parts:
            if "://" in part or part.startswith("//"):
                wrong.append(f"{where}: fetches {part}")
            elif not part.startswith("data:") and not (path.parent / unquote(urlsplit(part).path)).exists():
                wrong.append(f"{where}: {part} is not there")
        for link in dict.fromkeys(page.links):
            if "://" in link or link.startswith("mailto:"):
                continue
            parts = urlsplit(link)
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = there / "index.html" if there.is_dir() else there
            if not there.exists():
                wrong.append(f"{where}: links to {link}, which is not there")
            elif parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].ids:
                wrong.append(f"{where}: links to {link}, which has no such place")
    return wrong


# --- running ---------------------------------------------------------------------------------------------------------

RUN = """
import re, sys, warnings
import matplotlib
matplotlib.use("Agg")
text = open(sys.argv[1], encoding="utf-8").read()
names = {}
for block in re.findall(r"^```python\\n(.*?)^```", text, re.S | re.M):
    exec(compile(block, sys.argv[1], "exec"), names)
"""


def timed(name: str) -> str:
    """Seconds that the Python of a page takes in a new process; the shared data, where there are any, are beside it."""
    shared = ROOT.parent / "shared" / "data"
    with tempfile.TemporaryDirectory() as home:
        for there in (*(shared.iterdir() if shared.exists() else ()), ROOT / "tests"):
            (Path(home) / there.name).symlink_to(there)
        begun, used = time.perf_counter(), os.times()
        command = [sys.executable, "-W", "ignore", "-c", RUN, str(DOCS / f"{name}.md")]
        done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
        took, after = time.perf_counter() - begun, os.times()
    cpu = after.children_user + after.children_system - used.children_user - used.children_system
    last = done.stderr.strip().splitlines()[-1:] if done.returncode else []
    return f"{name}: {took:.0f} s, {cpu:.0f} s of processor time {' '.join(last)}".rstrip()


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks the pages.")
    parser.add_argument("--run", action="store_true", help="run every example, by its tests")
    parser.add_argument("--times", nargs="*", metavar="PAGE", help="time the Python of these tutorials (all)")
    parser.add_argument("--site", nargs="?", type=Path, const=DOCS / "_build" / "html", metavar="FOLDER")
    given = parser.parse_args()
    if given.site is not None:
        wrong = site(given.site)
        print("\n".join(wrong) or f"{given.site}: every link, anchor, picture and name is there")
        return 1 if wrong else 0
    if given.times is not None:
        for name in given.times or TUTORIALS:
            print(timed(name), flush=True)
        return 0
    found = problems()
    print("\n".join(found) or f"{len(pages())} pages: every link, example, command and figure is accounted for")
    if given.run and not found:
        tests = sorted({str(path) for page in pages() for path in tests_of(page)})
        return subprocess.run([sys.executable, "-m", "pytest", "-q", *tests], cwd=ROOT, check=False).returncode
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
