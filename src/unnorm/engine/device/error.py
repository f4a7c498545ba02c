"""What a fit says of the device that met its rows: with float32, how far float64 would still move the estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .spec import Device

if TYPE_CHECKING:
    from ..design import Design
    from ..outer import PenalisedRows
    from ..segment import ResponseRows
    from ..smoothed import Smoothed


def left(design: Design, rows: ResponseRows, code: int, result: Smoothed) -> float:
    """max_j |δ_j|/se_j of Newton's next step δ = H⁻¹(s − S_λβ̂), with the score s at the estimate in float64."""
    beta = design.to_flat(result.beta)
    assert design.elsewhere is not None
    score = design.elsewhere.precisely(rows, code, beta)
    pull = score - design.penalties.columns(beta) @ np.exp(result.rho)
    return float((np.abs(result.inverse.dot(pull)) / np.sqrt(result.inverse.diagonal())).max())


def said(problem: PenalisedRows, result: Smoothed, device: Device) -> str:
    """A sentence; for float32 after one pass in float64 at the estimate."""
    return sentence(problem.design, problem.rows, problem.code, result, device)


def sentence(design: Design, rows: ResponseRows, code: int, result: Smoothed, device: Device) -> str:
    """The same of a design whose rows are there."""
    where = f"The passes over the rows were made by JAX on the {device.jax.device_kind} in {device.precision}"
    if device.precision == "float64":
        return f"{where}."
    share = left(design, rows, code, result)
    return f"{where}: a float64 pass at the estimate would move no coefficient by more than {share:.1g} se."
