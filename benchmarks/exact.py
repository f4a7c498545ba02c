"""Cost of `Exact` on the toy chain, per context and Newton step, beside a NumPy/SciPy fit that a competent user writes.

    python benchmarks/exact.py [--n 1000,10000,100000]

Both sides integrate with 100 Gauss–Legendre nodes and reach the same maximum (checked). The peer is vectorised NumPy
with analytic gradients handed to SciPy's trust-exact Newton, in chunks so that it fits in memory.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from scipy.optimize import minimize

import unnorm as un


class Peer:
    """−𝓛 of the toy chain with gradient and Hessian, 100 nodes, chunked NumPy."""

    def __init__(self, chain: np.ndarray, chunk: int = 4096) -> None:
        self.y, self.x, self.chunk = chain[1:], chain[:-1], chunk
        nodes, weights = np.polynomial.legendre.leggauss(100)
        self.nodes, self.log_w = nodes, np.log(weights)
        self.total = np.array([self.y.sum(), -0.5 * np.sum((self.y - self.x) ** 2)])
        self.cache: tuple[bytes, tuple[float, np.ndarray, np.ndarray]] | None = None
        self.passes = 0

    def all(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        if self.cache is not None and self.cache[0] == theta.tobytes():
            return self.cache[1]
        self.passes += 1
        value, gradient, hessian = float(self.total @ theta), self.total.copy(), np.zeros((2, 2))
        for begin in range(0, len(self.x), self.chunk):
            x = self.x[begin : begin + self.chunk, None]
            d = -0.5 * (self.nodes - x) ** 2
            f = theta[0] * self.nodes + theta[1] * d + self.log_w
            top = f.max(axis=1, keepdims=True)
            p = np.exp(f - top)
            z = p.sum(axis=1, keepdims=True)
            value -= float(np.sum(top + np.log(z)))
            p /= z
            m1, m2 = p @ self.nodes, np.einsum("cn,cn->c", p, d)
            gradient -= [m1.sum(), m2.sum()]
            cross = np.sum(np.einsum("cn,cn,n->c", p, d, self.nodes) - m1 * m2)
            hessian[0, 0] -= np.sum(p @ self.nodes**2 - m1**2)
            hessian[1, 1] -= np.sum(np.einsum("cn,cn,cn->c", p, d, d) - m2**2)
            hessian[0, 1] -= cross
            hessian[1, 0] -= cross
        self.cache = (theta.tobytes(), (-value, -gradient, -hessian))
        return self.cache[1]

    def fit(self) -> np.ndarray:
        return minimize(
            lambda t: self.all(t)[0],
            np.zeros(2),
            jac=lambda t: self.all(t)[1],
            hess=lambda t: self.all(t)[2],
            method="trust-exact",
            options={"gtol": 1e-6},
        ).x


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", default="1000,10000,100000")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    model = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
    print(f"{'n':>8} {'unnorm s':>9} {'steps':>6} {'ns/context/step':>16} ", end="")
    print(f"{'NumPy s':>9} {'passes':>7} {'ratio':>6} {'Δθ/se':>9}")
    for n in (int(part) for part in options.n.split(",")):
        chain = un.datasets.toy_chain(n, 0.5, 5.0, rng=1)
        obs = un.transitions(chain)
        un.fit(model, obs)  # compiles
        ours, theirs = [], []
        for _ in range(options.repeats):  # alternating, so that a busy machine slows both
            start = time.perf_counter()
            fit = un.fit(model, obs)
            ours.append(time.perf_counter() - start)
            start = time.perf_counter()
            peer = Peer(chain)
            theta = peer.fit()
            theirs.append(time.perf_counter() - start)
        t, s = float(np.median(ours)), float(np.median(theirs))
        off = float(np.max(np.abs(fit.estimate - theta) / fit.se))
        each = 1e9 * t / (n * fit.iterations)
        print(
            f"{n:>8} {t:>9.4f} {fit.iterations:>6} {each:>16.0f} {s:>9.4f} {peer.passes:>7} {s / t:>6.1f} {off:>9.1e}"
        )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
