"""`Fit.advise`: what the reference points cost, how many would do, and whether they lie where the data are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from .._base.words import either, option

TARGET = 0.05  # of the variance: the se is then 2.5 % above what infinitely many points would give
WIDE = 0.1  # of a standard error, above that of infinitely many points
NEARLY = 1.25  # times as many points as there are: not worth another fit
SEPARATED = 0.99  # area under the ROC curve at which the classifier tells data from reference points at a glance
FEW_EFFECTIVE = 0.02  # share of the reference points that carry the integrals


@final
@dataclass(frozen=True)
class Advice:
    """What a fit's reference points say about themselves; `print(advice)` gives sentences.

    `share`: of each parameter's (or term's) variance, the reference points' part. `needed`: the number of points that
    brings the largest share below 5 %. `inflation`: each standard error relative to infinitely many points.
    """

    objective: str
    reference: str | None = None
    points: str | None = None
    unit: str | None = None  # "per_point" or "total": what `count` and `needed` are numbers of
    count: int | None = None
    share: Mapping[str, float] | None = None
    inflation: Mapping[str, float] | None = None
    needed: int | None = None
    auc: float | None = None  # P(f − log q is larger at an observation than at a reference point)
    effective: float | None = None  # effective share of the reference points, (Σ w)²/(m Σ w²), w = exp(f + χ − log q)
    penalty: float | None = None  # tr(Î Ĵ⁻¹)
    ncic: float | None = None
    too_far: bool = False
    sentences: tuple[str, ...] = ()

    @property
    def worst(self) -> float | None:
        """The largest share."""
        return max(self.share.values()) if self.share else None

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def advise(objective: str, about: Mapping[str, Any], evidence: Mapping[str, Any]) -> Advice:
    """From what the fit knows of its points (`about`) and what they cost (`evidence`)."""
    if about.get("drawn") is False:
        return Advice(
            objective, sentences=(f"No reference points are drawn: {about['reference']}. Nothing to advise.",)
        )
    if "m" not in about and "reference" in about:
        share = about.get("effective_share")
        text = f"Reference points ({about['reference']}) are drawn afresh at every step: none stay in the estimate"
        more = "" if share is None else f"; {100 * share:.2g} % of them are effective"
        return Advice(objective, reference=about["reference"], effective=share, sentences=(f"{text}{more}.",))
    if "m" not in about:
        how = f" ({about['quadrature']})" if "quadrature" in about else ""
        return Advice(
            objective,
            sentences=(f"No reference points were used: the integrals are computed{how}. Nothing to advise.",),
        )
    unit, count = ("total", about["m"]) if about["k"] is None else ("per_point", about["k"])
    known = {"reference": about["reference"], "points": about["points"], "unit": unit, "count": int(count)}
    if not evidence:
        text = "The cost of the reference points is not available for this combination of model and objective."
        return Advice(objective, **known, sentences=(text,))
    names = evidence["names"]
    share = dict(zip(names, evidence["share"]))
    if "multiples" not in evidence:
        most = max(share, key=lambda name: share[name])
        text = (
            f"The reference points are at most {100 * share[most]:.2g} % of the variance ({most}). How many would do "
            "was not computed before this fit was saved: ask fit.advise() first, then fit.save."
        )
        return Advice(objective, **known, share=share, sentences=(text,))
    inflation = dict(zip(names, evidence["inflation"]))
    wanted = needed(evidence["multiples"], evidence["shares"], int(count), least=1 if unit == "per_point" else 10)
    auc, effective = evidence["auc"], evidence["effective"]
    too_far = bool((auc or 0.0) > SEPARATED or (effective is not None and effective < FEW_EFFECTIVE))
    first = (
        f"{objective} against {about['reference']}, {_points(about['points'])}, {option(unit, int(count))}"
        + (f" ({about['m']:,} points in all)" if unit == "per_point" else "")
        + "."
    )
    sentences = [first, _cost(share, inflation)]
    sentences.append(_number(_Cost.of(evidence, wanted, int(count)), int(count), unit, about))
    sentences.append(_distance(auc, effective, too_far))
    if evidence["ncic"] is not None:
        sentences.append(
            f"NCIC {evidence['ncic']:.6g} (penalty {evidence['penalty']:.3g}): the smaller the better, among models "
            f"fitted to the same observations and reference points ({either('un.compare', 'unnorm compare')})."
        )
    return Advice(
        objective,
        **known,
        share=share,
        inflation=inflation,
        needed=wanted,
        auc=auc,
        effective=effective,
        penalty=evidence["penalty"],
        ncic=evidence["ncic"],
        too_far=too_far,
        sentences=tuple(sentences),
    )


def needed(multiples: Any, shares: Any, count: int, least: int) -> int | None:
    """The number of points at which the largest share falls to `TARGET`, between multiples on the log scale."""
    worst = np.max(np.asarray(shares, dtype=float), axis=1)
    c = np.asarray(multiples, dtype=float)
    above = np.flatnonzero(worst > TARGET)
    if above.size == 0:
        return max(least, int(np.ceil(count * c[0])))
    last = int(above[-1])
    if last + 1 == len(c):
        return None
    x, y = np.log(c[last : last + 2]), np.log(np.maximum(worst[last : last + 2], 1e-12))
    at = np.exp(x[0] + (np.log(TARGET) - y[0]) * (x[1] - x[0]) / (y[1] - y[0]))
    return max(least, int(np.ceil(count * at)))


@final
@dataclass(frozen=True)
class _Cost:
    """Numbers of points, and how far above their limit the widest standard error is with them."""

    wanted: int | None  # for a share of 5 %
    narrow: int | None  # for standard errors within WIDE of the limit
    now: float
    then: float  # with `wanted`

    @classmethod
    def of(cls, evidence: Mapping[str, Any], wanted: int | None, count: int) -> _Cost:
        c, inflations = evidence["multiples"], evidence["inflations"]
        excess = (np.asarray(inflations, dtype=float) - 1.0) * (TARGET / WIDE)
        now = max(evidence["inflation"]) - 1.0
        then = now if wanted is None else _wider(c, inflations, wanted / count)
        return cls(wanted, needed(c, excess, count, least=1), now, then)


def _wider(multiples: Any, inflations: Any, c: float) -> float:
    """How much above its limit the widest standard error is with c times as many points."""
    worst = np.max(np.asarray(inflations, dtype=float), axis=1)
    return float(np.interp(np.log(c), np.log(np.asarray(multiples, dtype=float)), worst)) - 1.0


def _cost(share: Mapping[str, float], inflation: Mapping[str, float]) -> str:
    most = max(share, key=lambda name: share[name])
    widest = max(inflation, key=lambda name: inflation[name])
    return (
        f"The reference points are at most {_percent(share[most])} of the variance ({most}); standard errors are up "
        f"to {_percent(inflation[widest] - 1)} above those of infinitely many points ({widest})."
    )


def _share(value: float) -> str:
    return f"{100 * value:.2g} %" if value < 0.095 else f"{100 * value:.0f} %"


def _percent(value: float) -> str:
    return "0.01 %" if value < 1e-4 else f"{100 * value:.2g} %"


def _points(scheme: str) -> str:
    """The scheme of the points, Lattice(…), as the caller names it."""
    return either(scheme, f"--points {scheme.partition('(')[0].lower()}")


def _number(cost: _Cost, count: int, unit: str, about: Mapping[str, Any]) -> str:
    """Whether the number of points is enough, and if not, what is: one piece of advice, that a fit which follows it
    does not get again."""
    if cost.wanted is None:
        return f"Not even 256 times as many points would bring that below 5 %: {_otherwise(about)}."
    if cost.wanted > NEARLY * count:
        law = (
            "" if about["iid_points"] else " at most: evenly spread points gain no less from their number than IID ones"
        )
        other = f" {_lattice(about)} may be enough with the present number." if about["iid_points"] else ""
        return f"To bring that below 5 %, take {option(unit, cost.wanted)}{law}.{other}"
    if cost.now > WIDE and cost.narrow is not None and cost.narrow > NEARLY * count:
        return (
            f"Their noise is small, but a contrast with so few points loses information: {option(unit, cost.narrow)} "
            f"brings the standard errors within {_percent(WIDE)} of the limit."
        )
    if cost.wanted <= count / 2 and cost.then <= WIDE:
        how = "" if about["iid_points"] else " (measured on fresh points)"
        return f"That is enough, and so would be {option(unit, cost.wanted)}{how}."
    return "That is enough."


def _lattice(about: Mapping[str, Any]) -> str:
    """Evenly spread points, with an objective that takes them."""
    points = option("points", "lattice")
    return points if about["even_points"] else f"{either('un.Logistic with', '--objective logistic with')} {points}"


def _otherwise(about: Mapping[str, Any]) -> str:
    """What to do where more points do not help."""
    nearer = either("take a reference nearer to the data", "")
    evenly = f"try {_lattice(about)}" if about["iid_points"] else ""
    return ", or ".join(part for part in (nearer, evenly) if part) or "shorten the window, or leave terms out"


def _distance(auc: float | None, effective: float | None, too_far: bool) -> str:
    facts = []
    if auc is not None:
        pairs = f"in {100 * auc:.3g} % of pairs"
        facts.append(f"the fitted log-odds are higher at an observation than at a reference point {pairs}")
    if effective is not None:
        facts.append(f"{_share(effective)} of the reference points are effective")
    text = " and ".join(facts)
    text = text[:1].upper() + text[1:]
    if too_far:
        return f"{text}: the reference is too far from the data. " + either(
            "Take one that is nearer (un.Gaussian, un.StepKernel, un.Empirical, fitted to the data), mixed with a "
            "little un.Uniform().",
            f"Take more reference points, {option('per_point')}.",
        )
    return f"{text}: near enough."
