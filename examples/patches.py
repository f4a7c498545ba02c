"""An energy of image patches, d = 64 pixels, trained without its constant; here both constant and maximum are known.

    python examples/patches.py [--side 8] [--n 3000] [--steps 200 2000] [--batch 1000]

The texture is a Gaussian Markov random field, whose pieces of side × side pixels have

    f_θ(y) = −½ Σ_i τ_i y_i² − ½ Σ_{i~j} κ_ij (y_i − y_j)²,       θ = (log τ, log κ),

one τ for each pixel and one κ for each pair of neighbours. unnorm knows f alone: `un.SGD` climbs the Poisson transform,
its integral estimated on points of a normal law, and `un.log_z` gives log Z with its error. What it says is compared
with what is true: Z is a determinant, and the maximum of the likelihood comes by Newton's method.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np

import unnorm as un
from unnorm.errors import UnnormWarning


@dataclass(frozen=True)
class Texture:
    """Pieces of side × width pixels; parameters in the order of the model's: log κ, then log τ."""

    side: int
    width: int

    @cached_property
    def pairs(self) -> np.ndarray:
        """(K, 2) neighbours."""
        at = np.arange(self.side * self.width).reshape(self.side, self.width)
        across = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1)
        return np.concatenate([across, np.stack([at[:-1].ravel(), at[1:].ravel()], axis=1)])

    @cached_property
    def directions(self) -> np.ndarray:
        """(p, d) a with precision Σ e^θ a aᵀ: e_i − e_j of pairs, then e_i."""
        d, (i, j) = self.side * self.width, self.pairs.T
        a, rows = np.zeros((len(i), d)), np.arange(len(i))
        a[rows, i], a[rows, j] = 1.0, -1.0
        return np.concatenate([a, np.eye(d)])

    def precision(self, theta: np.ndarray) -> np.ndarray:
        return (self.directions.T * np.exp(theta)) @ self.directions

    def log_z(self, theta: np.ndarray) -> float:
        """½ d log 2π − ½ log |precision|."""
        d = self.side * self.width
        return float(0.5 * d * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(self.precision(theta))[1])

    def maximum(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The maximum of the likelihood by Newton's method in e^θ, and the standard errors of θ."""
        a = self.directions
        s, x, information = np.mean((y @ a.T) ** 2, axis=0), np.ones(len(a)), np.eye(len(a))
        for _ in range(100):
            G = a @ np.linalg.inv((a.T * x) @ a) @ a.T
            gradient, information = 0.5 * (np.diag(G) - s), 0.5 * G**2
            step = np.linalg.solve(information, gradient)
            while (x + step <= 0).any():
                step = step / 2
            x = x + step
            if np.abs(step).max() < 1e-12:
                break
        return np.log(x), np.sqrt(np.diag(np.linalg.inv(len(y) * information))) / x

    def model(self, edge: float = 8.0) -> un.Energy:
        """The energy, on a box that holds all the mass."""
        i, j = self.pairs.T

        def f(theta, y):
            smooth = jnp.sum(jnp.exp(theta["log_kappa"]) * (y[i] - y[j]) ** 2)
            return -0.5 * jnp.sum(jnp.exp(theta["log_tau"]) * y**2) - 0.5 * smooth

        d = self.side * self.width
        start = {"log_kappa": np.zeros(len(i)), "log_tau": np.zeros(d)}
        return un.Energy(f, start, un.Box(*[(-edge, edge)] * d))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=8)
    parser.add_argument("--n", type=int, default=3000)
    parser.add_argument("--steps", type=int, nargs="+", default=[200, 2000])
    parser.add_argument("--batch", type=int, default=1000)
    given = parser.parse_args()
    texture, rng = Texture(given.side, given.side), np.random.default_rng(1)
    d, pairs = given.side**2, len(texture.pairs)
    truth = np.log(np.concatenate([rng.uniform(0.5, 2.0, pairs), rng.uniform(0.4, 0.8, d)]))
    y = rng.multivariate_normal(np.zeros(d), np.linalg.inv(texture.precision(truth)), given.n)
    best, se = texture.maximum(y)
    obs, model, q = un.iid(y), texture.model(), un.Gaussian(diagonal=False)
    print(f"{given.n:,} pieces of {d} pixels, {len(truth)} parameters")
    print("steps  converged  move left, predicted  truly  log Z (se)          exactly    seconds")
    for steps in given.steps:
        begin = time.process_time()
        solver = un.SGD(steps=steps, batch=given.batch, references=4, reference=q, points=un.IID())
        with warnings.catch_warnings():  # too few steps, and the fit says so
            warnings.simplefilter("ignore", UnnormWarning)
            fit = un.fit(model, obs, un.Poisson(), solver=solver, rng=2)
        took = time.process_time() - begin
        z = un.log_z(fit, reference=q.bind(model.domain, obs), n=20_000, rng=3)
        left = float(np.sqrt(np.mean(((fit.estimate - best) / se) ** 2)))
        print(
            f"{steps:5d}  {fit.converged!s:9}  {fit.diagnostics['left_in_se']:20.2f}  {left:5.2f}  "
            f"{z.value:9.4f} ({z.se:.4f})  {texture.log_z(fit.estimate):9.4f}  {took:9.1f}"
        )


if __name__ == "__main__":
    main()
