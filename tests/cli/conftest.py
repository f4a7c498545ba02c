"""The command line in-process: `unnorm(*tokens)` gives the exit code, stdout and stderr."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from unnorm.cli import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def unnorm(capsys):
    def run(*tokens: str) -> Ran:
        code = 0
        try:
            main([str(token) for token in tokens])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return run


def scanpaths(subjects=("a", "b"), images=6, length=12, seed=3) -> dict[str, np.ndarray]:
    """Short steps on an 800 × 600 screen; simple, and quick to fit."""
    rng = np.random.default_rng(seed)
    rows = []
    for subject in subjects:
        for image in range(1, images + 1):
            at = rng.uniform((200, 150), (600, 450))
            for fix in range(1, length + 1):
                rows.append((subject, image, fix, *at.round(1)))
                at = np.clip(at + rng.normal(0, 90, 2) + 0.1 * (np.array([400, 300]) - at), 1, [799, 599])
    names = ("subject", "image", "fix", "x", "y")
    return {name: np.array(column) for name, column in zip(names, zip(*rows))}


def as_csv(table) -> str:
    lines = [",".join(f'"{name}"' if "," in name else name for name in table)]
    lines += [",".join(str(cell) for cell in row) for row in zip(*(column.tolist() for column in table.values()))]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def fixations(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "fixations.csv"
    path.write_text(as_csv(scanpaths()), encoding="utf-8")
    return path


LIGHT = (
    "--terms",
    "s(step, k=5) + s(angle, bs='cc', k=6)",
    "--normaliser",
    "s(x_prev, y_prev, k=8)",
    "--references",
    "5",
)
USUAL = ("--order", "fix", "--group", "subject,image", "--window", "0,800,0,600")


@pytest.fixture(scope="session")
def usual():
    return USUAL


@pytest.fixture(scope="session")
def light():
    return LIGHT
