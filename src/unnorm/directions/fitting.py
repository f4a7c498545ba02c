"""`fit_direction`: a named family, estimated by any objective and read in its usual parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._base.numerics import Rng
from .._base.words import at_row
from ..data.observations import Observations
from ..data.units import unit_of
from ..errors import CombinationError, InputError, NoEstimateError, NotIdentifiedError, UnnormError, overhear, warn
from ..models.normalisers import Normaliser
from ..objectives.base import Objective
from ..results.fit import Fit
from ..results.fitting import Outside, Weights, fit, keep_inside, wrapped
from .family import Chart, Family
from .result import DirectionFit

_SAME = 1e-9  # directions nearer than this are equal
_SHARP = 1e4  # of the data's concentration, from which a fit that fails does so because κ is too large to compute
_KINDS = {"iid": "un.iid(…)", "transitions": "un.transitions(…)", "conditional": "un.conditional(…)"}


# long: what un.fit takes
def fit_direction(
    family: Family,
    obs: Observations,
    objective: Objective | None = None,
    normaliser: Normaliser | None = None,
    rng: Rng = None,
    outside: Outside = "error",
    weights: Weights = "frequencies",
) -> DirectionFit:
    """Fit a named family of directions.

    Args:
        family: from `un.directions`, e.g. `un.directions.kent()`.
        obs: from `un.iid`, `un.conditional` or `un.transitions`, with `unit=` where angles are not in radians.
        objective: as for `un.fit`; default `un.Exact()`.
        normaliser, rng, outside, weights: as for `un.fit`.

    Returns:
        The usual parameters with errors (`parameters`, `tidy`, `summary`, `cone`), draws, densities and pictures; `fit`
        is the fit of the natural parameters, with everything that `un.fit` gives.

    Example:
        >>> import numpy as np, unnorm as un
        >>> bearings = np.degrees(np.random.default_rng(1).vonmises(1.0, 4.0, 400)) % 360
        >>> found = un.fit_direction(un.directions.von_mises(), un.iid(bearings, unit="degrees"))
        >>> bool(abs(found.parameters["mean"] - np.degrees(1.0)) < 6)
        True
    """
    if not isinstance(family, Family):
        raise CombinationError(
            f"family must be one of un.directions, such as un.directions.von_mises(); got {type(family).__name__}. "
            "(un.VonMises and un.VonMisesFisher are references, for objective=un.Logistic(…).)"
        )
    if not isinstance(obs, Observations):
        raise CombinationError(f"obs must be the result of {_KINDS[family.kind]}; got {type(obs).__name__}.")
    if obs.kind != family.kind:
        raise CombinationError(f"The {family.name} family takes {_KINDS[family.kind]}; got {obs.kind} observations.")
    family.check(obs)
    obs, notes = keep_inside(family.domain, wrapped(family.domain, obs), outside)
    if obs.n == 0:
        raise InputError("There are no directions to fit.")
    refuse_equal(family, obs)
    if concentration(family, obs) > family.sharpest:
        raise _flat(family, obs)
    lost = family.lost(obs)
    if lost is not None:
        raise _undetermined(family, obs, lost)
    obs = replace(obs, notes=(*obs.notes, *notes), unit="radians" if obs.unit is None else obs.unit)
    best = _best(family, obs, objective, normaliser, rng, weights)
    return DirectionFit(family, best[0], best[1], unit_of(obs.unit or "radians"), best[2])


def _best(
    family: Family,
    obs: Observations,
    objective: Objective | None,
    normaliser: Normaliser | None,
    rng: Rng,
    weights: Weights,
) -> tuple[Chart, Fit, int]:
    """The chart with the highest maximum, its fit and its number; where none has one, the first one's error."""
    charts = family.make(obs)
    found: list[tuple[int, Fit, list[str]]] = []
    failed: UnnormError | None = None
    for which, chart in enumerate(charts):
        with overhear() as said:  # only the winner's are worth hearing
            try:
                made = fit(chart.model, obs, objective, normaliser, rng=rng, weights=weights)
                found.append((which, made, said))
            except (NoEstimateError, NotIdentifiedError) as error:
                failed = failed or error
    if not found:
        assert failed is not None
        raise _in_words(family, obs, failed) from failed
    which, made, said = max(found, key=lambda one: one[1].value)
    if not made.converged and concentration(family, obs) > _SHARP:
        raise _flat(family, obs)
    for one in said:
        warn(one, stacklevel=3)
    return charts[which], made, which


def _in_words(family: Family, obs: Observations, error: UnnormError) -> UnnormError:
    """What an estimate that does not exist, or is not the only one, means for directions."""
    y = obs.outcome
    if concentration(family, obs) > _SHARP:
        return _flat(family, obs)
    if isinstance(error, NotIdentifiedError):
        return _undetermined(
            family,
            obs,
            "a concentration is 0, and with it the direction that it belongs to can be any. Take a family with fewer "
            "parameters.",
        )
    return NoEstimateError(
        f"The {family.name} family has no finite estimate for these {len(y)} directions: a concentration grows without "
        "end. Take a family with fewer parameters, or add data."
    )


def _undetermined(family: Family, obs: Observations, why: str) -> NotIdentifiedError:
    return NotIdentifiedError(
        f"These {obs.n} directions do not determine all parameters of the {family.name} family: {why}"
    )


def concentration(family: Family, obs: Observations) -> float:
    """About 1/σ², of the coordinate that varies least on a torus, and in space of each of two."""
    y = obs.outcome[obs.weights > 0]
    if family.domain.coordinate_period is not None:
        return 1.0 / max(float(family.domain.wrap(y - y[0]).var(axis=0).min()), 1e-300)
    signs = np.sign(y @ y[0])[:, None] if family.even else 1.0
    return 2.0 / max(float((signs * y).var(axis=0).sum()), 1e-300)


def _flat(family: Family, obs: Observations) -> NoEstimateError:
    """The sentence where κ is too large to compute."""
    kappa = concentration(family, obs)
    return NoEstimateError(
        f"The {obs.n} directions have a standard deviation of {1.0 / np.sqrt(kappa):.2g} radians: a concentration of "
        f"some {kappa:.1g} cannot be computed in the {family.name} family. At this scale the circle and the sphere are "
        "flat: describe the angles, or the deviations from the mean, by a normal law."
    )


def refuse_equal(family: Family, obs: Observations) -> None:
    """κ is infinite where all directions are equal, and a quadratic law's where they lie on one great circle."""
    y = obs.outcome[obs.weights > 0]
    if family.domain.coordinate_period is not None:
        apart = np.abs(family.domain.wrap(y - y[0])).max()
        many = None
    else:
        signs = np.sign(y @ y[0])[:, None] if family.even else 1.0
        apart = np.linalg.norm(signs * y - y[0], axis=1).max()
        many = np.linalg.svd(y, compute_uv=False)
    if apart < _SAME:
        first = 0 if obs.row is None else int(obs.row[0])
        raise NoEstimateError(
            f"All {len(y)} directions are equal: {np.array2string(y[0], precision=6)}, as in {at_row(first)}. The "
            "concentration has no finite estimate. Look for a constant column or rounding, or add data."
        )
    if many is not None and family.oval and (len(many) < 3 or many[2] < _SAME * many[0]):
        raise NoEstimateError(
            f"The {len(y)} directions lie on one great circle: in the {family.name} family the concentration about it "
            "has no finite estimate. Use un.directions.von_mises_fisher(), fit the angle along the circle on "
            "un.Circle(), or add data."
        )
