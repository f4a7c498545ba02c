"""`unnorm demo`, `demo toy` and `reproduce eye` on small data."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un


@pytest.fixture
def few(monkeypatch):
    """Three of the bundled subjects, a few images each."""
    from unnorm import datasets

    table = datasets.eye()
    keep = (table["subject"] <= 3) & (table["image"] <= 12)
    small = {name: column[keep] for name, column in table.items()}
    monkeypatch.setattr(datasets, "eye", lambda: small)
    return small


def test_demo(unnorm, few, tmp_path):
    ran = unnorm("demo", "--out", tmp_path / "d")
    assert ran.code == 0, ran.err
    assert ran.out.strip().endswith(f"report: {tmp_path / 'd' / 'report.html'}")
    assert (tmp_path / "d" / "report.html").is_file()
    assert "bundled:eye" in (tmp_path / "d" / "config.toml").read_text()
    assert unnorm("demo", "--out", tmp_path / "d").code == 2
    again = unnorm("report", tmp_path / "d", "--out", tmp_path / "again.html", "-q")
    assert (again.code, again.out) == (0, "")


def test_demo_toy(unnorm, tmp_path):
    ran = unnorm("demo", "toy", "--n", "60", "--out", tmp_path)
    assert ran.code == 0, ran.err
    assert (tmp_path / "toy.png").is_file()


def test_reproduce_eye(unnorm, few, tmp_path):
    ran = unnorm("reproduce", "eye", "--k", "5", "--out", tmp_path / "r")
    assert ran.code == 0, ran.err
    names = {path.name for path in (tmp_path / "r").iterdir()}
    assert names == {f"{name}.{end}" for name in ("scanpath", "effects", "replicates") for end in ("png", "svg")}
    assert "Monte Carlo sd" in ran.out
    assert unnorm("reproduce", "eye", "--out", tmp_path / "r").code == 2


def test_the_bundled_data_are_the_documented_ones():
    table = un.datasets.eye()
    counts = np.unique(table["subject"], return_counts=True)[1]
    assert counts.size == 14
    assert counts.min() >= 600
    assert counts.max() <= 2000
