"""Everything that the report says, computed from a run: facts, tables and figures; the template only lays them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..data.observations import Observations
from ..errors import UnnormError
from ..models import Additive
from ..results.fit import Fit
from ..results.normaliser_check import FAIR, GOOD
from ..terms.levels import level_name
from . import figures
from .figures import Picture
from .findings import Finding, findings
from .run import GROUP, Run

MOST_STEPS = 10_000  # simulated for the comparison
LONGEST_PIECE = 50  # longer sequences are compared in pieces
MAP_WIDTH, COARSE = 80, 20  # cells across a map; across one that needs an integral for each cell
CONTEXTS, LEAST_CONTEXTS = 100, 20  # at which a normaliser is checked: closely, and for each level


@dataclass(frozen=True)
class About:
    """What the run does not know of itself: where the data came from, and how to repeat it."""

    title: str
    facts: Sequence[tuple[str, str]]  # what was fitted, on what
    dropped: Sequence[str]
    command: str
    seed: int
    held_out: Mapping[str, float] = field(default_factory=dict)  # which → bits for each point against uniform
    held_out_how: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text, and the number that it sorts by."""

    text: str
    value: float | None = None


@dataclass(frozen=True)
class Sheet:
    """A table of the report."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Section:
    """A heading, sentences, figures and tables."""

    anchor: str
    title: str
    text: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Sheet, ...] = ()
    pairs: bool = False  # pictures belong together two by two


def sections(run: Run, about: About, step: Any = None) -> list[Section]:
    """The report's sections in order; `step(name)` is a context for progress."""
    made = []
    for name, make in (
        ("effects", _effects),
        ("centre bias", _centre),
        ("normaliser", _normaliser),
        ("Monte Carlo error", _monte_carlo),
        ("simulation", _simulated),
        ("tables", _numbers),
    ):
        if step is None:
            made.append(make(run, about))
        else:
            with step(name):
                made.append(make(run, about))
    return [section for section in made if section is not None]


# --- effects and findings --------------------------------------------------------------------------------------------


def _effects(run: Run, about: About) -> Section:
    pictures = figures.effects(run)
    found = findings(run.model, run.obs, run.group, run.fits)
    tables = (_findings_table(run, found),) if found else ()
    if not pictures:
        text = "The model has no smooth effect of one or two numeric covariates to draw."
    else:
        text = (
            f"Effects on the log density, with {100 * run.level:g} % pointwise bands. Each averages to zero over all "
            "fitted rows, most of which are reference points: differences along a curve mean something, its level does "
            "not (it belongs to the normalising constants)."
        )
        if run.fits:
            text += f" Grey: each {run.by}."
        if run.fits and run.group is not None:
            text += (
                " Blue: the group, the main effect of a joint fit, with the band of the population's mean. Dashed: the "
                "plain mean of the separate fits, whose smoothing bias does not average out."
            )
    return Section("effects", "Effects", (text,), tuple(pictures), tables)


def _findings_table(run: Run, found: Sequence[Finding]) -> Sheet:
    head = ("What the paper found", "group" if run.fits else "here", *((f"holds for {run.by}s",) if run.fits else ()))
    rows = []
    for one in found:
        answer = Cell("–" if one.group is None else "yes" if one.group else "no")
        count = (Cell(f"{len(one.holds)} of {one.levels}", float(len(one.holds))),) if run.fits else ()
        rows.append((Cell(one.question), answer, *count))
    return Sheet("The paper's findings (Section 4.2), asked of these curves", head, tuple(rows))


# --- the spatial part ------------------------------------------------------------------------------------------------


def spatial_labels(run: Run) -> tuple[str, ...]:
    """The terms of f that depend on the place alone: the same at any context, different from place to place."""
    obs, part = run.obs, run.main.smooths
    assert part is not None
    contexts = np.unique(np.linspace(0, obs.n - 1, 6).astype(int))
    places = run.model.domain.uniform(8, np.random.default_rng(0))
    y, at = np.tile(places, (len(contexts), 1)), np.repeat(contexts, len(places))
    found = []
    for label in part.model_labels:
        names = part.term(label).covariates
        values = run.model.covariates(obs).values(names, obs, y, at)
        shaped = [np.asarray(values[name]).reshape(len(contexts), -1) for name in names]
        if all(np.all(v == v[0]) for v in shaped) and any(np.any(v[0] != v[0, 0]) for v in shaped):
            found.append(label)
    return tuple(found)


def _centre(run: Run, about: About) -> Section:
    labels = spatial_labels(run)
    if not labels:
        return Section("centre", "Where they look", ("The model has no term that depends on the place alone.",))
    part = run.main.smooths
    assert part is not None
    x, y, points, inside = figures.plane(run.model.domain, MAP_WIDTH)
    at = np.zeros(int(inside.sum()), dtype=int)
    known = run.model.covariates(run.obs)
    z = np.zeros(len(at))
    for label in labels:
        term = part.term(label)
        columns = known.values(term.covariates, run.obs, points[inside], at)
        z += term.design(columns) @ part.beta[part.slices[label]]
    peak = points[inside][int(np.argmax(z))]
    z -= np.log(np.mean(np.exp(z)))  # log density relative to a uniform choice of place
    who = "group" if run.fits else "fitted model"
    alt = (
        f"Map of the preference for places, {' + '.join(labels)}: highest at {peak[0]:.0f}, {peak[1]:.0f}, "
        f"{np.exp(z.max()):.2g} times a uniform choice, lowest {np.exp(z.min()):.2g} times."
    )
    caption = f"{' + '.join(labels)} of the {who}: log preference for a place over a uniform choice, whatever the step."
    picture = figures.image(run, figures.surface(x, y, inside, z), None, alt, caption)
    return Section("centre", "Where they look", (), (picture,))


# --- the normaliser --------------------------------------------------------------------------------------------------


def _normaliser(run: Run, about: About) -> Section:
    title = "The normalising constants"
    fits = {which: fit for which, fit in run.everything.items() if fit.smooths and fit.smooths.normaliser_labels}
    if not fits:
        return Section(
            "normaliser", title, ("The normalising constants cancel or are integrated: none are estimated.",)
        )
    alone = len(fits) == 1
    gaps = {which: _gaps(run, which, fit, CONTEXTS if alone else LEAST_CONTEXTS) for which, fit in fits.items()}
    ranked = sorted(gaps, key=lambda which: _rms(gaps[which]))
    shown = ranked[len(ranked) // 2]
    text: list[str] = []
    tables: tuple[Sheet, ...] = ()
    closely = gaps[shown]
    if not alone:
        closely = _gaps(run, shown, fits[shown], CONTEXTS)
        text.append(
            f"Each {run.by} has constants of its own; shown are those of {run.by} {shown}, of median consistency."
        )
        rows = [
            (Cell(which), _number(_rms(gap), 3), _number(float(np.abs(gap).max()), 2)) for which, gap in gaps.items()
        ]
        head = (str(run.by), "rms difference", "largest")
        tables = (Sheet("Consistency of χ̂ with −log ∫ exp f̂, on the log scale", head, tuple(rows)),)
    text.append(_verdict(closely))
    images = _constants(run, fits[shown])
    if images is None:
        text.append("The normaliser depends on more than the previous point and has no map.")
        return Section("normaliser", title, tuple(text), (), tables)
    chi, integral = images
    gap = (chi[0], chi[1], chi[2] - integral[2])
    limits = (float(np.nanmin([chi[2], integral[2]])), float(np.nanmax([chi[2], integral[2]])))
    text.append(
        "First χ̂, estimated together with the effects; then −log ∫ exp f̂, by quadrature on the effects alone; then the "
        "difference: where it is large, the model or the smoothing fails (places that nobody looked from are "
        "extrapolated)."
    )
    pictures = []
    for one, caption, span in (
        (chi, "χ̂(previous point)", limits),
        (integral, "−log ∫ exp f̂(y | previous point) dy", limits),
        (gap, "χ̂ + log ∫ exp f̂", None),
    ):
        z = one[2]
        rms = f", {np.sqrt(np.nanmean(z**2)):.2g} rms" if span is None else ""
        alt = f"Map over the previous point of {caption}: from {np.nanmin(z):.2f} to {np.nanmax(z):.2f}{rms}."
        pictures.append(figures.image(run, one, span, alt, caption))
    return Section("normaliser", title, tuple(text), tuple(pictures), tables)


def _gaps(run: Run, which: str, fit: Fit, contexts: int) -> np.ndarray:
    """χ̂(x_t) + log ∫ exp f̂(y|x_t) dy at contexts spread over the data: zero where χ̂ is a normaliser."""
    part = fit.smooths
    assert part is not None
    rows = np.arange(run.obs.n) if not run.fits else np.flatnonzero(_level(run, which))
    some = run.obs.take(rows[np.unique(np.linspace(0, len(rows) - 1, min(contexts, len(rows))).astype(int))])
    names = tuple(dict.fromkeys(name for label in part.normaliser_labels for name in part.term(label).covariates))
    return part.chi(run.model.covariates(some).values(names, some), some.n) + fit.density.log_z(some)


def _rms(gap: np.ndarray) -> float:
    return float(np.sqrt(np.mean(gap**2)))


def _verdict(gap: np.ndarray) -> str:
    rms = _rms(gap)
    fact = (
        f"Consistency check: χ̂ and −log ∫ exp f̂ differ by {rms:.2g} (rms) and at most {np.abs(gap).max():.2g} on the "
        f"log scale, at {gap.size} contexts: the constants are known to {100 * np.expm1(rms):.2g} %."
    )
    if rms <= GOOD:
        return f"{fact} Good."
    if rms <= FAIR:
        return f"{fact} Fair; a larger k in --normaliser, or more reference points, would bring them closer."
    return f"{fact} Poor: give --normaliser more or other terms (a larger k), or look for what the effects miss."


def _level(run: Run, which: str) -> np.ndarray:
    column = run.obs.group[str(run.by)]
    return column == next(value for value in np.unique(column).tolist() if level_name(value) == which)


def _constants(run: Run, fit: Fit) -> list[figures.Image] | None:
    """χ̂ and −log ∫ exp f̂ over the previous point, where they depend on nothing else."""
    part, obs = fit.smooths, run.obs
    assert part is not None
    read = {name for label in part.normaliser_labels for name in part.term(label).covariates}
    if obs.lags > 1 or not read <= {"x_prev", "y_prev", *(f"{name}_prev" for name in obs.outcome_names)}:
        return None
    x, y, points, inside = figures.plane(run.model.domain, COARSE)
    points = points[inside]
    some = obs.take(np.zeros(len(points), dtype=int))
    before = {f"{name}_prev": points[:, j] for j, name in enumerate(obs.outcome_names)}
    some = replace(some, outcome=points, context={**some.context, **before})
    columns = run.model.covariates(some).values(tuple(read), some)
    chi = part.chi(columns, some.n)
    integral = -fit.density.log_z(some)
    return [figures.surface(x, y, inside, z) for z in (chi, integral)]


# --- Monte Carlo error -----------------------------------------------------------------------------------------------


def reference_shares(run: Run) -> dict[str, dict[str, float]]:
    """which → label → rms of se_reference over rms of se: how much of the error is the reference points'."""
    out: dict[str, dict[str, float]] = {}
    for which in run.everything:
        out[which] = {}
        for label in run.labels:
            table = run.effect(label, which)
            total = float(np.sqrt(np.mean(table["se"] ** 2)))
            out[which][label] = (
                float(np.sqrt(np.mean(table["se_reference"] ** 2))) / total if total > 0 else float("nan")
            )
    return out


def _monte_carlo(run: Run, about: About) -> Section:
    shares = reference_shares(run)
    rows = []
    for label in run.labels:
        cells = [Cell(label)]
        if run.group is not None:
            cells.append(_number(shares[GROUP][label], 3))
        if run.fits:
            levels = np.array([shares[which][label] for which in run.fits])
            cells += [_number(float(np.median(levels)), 3), _number(float(np.max(levels)), 3)]
        rows.append(tuple(cells))
    head = ["term"]
    head += ["group" if run.fits else "share"] if run.group is not None else []
    head += [f"{run.by}s, median", f"{run.by}s, largest"] if run.fits else []
    fit, whose = (run.main, "") if run.sparse is None else (run.fits[run.sparse], f"{run.by} {run.sparse}")
    text = [f"Of {whose}, the one with the fewest transitions:"] if whose else []
    try:
        text.append(in_shell_words(str(fit.advise())))
    except UnnormError as error:
        text.append(str(error))
    table = Sheet("Monte Carlo standard error as a share of the standard error", tuple(head), tuple(rows))
    return Section("montecarlo", "Monte Carlo error", tuple(text), (), (table,))


def in_shell_words(advice: str) -> str:
    """The library's advice with the options of `unnorm fit` in place of Python's."""
    for python, shell in (
        ("per_point=", "--references "), ("points=un.Lattice()", "--points lattice"), ("un.compare", "unnorm compare")
    ):  # fmt: skip
        advice = advice.replace(python, shell)
    return advice


# --- observed against simulated --------------------------------------------------------------------------------------


def _pieces(obs: Observations) -> tuple[np.ndarray, np.ndarray]:
    """First transitions of pieces of sequences, and the pieces' lengths."""
    sequence = np.zeros(obs.n, dtype=int) if obs.sequence is None else obs.sequence
    begin = np.flatnonzero(np.diff(sequence, prepend=sequence[0] - 1))
    place = np.arange(obs.n) - np.repeat(begin, np.diff(begin, append=obs.n))
    first = np.flatnonzero(place % LONGEST_PIECE == 0)
    return first, np.diff(first, append=obs.n)


def held(model: Additive, obs: Observations, at: np.ndarray) -> dict[str, np.ndarray] | None:
    """The group and extra columns that the model's covariates read (an image's map), for chains from these contexts."""
    read = {*model.terms.columns, *(need for one in model.covariate_objects for need in one.needs)}
    columns = {**obs.group, **{name: obs.context[name] for name in obs.extra}}
    return {name: column[at] for name, column in columns.items() if name in read} or None


def simulated_like(run: Run, seed: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Chains from the group, started where observed ones start and as long; and which pieces they copy."""
    obs = run.obs
    first, length = _pieces(obs)
    random = np.random.default_rng(seed)
    order = random.permutation(len(first))
    chosen = np.sort(order[: max(1, int(np.searchsorted(np.cumsum(length[order]), MOST_STEPS)))])
    first, length = first[chosen], length[chosen]
    starts = np.stack([obs.previous(lag)[first] for lag in range(obs.lags, 0, -1)], axis=1)
    table = run.main.simulate(int(length.max()), x0=starts, x=held(run.model, obs, first), rng=random)
    points = np.column_stack([np.asarray(table[name], dtype=float) for name in obs.outcome_names])
    points = points.reshape(len(first), obs.lags + int(length.max()), 2)
    return [path[: obs.lags + n] for path, n in zip(points, length)], first, length


def _simulated(run: Run, about: About) -> Section:
    title = "Observed and simulated scanpaths"
    try:
        paths, first, length = simulated_like(run, about.seed)
    except UnnormError as error:
        return Section("simulated", title, (f"Nothing could be simulated: {error}",))
    lags = run.obs.lags
    sign = -1.0 if run.model.y_down else 1.0
    moves = np.concatenate([np.diff(path[lags - 1 :], axis=0) for path in paths])
    after = np.concatenate([path[lags:] for path in paths])
    simulated = {
        "step": np.hypot(moves[:, 0], moves[:, 1]),
        "angle": np.arctan2(sign * moves[:, 1], moves[:, 0]),
        "x": after[:, 0],
        "y": after[:, 1],
    }
    obs = run.obs
    observed = dict(run.model.covariates(obs).values(("step", "angle"), obs))
    observed |= {"x": obs.outcome[:, 0], "y": obs.outcome[:, 1]}
    typical = np.argsort(np.abs(length - np.median(length)), kind="stable")[:4]
    real = [np.vstack([obs.previous()[first[i]], obs.outcome[first[i] : first[i] + length[i]]]) for i in typical]
    text = (
        f"{len(observed['step']):,} observed steps against {len(simulated['step']):,} simulated from the "
        f"{'group' if run.fits else 'fitted model'}, from the same starting points and as long."
    )
    pictures = (
        *figures.compared(run, observed, simulated),
        figures.scanpaths(run, real, "observed", figures.BLUE),
        figures.scanpaths(run, [paths[i] for i in typical], "simulated", figures.ORANGE),
    )
    return Section("simulated", title, (text,), pictures, pairs=True)


# --- numbers ---------------------------------------------------------------------------------------------------------


def _numbers(run: Run, about: About) -> Section:
    head = [run.by or "model", "transitions"]
    part = run.main.smooths
    assert part is not None
    labels = (*run.labels, *part.normaliser_labels)
    smooth = [label for label in labels if label in part.edf]
    bits = bool(about.held_out)
    head += ["held-out bits"] if bits else []
    head += [text for label in smooth for text in (f"{label} edf", f"{label} p")]
    rows = []
    for which, fit in run.everything.items():
        own = fit.smooths
        assert own is not None
        tests = dict(zip(np.asarray(own.table["term"]).tolist(), np.asarray(own.table["p"], dtype=float).tolist()))
        cells = [Cell(which), Cell(f"{fit.n:,}", float(fit.n))]
        if bits:
            cells.append(_number(about.held_out.get(which, np.nan), 3))
        for label in smooth:
            cells += [_number(own.edf.get(label, np.nan), 1), _p(tests.get(label, np.nan))]
        rows.append(tuple(cells))
    text = (about.held_out_how,) if bits and about.held_out_how else ()
    table = Sheet("Effective degrees of freedom and p-values of each term", tuple(head), tuple(rows))
    return Section("numbers", "Tables", text, (), (table,))


def _number(value: float, digits: int) -> Cell:
    return Cell("–") if value != value else Cell(f"{value:.{digits}f}", float(value))


def _p(value: float) -> Cell:
    if value != value:
        return Cell("–")
    return Cell("< 0.001" if value < 0.001 else f"{value:.3f}", float(value))
