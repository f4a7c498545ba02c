"""Friendship among 50 pupils (s50, three waves): one network, then the sequence, with goodness of fit.

python examples/s50.py ../shared/data            # the folder with net_s50_edges.csv and net_s50_actors.csv
python examples/s50.py ../shared/data docs       # … and writes the pictures there
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

import unnorm as un


def read(path: Path) -> dict[str, np.ndarray]:
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([int(row[key]) for row in rows]) for key in rows[0]}


def main(data: Path, pictures: Path | None) -> None:
    edges, actors = read(data / "net_s50_edges.csv"), read(data / "net_s50_actors.csv")
    A = np.zeros((3, 50, 50))
    A[edges["wave"] - 1, edges["from"] - 1, edges["to"] - 1] = 1
    nodes = {name: np.stack([actors[f"{name}_w{t}"] for t in (1, 2, 3)]) for name in ("alcohol", "smoking")}
    omega = un.Graphs(50, directed=True)

    print("One network, wave 1: ttriple is degenerate, and says so")
    one = un.networks(A[0], omega)
    model = un.GraphStatistics("edges + mutual + ttriple", omega)
    print({name: round(value, 4) for name, value in un.fit(model, one, un.PseudoLikelihood(), rng=1).theta.items()})
    try:
        un.fit(model, one, un.MonteCarloML(), rng=2)
    except un.errors.EstimationError as error:
        print(error)

    print("\nThe same with gwesp")
    single = un.fit(un.GraphStatistics("edges + mutual + gwesp(0.25)", omega), one, un.MonteCarloML(), rng=3)
    print(single.summary())

    print("\nThe sequence")
    formula = (
        "edges + mutual + gwesp(0.5) + gwidegree(0.5) + absdiff(alcohol, lag=1) + nodeocov(alcohol, lag=1) "
        "+ nodeicov(alcohol, lag=1) + nodematch(smoking, lag=1) + memory + delrecip"
    )
    obs = un.networks(A, omega)
    model = un.GraphStatistics(formula, omega, nodes)
    pseudo = un.fit(model, obs, un.PseudoLikelihood(), rng=4)
    fit = un.fit(model, obs, un.MonteCarloML(), rng=5)
    print(pseudo.summary(), fit.summary(), sep="\n\n")
    gof, bare = (
        un.graph_gof(fit, rng=6),
        un.fit(un.GraphStatistics("edges + memory", omega), obs, un.PseudoLikelihood()),
    )
    without = un.graph_gof(bare, rng=7)
    for name in gof.parts:
        # the bare model has statistics of its own, which are not these
        alone = "" if name == "statistics" else f"; with edges + memory alone p = {without.parts[name].overall:.3f}"
        print(f"{name:<16} p = {gof[name].overall:.3f}{alone}")
    if pictures is not None:
        figure, _ = gof.plot()
        figure.savefig(pictures / "graphs_s50.png", dpi=70)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data"), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
