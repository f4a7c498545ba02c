"""Does each extra bring what it promises, by itself? For each one a fresh environment with unnorm and that extra only,
in which `.ci/uses.py` uses it; and one with none, in which every use must name its extra.

    python .ci/extras.py                 # all of them: some minutes and gigabytes (pysaliency needs torch)
    python .ci/extras.py geo parquet
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from pathlib import Path

from fresh import ROOT, built, environment, run

USES = Path(__file__).resolve().parent / "uses.py"
DEVELOPERS = {"test", "docs", "lint"}  # which .ci/run installs and uses


def extras() -> list[str]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return sorted(set(tomllib.loads(text)["project"]["optional-dependencies"]) - DEVELOPERS)


def main() -> None:
    wanted = sys.argv[1:] or extras()
    if unknown := set(wanted) - set(extras()):
        raise SystemExit(f"There is no extra {', '.join(sorted(unknown))}; there are {', '.join(extras())}.")
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _, wheel = built(environment(folder / "tools", "build"), folder / "dist")
        bare = environment(folder / "bare", wheel)
        for extra in wanted:
            python = environment(folder / extra, f"unnorm[{extra}] @ {wheel.as_uri()}")
            # each in a process of its own, away from the checkout
            without = run(bare, USES, "--without", extra, cwd=folder)
            found[extra] = "named where missing" if not without else "NOT NAMED where missing"
            found[extra] += ", works" if not run(python, USES, extra, cwd=folder) else ", FAILS where installed"
    print(*(f"{extra}: {said}" for extra, said in found.items()), sep="\n")
    sys.exit(any(said != "named where missing, works" for said in found.values()))


if __name__ == "__main__":
    main()
