"""Friendship among 26 pupils in four waves (Knecht), with missing answers and a pupil who left.

python examples/knecht.py ../shared/data            # the folder with net_knecht_*.csv
python examples/knecht.py ../shared/data docs       # … and writes the picture there
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
    return {key: np.array([float(row[key]) if row[key] else np.nan for row in rows]) for key in rows[0]}


def main(data: Path, pictures: Path | None) -> None:
    dyads, pupils, primary = (read(data / f"net_knecht_{name}.csv") for name in ("dyads", "pupils", "primary_edges"))
    A, D = np.zeros((4, 26, 26)), np.zeros((26, 26))
    A[tuple(dyads[key].astype(int) - 1 for key in ("wave", "from", "to"))] = dyads["tie"]
    D[tuple(primary[key].astype(int) - 1 for key in ("from", "to"))] = 1
    present = (A == 10).sum(axis=2) < 25  # 10 is a structural zero: who left has nothing else
    A[A == 10] = 0
    nodes = {
        "sex": np.where(pupils["sex"] == 1, "girl", "boy"),
        "delinquency": np.stack([pupils[f"delinquency_w{t}"] for t in (1, 2, 3, 4)]),
    }
    omega = un.Graphs(26, directed=True)
    try:
        un.networks(A, omega, present=present)
    except un.errors.DataError as error:
        print(error)
    obs = un.networks(A, omega, present=present, missing="skip")
    formula = (
        "edges + mutual + gwesp(0.5) + gwodegree(1) + nodematch(sex) + nodeofactor(sex) + edgecov(primary) "
        "+ nodeicov(delinquency, lag=1) + absdiff(delinquency, lag=1) + memory + delrecip"
    )
    model = un.GraphStatistics(formula, omega, nodes, {"primary": D})
    pseudo = un.fit(model, obs, un.PseudoLikelihood(), rng=1)
    fit = un.fit(model, obs, un.MonteCarloML(), rng=2)
    print(pseudo.summary(), fit.summary(), sep="\n\n")
    gof = un.graph_gof(fit, rng=3)
    print("\n".join(f"{name:<16} p = {one.overall:.3f}" for name, one in gof.parts.items()))
    if pictures is not None:
        figure, _ = gof.plot()
        figure.savefig(pictures / "graphs_knecht.png", dpi=70)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data"), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
