"""The criterion may have several minima: finite smoothing parameters are compared with infinite ones, and with others.

Far out the criterion is flat, and an early step that lands there stays there; and a finite minimum may lie above the
limit λ_j → ∞. So the criterion is asked along each ρ_j, a fit is begun again from other minima there, and the lowest
wins. A bound of the search is never an optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import EstimationError
from .arrow import Singular
from .separation import separating

if TYPE_CHECKING:
    from .criteria import Criterion
    from .outer import Found, PenalisedRows

_FLAT = 1e-3  # gradient and curvature of the criterion in ρ_j, in nats, below which λ_j is at a limit in effect
_BETTER = 1e-3  # nats
_FEW = 4_000  # rows up to which descents from several ρ are tried where means are extreme
_SEPARATED = 30.0  # |η| of a binomial row whose mean is 0 or 1 to 1e-13
_NEARLY = 0.03  # −ℓ a row of a binomial fit from which it is asked whether many rows are nearly separated
_EDGE = 5.0  # |η| of a binomial row, range of η of Poisson rows, from which they are
_ROWS_EACH = 30  # rows for each coefficient from which the working model is good along ρ_j
_SHALLOW = 0.5  # curvature of the criterion in ρ_j, in nats, below which its minimum may be one of several
_SLIGHTLY = 0.01  # nats by which one λ_k is better elsewhere where another is infinite
_LOWER = 0.1  # nats by which another minimum of the working model is lower, where rows are many and a fit costs more
_REACH, _DOWN = 12.0, 20  # in ρ, and steps: how far such a minimum is followed
_GLANCE = 6  # steps after which one that is not near the fit's is left
_NARROW = 200  # coefficients up to which a grid is asked where λ_j is at a limit: p³ each
_WIDE = 300  # coefficients up to which it is asked of penalties of terms with several: one inverse for each of them
_SMALL = 120  # coefficients up to which it is asked of every λ_j
_TINY = 60  # coefficients up to which it is asked with one λ_j infinite, where rows are few
_WORTH = 1.0  # nats above the fit at which a minimum of the working model is still worth a try
_HOPELESS = 10.0  # nats above the fit on its working model at which the criterion itself is not asked
_LEVEL = 1e-5  # nats by which a minimum is below its neighbours: less is rounding, far out where nothing changes
_ROUNDS = 3  # what one parameter does may bring another back from its limit
_MOST = 4  # restarts at minima along single parameters
_FURTHER, _WIDER = 12.0, 2  # by which the bounds of ρ are moved out, where the criterion still falls towards them; and
# how often: with counts of 10⁵ that nothing explains λ is 10⁻¹⁵ of the information
_LESS = (7.0, 14.0)  # log of the factors by which λ_j is divided to see whether the criterion falls without end
_SHIFTS = (0.0, -4.0, -7.0)  # ρ − centre of whole restarts: penalty and data in balance, and hardly any penalty
_ROUGH = np.array([-19.0, -17.0, -14.0, -11.0])  # and below it: where rows are few, or some λ_j is there: steep data
_TOGETHER = (-3.0, -5.5, -8.0, -11.0, -14.0)  # ρ − centre of all λ_j: the terms follow rows whose means are extreme
_PLAN = np.linspace(-8.0, 10.0, 10)  # ρ − centre of two penalties of one term
_GRID = np.linspace(-8.0, 13.0, 8)  # ρ − centre at which the criterion is asked


def limits(found: Found, free: np.ndarray) -> np.ndarray:
    """(M,) 1 where λ_j is infinite in effect, −1 where it is zero, else 0."""
    gradient, curve = np.abs(found.at.gradient), np.abs(np.diag(found.at.hessian))
    low, high = found.bounds
    rho = found.at.state.rho
    flat = free & (gradient < _FLAT) & (curve < _FLAT)
    flat |= free & ((rho <= low + 1e-6) | (rho >= high - 1e-6))
    return np.where(flat, np.where(rho > (low + high) / 2, 1, -1), 0)


def reconsider(problem: PenalisedRows, criterion: Criterion, found: Found, tolerance: float, most: int) -> Found:
    """The best of the fit found and those begun from other smoothing parameters; where what remains ends at a bound
    towards which the criterion still falls, it is not converged, and says so."""
    from .outer import lower

    best = _further(problem, criterion, found, tolerance, most)
    for _ in range(_ROUNDS):
        before, at_limit = best, limits(best, problem.free)
        for rho in _starts(problem, criterion, before, at_limit):
            back = _back(before, at_limit, rho)
            try:
                other = lower(problem, criterion, before, rho, tolerance, min(most, 50), back)
            except EstimationError:
                continue
            if other.converged and not _at_bound(other, problem.free).any():
                gain = best.at.value - other.at.value
                if gain > _BETTER or _at_bound(best, problem.free).any():
                    best = other
        if best is before:
            break
    return _judged(problem, criterion, best)


def _further(problem: PenalisedRows, criterion: Criterion, found: Found, tolerance: float, most: int) -> Found:
    """The fit with wider bounds, where the criterion still falls towards one of the search's own: λ is measured against
    the information at the start, which may be e²⁰ times that at the estimate (rows far from the data, means 0 or 1)."""
    from .outer import lower

    for _ in range(_WIDER):
        beta, rho = found.at.state.beta, found.at.state.rho
        if not _at_bound(found, problem.free).any():
            return found
        nothing = np.full(rho.shape, -np.inf)
        if separating(problem.design, problem.rows, problem.family, nothing, [beta]) is not None:
            return found  # without the penalties there is no maximum: the criterion falls without end
        low, high = found.bounds
        wider = replace(found, bounds=(low - _FURTHER, high + _FURTHER))
        try:
            other = lower(problem, criterion, wider, rho, tolerance, most, lambda _: False)
        except EstimationError:
            return found
        if not other.at.value < found.at.value:
            return found
        found = other
    return found


def _back(found: Found, at_limit: np.ndarray, start: np.ndarray) -> Callable[[np.ndarray], bool]:
    """Whether every ρ_j that was begun again is on its way back to infinity."""
    again = (at_limit > 0) & (start != found.at.state.rho)
    limit = np.minimum(found.at.state.rho, (found.bounds[0] + found.bounds[1]) / 2 + 8.0) - 1.0
    return lambda rho: bool(again.any() and np.all(rho[again] >= limit[again]))


def _starts(problem: PenalisedRows, criterion: Criterion, found: Found, at_limit: np.ndarray) -> list[np.ndarray]:
    """Other ρ from which a lower criterion may be reached."""
    rho, centre = found.at.state.rho, (found.bounds[0] + found.bounds[1]) / 2
    out: list[np.ndarray] = []
    if (at_limit < 0).any() or (at_limit.any() and problem.count <= _FEW and _extreme(problem, found)):
        out += [np.where(at_limit != 0, centre + shift, rho) for shift in _SHIFTS]
    rest = (at_limit == 0) & problem.free
    if (at_limit > 0).any() and rest.any() and problem.count <= _FEW and problem.design.size <= _SMALL:
        out.append(np.where(at_limit > 0, centre, np.where(rest, centre + _GRID[-1], rho)))  # the other terms instead
    return out + _dips(problem, criterion, found)


def _dips(problem: PenalisedRows, criterion: Criterion, found: Found) -> list[np.ndarray]:
    """ρ at which the criterion, along one ρ_j, has another minimum that is low enough to try; the lowest first.

    Asked of every ρ_j: a finite λ_j is compared with infinite ones, and an infinite one with finite. Where rows are
    many, of the limits alone, and of what `_valleys` asks. The fit's working model answers, tilt included: exactly
    where the family is Gaussian, to a few hundredths of the distance from the fit where no mean is extreme and rows are
    many for the coefficients (measured). Elsewhere the criterion itself is asked.
    """
    if problem.design.size > _NARROW:
        wide = problem.design.size > _WIDE or problem.design.levels
        centre = (found.bounds[0] + found.bounds[1]) / 2
        return [] if wide else [rho for _, rho in _valleys(problem, criterion, found, centre)]
    sparse = problem.family != "gaussian" and problem.count < _ROWS_EACH * problem.design.size
    nearly = problem.count > _FEW and _nearly_separated(problem, found)
    exactly = nearly or (problem.count <= _FEW and (sparse or _extreme(problem, found)))
    every = (nearly or problem.count <= _FEW) and problem.design.size <= _SMALL
    which = problem.free if every else limits(found, problem.free) != 0
    centre = (found.bounds[0] + found.bounds[1]) / 2
    out: list[tuple[float, np.ndarray]] = []
    for j in np.flatnonzero(which).tolist():
        out += _minima(found, *_along(problem, criterion, found, j, centre[j], exactly))
    out += _corners(problem, criterion, found, centre) if every else _valleys(problem, criterion, found, centre)
    out += _pairs(problem, criterion, found, centre) if every else []
    if every and problem.design.size <= _TINY:
        out += _taken_over(problem, criterion, found, centre) + _left_out(problem, criterion, found, centre)
        out += _afresh(problem, criterion, found, centre) if problem.free.sum() > 1 else []
    return [rho for _, rho in sorted(out, key=lambda one: one[0])[:_MOST]]


def _minima(found: Found, trials: list[np.ndarray], values: np.ndarray) -> list[tuple[float, np.ndarray]]:
    """Of ρ along one ρ_j, and the criterion there: the minima that are low enough to try, other than the fit's."""
    padded = np.array([np.inf, *values, np.inf]) - _LEVEL
    low = (values < padded[:-2]) & (values < padded[2:]) & (values < found.at.value + _WORTH)
    low[0] &= values[0] < found.at.value - _BETTER  # falling towards zero smoothing is no minimum by itself
    own = next(i for i, trial in enumerate(trials) if trial is found.at.state.rho)
    return [(values[i], trials[i]) for i in np.flatnonzero(low).tolist() if _apart(values, own, i)]


def _valleys(
    problem: PenalisedRows, criterion: Criterion, found: Found, centre: np.ndarray
) -> list[tuple[float, np.ndarray]]:
    """Lower minima of the working model from ρ_j that are finite, where rows are many: of terms with several penalties,
    and where the minimum is shallow. A tensor product may be nearly flat along one margin, at a minimum 100 nats above
    another. Only where such a minimum is found does a fit go over the rows again.
    """
    from .outer import minimise

    penalties, here, at_limit = problem.design.penalties, found.at.state.rho, limits(found, problem.free) != 0
    narrow = problem.design.size <= _NARROW
    doubtful = (np.abs(np.diag(found.at.hessian)) < _SHALLOW) & narrow
    for group in penalties.groups:
        doubtful[list(group.which)] |= len(group.which) > 1
    begun: list[tuple[float, np.ndarray]] = []
    for j in np.flatnonzero(doubtful & problem.free & ~at_limit).tolist():
        begun += _minima(found, *_along(problem, criterion, found, j, centre[j], False))
    begun += _pairs(problem, criterion, found, centre) if narrow else []
    out: list[tuple[float, np.ndarray]] = []
    for _, rho in begun:
        move = problem.free & (~at_limit | (rho != here))
        try:
            start = criterion.full(found.working, penalties, rho)
            end = minimise(criterion, found.working, penalties, start, move, found.bounds, _REACH, _BETTER, _DOWN)
        except Singular:
            continue
        if end.value < found.at.value - _LOWER:
            out.append((end.value, end.state.rho))
    return sorted(out, key=lambda one: one[0])[:1]


def _apart(values: np.ndarray, own: int, i: int) -> bool:
    """Whether the minimum at i is another than the fit's, at `own`: there is a rise between them, or it is lower by
    more than what a fit leaves on its way to infinity."""
    path = values[own : i + 1] if i > own else values[i : own + 1][::-1]
    return i != own and (bool(np.any(np.diff(path) > _LEVEL)) or values[i] < values[own] - _BETTER)


def _corners(
    problem: PenalisedRows, criterion: Criterion, found: Found, centre: np.ndarray
) -> list[tuple[float, np.ndarray]]:
    """Of terms with several penalties: one finite, the others infinite, where the working model is low there."""
    out: list[tuple[float, np.ndarray]] = []
    for group in {group.which for group in problem.design.penalties.groups if len(group.which) > 1}:
        for j in group:
            for shift in _GRID[1:6]:
                trial = found.at.state.rho.copy()
                trial[list(group)] = centre[list(group)] + _GRID[-1]
                trial[j] = centre[j] + shift
                trial = np.where(problem.free, trial, found.at.state.rho)
                try:
                    value = criterion.value(found.working, problem.design.penalties, trial)
                except Singular:
                    continue
                if value < found.at.value + _WORTH:
                    out.append((value, trial))
    return sorted(out, key=lambda one: one[0])[:1]


def _pairs(
    problem: PenalisedRows, criterion: Criterion, found: Found, centre: np.ndarray
) -> list[tuple[float, np.ndarray]]:
    """Of terms with two penalties: another minimum over both, where the working model has one with a rise between it
    and the fit. Smoothing one margin more and the other less is a valley of its own, which neither shows alone."""
    here = found.at.state.rho

    def value(rho: np.ndarray) -> float:
        try:
            return criterion.value(found.working, problem.design.penalties, rho)
        except Singular:
            return np.inf

    out: list[tuple[float, np.ndarray]] = []
    for pair in {group.which for group in problem.design.penalties.groups if len(group.which) == 2}:
        if not problem.free[list(pair)].all():
            continue
        trials = np.repeat(here[None, None], _PLAN.size, axis=0).repeat(_PLAN.size, axis=1)
        for axis, j in enumerate(pair):
            trials[..., j] = centre[j] + (_PLAN[:, None] if axis == 0 else _PLAN)
        values = np.apply_along_axis(value, 2, trials)
        edged = np.pad(values, 1, constant_values=np.inf)
        around = np.min([edged[1 + a : edged.shape[0] - 1 + a, 1 + b : edged.shape[1] - 1 + b]
                         for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b], axis=0)  # fmt: skip
        low = (values < around) & (values < found.at.value + _WORTH)
        for at in np.argwhere(low).tolist():
            there = trials[at[0], at[1]]
            between = [value(here + share * (there - here)) for share in (0.25, 0.5, 0.75)]
            if np.any(np.diff([found.at.value, *between, values[at[0], at[1]]]) < -_LEVEL):
                out.append((float(values[at[0], at[1]]), there))
    return sorted(out, key=lambda one: one[0])[:1]


def _taken_over(
    problem: PenalisedRows, criterion: Criterion, found: Found, centre: np.ndarray
) -> list[tuple[float, np.ndarray]]:
    """One λ_j infinite, where that costs little, and another λ_k at a better place then: what one term said, another
    may say instead. From the fit neither alone leads there."""
    here, penalties, free = found.at.state.rho, problem.design.penalties, np.flatnonzero(problem.free).tolist()
    out: list[tuple[float, np.ndarray]] = []
    for j in free if len(free) > 1 else []:
        if here[j] > centre[j] + _GRID[-2]:
            continue
        without = np.where(np.arange(here.size) == j, centre + _GRID[-1], here)
        value = criterion.along(found.working, penalties, without, j, without[[j]])[0]
        if not value < found.at.value + _WORTH:
            continue
        for k in free:
            if k == j:
                continue
            grid = centre[k] + _GRID
            values = criterion.along(found.working, penalties, without, k, grid)
            values = np.where(np.isnan(values), np.inf, values)
            best = int(np.argmin(values))
            if values[best] < value - _SLIGHTLY:
                out.append((float(values[best]), np.where(np.arange(here.size) == k, grid[best], without)))
    return sorted(out, key=lambda one: one[0])[:1]


def _left_out(
    problem: PenalisedRows, criterion: Criterion, found: Found, centre: np.ndarray
) -> list[tuple[float, np.ndarray]]:
    """Every λ of one term infinite and all others in balance: a term with several λ may take over what another says
    only if all of them move."""
    terms = {group.which for group in problem.design.penalties.groups if problem.free[list(group.which)].all()}
    if len(terms) < 2 or all(len(term) == 1 for term in terms):
        return []
    starts = [np.where(problem.free, centre, found.at.state.rho) for _ in terms]
    for start, term in zip(starts, terms):
        start[list(term)] += _GRID[-1]
    return _ended(problem, criterion, found, starts, (_GLANCE, _DOWN))  # the first few say if it is worth the rest


def _afresh(
    problem: PenalisedRows, criterion: Criterion, found: Found, centre: np.ndarray
) -> list[tuple[float, np.ndarray]]:
    """All λ in balance with the data at once, or smaller: what several terms say together, none shows while the others
    are as they are."""
    starts = [np.where(problem.free, centre + shift, found.at.state.rho) for shift in _SHIFTS]
    return _ended(problem, criterion, found, starts, (_DOWN,))


def _ended(
    problem: PenalisedRows, criterion: Criterion, found: Found, starts: list[np.ndarray], steps: tuple[int, ...]
) -> list[tuple[float, np.ndarray]]:
    """The best of where the working model's criterion is minimised from each start, where that is below the fit."""
    from .outer import minimise

    penalties, out = problem.design.penalties, []
    for start in starts:
        try:
            end = criterion.full(found.working, penalties, start)
            for most in steps:
                end = minimise(
                    criterion, found.working, penalties, end, problem.free, found.bounds, np.inf, _BETTER, most
                )
                if end.value > found.at.value + _WORTH:
                    break
        except Singular:
            continue
        if end.value < found.at.value - _SLIGHTLY:
            out.append((end.value, end.state.rho))
    return sorted(out, key=lambda one: one[0])[:1]


def _along(
    problem: PenalisedRows, criterion: Criterion, found: Found, j: int, centre: float, exactly: bool
) -> tuple[list[np.ndarray], np.ndarray]:
    """ρ with ρ_j at the points of the grid and at its own, in order, and the criterion there."""
    from .descent import converged_at
    from .outer import Iteration

    here = found.at.state.rho
    places = [_Place(float(here[j]), here, found.at.value)]
    rough = problem.count <= _FEW or bool(
        np.any((here < (found.bounds[0] + found.bounds[1]) / 2 + _GRID[0])[problem.free])
    )
    grid = centre + (np.concatenate([_ROUGH, _GRID]) if rough else _GRID)
    grid = grid[np.abs(grid - here[j]) > 1.0]
    modelled = criterion.along(found.working, problem.design.penalties, here, j, grid)
    above = grid > here[j]
    for side in (np.flatnonzero(above), np.flatnonzero(~above)[::-1]):
        run, working = Iteration(problem, criterion, 1e-3), found.working
        for at, value in zip(grid[side].tolist(), modelled[side].tolist()):
            if np.isnan(value):  # H is singular
                break
            trial, slope = np.where(np.arange(here.size) == j, at, here), np.nan
            try:
                if exactly and value < found.at.value + _HOPELESS:
                    working, there = converged_at(run, working, trial)
                    value, slope = there.value, float(there.gradient[j])
                places.append(_Place(at, trial, value, slope))
            except (Singular, EstimationError):
                break
    places.sort(key=lambda place: place.at)
    for at in _between(places):
        trial = np.where(np.arange(here.size) == j, at, here)
        with suppress(Singular, EstimationError):
            value = converged_at(Iteration(problem, criterion, 1e-3), found.working, trial)[1].value
            places.append(_Place(at, trial, value))
    places.sort(key=lambda place: place.at)
    return [place.rho for place in places], np.array([place.value for place in places])


class _Place(NamedTuple):
    """ρ with ρ_j `at` some value, the criterion there and, where it was asked exactly, its slope along ρ_j."""

    at: float
    rho: np.ndarray
    value: float
    slope: float = np.nan


def _between(places: list[_Place]) -> list[float]:
    """Where the criterion has a minimum between two neighbours of which neither is one: it falls from the first and
    rises to the second. At the least of the cubic that has their values and slopes."""
    values = np.array([np.inf, *(place.value for place in places), np.inf])
    least = (values[1:-1] < values[:-2]) & (values[1:-1] < values[2:])
    out = []
    for i, (a, b) in enumerate(pairwise(places)):
        if a.slope < -_SLIGHTLY and b.slope > _SLIGHTLY and not (least[i] or least[i + 1]):
            h, mean = b.at - a.at, (b.value - a.value) / (b.at - a.at)
            c = a.slope + b.slope - 3.0 * mean
            root = np.sqrt(c * c - a.slope * b.slope)
            out.append(b.at - h * (b.slope + root - c) / (b.slope - a.slope + 2.0 * root))
    return out


def _extreme(problem: PenalisedRows, found: Found) -> bool:
    """Whether some rows' means are so near the edge of their range that the working model is good only at β̂."""
    if problem.family == "gaussian":
        return False
    low, high = problem.design.ends(found.at.state.beta, problem.threads)
    return (max(high, -low) if problem.family == "binomial" else high - low) > _EDGE


def _nearly_separated(problem: PenalisedRows, found: Found, few: bool = False) -> bool:
    """Whether binomial rows have means 0 or 1; of many rows only where nearly all do, as their likelihood says before
    they are asked."""
    if problem.family != "binomial" or not (few or -found.working.loglik < _NEARLY * problem.count):
        return False
    low, high = problem.design.ends(found.at.state.beta, problem.threads)
    return max(high, -low) > _SEPARATED


def _at_bound(found: Found, free: np.ndarray) -> np.ndarray:
    """(M,) whether ρ_j is at a bound of the search with the criterion still falling."""
    low, high = found.bounds
    rho, slope = found.at.state.rho, found.at.gradient
    return free & (((rho <= low + 1e-6) & (slope > _FLAT)) | ((rho >= high - 1e-6) & (slope < -_FLAT)))


def _unpenalised(problem: PenalisedRows, found: Found) -> np.ndarray:
    """(M,) whether λ_j is at the lower bound while binomial rows have means 0 or 1: there the deviance is nearly zero
    and the criterion flat, so that a small slope does not make the bound an optimum."""
    held = problem.free & (found.at.state.rho <= found.bounds[0] + 1e-6)
    if not held.any() or problem.family != "binomial":
        return np.zeros(held.size, dtype=bool)
    low, high = problem.design.ends(found.at.state.beta, problem.threads)
    return held & bool(max(high, -low) > _SEPARATED)


def _falling(problem: PenalisedRows, criterion: Criterion, found: Found) -> np.ndarray:
    """(M,) whether the criterion is lower with far less smoothing, of binomial rows with means 0 or 1: there nearly
    separated rows have a minimum at a small λ_j, and another without end at zero."""
    from .descent import converged_at
    from .outer import Iteration

    out = np.zeros(problem.free.size, dtype=bool)
    if problem.design.size > _NARROW or not _nearly_separated(problem, found, problem.count <= _FEW):
        return out
    for j in np.flatnonzero(problem.free & (limits(found, problem.free) <= 0)).tolist():
        run, working = Iteration(problem, criterion, 1e-3), found.working
        for less in _LESS:
            rho = found.at.state.rho.copy()
            rho[j] -= less
            try:
                working, there = converged_at(run, working, rho)
            except (Singular, EstimationError):
                break
            if not run.at_rest(there.state.beta - working.beta):  # weights of means 0 and 1 are still falling, and
                break  # log|H| with them: the criterion may come out 20 nats too low, or 10 too high
            out[j] = out[j] or there.value < found.at.value - _BETTER
    return out


def _lower_without(problem: PenalisedRows, criterion: Criterion, found: Found) -> bool:
    """Whether the criterion is lower where all free λ_j are small at once: few rows with extreme means may be followed
    so closely that it is, where no λ_j by itself shows it. There it has many minima, or none."""
    from .descent import converged_at
    from .outer import Iteration

    if problem.count > _FEW or problem.design.size > _NARROW or not _extreme(problem, found):
        return False
    centre = (found.bounds[0] + found.bounds[1]) / 2
    run, working = Iteration(problem, criterion, 1e-3), found.working
    for shift in _TOGETHER:
        try:
            working, there = converged_at(run, working, np.where(problem.free, centre + shift, found.at.state.rho))
        except (Singular, EstimationError):
            return False
        if there.value < found.at.value - criterion.doubt:
            return True
    return False


def _judged(problem: PenalisedRows, criterion: Criterion, found: Found) -> Found:
    held = _at_bound(found, problem.free) | _unpenalised(problem, found)
    held = held if held.any() else _falling(problem, criterion, found)
    less = not held.any() and _lower_without(problem, criterion, found)
    if less:
        finite = problem.free & (limits(found, problem.free) <= 0)
        held = finite if finite.any() else problem.free
    held = np.flatnonzero(held)
    if held.size == 0:
        return found
    labels = [problem.design.penalties.labels[j] for j in held]
    most = not less and found.at.state.rho[held[0]] >= found.bounds[1][held[0]] - 1e-6
    end = "infinity" if most else "zero"
    reason = (
        f"The criterion still falls as the smoothing parameter of {', '.join(labels)} goes to {end}: the rows are "
        "(nearly) separated, or the term has too many functions for them. Lower its k, or fix sp."
    )
    return replace(found, converged=False, reason=reason)
