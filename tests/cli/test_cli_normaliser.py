"""`--normaliser`: left out, the constants follow the effects; terms are not penalised unless asked."""

from __future__ import annotations

import numpy as np
import pytest

import unnorm as un
from unnorm.cli.config import checked_job
from unnorm.cli.jobs import prepare, refit
from unnorm.errors import InputError

TERMS = "s(step, k=5) + s(angle, bs='cc', k=6)"
CHI = "s(x_prev, y_prev, k=8)"


def job(fixations, **more):
    given = {"data": str(fixations), "order": "fix", "group": "subject,image", "window": "0,800,0,600"}
    return checked_job({**given, "terms": TERMS, "references": "5", **more})


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
@pytest.mark.parametrize(
    ("options", "normaliser"),
    [
        ({}, None),
        ({"normaliser": CHI}, un.Smooth(CHI)),
        ({"normaliser": CHI, "normaliser_smoothing": "reml"}, un.Smooth(CHI, smoothing="reml")),
    ],
)
def test_what_the_shell_fits_is_what_python_fits(fixations, options, normaliser):
    prepared = prepare(job(fixations, **options))
    assert prepared.normaliser == normaliser
    (mine,) = refit(prepared, prepared.model, prepared.inside(), 3).values()
    objective = un.Logistic(per_point=5, points=un.Lattice())
    theirs = un.fit(prepared.model, prepared.inside(), objective, normaliser, rng=3)
    assert mine.smooths is not None
    assert theirs.smooths is not None
    np.testing.assert_allclose(mine.smooths.beta, theirs.smooths.beta, rtol=1e-9)
    assert mine.anchored == (normaliser is None)


def test_settings_survive_toml_and_the_shell(fixations):
    import tomllib

    for options in ({}, {"normaliser": CHI, "normaliser_smoothing": "reml"}):
        one = job(fixations, **options)
        assert checked_job(tomllib.loads(one.toml())) == one
        assert ("--normaliser-smoothing reml" in one.command()) == bool(options)
        assert ("--normaliser" in one.command()) == bool(options)


def test_smoothing_needs_terms(fixations):
    with pytest.raises(InputError, match="--normaliser-smoothing penalises the terms of --normaliser, and none"):
        job(fixations, normaliser_smoothing="reml")
    with pytest.raises(InputError, match="--normaliser-smoothing"):
        job(fixations, normaliser=CHI, normaliser_smoothing="gcv")


def test_the_default_in_the_report_and_at_the_end(unnorm, fixations, usual, tmp_path):
    light = ("--terms", TERMS, "--references", "5")
    done = unnorm("fit", fixations, *usual, *light, "--out", tmp_path / "a")
    assert done.code == 0
    page = (tmp_path / "a" / "report.html").read_text(encoding="utf-8")
    assert "computed from the effects, with one number δ to estimate" in page
    assert "The constants are computed from the effects: χ̂ = −log ∫ exp f̂ + δ̂." in page
    assert "This section could not be made" not in page
    assert "constants checked: The constants follow f̂" in (tmp_path / "a" / "summary.txt").read_text(encoding="utf-8")
    assert un.load(tmp_path / "a" / "fit").anchored
