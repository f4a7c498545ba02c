"""The rows of an additive problem in parts: blocks of contexts that are made where they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from .._base.memory import require
from ..engine.partition import PartitionedDesign
from ..engine.parts import Held, Recipe
from ..engine.segment import ResponseRows
from ..errors import CombinationError
from ..models.base import Unnormalised
from ..models.normalisers import Normaliser
from .additive import AdditiveProblem, response
from .rows import ArrayRows, Piece
from .scores import Drawn

if TYPE_CHECKING:
    from ..engine.plan import Plan
    from ..engine.resources import Resources

_NONE = np.empty(0)
_TOGETHER = 140.0  # bytes of a row: its compact form, and its numbers


@final
@dataclass(frozen=True)
class PieceRecipe(Recipe):
    """A block of contexts: points, covariates and response from what the piece knows."""

    piece: Piece
    model: Unnormalised
    normaliser: Normaliser

    def make(self, plan: Plan) -> Held:
        rows, obs = self.piece.rows(), self.piece.obs
        problem = AdditiveProblem(self.model, self.normaliser, obs, ArrayRows(rows, shared=False), Drawn.IID)
        _, part = problem.predictor(rows)
        design = problem.meet(plan, rows, part)
        own = response(rows.likelihood)
        given = (own.y, own.weights, part.offset)
        arrays = (_NONE if a is None else np.require(design.sort(a), np.float64, ("C", "W")) for a in given)
        return Held(design, ResponseRows(*arrays))


def in_parts(problem: AdditiveProblem, plan: Plan, resources: Resources) -> PartitionedDesign:
    """The problem's rows as a design in parts."""
    recipes = [PieceRecipe(piece, problem.model, problem.normaliser) for piece in problem.source.pieces(problem.obs)]
    return PartitionedDesign(resources.parts(plan, recipes, problem.source.size, problem.family))


def refuse_parts(problem: AdditiveProblem, planned: bool) -> None:
    """A sentence where memory= or workers= were asked for and cannot be."""
    if problem.drawn is Drawn.NONE:
        raise CombinationError(
            "memory= and workers= are for objectives with reference points: use un.Logistic(…) or un.Importance(…), or "
            "leave them out."
        )
    if not planned:
        raise CombinationError(
            "memory= and workers= take f that is linear in its terms, as un.Additive(…) is: an energy is linearised "
            "again and again on rows in memory. Leave memory= and workers= out."
        )


def require_room(problem: AdditiveProblem) -> None:
    """Refuse rows that have to be together and cannot be, before they are made."""
    if problem.source.held:
        return
    if problem.resources.asked:
        raise CombinationError(
            f"{problem.source.size:,} rows of a model that is not linear in its terms have to be together in memory: "
            "leave memory= and workers= out, use un.Additive(…), or take fewer reference points."
        )
    columns = 16.0 * problem.obs.n * sum(term.size for term in problem.built[0]) if problem.normaliser.anchored else 0.0
    require(
        _TOGETHER * problem.source.size + columns,
        f"{problem.source.size:,} rows",
        "With memory= (as '1GB') rows of un.Additive(…) are made block by block; or take fewer points.",
    )
