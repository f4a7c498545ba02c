"""Are the version floors true? Makes environments with the lowest and with the newest versions that pyproject.toml
allows, for every Python from 3.11 that is installed, and runs the tests in each.

    python .ci/floors.py                         # all of them, the quick suite: about an hour on two cores
    python .ci/floors.py --python 3.11 --lowest -- tests/data tests/test_readme.py
    python .ci/floors.py --bare                  # without extras: what is missing must be named

`uv` chooses the lowest versions (`--resolution lowest-direct`: of what unnorm names itself; what those need is as new
as they allow), from wheels only, so that a Python for which a floor has no wheel gets the lowest one that it has.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
# matplotlib 3.9 calls names that pyparsing 3.3 deprecates, and warnings are errors in the tests
COMPANIONS = ("pyparsing>=3.1,<3.3",)


def interpreter(version: str) -> str | None:
    """A Python of this version that runs: on the path, or among pyenv's."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [shutil.which(f"python{version}"), *sorted(home.glob(f"versions/{version}.*/bin/python"))]
    for one in (str(path) for path in found if path is not None):
        if not subprocess.run([one, "--version"], capture_output=True, check=False).returncode:
            return one
    return None


def run(*tokens: str | Path, **more: str) -> int:
    print("+", *tokens, flush=True)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run([str(one) for one in tokens], cwd=ROOT, env={**environment, **more}, check=False).returncode


def environment(folder: Path, python: str, resolution: str, what: str) -> Path:
    """A new virtual environment with unnorm in it; its Python."""
    if run(python, "-m", "venv", folder):
        raise SystemExit(f"{python} could not make a virtual environment.")
    here = folder / "bin" / "python"
    lowest = COMPANIONS if resolution == "lowest-direct" else ()
    tokens = ("--resolution", resolution, "--only-binary", ":all:", "--no-binary", "unnorm", "-q", what, *lowest)
    # as pip does: else warnings of the compiler, on a first import, are errors in the tests
    uv = (here, "-m", "uv", "pip", "install", "--compile-bytecode", "--python", here)
    if run(here, "-m", "pip", "install", "-q", "uv") or run(*uv, *tokens):
        raise SystemExit(f"{resolution} versions could not be installed for {python}.")
    return here


def tried(python: str, resolution: str, tests: list[str], bare: bool) -> bool:
    with tempfile.TemporaryDirectory() as scratch:
        here = environment(Path(scratch) / "env", python, resolution, "." if bare else ".[test]")
        run(here, "-m", "uv", "pip", "list", "--python", here, "-q")
        if bare:
            return run(here, ROOT / ".ci" / "uses.py", "--without") == 0
        more = () if tests else ("-n", "auto")
        return run(here, "-m", "pytest", "-q", "-p", "no:cacheprovider", *more, *tests) == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", nargs="+", default=PYTHONS)
    parser.add_argument("--lowest", action="store_true", help="only the lowest versions")
    parser.add_argument("--newest", action="store_true", help="only the newest versions")
    parser.add_argument("--bare", action="store_true", help="without extras")
    parser.add_argument("tests", nargs="*", help="what pytest runs; by default the quick suite")
    given = parser.parse_args()
    both = {"lowest-direct": not given.newest, "highest": not given.lowest}
    found: dict[str, str] = {}
    for version in given.python:
        python = interpreter(version)
        for resolution in [name for name, wanted in both.items() if wanted]:
            key = f"Python {version}, {resolution}"
            if python is None:
                found[key] = "not installed here"
                continue
            try:
                found[key] = "passed" if tried(python, resolution, given.tests, given.bare) else "FAILED"
            except SystemExit as end:
                found[key] = f"FAILED: {end}"
    print(*(f"{key}: {said}" for key, said in found.items()), sep="\n")
    sys.exit(any(said.startswith("FAILED") for said in found.values()))


if __name__ == "__main__":
    main()
