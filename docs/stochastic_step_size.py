"""The bias that a Langevin step size buys: posterior sds by Langevin over the exact ones, on the toy chain.

    python docs/stochastic_step_size.py

prints the table of docs/stochastic.md.
"""

from __future__ import annotations

import warnings

import numpy as np

import unnorm as un
from unnorm.bayes.langevin import Langevin
from unnorm.bayes.sampling import sample
from unnorm.errors import UnnormWarning
from unnorm.solvers.stochastic import Features


def exact(obs: un.Observations, toy: un.ExponentialFamily) -> tuple[np.ndarray, np.ndarray]:
    """Posterior mean and sd of θ under a flat prior, on a grid, with the closed-form normaliser."""
    ml = un.fit(toy, obs)
    y, x = obs.outcome[:, 0], obs.context["y_prev"]
    axes = [m + s * np.linspace(-6, 6, 61) for m, s in zip(ml.estimate, ml.se)]
    a, b = (grid.ravel() for grid in np.meshgrid(*axes, indexing="ij"))
    log_z = un.datasets.toy_log_normaliser(a[:, None], b[:, None], x[None]).sum(axis=1)
    log_p = a * y.sum() - 0.5 * b * np.sum((y - x) ** 2) - log_z
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    theta = np.column_stack([a, b])
    mean = p @ theta
    return mean, np.sqrt(p @ (theta - mean) ** 2)


def main() -> None:
    toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
    obs = un.transitions(un.datasets.toy_chain(300, 0.5, 5.0, rng=1))
    chi = Features(lambda x: (1.0, x, x**2, x**3, x**4))
    mean, sd = exact(obs, toy)
    print("| step size h | control | bias of the means (in sd) | sd / exact sd | predicted |\n|---|---|---|---|---|")
    for h, control in ((0.05, True), (0.05, False), (0.4, True), (1.0, True)):
        thin = max(1, round(0.5 / h))
        sampler = Langevin(draws=2000, thin=thin, batch=30, references=5, step_size=h, control=control)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnnormWarning)  # the warning is the point of the table
            draws = sample(toy, obs, sampler, normaliser=chi, rng=1)
        shift, ratio = (draws.mean - mean) / sd, draws.sd / sd
        print(
            f"| {h} | {'yes' if control else 'no'} | {shift[0]:+.2f}, {shift[1]:+.2f} "
            f"| {ratio[0]:.2f}, {ratio[1]:.2f} | "
            f"{draws.diagnostics['sd_inflation']:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
