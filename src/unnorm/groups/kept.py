"""Levels that are finished, each kept in a folder as it ends: an interrupted `fit_each` goes on with the others.

Of a level there is its saved `Fit` and what the joint fit reads beside it: η̂ by row, and log Z by context where the
constants follow f. Its reference points are drawn again from the level's seed, so that nothing else need be kept and
every digit is that of a run without an interruption.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, final

import numpy as np

from .._base import storage
from .._base.atomic import recover, remove
from .._base.checkpoints import check_depends, depending, digest, write_depends
from .._base.numerics import own_stream
from ..data.observations import Observations
from ..engine.design import Design
from ..errors import InputError, UnnormError
from ..inference.evidence import Evidence
from ..objectives.additive import AdditiveProblem
from ..objectives.anchor import Integrated
from ..objectives.base import Constants, Problem
from ..objectives.scores import Drawn, RowScores, ScoreRows
from ..results.fit import Fit
from ..results.fitting import keep_inside, weighted, wrapped
from ..results.saving import described, load
from ..solvers.base import AnchoredRows, FittedTerms, Solution
from ..terms.base import Columns
from .population import Parts

NAME = "each.json"
CLASS = "KeptLevel"
ETA, LOG_Z = "eta", "log_z"

Again = Callable[[Observations, str], "Fit | str"]  # one level's fit, or the sentence why it has none


@final
class KeptLevels:
    """The folder, and the levels that an earlier call left in it."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        parts: Parts,
        levels: Mapping[str, Any],
        seeds: Mapping[str, int],
        again: Again,
    ) -> None:
        """`levels`: which they are, in the caller's words; `seeds`: of each of them."""
        self.folder, self.parts, self.seeds, self.again = Path(folder), parts, seeds, again
        self.notes: tuple[str, ...] = ()
        self._where = {name: self.folder / f"level-{i}" for i, name in enumerate(seeds)}
        self._rows: dict[str, dict[str, np.ndarray]] = {}  # of the levels that were read
        self._depends = depending(_depends(parts, levels))
        if not self.folder.exists():
            return
        if not (self.folder / NAME).is_file() and any(self.folder.iterdir()):
            raise InputError(f"{str(self.folder)!r} holds no levels of un.fit_each; choose another checkpoint=.")
        if (self.folder / NAME).exists():
            check_depends(self.folder / NAME, self._depends, "remove the folder")

    def keep(self, name: str, made: Fit | str) -> None:
        """Write a finished level. One that failed is tried again, and so is one whose rows are a rule's nodes (their
        number was found during the fit), or more than are held."""
        rows = _row_numbers(made) if isinstance(made, Fit) else None
        if rows is None or not isinstance(made, Fit):
            return
        if not (self.folder / NAME).exists():
            write_depends(self.folder / NAME, self._depends)
        parts = {"fit": described(made)}  # a level that a power cut has damaged is found so, and fitted again
        storage.write_folder(self._where[name], {"class": CLASS, "level": name}, rows, parts, settle=False)

    def read(self, name: str, obs: Observations) -> Fit | None:
        """The level that an earlier call finished; None where there is none. A damaged one is fitted again."""
        path = self._where[name]
        recover(path)
        if not path.exists():
            return None
        try:
            about, rows = storage.read_folder(path)
            if about.get("class") != CLASS or about.get("level") != name or list(about.get("manifest", ())) != ["fit"]:
                raise InputError("it is another level")
            found = load(path / "fit", self.parts.model)
        except UnnormError as error:
            self.notes += (f"The fit of {name} in {str(self.folder)!r} could not be used, and was made again: {error}",)
            remove(path)
            return None
        self._rows[name] = rows
        figures = dict(found.diagnostics)
        asked = figures.pop("evidence", ()) is not None  # or it was not asked for before, and needs the rows again
        own = replace(found, obs=self._prepared(obs), backend=obs.backend)
        if asked:
            return own
        return replace(own, diagnostics=figures, evidence=Evidence(lambda: self._evidence(name, obs)))

    def with_rows(self, fits: Mapping[str, Fit]) -> dict[str, Fit]:
        """The same fits, each with the rows that a joint fit reads."""
        return {name: self._with_rows(name, one) if name in self._rows else one for name, one in fits.items()}

    def _with_rows(self, name: str, one: Fit) -> Fit:
        numbers = self._rows[name]
        if ETA not in numbers or one.obs is None or one.smooths is None:
            return one  # a fit without rows
        own = self._problem(name, one.obs)
        _, part, design = own.linear
        eta, rows = numbers[ETA], own.rows
        if eta.shape != (len(rows),):
            raise InputError(f"The level {name} in {str(self.folder)!r} has other rows; remove the folder.")
        kept = KeptRows(own.family, part.columns, own.response.y, own.response.weights, part.offset, design, eta)
        log_z = numbers.get(LOG_Z)
        anchored = (
            None if log_z is None else AnchoredRows(rows.context, part.offset, Integrated(log_z, np.empty((0, 0))))
        )
        smooths = replace(one.smooths, gam=cast(Any, kept))
        drawn = own.drawn if self.parts.smoothing.reference_error else Drawn.NONE
        return replace(one, smooths=smooths, solution=_solution(one, own, eta, anchored, drawn))

    def _problem(self, name: str, obs: Observations) -> AdditiveProblem:
        """The level's rows, drawn again."""
        parts = self.parts
        assert parts.objective is not None
        given = parts.normaliser
        if given is None:
            given = parts.objective.default_normaliser(parts.model, obs)
        problem = Problem(parts.model, obs, parts.objective, given.bound(obs))
        return problem.additive(own_stream(self.seeds[name]))

    def _prepared(self, obs: Observations) -> Observations:
        """As `un.fit` takes them."""
        domain = self.parts.model.domain
        return weighted(keep_inside(domain, wrapped(domain, obs), "error")[0], self.parts.weights)

    def _evidence(self, name: str, obs: Observations) -> dict[str, Any]:
        made = self.again(obs, name)
        return {} if isinstance(made, str) or made.evidence is None else made.evidence()


@final
@dataclass(frozen=True)
class KeptRows:
    """A level's rows as the joint fit reads them of an additive fit (`Gam`), with η̂ as it was."""

    family: str
    columns: Columns
    y: np.ndarray
    weights: np.ndarray | None
    offset: np.ndarray | None
    design: Design
    linear_predictor: np.ndarray
    whole: None = None  # all rows are here

    @property
    def smoothed(self) -> KeptRows:
        return self


def _depends(parts: Parts, levels: Mapping[str, Any]) -> dict[str, Any]:
    """What the numbers of every level depend on; functions of Python are not compared."""
    obs, objective, normaliser = parts.obs, parts.objective, parts.normaliser
    columns = {"outcome": obs.outcome, **obs.context, **{f"group {name}": one for name, one in obs.group.items()}}
    more = {"weight": obs.weight, "offset": obs.offset, "sequence": obs.sequence}
    return {
        **levels,
        "model": parts.model.to_dict(),
        "objective": None if objective is None else objective.to_dict(),
        "normaliser": None if normaliser is None else normaliser.to_dict(),
        "smoothing": [parts.smoothing.to_dict(), parts.smoothing.reference_error],
        "rng": parts.seed,
        "weights": parts.weights,
        "observations": digest({**columns, **{name: one for name, one in more.items() if one is not None}}),
        "categories": {name: [list(one.levels), one.ordered] for name, one in obs.categories.items()},
    }


def _row_numbers(made: Fit) -> dict[str, np.ndarray] | None:
    """What cannot be made again from the seed; None where rows cannot be drawn again at all."""
    gam = None if made.smooths is None else made.smooths.gam
    if gam is None:
        return {}
    terms = None if made.solution is None else made.solution.terms
    scores = None if made.solution is None else made.solution.scores
    rows = None if scores is None else scores.as_rows()
    if rows is None or "m" not in made.diagnostics or gam.whole is not None:
        return None
    numbers = {ETA: np.asarray(gam.linear_predictor)}
    if terms is not None and terms.anchored is not None:
        numbers[LOG_Z] = terms.anchored.integrated.log_z
    return numbers


def _solution(one: Fit, own: AdditiveProblem, eta: np.ndarray, anchored: AnchoredRows | None, drawn: Drawn) -> Solution:
    """The rows at η̂ as a solver hands them on; the estimate is the saved one."""
    rows, part = own.rows, one.smooths
    assert part is not None
    ratio = None if rows.log_q is None else eta - rows.offset - rows.log_q
    block = ScoreRows(cast(Any, None), rows.likelihood, eta, rows.data, rows.at, rows.weight, None, ratio)
    scores = RowScores(
        blocks=lambda: iter([block]),
        size=part.beta.size,
        weight=float(own.obs.weights.sum()),
        drawn=drawn,
        shared=own.source.shared,
        information=np.empty((0, 0)),
        counts_points=own.cumulant.counts_points,
    )
    terms = FittedTerms(
        part.terms, part.model_labels, part.normaliser_labels, part.slices, part.beta, part.grids, part.edf, {},
        part.sp, part.score, part.method, part.gam, anchored, part.within,
    )  # fmt: skip
    return Solution(
        names=one.names,
        estimate=one.estimate,
        index=np.empty(0, dtype=int),
        constants=Constants(one.nu),
        value=one.value,
        loglik=one.loglik,
        converged=one.converged,
        reason=one.reason,
        iterations=one.iterations,
        solver=one.settings["solver"],
        scores=scores,
        terms=terms,
    )
