"""Is unnorm typed for those who use it? Checks programs of a user, outside the checkout, against the installed package.

    python .ci/typed.py                          # the unnorm of this Python, with its pyright and mypy
    python .ci/typed.py --python ENV/bin/python  # the unnorm of another one

Both checkers, at their strictest, must accept `.ci/typed/program.py` (which then runs) and every public name, and
refuse a name that is not there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent / "typed" / "program.py"
TYPO = 'import unnorm as un\n\nun.fitt("y ~ s(x)")\nun.patterns.KK()\n'  # two errors, at lines 3 and 4
INSTALLED = "import unnorm, json; print(json.dumps([unnorm.__file__, unnorm.__all__]))"


def said(folder: Path, *tokens: str | Path) -> tuple[int, str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    done = subprocess.run(
        [str(one) for one in tokens], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def programs(folder: Path, python: str) -> None:
    """The user's files, and pyright's settings."""
    code, text = said(folder, python, "-c", INSTALLED)
    if code:
        raise SystemExit(f"unnorm cannot be imported by {python}:\n{text}")
    place, names = json.loads(text.splitlines()[-1])
    if "site-packages" not in Path(place).parts:
        raise SystemExit(f"{python} has unnorm in {place}, as source: install it with pip install . (without -e).")
    shutil.copy(PROGRAM, folder / "program.py")
    lines = [f"un.{name}  # pyright: ignore[reportUnusedExpression]" for name in names]
    (folder / "names.py").write_text("\n".join(["import unnorm as un", "", *lines, ""]))
    (folder / "typo.py").write_text(TYPO)
    settings = {"typeCheckingMode": "strict", "reportMissingModuleSource": False}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))


def checkers(folder: Path, python: str) -> dict[str, tuple[str | Path, ...]]:
    here = Path(sys.executable).parent
    for name in ("pyright", "mypy"):
        if not (here / name).exists():
            raise SystemExit(f"{name} is not installed beside {sys.executable}: pip install '.[lint]'.")
    mypy = (here / "mypy", "--strict", "--python-executable", python, "--cache-dir", folder / "cache")
    return {"pyright": (here / "pyright", "--pythonpath", python), "mypy": mypy}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the Python whose unnorm is checked")
    python = os.path.abspath(parser.parse_args().python)  # not resolved: an environment's Python is a link
    wrong = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        programs(folder, python)
        for name, command in checkers(folder, python).items():
            code, text = said(folder, *command, "program.py", "names.py")
            wrong += [f"{name} refuses what a user writes:\n{text}"] if code else []
            code, text = said(folder, *command, "typo.py")
            if not code or not all(f"typo.py:{line}" in text for line in (3, 4)):
                wrong.append(f"{name} accepts names that are not there:\n{text}")
        code, text = said(folder, python, "program.py")
        wrong += [f"The program does not run:\n{text}"] if code else []
    print(*wrong or [f"typed: {text.strip()}"], sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
