"""Kernels for χ in a reproducing-kernel Hilbert space (Section 2.3): of numbers, binary vectors, sets and strings.

A new one is a class and a line in `KERNELS`.
"""

from .base import KernelFunction
from .discrete import Hamming, Jaccard, Spectrum
from .numeric import Gaussian, Linear, Matern, Periodic

KERNELS: dict[str, type[KernelFunction]] = {
    cls.name: cls for cls in (Gaussian, Matern, Periodic, Linear, Hamming, Jaccard, Spectrum)
}

__all__ = ["KERNELS", "Gaussian", "Hamming", "Jaccard", "KernelFunction", "Linear", "Matern", "Periodic", "Spectrum"]
