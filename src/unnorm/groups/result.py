"""`FitGroup`: the fits of all levels, the population's curves, and what can be asked of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from .._base import storage
from .._base.counts import counted
from .._base.frames import to_native
from .._base.intervals import normal_quantile
from .._base.numerics import Rng
from .._version import __version__
from ..errors import InputError, hush, unknown
from ..models.base import Unnormalised
from ..results.fit import Fit
from ..results.fitted_terms import effect_columns
from ..results.saving import described, load
from ..results.smooths import SmoothPart
from .conditions import Conditions
from .saving import condition_parts, loaded_conditions, saved_conditions

GROUP, MEAN = "group", "mean"
NO_CONDITIONS = "No conditions were compared: call fit_each again with between= the column of conditions."
NOT_ASKED = "There is no group curve: fit_each was called with group=False. Call it again with group=True."


@final
@dataclass(frozen=True, eq=False)
class FitGroup:
    """The same model fitted to each level of a factor, and the population's curves from a joint fit.

    `fits["3"]` is level 3's own `Fit`. `group` is a `Fit` too: its terms are the main effects of the joint fit, its
    bands are for the population's mean curve, and it can be simulated from and saved like any other.

    Example:
        >>> import numpy as np, unnorm as un
        >>> rng = np.random.default_rng(1)
        >>> table = {"who": np.repeat(["a", "b"], 150), "i": np.tile(np.arange(150), 2)}
        >>> table |= {"x": rng.random(300), "y": rng.random(300)}
        >>> obs = un.transitions(table, y=("x", "y"), order="i", group="who")
        >>> model = un.Additive("s(step, k=5)", un.Box((0, 1), (0, 1)))
        >>> each = un.fit_each(model, obs, by="who", objective=un.Logistic(per_point=5), group=False, rng=2)
        >>> each.levels, each.fits["a"].n
        (('a', 'b'), 149)
    """

    by: str  #: the group column
    fits: Mapping[str, Fit]  #: level as text → its fit, in the order of the levels
    group: Fit | None  #: the population's curves; None with group=False, with one level, or where the joint fit failed
    failures: Mapping[str, str]  #: level → why it has no fit
    labels: tuple[str, ...]  #: the terms of f, in the model's order
    grids: Mapping[str, Mapping[str, np.ndarray]]  #: label → covariate → values: one grid for all levels
    settings: Mapping[str, Any]  #: model, objective, normaliser and solver, in words
    notes: tuple[str, ...] = ()  #: about the whole; each fit has its own besides
    no_group: str | None = None  #: why there is no group curve, where one was asked for and could not be fitted
    seed: int | None = None  #: of the reference points
    model: Unnormalised | None = None  #: f; None where a saved one was loaded without it
    backend: Any = None  #: the user's kind of table, for those given back
    diagnostics: Mapping[str, Any] = field(default_factory=dict)  #: seconds, rows
    conditions: Conditions | None = None  #: compared, where fit_each was given between=

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels that have a fit."""
        return tuple(self.fits)

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"FitGroup(by={self.by!r}, {len(self.fits)} levels{failed}; see .summary())"

    def __getitem__(self, which: str | int) -> Fit:
        """The fit of a level, "group", or a condition's population: "condition=A"."""
        which = str(which)
        if which in self.fits:
            return self.fits[which]
        if self.conditions is not None and which in self._by_condition:
            return self._by_condition[which]
        if which == GROUP:
            if self.group is None:
                raise InputError(self.no_group or NOT_ASKED)
            return self.group
        if which in self.failures:
            raise InputError(f"Level {which!r} of {self.by!r} could not be fitted: {self.failures[which]}")
        raise InputError(unknown("which", which, [GROUP, MEAN, *self._by_condition, *self.fits]))

    @property
    def _by_condition(self) -> dict[str, Fit]:
        """The conditions' populations as `which` names them."""
        if self.conditions is None:
            return {}
        return {f"{self.conditions.between}={name}": fit for name, fit in self.conditions.fits.items()}

    def difference(
        self, label: str, first: str | None = None, second: str | None = None, at: Any = None, level: float = 0.95
    ) -> Any:
        """One term's difference between two conditions' populations as a table: its covariates, estimate, se,
        se_sampling, se_reference, lower, upper (pointwise), lower_simultaneous, upper_simultaneous (the whole curve).

        Args:
            label: as in `labels`, e.g. "s(angle)".
            first: a condition; default the first.
            second: the one that is taken off; default the next.
            at: covariate values; default the common grid.
            level: of both bands.
        """
        compared, label = self._compared(), label.replace(" ", "")
        if label not in self.labels:
            raise InputError(unknown("label", label, self.labels))
        return compared.difference(label, first, second, self.grids[label] if at is None else at, level)

    def _compared(self) -> Conditions:
        if self.conditions is None:
            raise InputError(self.no_group or NO_CONDITIONS)
        return self.conditions

    def effect(self, label: str, which: str = GROUP, at: Any = None, level: float = 0.95, centre: str = "rows") -> Any:
        """One term's effect as a table: its covariates, estimate, se, se_sampling, se_reference, lower, upper.

        Args:
            label: as in `labels`, e.g. "s(angle)".
            which: "group" (the population, joint fit), a condition's population ("condition=A"), a level, or "mean"
                (the plain mean of the separate fits, as in the paper; its bands are too narrow: smoothing bias does not
                average out).
            at: covariate values; default the common grid.
            level: of the pointwise band.
            centre: where each curve averages to zero: over all "rows" fitted (mostly reference points) or over the
                "observations"; a level's over its own, the group's over all.
        """
        return to_native(self._effect(label, str(which), at, level, centre), self.backend)

    def _effect(
        self, label: str, which: str, at: Any = None, level: float = 0.95, centre: str = "rows"
    ) -> dict[str, np.ndarray]:
        label = label.replace(" ", "")
        if label not in self.labels:
            raise InputError(unknown("label", label, self.labels))
        if which == MEAN and MEAN not in self.fits:
            return self._mean(label, at, level, centre)
        return _quietly(self[which], label, self.grids[label] if at is None else at, level, centre)

    def _mean(self, label: str, at: Any, level: float, centre: str) -> dict[str, np.ndarray]:
        where = self.grids[label] if at is None else at
        each = [_quietly(one, label, where, level, centre) for one in self.fits.values()]
        covariates = [name for name in each[0] if name not in _NUMBERS]
        out = {name: each[0][name] for name in covariates}
        out["estimate"] = np.mean([one["estimate"] for one in each], axis=0)
        for name in ("se", "se_sampling", "se_reference"):
            out[name] = np.sqrt(np.sum([one[name] ** 2 for one in each], axis=0)) / len(each)
        z = normal_quantile(level)
        return {**out, "lower": out["estimate"] - z * out["se"], "upper": out["estimate"] + z * out["se"]}

    def effects(self, level: float = 0.95) -> Any:
        """All effects as one long table: by ("group", a condition's population, or the level), term, each covariate
        under its own name (nan, or empty text, where a term does not have it), estimate, se, se_reference, lower,
        upper.

        Args:
            level: of the intervals.
        """
        names = list(dict.fromkeys(name for label in self.labels for name in self.grids[label]))
        numbers = ("estimate", "se", "se_reference", "lower", "upper")
        columns: dict[str, list[np.ndarray]] = {name: [] for name in ("by", "term", *names, *numbers)}
        text = {
            name
            for label in self.labels
            for name, v in self.grids[label].items()
            if np.asarray(v).dtype.kind not in "iufb"
        }
        for which in [*([GROUP] if self.group is not None else []), *self._by_condition, *self.fits]:
            for label in self.labels:
                one = self._effect(label, which, None, level)
                n = len(one["estimate"])
                columns["by"].append(np.full(n, which, dtype=object))
                columns["term"].append(np.full(n, label, dtype=object))
                for name in names:
                    absent = np.full(n, "", dtype=object) if name in text else np.full(n, np.nan)
                    columns[name].append(np.asarray(one.get(name, absent)))
                for name in numbers:
                    columns[name].append(one[name])
        table = {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in columns.items()}
        for name in ("by", "term", *text):
            table[name] = table[name].astype(str)
        return to_native(table, self.backend)

    def tidy(self, level: float = 0.95) -> Any:
        """A table with a row for each term and parameter of the group and of each level.

        Columns by, term, edf, p (smooth terms), estimate, se, lower, upper (parameters); nan where one does not apply.

        Args:
            level: of the intervals.
        """
        rows: list[tuple[Any, ...]] = []
        nan, z = float("nan"), normal_quantile(level)
        for which in [*([GROUP] if self.group is not None else []), *self._by_condition, *self.fits]:
            fit = self[which]
            if fit.smooths is not None:
                table = fit.smooths.table
                kept = [i for i, label in enumerate(table["term"]) if str(label) in fit.smooths.model_labels]
                rows += [
                    (which, str(table["term"][i]), float(table["edf"][i]), float(table["p"][i]), nan, nan, nan, nan)
                    for i in kept
                ]
            if fit.names:
                for name, value, se in zip(fit.names, fit.estimate.tolist(), fit.se.tolist()):
                    p = _two_sided(value / se) if se > 0 else nan
                    rows.append((which, name, nan, p, value, se, value - z * se, value + z * se))
        names = ("by", "term", "edf", "p", "estimate", "se", "lower", "upper")
        columns = list(zip(*rows)) if rows else [[] for _ in names]
        return to_native({name: np.array(column) for name, column in zip(names, columns)}, self.backend)

    def summary(self) -> str:
        """The fits as a text for people."""
        n, rows = (sum(getattr(fit, name) for fit in self.fits.values()) for name in ("n", "n_rows"))
        first = next(iter(self.fits.values()))
        model, objective, normaliser = (first.settings[part][part] for part in ("model", "objective", "normaliser"))
        lines = [
            f"{model} fitted to {self._fitted_to()}, {counted(n, rows)}",
            f"objective {objective}, normaliser {normaliser}, seed {self.seed}",
            "",
        ]
        wide = max([len(label) for label in self.labels] + [4])
        lines.append(
            f"{'term':<{wide}} {'group edf':>10} {'p':>9} {'levels p<.05':>13} {'median edf':>11} {'sd between':>11}"
        )
        spread = dict(self.group.diagnostics.get("deviations", {})) if self.group is not None else {}
        for label in self.labels:
            own = [row for row in (_row(_part(fit), label) for fit in self.fits.values()) if row is not None]
            group = None if self.group is None else _row(_part(self.group), label)
            edf, p = ("—", "—") if group is None else (f"{group[0]:.2f}", f"{group[1]:.2g}")
            small = f"{sum(one[1] < 0.05 for one in own)} of {len(own)}" if own else "—"
            middle = f"{np.median([one[0] for one in own]):.2f}" if own else "—"
            sd = f"{spread[label]:.3f}" if label in spread else "—"
            lines.append(f"{label:<{wide}} {edf:>10} {p:>9} {small:>13} {middle:>11} {sd:>11}")
        lines.append(
            "p-values and standard errors assume the model; robust ones: fits[level].effect(label, robust=True)"
        )
        if self.conditions is not None:
            lines += ["", *self.conditions.lines()]
        lines += [f"not fitted: {level}: {why}" for level, why in self.failures.items()]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _fitted_to(self) -> str:
        """What has a fit of its own: levels, or levels in conditions."""
        if self.conditions is None or self.conditions.design == "between":
            return f"{len(self.fits)} levels of {self.by!r}"
        levels = {level for members in self.conditions.members.values() for level in members}
        return f"{len(levels)} levels of {self.by!r} in {len(self.conditions.names)} conditions ({len(self.fits)} fits)"

    def plot_conditions(self, labels: Any = None, first: str | None = None, second: str | None = None) -> Any:
        """(Figure, axes): above, each condition's population curve with its pointwise band, a panel for each term of
        one covariate; below, the difference `first` − `second` with its pointwise and simultaneous bands.

        Args:
            labels: of the terms; default all of one covariate.
            first: a condition; default the first.
            second: the one that is taken off; default the next.
        """
        from .plot import plot_conditions

        chosen = self.labels if labels is None else tuple(np.atleast_1d(labels))
        return plot_conditions(self, self._compared(), chosen, first, second)

    def plot(self, labels: Any = None) -> Any:
        """(Figure, axes): a panel for each term; levels grey, group blue with its band, plain mean dashed.

        Args:
            labels: of the terms; default all.
        """
        from .plot import plot_group

        return plot_group(self, self.labels if labels is None else tuple(np.atleast_1d(labels)))

    def simulate(self, n: int = 100, which: str = GROUP, rng: Rng = None, steps: int = 10, starts: Any = None) -> Any:
        """n chains of `steps` steps from the population's density or a level's, as a table with columns chain and step.

        Args:
            n: chains.
            which: "group" or a level.
            rng: seed or generator.
            steps: of each chain, after its start.
            starts: first points, (n, d); default drawn from the observed ones of the same level (or of all).
        """
        fit = self[which]
        return fit.simulate(steps, x0=starts, chains=n if starts is None else None, rng=rng)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a folder with a folder for each fit, whole or not at all; `un.load(path)` reads it.

        Args:
            path: of the folder.
        """
        about = {
            "unnorm": __version__,
            "class": "FitGroup",
            "by": self.by,
            "levels": list(self.fits),
            "group": self.group is not None,
            "failures": dict(self.failures),
            "labels": list(self.labels),
            "grids": {label: list(grid) for label, grid in self.grids.items()},
            "settings": self.settings,
            "notes": list(self.notes),
            "no_group": self.no_group,
            "seed": self.seed,
            "diagnostics": dict(self.diagnostics),
        }
        arrays = {
            f"grid.{i}.{j}": np.asarray(values)
            for i, grid in enumerate(self.grids.values())
            for j, values in enumerate(grid.values())
        }
        parts = {f"level-{i}": fit for i, fit in enumerate(self.fits.values())}
        parts |= {} if self.group is None else {GROUP: self.group}
        if self.conditions is not None:
            about["conditions"], more, fits = saved_conditions(self.conditions)
            arrays |= more
            parts |= fits
        storage.write_folder(path, about, arrays, {name: described(fit) for name, fit in parts.items()})


_NUMBERS = ("estimate", "se", "se_sampling", "se_reference", "lower", "upper")


def _part(fit: Fit) -> SmoothPart:
    if fit.smooths is None:
        raise InputError("These fits have no smooth terms; their parameters are in `tidy()`.")
    return fit.smooths


def _quietly(fit: Fit, label: str, at: Any, level: float, centre: str) -> dict[str, np.ndarray]:
    """The effect on a grid that may reach beyond this level's data: an extrapolation, which shows in its band."""
    with hush():
        return effect_columns(fit, label, at, level, centre)


def _row(part: SmoothPart, label: str) -> tuple[float, float] | None:
    """(edf, p) of a smooth term."""
    where = np.flatnonzero(np.asarray(part.table["term"]) == label)
    return (float(part.table["edf"][where[0]]), float(part.table["p"][where[0]])) if where.size else None


def _two_sided(z: float) -> float:
    from math import erfc, sqrt

    return erfc(abs(z) / sqrt(2))


def load_group(path: str | os.PathLike[str], model: Unnormalised | None = None) -> FitGroup:
    """Read a saved FitGroup; with `model`, everything works; without it, numbers and tables do."""
    about, arrays = storage.read_folder(path)
    if about.get("class") != "FitGroup":
        raise InputError(
            f"{storage.path_text(path)} holds a {about.get('class', 'result')}, not a FitGroup; read it with un.load."
        )
    with storage.restoring(path, "group of fits"):
        levels = [str(level) for level in about["levels"]]
        grids = {
            label: {name: arrays[f"grid.{i}.{j}"] for j, name in enumerate(names)}
            for i, (label, names) in enumerate(about["grids"].items())
        }
        compared = about.get("conditions")
        parts = {*(f"level-{i}" for i in range(len(levels))), *([GROUP] if about["group"] else [])}
        parts |= set() if compared is None else set(condition_parts(compared))
        if set(about["manifest"]) != parts:
            raise ValueError("the manifest names other parts than the group has")
        group = FitGroup(
            by=about["by"],
            fits={level: load(Path(path) / f"level-{i}", model) for i, level in enumerate(levels)},
            group=load(Path(path) / GROUP, model) if about["group"] else None,
            failures=dict(about["failures"]),
            labels=tuple(about["labels"]),
            grids=grids,
            settings=about["settings"],
            notes=tuple(about["notes"]),
            no_group=about["no_group"],
            seed=about["seed"],
            model=model,
            diagnostics=about["diagnostics"],
            conditions=None if compared is None else loaded_conditions(compared, arrays, Path(path), model),
        )
        group.summary()  # what cannot be shown was not saved so
        return group
