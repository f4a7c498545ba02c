"""Conditions compared: each condition's population curves, their differences, and tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from .._base.frames import to_native
from ..errors import InputError, unknown
from ..inference.sandwich import error_parts
from ..inference.smooth_tests import smooth_tests
from ..results.fit import Fit
from ..results.smooths import smooth_part
from .between import Crossing, Design
from .crossed import Cells, Crossed, above_floor, alike
from .difference import Difference
from .exchange import compare, holm
from .joint import members_of
from .population import (
    Common,
    Parts,
    fitted_of,
    group_fit,
    in_common,
    problem_of,
    scores_of,
    settled,
    solution_of,
)
from .views import View

ALL, EVERY = "all", "all effects"  # conditions; effects
FEW = (
    "With these levels no p-value of {between!r} can be below {least:.2g}: a test by exchange has only so many ways to "
    "reassign them. More levels of {by!r} make it sharper."
)
COLUMNS = ("term", "contrast", "statistic", "p", "p_adjusted")


@final
@dataclass(frozen=True, eq=False)
class Conditions:
    """What a fit says of conditions: `fits[name]` is a condition's population, `differences` those of all pairs."""

    by: str  # the column of subjects
    between: str  # the column of conditions
    design: Design  # "between" levels of `by`, or "within" them
    members: Mapping[str, tuple[str, ...]]  # condition → the levels of `by` that were seen in it
    cells: Mapping[str, str]  # separate fit → its condition
    fits: Mapping[str, Fit]  # condition → its population's fit
    differences: tuple[Difference, ...]  # of every pair, in the order of the conditions
    tests: Mapping[str, np.ndarray]  # term, contrast, statistic, p, p_adjusted
    notes: tuple[str, ...] = ()
    backend: Any = field(default=None, repr=False)

    def __repr__(self) -> str:
        term, contrast = str(self.tests["term"][0]), str(self.tests["contrast"][0])  # all conditions, all effects
        test = f"{term}: p = {self.p(term, contrast):.2g}"
        return f"Conditions({self.between!r} {self.design} levels of {self.by!r}, {self._counts}; {test}; see .table())"

    @property
    def _counts(self) -> str:
        """How many levels were seen in each condition."""
        return ", ".join(f"{name}: {len(levels)}" for name, levels in self.members.items())

    @property
    def names(self) -> tuple[str, ...]:
        """The conditions."""
        return tuple(self.fits)

    def __getitem__(self, name: str) -> Fit:
        if name not in self.fits:
            raise InputError(unknown("condition", name, self.fits))
        return self.fits[name]

    def pair(self, first: str | None = None, second: str | None = None) -> tuple[Difference, float]:
        """The difference of two conditions (default the first two), and the sign with which it is kept."""
        a = self.names[0] if first is None else str(first)
        b = next(name for name in self.names if name != a) if second is None else str(second)
        for name in (a, b):
            if name not in self.fits:
                raise InputError(unknown("condition", name, self.fits))
        for one in self.differences:
            if (one.first, one.second) == (a, b):
                return one, 1.0
            if (one.first, one.second) == (b, a):
                return one, -1.0
        raise InputError(f"A difference needs two conditions ({', '.join(self.names)}); got {a!r} twice.")

    def difference(
        self, label: str, first: str | None = None, second: str | None = None, at: Any = None, level: float = 0.95
    ) -> Any:
        """`first` − `second` of one effect as a table: covariates, estimate, se, se_sampling, se_reference, lower,
        upper (pointwise), lower_simultaneous, upper_simultaneous (the whole curve)."""
        return to_native(self.difference_columns(label, first, second, at, level), self.backend)

    def difference_columns(
        self, label: str, first: str | None = None, second: str | None = None, at: Any = None, level: float = 0.95
    ) -> dict[str, np.ndarray]:
        """The same, as a dict of arrays."""
        found, sign = self.pair(first, second)
        out = found.effect(label, at, level)
        if sign > 0:
            return out
        turned = {"lower": -out["upper"], "upper": -out["lower"]}
        turned |= {"lower_simultaneous": -out["upper_simultaneous"], "upper_simultaneous": -out["lower_simultaneous"]}
        return {**out, "estimate": -out["estimate"], **turned}

    def table(self) -> Any:
        """The tests as a table: term, contrast ("all", or a pair), statistic, p, p_adjusted (Holm, over a term's
        pairs)."""
        return to_native({name: np.array(self.tests[name]) for name in COLUMNS}, self.backend)

    def p(self, label: str, contrast: str = ALL) -> float:
        """The p-value of one effect's test."""
        at = (np.asarray(self.tests["term"]) == label) & (np.asarray(self.tests["contrast"]) == contrast)
        if not at.any():
            known = [f"{t}, {c}" for t, c in zip(self.tests["term"], self.tests["contrast"])]
            raise InputError(unknown("label and contrast", f"{label}, {contrast}", known))
        return float(np.asarray(self.tests["p"])[at][0])

    def lines(self) -> Iterator[str]:
        """A summary for people, line by line."""
        where = "between" if self.design == "between" else "within"
        yield f"conditions of {self.between!r} {where} levels of {self.by!r} ({self._counts})"
        wide = max([len(str(term)) for term in self.tests["term"]] + [4])
        far = max([len(str(name)) for name in self.tests["contrast"]] + [8])
        yield f"{'term':<{wide}} {'contrast':<{far}} {'p':>8} {'adjusted':>9}"
        for term, contrast, p, adjusted in zip(*(self.tests[name] for name in ("term", "contrast", "p", "p_adjusted"))):
            shown = "—" if np.isnan(adjusted) else f"{adjusted:.2g}"
            yield f"{term:<{wide}} {contrast:<{far}} {p:>8.2g} {shown:>9}"
        for note in self.notes:
            yield f"note: {note}"


def conditions(crossing: Crossing, fits: Mapping[str, Fit], parts: Parts, threads: int) -> tuple[Fit, Conditions]:
    """The population's mean over conditions, and the conditions compared, from the cells' separate fits."""
    kept = crossing.kept(tuple(fits))
    common = in_common(crossing.by, fits, parts)
    if crossing.between in set().union(*(term.covariates for term in common.terms[: common.count])):
        raise InputError(f"the model's own terms already read {crossing.between!r}; leave between= or the terms out.")
    reml = parts.smoothing.method != "ml"

    def cells(offsets: Mapping[str, np.ndarray | None] | None) -> Cells:
        members = members_of(common.gams, common.terms, threads, offsets)
        return Cells(common.gams, common.terms, common.count, kept, reml, threads, members)

    found, integrated = settled(cells, above_floor, fits, common, threads)
    scores = scores_of(problem_of(parts), found, fits, integrated, parts.seed, threads)
    weights = found.layout.weights
    mean = View(found, np.eye(len(weights))[0])
    joint = f"a joint fit of {len(kept.subjects)} levels of {crossing.by!r}; bands are for the population's mean."
    about = f"Main effects, the mean over conditions of {crossing.between!r}, of {joint}"
    group = _fit(mean, about, parts, fits, common, scores)
    by_condition = {}
    column = np.array(crossing.cells)[crossing.of, 1]
    for c, name in enumerate(kept.conditions):
        mine = replace(parts, obs=parts.obs.take(column == crossing.conditions.index(name)))
        about = f"Main effects where {crossing.between}={name}, of {joint}"
        by_condition[name] = _fit(View(found, weights[c]), about, mine, fits, common, scores)
    differences = tuple(
        _difference(kept.conditions[a], kept.conditions[b], View(found, weights[a] - weights[b]), common, parts, scores)
        for a, b in itertools.combinations(range(len(weights)), 2)
    )
    tests, least = _tests(found, parts.seed)
    notes = [kept.sentence(), *kept.notes()]
    if least > 0.05:
        notes.append(FEW.format(between=crossing.between, by=crossing.by, least=least))
    seen = {name: tuple(kept.subjects[s] for s, at in kept.cells if at == c) for c, name in enumerate(kept.conditions)}
    cell_conditions = {cell: kept.conditions[c] for cell, (_, c) in zip(kept.names, kept.cells)}
    return group, Conditions(
        by=crossing.by,
        between=crossing.between,
        design=kept.design,
        members=seen,
        cells=cell_conditions,
        fits=by_condition,
        differences=differences,
        tests=tests,
        notes=tuple(notes),
        backend=parts.obs.backend,
    )


def _fit(view: View, about: str, parts: Parts, fits: Mapping[str, Fit], common: Common, scores: Any) -> Fit:
    solution = solution_of(about, view, scores(view, view.df, view.effective_df), common, parts.smoothing)
    crossing = view.design.layout.crossing
    group = {"by": crossing.by, "levels": len(crossing.subjects), "between": crossing.between}
    return group_fit(problem_of(parts), solution, fits, parts, group)


def _difference(first: str, second: str, view: View, common: Common, parts: Parts, scores: Any) -> Difference:
    own = scores(view, view.df, view.effective_df)
    fitted = fitted_of(view, common.columns, parts.smoothing, common.within)
    errors = error_parts(own)
    assert errors is not None
    part = smooth_part(fitted, errors, smooth_tests(fitted, own, errors))
    return Difference(first, second, part, view.effective_df, own.widened)


def _tests(found: Crossed, seed: int) -> tuple[dict[str, np.ndarray], float]:
    """All effects and each, over all conditions; then each for each pair where there are more than two."""
    names, null = found.layout.crossing.conditions, alike(found)
    whole = compare(found, null, range(len(names)), seed)
    labels = list(whole.slices)
    overall = whole.test() if len(labels) > 1 else None
    outcomes = {label: whole.test(label) for label in labels}
    least = min(one.least for one in outcomes.values())
    nan = float("nan")
    rows = [] if overall is None else [(EVERY, ALL, overall.statistic, overall.p, nan)]
    rows += [(label, ALL, one.statistic, one.p, nan) for label, one in outcomes.items()]
    if len(names) > 2:
        pairs = list(itertools.combinations(range(len(names)), 2))
        against = [compare(found, null, pair, seed) for pair in pairs]
        for label in labels:
            each = [one.test(label) for one in against]
            adjusted = holm(np.array([one.p for one in each]))
            rows += [
                (label, f"{names[a]} − {names[b]}", one.statistic, one.p, float(q))
                for (a, b), one, q in zip(pairs, each, adjusted)
            ]
    return {name: np.array(column) for name, column in zip(COLUMNS, zip(*rows))}, least
