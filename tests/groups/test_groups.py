"""fit_each: the separate fits are un.fit's, the joint fit is the engine's on the same model written out in full."""

from __future__ import annotations

import shutil
import warnings
from dataclasses import replace

import matplotlib
import numpy as np
import pytest

import unnorm as un
from unnorm._base import atomic
from unnorm._base.atomic import take_place
from unnorm.engine.core import build_design, smooth_fit
from unnorm.errors import InputError
from unnorm.groups import FitGroup, fit_each, load_group
from unnorm.groups import joint as joints
from unnorm.groups.floor import floored
from unnorm.groups.leading import leading
from unnorm.terms.base import Penalty
from unnorm.terms.built import FactorSmoothTerm

matplotlib.use("agg")
# the small bases of χ fail their check for some level, which is not what is tested here
pytestmark = pytest.mark.filterwarnings("ignore:The constants of:unnorm.errors.UnnormWarning")
BOX = un.Box((0, 800), (0, 600))
MODEL = un.Additive("s(step, k=6) + s(dcenter, k=6) + s(angle, bs='cc', k=8)", BOX, y_down=True)
CHI = un.Smooth("s(x_prev, y_prev, k=12)", smoothing="reml")
LOGISTIC = un.Logistic(un.Uniform(), per_point=6)


@pytest.fixture(scope="module")
def obs() -> un.Observations:
    every = un.transitions(un.datasets.eye(), y=("x", "y"), order="fix", group=("subject", "image"))
    return every.take(every.group["subject"] <= 4)


@pytest.fixture(scope="module")
def each(obs) -> FitGroup:
    return fit_each(MODEL, obs, "subject", LOGISTIC, CHI, rng=1)


def test_levels_are_separate_fits(obs, each):
    assert each.levels == ("1", "2", "3", "4")
    alone = un.fit(MODEL, obs.take(obs.group["subject"] == 3), LOGISTIC, CHI, rng=each.fits["3"].seed)
    mine, its = each.effect("s(step)", "3"), alone.effect("s(step)", {"step": each.grids["s(step)"]["step"]})
    np.testing.assert_allclose(mine["estimate"], its["estimate"], atol=1e-6)
    np.testing.assert_allclose(mine["se"], its["se"], rtol=1e-6)


def test_a_level_does_not_depend_on_the_others(obs, each):
    two = fit_each(MODEL, obs.take(obs.group["subject"] >= 3), "subject", LOGISTIC, CHI, rng=1, group=False)
    at = {"angle": np.linspace(-3, 3, 5)}
    np.testing.assert_allclose(
        two.effect("s(angle)", "4", at)["estimate"], each.effect("s(angle)", "4", at)["estimate"], atol=1e-6
    )
    assert two.group is None
    with pytest.raises(InputError, match=r"no group curve: .*group=False"):
        two.effect("s(angle)")


def joint_of(fits, model):
    """The levels in the common basis, and their joint fit without a floor."""
    gams = {level: fit.smooths.gam for level, fit in fits.items()}
    every = model.terms + CHI.terms
    terms = every.build(joints.common_rows(gams, every.columns), periods={"angle": 2 * np.pi})
    members = joints.members_of(gams, terms, 1)
    levels = joints.Levels(gams, tuple(terms), len(terms) - 1, "subject", True, 1, members)  # the last term is χ's
    return levels, joints.fit_joint(levels, members, levels.start())


def written_out(gams, terms, count):
    """The same model with main effects and deviations as terms of their own: the engine's view of all rows together."""
    names = sorted({name for term in terms for name in term.covariates})
    columns = {name: np.concatenate([gam.columns[name] for gam in gams.values()]) for name in names}
    level = np.concatenate([np.full(len(gam.y), key) for key, gam in gams.items()])
    columns["who"] = level
    levels = tuple(gams)
    eye = np.eye(len(levels))
    more = []
    for k, term in enumerate(terms):
        (S,) = [p.matrix for p in term.penalties]
        penalties = [Penalty(np.kron(eye, S), len(levels) * term.penalties[0].rank, f"{term.label}:who")]
        values, vectors = np.linalg.eigh(S)
        if k < count:
            order = np.argsort(values)[::-1]
            values, vectors, rank = values[order], vectors[:, order], term.penalties[0].rank
            lead = leading(np.diag(values), rank)
            groups = [range(lead[0].start), *(range(one.start, one.stop) for one in lead)]
            penalties = []
            for n, group in enumerate(groups):
                part = sum(values[i] * np.outer(vectors[:, i], vectors[:, i]) for i in group)
                penalties.append(Penalty(np.kron(eye, part), len(levels) * len(list(group)), f"{term.label}:who{n}"))
            if rank < term.size:
                N = vectors[:, rank:] @ vectors[:, rank:].T
                null = Penalty(np.kron(eye, N), len(levels) * (term.size - rank), f"{term.label}:who null")
                penalties.append(null)
        more.append(
            FactorSmoothTerm(
                label=f"{term.label}:who", covariates=(*term.covariates, "who"), size=term.size * len(levels),
                penalties=tuple(penalties), fixed_sp=(None,) * len(penalties), factor_levels=("who", levels),
                breaks=term.breaks, period=term.period, basis=term.basis, lower=term.lower, upper=term.upper,
            )
        )  # fmt: skip
    intercepts = un.terms.parse("factor(who)").build(columns)
    design = build_design([*terms[:count], *more, *intercepts], columns)
    y, offset = (np.concatenate([getattr(gam, name) for gam in gams.values()]) for name in ("y", "offset"))
    return smooth_fit(design, y, "binomial", offset=offset, method="REML")


def test_the_joint_fit_is_the_engines_on_the_model_written_out(each):
    levels, found = joint_of({level: each.fits[level] for level in ("1", "3", "4")}, MODEL)
    full = written_out(levels.gams, levels.terms, 3)
    assert found.converged
    assert found.score == pytest.approx(full.score, abs=0.02)  # nats
    for term in found.terms:
        span, mine = full.slices[term.label], found.slices[term.label]
        se = np.sqrt(np.diag(full.Vp)[span])
        assert np.max(np.abs(found.beta[1:][mine] - full.beta[span]) / se) < 0.02
        V = np.linalg.inv(found.information + penalty(found))[mine, mine]
        np.testing.assert_allclose(np.diag(V), se**2, rtol=0.05)
        assert found.edf[term.label] == pytest.approx(float(full.edf[span].sum()), abs=0.03)


def penalty(found) -> np.ndarray:
    """S_λ of the main effects, in the terms' coordinates."""
    out = np.zeros_like(found.information)
    for term in found.terms:
        span = found.slices[term.label]
        out[span, span] = found.sp[term.penalties[0].label] * term.penalties[0].matrix
    return out


def test_the_population_lies_among_the_subjects_and_its_band_holds_their_spread(each):
    for label in each.labels:
        group = each.effect(label)
        curves = np.array([each.effect(label, level)["estimate"] for level in each.levels])
        middle = slice(20, 80)
        assert np.mean((group["estimate"] > curves.min(axis=0) - 0.2)[middle]) > 0.9
        assert np.mean((group["estimate"] < curves.max(axis=0) + 0.2)[middle]) > 0.9
        assert np.all(group["se"] >= group["se_reference"])
        assert np.all(np.isfinite(group["se"]))


def test_the_plain_mean_is_the_mean(each):
    mean = each.effect("s(dcenter)", "mean")
    own = [each.effect("s(dcenter)", level) for level in each.levels]
    np.testing.assert_allclose(mean["estimate"], np.mean([one["estimate"] for one in own], axis=0))
    np.testing.assert_allclose(mean["se"] ** 2, np.sum([one["se"] ** 2 for one in own], axis=0) / 16)


def test_an_effect_averages_to_zero_where_it_is_centred(obs, each):
    own = obs.take(obs.group["subject"] == 3)
    step = MODEL.covariates(own).values(("step",), own)["step"]
    there = each.effect("s(step)", "3", {"step": step}, centre="observations")
    assert np.mean(there["estimate"]) == pytest.approx(0.0, abs=1e-10)
    rows = each.fits["3"].smooths.gam.columns["step"]
    assert np.mean(each.effect("s(step)", "3", {"step": rows})["estimate"]) == pytest.approx(0.0, abs=1e-4)
    plain = each.effect("s(step)", "3", {"step": step})
    shift = plain["estimate"] - there["estimate"]
    np.testing.assert_allclose(shift, shift[0])  # a constant
    assert shift[0] > 0.1  # people look near where they are
    assert not np.allclose(plain["se"], there["se"])
    part = each.fits["3"].smooths
    at = part.slices["s(step)"]
    C = part.term("s(step)").design({"step": step})
    C = C - C.mean(axis=0)
    np.testing.assert_allclose(there["se"] ** 2, np.diag(C @ part.errors.total[at, at] @ C.T))
    mean = each.effect("s(step)", "mean", centre="observations")["estimate"]
    levels = [each.effect("s(step)", level, centre="observations")["estimate"] for level in each.levels]
    np.testing.assert_allclose(mean, np.mean(levels, axis=0))
    with pytest.raises(InputError, match="centre must be one of 'rows', 'observations'"):
        each.effect("s(step)", centre="middle")


def test_effects_are_one_long_table(each):
    table = each.effects()
    assert list(table)[:2] == ["by", "term"]
    assert list(table)[-5:] == ["estimate", "se", "se_reference", "lower", "upper"]
    assert set(table["by"]) == {"group", "1", "2", "3", "4"}
    here = (table["by"] == "2") & (table["term"] == "s(step)")
    np.testing.assert_allclose(table["estimate"][here], each.effect("s(step)", "2")["estimate"])
    assert np.isnan(table["angle"][here]).all()
    assert np.array_equal(table["step"][here], table["step"][(table["by"] == "group") & (table["term"] == "s(step)")])


def test_it_is_saved_and_read(each, tmp_path):
    each.save(tmp_path / "eye")
    each.save(tmp_path / "eye")  # again: replaced
    for model in (None, MODEL):
        back = load_group(tmp_path / "eye", model)
        assert back.levels == each.levels
        for which in ("group", "3"):
            np.testing.assert_array_equal(back.effect("s(angle)", which)["se"], each.effect("s(angle)", which)["se"])
    assert load_group(tmp_path / "eye", MODEL).simulate(5, steps=3, rng=1, starts=np.full((5, 2), 300.0)) is not None
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="not a saved fit"):
        each.save(tmp_path / "other")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["eye", "other"]


def test_parts_of_a_saved_group_stay_together(each, tmp_path):
    """Each part is sound by itself: levels that changed places, a part of another group, a part that is gone."""
    each.save(tmp_path / "eye")
    each.save(tmp_path / "other")
    folder = tmp_path / "eye"
    (folder / "level-0").rename(folder / "aside")
    (folder / "level-1").rename(folder / "level-0")
    (folder / "aside").rename(folder / "level-1")
    with pytest.raises(InputError, match="level-0 is not the fit that was saved with them"):
        load_group(folder)
    each.save(folder)
    each.fits["2"].save(folder / "level-0")
    with pytest.raises(InputError, match="level-0 is not the fit that was saved with them"):
        load_group(folder)
    shutil.rmtree(tmp_path / "other" / "group")
    with pytest.raises(InputError, match="group is not a saved fit"):
        load_group(tmp_path / "other")


def test_a_loaded_group_knows_its_robust_errors_and_their_refusal(each, tmp_path):
    """The group has none, and sends to the levels, which have them: also when loaded."""
    each.save(tmp_path / "eye")
    for one in (each, load_group(tmp_path / "eye")):
        with pytest.raises(InputError, match=r"fits\[level\]\.effect\(label, robust=True\)"):
            one["group"].effect("s(angle)", robust=True)
    own, back = (one.fits["3"].effect("s(angle)", robust=True) for one in (each, load_group(tmp_path / "eye")))
    np.testing.assert_allclose(back["se"], own["se"])
    assert not np.allclose(own["se"], each.fits["3"].effect("s(angle)")["se"])


@pytest.mark.parametrize("fails", ["write", "rename"])
def test_a_group_that_cannot_be_saved_leaves_the_old_one(each, tmp_path, monkeypatch, fails):
    each.save(tmp_path / "eye")
    before = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    monkeypatch.setattr(atomic, "_swapped", lambda *_: False)

    def broken(*args, **_):
        if fails == "rename":  # the new folder vanishes on the way: the old one has stepped aside, and comes back
            shutil.rmtree(args[0])
            return take_place(*args)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((atomic, "take_place") if fails == "rename" else (np, "savez")), broken)
    with pytest.raises(InputError, match="eye' cannot be written"):
        each.save(tmp_path / "eye")
    assert {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_why_there_is_no_group_curve_is_saved(obs, tmp_path):
    one = fit_each(MODEL, obs.take(obs.group["subject"] == 2), "subject", LOGISTIC, CHI, rng=1)
    assert one.no_group in one.notes
    one.save(tmp_path / "one")
    for each in (one, load_group(tmp_path / "one")):
        with pytest.raises(InputError, match="There is no group curve: a population needs at least two levels"):
            _ = each["group"]


@pytest.mark.filterwarnings("ignore:χ̂ and −log:unnorm.errors.UnnormWarning")  # χ is penalised, or has few terms
def test_relative_weights_of_levels_have_robust_errors(obs):
    """Each level as `un.fit` with relative weights; the scale of the weights does not matter, and n counts rows."""
    few = obs.take(obs.group["subject"] <= 2)
    w = np.random.default_rng(0).exponential(size=few.n)
    ms, s = (
        fit_each(MODEL, replace(few, weight=c * w), "subject", LOGISTIC, CHI, rng=1, group=c == 1.0, weights="relative")
        for c in (250.0, 1.0)
    )
    own = un.fit(MODEL, ms.fits["1"].obs, LOGISTIC, CHI, rng=ms.fits["1"].seed, weights="relative")
    at = {"angle": np.linspace(-3, 3, 5)}
    for each in (ms, s):
        np.testing.assert_allclose(
            each.fits["1"].effect("s(angle)", at)["se"], own.effect("s(angle)", at)["se"], rtol=1e-4
        )
        assert not each.fits["1"].assumes_model
        assert each.fits["1"].n == each.fits["1"].n_rows
    counted = un.fit(MODEL, ms.fits["1"].obs, LOGISTIC, CHI, rng=ms.fits["1"].seed)
    assert not np.allclose(counted.effect("s(angle)", at)["se"], own.effect("s(angle)", at)["se"], rtol=0.02)
    assert any("Weights are relative" in note for note in s["group"].notes)
    scores = s["group"].solution.scores
    assert scores.weight == pytest.approx(few.n)


def test_saving_computes_no_advice_and_keeps_what_was_asked(obs, tmp_path):
    two = fit_each(MODEL, obs.take(obs.group["subject"] <= 2), "subject", LOGISTIC, CHI, rng=1)
    two.fits["2"].advise()
    two.save(tmp_path / "two")
    assert two.group.evidence.computed is None
    assert two.fits["1"].evidence.computed is None
    back = load_group(tmp_path / "two")
    assert back.fits["2"].advise() == two.fits["2"].advise()
    for which in ("1", "group"):
        text = back[which].advise()
        assert "not computed before this fit was saved" in str(text)
        assert text.share == pytest.approx(two[which].advise().share)
    with pytest.raises(InputError, match=r"fit again and ask fit\.ncic before fit\.save"):
        _ = back.fits["1"].ncic
    two.save(tmp_path / "two")
    back.save(tmp_path / "again")  # a loaded fit saved again loses nothing
    assert load_group(tmp_path / "two").group.advise() == two.group.advise()
    assert load_group(tmp_path / "again").fits["2"].advise() == two.fits["2"].advise()


@pytest.mark.parametrize("seed", [2, 5])
def test_a_common_curve_does_not_collapse(obs, seed):
    """REML finds no variance for s(angle) on these points, though subject 2's own curve spans more than one: 0 ± 0."""
    each = fit_each(MODEL, obs, "subject", un.Logistic(un.Uniform(), per_point=5, points=un.IID()), CHI, rng=seed)
    group, mean = each.effect("s(angle)"), each.effect("s(angle)", "mean")
    assert any("The common curve" in note and "s(angle)" in note for note in each.group.notes)
    assert 0.5 < np.ptp(group["estimate"]) / np.ptp(mean["estimate"]) < 1.5
    assert np.all(np.abs(group["estimate"] - mean["estimate"]) < 2 * group["se"])
    assert 0.1 < group["se"].mean() < 0.3  # levels differ by .3, and there are four


def test_the_floor_is_the_deviations_law(each):
    """λ of the main effect far above: its prior variances become those of the deviations, direction by direction."""
    levels, found = joint_of(each.fits, MODEL)
    labels = levels.penalties[0].labels
    at = labels.index("s(angle)")
    flat = replace(found, rho=np.where(np.arange(len(labels)) == at, 25.0, found.rho))
    higher = floored(levels, flat)
    penalties, fixed = higher.penalties
    lam = np.where(np.isnan(fixed), np.exp(found.rho), fixed)
    shared, own = penalties.blocks(lam)[:2]
    (piece,) = penalties.pieces[at]
    rank = len(next(g for g in penalties.groups if g.which == (at,)).matrices[0])
    here = slice(piece.at.start, piece.at.start + rank)
    below = slice(here.start + 1, here.stop + 1)  # after the intercept
    np.testing.assert_allclose(np.diag(shared)[here], np.diag(own)[below], rtol=1e-6)
    assert "s(angle)" in higher.floors
    again = floored(higher, replace(flat, rho=np.log(lam)))
    assert again is None or "s(angle)" not in again.floors[len(higher.floors) :]


def test_the_floor_of_a_tensor_product_is_the_deviations_smoothing(obs):
    model = un.Additive("te(step, dcenter, k=4)", BOX, y_down=True)
    each = fit_each(model, obs.take(obs.group["subject"] <= 2), "subject", LOGISTIC, CHI, rng=1, group=False)
    levels, found = joint_of(each.fits, model)
    labels = levels.penalties[0].labels
    mains = [j for j, pieces in enumerate(levels.penalties[0].pieces) if pieces[0].block == -1]
    assert len(mains) == 2
    small = replace(found, rho=np.where(np.isin(np.arange(len(labels)), mains), 25.0, found.rho))
    fixed = floored(levels, small).penalties[1]
    for j in mains:
        assert fixed[j] == pytest.approx(np.exp(found.rho[labels.index(f"{labels[j]}:subject")]))
    large = replace(found, rho=np.where(np.isin(np.arange(len(labels)), mains), -25.0, found.rho))
    assert floored(levels, large) is None


def test_the_floor_lowers_no_variance(each):
    """Where λ leaves some directions above the deviations' variances and some below, each keeps the larger."""
    levels, found = joint_of(each.fits, MODEL)
    penalties = levels.penalties[0]
    at = penalties.labels.index("s(angle)")
    (piece,) = penalties.pieces[at]
    rank = len(next(g for g in penalties.groups if g.which == (at,)).matrices[0])
    here = slice(piece.at.start, piece.at.start + rank)
    shared, own = (np.diag(block) for block in penalties.blocks(np.exp(found.rho))[:2])
    ratio = shared[here] / own[here.start + 1 : here.stop + 1]  # the deviations' variance over the main effect's
    assert ratio.max() > 4 * ratio.min()  # the deviations' first directions have variances of their own
    rho = found.rho.copy()
    rho[at] -= 0.5 * (np.log(ratio.max()) + np.log(ratio.min()))  # halfway: some above, some below
    expected = np.minimum(np.exp(rho[at] - found.rho[at]) * shared[here], own[here.start + 1 : here.stop + 1])
    raised, fixed = floored(levels, replace(found, rho=rho)).penalties
    got = np.diag(raised.blocks(np.where(np.isnan(fixed), np.exp(rho), fixed))[0])[here]
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:The constants of:unnorm.errors.UnnormWarning")  # five points are few for χ
def test_what_more_points_would_bring_the_group(obs):
    """Five IID points and four times as many: the shares foretold are those found, to within a factor of two (four
    levels say little of the variance between them); the present ones are larger."""
    few = fit_each(MODEL, obs, "subject", un.Logistic(un.Uniform(), per_point=5, points=un.IID()), CHI, rng=4)
    many = fit_each(MODEL, obs, "subject", un.Logistic(un.Uniform(), per_point=20, points=un.IID()), CHI, rng=104)
    evidence = few.group.evidence()
    foretold = np.array(evidence["shares"])[evidence["multiples"].index(4.0)]
    found = np.array(list(many.group.advise().share.values()))
    assert np.all(np.abs(np.log(foretold / found)) < np.log(2))
    now = np.array(list(few.group.advise().share.values()))
    assert np.all(now > 1.5 * foretold)
    assert "per_point=5" in str(few.group.advise())
    assert few.group.advise().count == 5
    with pytest.raises(InputError, match="joint fit of levels has none"):
        _ = few.group.ncic


def test_simulated_chains_stay_inside_and_repeat(each):
    a, b = (each.simulate(20, steps=5, rng=4) for _ in range(2))
    assert np.array_equal(a["x"], b["x"])
    assert BOX.contains(np.column_stack([a["x"], a["y"]])).all()
    assert np.unique(a["chain"]).size == 20
    own = each.simulate(7, which="2", steps=4, rng=1)
    assert len(own["x"]) == 7 * 5


def test_tables_texts_and_pictures(each):
    from matplotlib import pyplot as plt

    table = each.tidy()
    assert np.sum(np.asarray(table["by"]) == "group") == 3
    text = each.summary()
    assert "s(angle)" in text
    assert "4 levels of 'subject'" in text
    figure, axes = each.plot()
    assert len(axes) == 3
    labels = [line.get_label() for line in axes[0].get_lines()]
    assert "plain mean" in labels
    assert "group, 95 % band" in labels
    plt.close(figure)


def test_a_level_that_fails_is_named_and_loses_no_other(obs):
    few = np.concatenate([np.flatnonzero(obs.group["subject"] == 1), np.flatnonzero(obs.group["subject"] == 2)])
    lone = np.flatnonzero(obs.group["subject"] == 3)[:1]
    each = fit_each(MODEL, obs.take(np.concatenate([few, lone])), "subject", LOGISTIC, CHI, rng=1)
    assert set(each.failures) == {"3"}
    assert each.levels == ("1", "2")
    assert any("1 of 3 levels" in note and "3" in note for note in each.notes)
    with pytest.raises(InputError, match="could not be fitted"):
        each.effect("s(step)", "3")


@pytest.mark.parametrize(("n", "told"), [((60, 600), True), ((80, 600), False), ((60, 600, 600), False)])
def test_a_population_of_two_of_which_one_says_little_is_warned_of(n, told):
    rng = np.random.default_rng(2)
    who = np.repeat([f"s{i}" for i in range(len(n))], n)
    two = un.iid({"y": rng.vonmises(0.5, 1.0, who.size), "who": who}, y="y", group="who")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        each = fit_each(
            un.Additive("s(y, bs='cc', k=6)", un.Circle()), two, "who", un.Logistic(un.Uniform(), total=1000), rng=1
        )
    assert each.group is not None
    expected = "s0 has 60 observations and s1 600: the group's curve is nearly s1's own"
    assert any(expected in str(one.message) for one in said) == told
    assert any(expected in note for note in each.notes) == told


def test_bad_input(obs, each):
    with pytest.raises(InputError, match="group column"):
        fit_each(MODEL, obs, "person", LOGISTIC, CHI)
    with pytest.raises(InputError, match="rng"):
        fit_each(MODEL, obs, "subject", LOGISTIC, CHI, rng=-1)
    with pytest.raises(InputError, match="label"):
        each.effect("s(colour)")
    with pytest.raises(InputError, match="which"):
        each.effect("s(step)", "99")


def test_parametric_terms_have_a_population_too(obs):
    model = un.Additive("linear(step) + s(dcenter, k=5)", BOX)
    each = fit_each(model, obs, "subject", LOGISTIC, CHI, rng=1)
    assert each.group is not None, each.notes
    slopes = np.array([fit.theta["step"] for fit in each.fits.values()])
    assert slopes.min() <= each.group.theta["step"] <= slopes.max()
    sampling = np.array([fit.se[0] for fit in each.fits.values()])
    between = slopes.std(ddof=1) / 2
    assert each.group.se[0] > 0.5 * np.hypot(between, 0.0)
    assert each.group.se[0] < 3 * np.hypot(between, sampling.mean() / 2)


def test_constants_that_fail_are_said_once_for_all_levels(obs):
    """One constant where there is a context: one warning, with the levels and the worst of them; the notes have it."""
    stiff = un.Smooth("s(x_prev, k=3)")
    with pytest.warns(un.errors.UnnormWarning, match=r"4 of 4 levels of 'subject' fail the check") as said:
        group = fit_each(MODEL, obs, "subject", un.Logistic(un.Uniform(), per_point=20), stiff, group=False, rng=2)
    (one,) = [str(w.message) for w in said if "fail the check" in str(w.message)]
    bias = {name: fit.diagnostics["constants_bias"] for name, fit in group.fits.items()}
    worst = max(bias, key=bias.get)
    assert f"The worst, {worst}: {group.fits[worst].constants}" in one
    assert one in group.notes
