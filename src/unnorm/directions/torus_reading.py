"""What two dependent angles tell: the signs of κ₁, κ₂ and λ, and the means' intervals.

A law keeps its f when two of κ₁, κ₂ and λ change their signs and the means of the κ's among them turn by π: the sign of
κ₁ κ₂ λ alone has a meaning, and the convention κ₁, κ₂ ≥ 0 gives it to λ. Where κ₂ is nearly 0 and λ is not, that
convention would make μ₂ jump by π and λ change its sign with the least change of the data. By continuity λ ≥ 0 there,
and κ₂ has the sign.

A mean has two ways to be known: by its own κ, or by the dependence. In the sine model that is by λ alone, whose term
tells both means up to π; in the cosine model, which holds the difference y₁ − y₂, by λ and the other κ. Where both ways
are closed it is not known: every angle is in its interval. That is so where the numbers that would tell it, κ_j and λ,
or in the cosine model κ₁ and κ₂, are together not told from 0. As the means may turn to make them large, their squared
distance from 0 in standard errors is then the larger eigenvalue of a 2 × 2 Wishart matrix, and not χ².
"""

from __future__ import annotations

import numpy as np

from .family import Reading
from .quantities import Angle, Number, Quantity, Signed, Size

NAMES = ("kappa1", "kappa2", "lambda", "mean1", "mean2")  # of θ, in its order
LEVEL = 0.95  # at which a number is told from 0: estimates do not depend on the level of intervals
ROY = 8.59  # the quantile at that level of the larger eigenvalue of a 2 × 2 Wishart matrix, 2 degrees of freedom
NEAR = 3.0  # standard errors from 0 within which a κ may have a sign
QUANTITIES: tuple[Quantity, ...] = (
    Angle("mean1"), Size("kappa1"), Angle("mean2"), Size("kappa2"), Number("lambda"),
)  # fmt: skip
_MEANS = (slice(0, 2), slice(3, 5))  # where the values of a chart are
_KAPPAS, _LAMBDA = (2, 5), 6
_NONE, _SAME = 1e-6, 1e-13  # means of cosines and sines that are 0, and 1

SIGN = (
    "{kappa} is within three standard errors of 0, where its sign would change; {mean} is known from the dependence. "
    "Here lambda ≥ 0 and {kappa} has a sign: −{kappa}, {mean} turned by half a turn and −lambda are the same law."
)
SIGNS = (
    "kappa1 and kappa2 are within three standard errors of 0, where their signs would change; the means are known from "
    "the dependence, up to half a turn. The law is the same with mean1 turned by half a turn, −kappa1 and −lambda, and "
    "with mean2 turned, −kappa2 and −lambda; here lambda ≥ 0."
)
DIFFERENCE = (
    "lambda tells the difference of mean1 and mean2, and the data hardly tell where they are: kappa1 and kappa2 are "
    "nearly 0. For the difference, fit y1 − y2 with un.directions.von_mises()."
)


def told(values: np.ndarray, V: np.ndarray) -> np.ndarray:
    """How many standard errors each number is from 0, on the scale asinh κ of intervals."""
    se = np.sqrt(np.maximum(np.diag(V), 1e-300))
    return np.abs(np.arcsinh(values)) * np.hypot(1.0, values) / se


def together(values: np.ndarray, V: np.ndarray, pair: tuple[int, int]) -> float:
    """The squared distance from 0 of two numbers in standard errors, on that scale."""
    at = list(pair)
    x, slope = np.arcsinh(values[at]), 1.0 / np.hypot(1.0, values[at])
    return float(x @ np.linalg.pinv(V[np.ix_(at, at)] * np.outer(slope, slope), hermitian=True) @ x)


def reading(values: np.ndarray, V: np.ndarray, *, sine: bool) -> Reading:
    """The values (u₁, κ₁, u₂, κ₂, λ) of a chart, u = (cos μ, sin μ), as the table shows them: with their signs, and
    each u of the length by which it is known."""
    from scipy.stats import norm

    z = float(norm.ppf(0.5 + LEVEL / 2.0))
    known = told(values, V)
    # by the dependence, μ_j is known as well as the weaker of the links that lead to it
    links = [(_LAMBDA,) if sine else (_LAMBDA, other) for other in reversed(_KAPPAS)]
    through = [min(link, key=lambda at: known[at]) for link in links]
    both = not sine and together(values, V, _KAPPAS) <= ROY
    own = [together(values, V, (kappa, _LAMBDA)) <= ROY for kappa in _KAPPAS]
    gone = [both or one for one in own]
    settled = [bool(known[at] > z) and not gone[j] for j, at in enumerate(through)]
    weak = [bool(z < known[_LAMBDA] > known[kappa] <= NEAR) for kappa in _KAPPAS]
    signs = _signs(values, weak, known)

    out, slope, read = signs * values, np.diag(signs), list(QUANTITIES)
    for j, (mean, kappa) in enumerate(zip(_MEANS, _KAPPAS)):
        by = kappa if known[kappa] >= known[through[j]] else through[j]
        u, length = out[mean].copy(), abs(values[by])
        slope[mean] *= length
        slope[mean, by] += u * np.sign(values[by] or 1.0)
        out[mean] = length * u
        read[2 * j] = Angle(NAMES[3 + j], lost=gone[j])
        if settled[j] or weak[j]:  # a number of either sign, and no length
            read[2 * j + 1] = Signed(NAMES[j], 1 if settled[j] else 2, either=gone[j])
        elif gone[j]:
            read[2 * j + 1] = Size(NAMES[j], 4)  # χ²₄ is above Wishart's quantile
    if any(own):
        read[4] = Number(NAMES[2], either=True)
    return Reading(out, slope, tuple(read), _notes(weak, settled, sine))


def _notes(weak: list[bool], settled: list[bool], sine: bool) -> tuple[str, ...]:
    """What is to be said of signs."""
    if all(weak) and sine:
        return (SIGNS,)
    if all(weak) and not any(settled):
        return (DIFFERENCE,)
    both = zip(NAMES[:2], NAMES[3:], weak, settled)
    return tuple(SIGN.format(kappa=kappa, mean=mean) for kappa, mean, near, through in both if near and through)


def _signs(values: np.ndarray, weak: list[bool], known: np.ndarray) -> np.ndarray:
    """κ₁, κ₂ ≥ 0; where a κ is weak, λ ≥ 0 and the weakest κ has the sign."""
    flips = [bool(values[kappa] < 0.0) for kappa in _KAPPAS]
    if any(weak) and (values[_LAMBDA] < 0.0) != (flips[0] != flips[1]):
        j = min((j for j in range(2) if weak[j]), key=lambda j: known[_KAPPAS[j]])
        flips[j] = not flips[j]
    signs = np.ones(len(values))
    for flip, mean, kappa in zip(flips, _MEANS, _KAPPAS):
        if flip:
            signs[mean] = signs[kappa] = -1.0
    signs[_LAMBDA] = -1.0 if flips[0] != flips[1] else 1.0
    return signs


def lost(y: np.ndarray, weights: np.ndarray, *, sine: bool) -> str | None:
    """The sentence where the data leave a mean undetermined: what is lost, and what can be fitted. Means of cosines and
    sines that are 0 are so at the estimate too; those of y₁ − y₂ or y₁ + y₂ alone do not change as both angles turn."""
    w, u = weights / weights.sum(), np.exp(1j * y)
    if len(np.unique(np.round(u[weights > 0], 9), axis=0)) < 3:
        return "there are but two different pairs of angles, and a concentration grows without end. Add data."
    own = np.abs(w @ u) > _NONE
    minus, plus = abs(w @ (u[:, 0] * u[:, 1].conj())), abs(w @ (u[:, 0] * u[:, 1]))
    if not sine and minus > 1.0 - _SAME:
        return (
            "y1 − y2 is the same in all rows, and lambda grows without end. Fit one of the angles alone, with "
            "un.directions.von_mises()."
        )
    if max(minus, plus if sine else 0.0) <= _NONE and not own.all():
        which = [name for name, there in zip(NAMES[3:], own) if not there]
        alone = f"Fit the {'first' if own[0] else 'second'} angle alone, with un.directions.von_mises()."
        remedy = alone if own.any() else "Nothing tells these angles from independent uniform ones."
        return f"lambda is 0, and {' and '.join(which)} can be any angle, as its kappa is 0 too. {remedy}"
    if own.any() or (sine and min(minus, plus) > _NONE):
        return None
    between = "y1 − y2" if minus >= plus or not sine else "y1 + y2"
    return (
        f"kappa1 and kappa2 are 0, and the dependence is one of {between} alone: both means may turn together. Fit "
        f"{between} with un.directions.von_mises()."
    )
