"""SIGINT, SIGTERM and SIGKILL at random moments: nothing half-written, no litter, and on to the same numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX signals and processes")
SCRIPT = Path(__file__).parent / "interrupted.py"


def _run(kind: str, seed: int, moments: int, folder: Path) -> dict[str, Any]:
    tokens = [sys.executable, str(SCRIPT), kind, str(seed), str(moments), str(folder)]
    ran = subprocess.run(tokens, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.parametrize(("kind", "moments"), [("fit", 5), ("each", 13), ("toy", 3), ("sgd", 5)])
def test_some_moments(kind: str, moments: int, tmp_path: Path) -> None:
    seen = _run(kind, 1, moments, tmp_path)
    assert seen["interrupted"] >= moments // 3  # the others came after the end


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize(("kind", "moments"), [("fit", 30), ("each", 60), ("toy", 30), ("sgd", 30)])
def test_three_hundred_moments(kind: str, moments: int, seed: int, tmp_path: Path) -> None:
    seen = _run(kind, seed, moments, tmp_path)
    assert seen["interrupted"] >= moments // 3
