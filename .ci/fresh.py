"""Fresh environments outside the checkout, for `.ci/package.py` and `.ci/extras.py`."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HIDDEN = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")  # a fresh environment sees none of the caller's


def run(*tokens: str | Path, cwd: Path) -> int:
    """The exit status of a command, its output passed on."""
    print("+", *tokens, flush=True)
    environment = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    return subprocess.run([str(one) for one in tokens], cwd=cwd, env=environment, check=False).returncode


def must(*tokens: str | Path, cwd: Path) -> None:
    if code := run(*tokens, cwd=cwd):
        raise SystemExit(f"{' '.join(map(str, tokens))} ended with {code}.")


def environment(folder: Path, *what: str | Path) -> Path:
    """The Python of a new environment that holds `what`."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    must(python, "-m", "pip", "install", "-q", "uv", cwd=folder)
    must(python, "-m", "uv", "pip", "install", "-q", "--python", python, *what, cwd=folder)
    return python


def tools(folder: Path) -> Path:
    """What builds and checks packages."""
    checkers = ("twine", "validate-pyproject", "cffconvert", "yamllint", "py-rattler-build", "mypy>=1.11")
    return environment(folder, "build", *checkers, "pyright[nodejs]>=1.1.390")


def built(python: Path, out: Path) -> tuple[Path, Path]:
    """The sdist of the checkout, and the wheel built from that sdist."""
    must(python, "-m", "build", "-q", "--outdir", out, ROOT, cwd=out.parent)
    (sdist,), (wheel,) = out.glob("unnorm-*.tar.gz"), out.glob("unnorm-*.whl")
    return sdist, wheel


if __name__ == "__main__":
    sys.exit("This file holds what .ci/package.py and .ci/extras.py share.")
