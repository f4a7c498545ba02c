"""What a fit says of the device that met its rows: with float32, how far float64 would still move the estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .spec import Device

if TYPE_CHECKING:
    from ..outer import PenalisedRows
    from ..smoothed import Smoothed


def said(problem: PenalisedRows, result: Smoothed, device: Device) -> str:
    """A sentence; for float32 after one pass in float64 at the estimate.

    δ = H⁻¹(s − S_λβ̂), with s the score in float64, is what Newton's next step would move, and max_j |δ_j|/se_j is said.
    """
    where = f"The passes over the rows were made by JAX on the {device.jax.device_kind} in {device.precision}"
    if device.precision == "float64":
        return f"{where}."
    design, beta = problem.design, problem.design.to_flat(result.beta)
    assert design.elsewhere is not None
    score = design.elsewhere.precisely(problem.rows, problem.code, beta)
    pull = score - design.penalties.columns(beta) @ np.exp(result.rho)
    share = np.abs(result.inverse.dot(pull)) / np.sqrt(result.inverse.diagonal())
    return f"{where}: a float64 pass at the estimate would move no coefficient by more than {share.max():.1g} se."
