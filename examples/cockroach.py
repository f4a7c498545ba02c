"""Four neurons of a cockroach in bins of 10 ms: couplings within a bin and from the bin before.

    python examples/cockroach.py DATA/bin_spikes_cockroach_10ms.csv

d = 4 can be enumerated, so that maximum likelihood, pseudo-likelihood and NCE can be laid side by side.
"""

from __future__ import annotations

import sys

import numpy as np

import unnorm as un


def main(path: str) -> None:
    table = np.genfromtxt(path, delimiter=",", names=True)
    neurons = ("n1", "n2", "n3", "n4")
    y = np.column_stack([table[name] for name in neurons])
    print(f"{len(y):,} bins; spikes in {', '.join(f'{m:.1%}' for m in y.mean(axis=0))} of them")
    obs = un.transitions(y, y=neurons)
    model = un.Ising(neurons, lag=1)

    ml = un.fit(model, obs)
    pl = un.fit(model, obs, un.ConditionalNCE(un.BitFlip(every=True)))
    nce = un.fit(model, obs, un.Logistic(un.ProductBernoulli(), per_point=10, points=un.IID()), rng=1)
    print("\nparameter     likelihood       pseudo-likelihood        NCE, k = 10")
    for j, name in enumerate(model.names):
        three = "   ".join(f"{fit.estimate[j]:7.3f} ({fit.se[j]:.3f})" for fit in (ml, pl, nce))
        print(f"{name:10s} {three}")

    alone = un.fit(un.Ising(neurons), un.iid(y), un.ConditionalNCE(un.BitFlip(every=True)))
    print("\nCouplings within a bin, with and without the bin before:")
    for j, name in enumerate(model.names[4:10], start=4):
        print(f"  {name:9s} {pl.estimate[j]:6.3f} ({pl.se[j]:.3f})   {alone.estimate[j]:6.3f} ({alone.se[j]:.3f})")

    half = obs.n // 2
    first, second = obs.take(np.arange(half)), obs.take(np.arange(half, obs.n))
    for label, one, train, test in (
        ("with the bin before", model, first, second),
        ("without", un.Ising(neurons), un.iid(y[1 : half + 1]), un.iid(y[half + 1 :])),
    ):
        held = un.fit(one, train, un.ConditionalNCE(un.BitFlip(every=True))).held_out(test)
        print(f"held out, {label}: {held.loglik / len(held.log_density):.4f} nats a bin")


if __name__ == "__main__":
    main(sys.argv[1])
