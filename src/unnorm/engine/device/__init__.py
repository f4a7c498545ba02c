"""The row pass on a GPU through JAX: compact rows on the device, sums back. JAX is imported on first use."""

from .spec import Device

__all__ = ["Device"]
