"""pysaliency itself, both ways: its fixations in, its own scores of a fit; skipped where it or torch is missing."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un

pysaliency = pytest.importorskip("pysaliency", reason="pysaliency is not installed")
pytest.importorskip("torch", reason="pysaliency needs torch, which is not installed")
pytestmark = pytest.mark.slow


def test_information_gain_by_pysaliency_is_ours() -> None:
    rng = np.random.default_rng(1)
    xs, ys = [], []
    for _ in range(60):
        at, path = np.array([30.0, 20.0]), []
        for _ in range(8):
            path.append(at)
            at = np.clip(at + rng.normal(0, 5, 2), 0.5, (59.5, 39.5))
        xs.append([p[0] for p in path])
        ys.append([p[1] for p in path])
    ts, ns = [list(range(8))] * 60, [i % 3 for i in range(60)]
    trains = pysaliency.FixationTrains.from_fixation_trains(xs, ys, ts, ns, [i % 5 for i in range(60)])
    stimuli = pysaliency.Stimuli([rng.integers(0, 255, (40, 60, 3), dtype=np.uint8) for _ in range(3)])
    obs = un.pysaliency.observations(trains)
    assert obs.n == 60 * 7
    fit = un.fit(un.Additive("step + dcenter", un.pysaliency.windows(stimuli)), obs, un.Logistic(per_point=20), rng=1)
    model = un.pysaliency.scanpath_model(fit)
    later = trains[
        np.asarray(trains.scanpath_history_length if hasattr(trains, "scanpath_history_length") else trains.lengths) > 0
    ]
    theirs = model.information_gain(stimuli, later)
    ours = fit.scores(obs)["information gain over uniform"][0]
    assert ours == pytest.approx(theirs, abs=0.02)  # pixels against points
