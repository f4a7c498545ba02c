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
    assert np.unique(obs.group["subject"]).tolist() == [0, 1, 2, 3, 4]
    again = un.pysaliency.observations(later)  # without first fixations
    np.testing.assert_array_equal(again.outcome, obs.outcome)
    np.testing.assert_array_equal(np.asarray(again.sequence), np.asarray(obs.sequence))
    ours = fit.scores(obs)
    theirs = model.information_gain(stimuli, later)
    assert ours["information gain over uniform"][0] == pytest.approx(theirs, abs=0.02)  # pixels against points

    class Densities(pysaliency.ScanpathSaliencyMapModel):
        def conditional_saliency_map(self, stimulus, x_hist, y_hist, t_hist, attributes=None, out=None, **options):
            return np.exp(model.conditional_log_density(stimulus, x_hist, y_hist, t_hist, attributes))

    assert ours["AUC"][0] == pytest.approx(Densities().AUC(stimuli, later), abs=0.005)
    assert ours["NSS"][0] == pytest.approx(Densities().NSS(stimuli, later), abs=0.02)
    np.testing.assert_allclose(fit.log_density(obs), model.log_likelihoods(stimuli, later), atol=0.5)
    drawn = model.sample(stimuli, [2, 2, 2], lengths=4, rst=np.random.RandomState(1))
    assert len(drawn.x) == 24
