"""Builds the sdist and the wheel, and checks them as a stranger would meet them: outside the checkout.

    python .ci/package.py                          # everything; the tests take some minutes
    python .ci/package.py -- tests/data            # with these tests in place of the quick suite
    python .ci/package.py --no-tests               # build, contents, metadata and types only
    python .ci/package.py --release                # also: a clean tree, and one version and date everywhere

Fresh environments are made in a scratch folder. The files end up in dist/, once all checks have passed.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

from fresh import ROOT, built, environment, must, tools

LEFT_OUT = {".gitignore"}  # tracked, and always in the sdist of hatchling
YAML = "{extends: default, rules: {line-length: {max: 120}, document-start: disable}}"
RECIPE = """
import rattler_build, sys
recipe = rattler_build.Stage0Recipe.from_file(sys.argv[1])
(one,) = recipe.render(rattler_build.VariantConfig(), rattler_build.RenderConfig())
print("recipe:", one.recipe.package, one.recipe.requirements)
"""
WHERE = "import sys, unnorm; sys.exit(not unnorm.__file__.startswith(sys.prefix))"


def tracked(folder: str = ".") -> set[str]:
    """The files that Git knows, or, where there is no repository, all of them."""
    found = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if found.returncode:
        raise SystemExit("The contents are compared with the files that Git tracks, and this is no repository.")
    return {name for name in found.stdout.splitlines() if (ROOT / name).exists()}


def compared(what: str, found: set[str], expected: set[str]) -> None:
    if found != expected:
        raise SystemExit(
            f"{what} lacks {sorted(expected - found)} and holds {sorted(found - expected)}, which it should not: see "
            "[tool.hatch.build.targets] in pyproject.toml."
        )
    print(f"{what}: {len(found)} files, as they should be")


def contents(sdist: Path, wheel: Path) -> None:
    """The sdist is the tree; the wheel is src/unnorm, with its data, py.typed and the licence."""
    stem = sdist.name.removesuffix(".tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.removeprefix(f"{stem}/") for name in archive.getnames()}
    compared(sdist.name, names - LEFT_OUT, {*tracked(), "PKG-INFO"} - LEFT_OUT)
    for must_have in ("LICENSE", "CHANGELOG.md", "CITATION.cff", "tests/conftest.py"):
        assert must_have in names, must_have
    about = {f"{stem}.dist-info/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt")}
    about.add(f"{stem}.dist-info/licenses/LICENSE")
    package = {name.removeprefix("src/") for name in tracked("src")}
    assert {"unnorm/py.typed", "unnorm/studies/bundled/eye.csv.gz", "unnorm/report/report.html"} <= package
    with zipfile.ZipFile(wheel) as archive:
        compared(wheel.name, set(archive.namelist()), package | about)


def said(sdist: Path, wheel: Path) -> None:
    """Both archives say the same of the package: the README, its licence, no address but the project's own."""
    stem = sdist.name.removesuffix(".tar.gz")
    with tarfile.open(sdist) as archive:
        file = archive.extractfile(f"{stem}/PKG-INFO")
        assert file is not None
        texts = [file.read().decode("utf-8")]
    with zipfile.ZipFile(wheel) as archive:
        texts.append(archive.read(f"{stem}.dist-info/METADATA").decode("utf-8"))
    assert texts[0] == texts[1], "PKG-INFO of the sdist and METADATA of the wheel differ."
    about = message_from_string(texts[0])
    assert about.get_all("License-File") == ["LICENSE"], about.get_all("License-File")
    assert about["Description-Content-Type"] == "text/markdown", about["Description-Content-Type"]
    assert about.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8"), "The description is not the README."
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    assert about.get_all("Project-URL") == [f"{name}, {url}" for name, url in urls.items()], about.get_all(
        "Project-URL"
    )
    print(f"metadata: {about['Name']} {about['Version']}, {len(about.get_all('Classifier') or ())} classifiers")


def metadata(python: Path, files: tuple[Path, ...]) -> None:
    must(python, "-m", "twine", "check", "--strict", *files, cwd=ROOT)
    must(python.parent / "validate-pyproject", "pyproject.toml", cwd=ROOT)
    must(python.parent / "cffconvert", "--validate", "-i", "CITATION.cff", cwd=ROOT)
    must(python.parent / "yamllint", "-d", YAML, "recipe/recipe.yaml", "CITATION.cff", cwd=ROOT)
    must(python, "-c", RECIPE, "recipe/recipe.yaml", cwd=ROOT)


def tests(folder: Path, sdist: Path, chosen: list[str]) -> None:
    """The tests of the unpacked sdist, with the package that was installed from it."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    source = folder / sdist.name.removesuffix(".tar.gz")
    python = environment(folder / "tests", f"unnorm[test] @ {source.as_uri()}")
    must(python, "-c", WHERE, cwd=source)
    must(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(chosen or ("-n", "auto")), cwd=source)


def released() -> None:
    """The tree is clean, and everything names this version and one date."""
    changes = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True)
    version = re.findall(r'"(.+)"', (ROOT / "src/unnorm/_version.py").read_text())[0]
    changelog, citation = (ROOT / "CHANGELOG.md").read_text(), (ROOT / "CITATION.cff").read_text()
    dates = re.findall(rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", changelog, re.M)
    missing = {
        "The tree has changes that are not committed.": changes.stdout.strip() == "",
        f"{version} is no release: X.Y.Z.": re.fullmatch(r"\d+\.\d+\.\d+", version),
        f"CHANGELOG.md has no section [{version}] - YYYY-MM-DD.": dates,
        f"CITATION.cff lacks the changelog's date, date-released: {' '.join(dates)}.": any(
            re.search(rf"^date-released: ['\"]?{date}", citation, re.M) for date in dates
        ),
    }
    if wrong := [sentence for sentence, holds in missing.items() if not holds]:
        raise SystemExit("\n".join(wrong))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", action="store_true", help="check that this is ready to be released")
    parser.add_argument("--no-tests", action="store_true", help="leave out the tests from the sdist")
    parser.add_argument("tests", nargs="*", help="what pytest runs; by default the quick suite")
    given = parser.parse_args()
    if given.release:
        released()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        python = tools(folder / "tools")
        sdist, wheel = built(python, folder / "dist")
        contents(sdist, wheel)
        said(sdist, wheel)
        metadata(python, (sdist, wheel))
        user = environment(folder / "user", wheel)
        must(user, "-m", "pip", "check", cwd=folder)
        must(user.parent / "unnorm", "--version", cwd=folder)
        must(python, ROOT / ".ci" / "typed.py", "--python", user, cwd=folder)
        if not given.no_tests:
            tests(folder, sdist, given.tests)
        shutil.rmtree(ROOT / "dist", ignore_errors=True)
        shutil.copytree(folder / "dist", ROOT / "dist")
    for path in sorted((ROOT / "dist").iterdir()):
        size = path.stat().st_size / 1e6
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(ROOT)}, {size:.1f} MB")
    sys.exit(0)


if __name__ == "__main__":
    main()
