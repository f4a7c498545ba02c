"""The scripts in examples/ run, on small inputs."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("optax")
EXAMPLES = Path(__file__).parents[1] / "examples"


def test_words_learns_more_than_the_unigram(tmp_path: Path) -> None:
    """A text with structure: each word has three that may follow it."""
    rng = np.random.default_rng(1)
    after = rng.integers(0, 60, (60, 3))
    word, text = 0, []
    for _ in range(6000):
        word = int(after[word, rng.integers(3)])
        text.append("w" + "".join(chr(97 + int(d)) for d in f"{word:02d}"))
    path = tmp_path / "text.txt"
    path.write_text(" ".join(text), encoding="utf-8")
    sizes = {"vocabulary": 61, "dim": 8, "lags": 2, "steps": 300, "batch": 128, "points": 10, "softmax": 20}
    options = [word for name, value in sizes.items() for word in (f"--{name}", str(value))]
    run = subprocess.run(
        [sys.executable, str(EXAMPLES / "words.py"), str(path), *options], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    figures = {line[:34].strip(): float(line[34:].split()[0]) for line in run.stdout.splitlines()[2:]}
    assert figures["unigram"] > 3.0
    for name in ("noise-contrastive, χ(context)", "noise-contrastive, χ = 0", "ranking"):
        assert np.log(3) < figures[name] < figures["unigram"] - 1.0, (name, figures)
