"""645 roll calls of the 109th Senate: who votes with whom, given everyone else; 4.5 % of the votes are missing.

    python examples/senate.py DATA/bin_senate109_votes.csv DATA/bin_senate109_members.csv

There are more couplings (about 5,000) than roll calls, so they are shrunk by a ridge that cross-validation chooses, and
their errors come from draws of the model: 645 scores cannot tell the spread of 5,000.
"""

from __future__ import annotations

import csv
import sys

import numpy as np

import unnorm as un


def main(votes: str, members: str) -> None:
    with open(votes, encoding="utf-8") as file:
        rows = list(csv.reader(file))
    columns = rows[0][2:]
    y = np.array([[np.nan if cell == "" else float(cell) for cell in row[2:]] for row in rows[1:]])
    with open(members, encoding="utf-8") as file:
        about = {row["column"]: (row["name"], row["party"]) for row in csv.DictReader(file)}
    voted = np.isfinite(y).mean(axis=0)
    keep = voted > 0.5  # the President, and a senator who came late
    print(f"{y.shape[0]} roll calls, {y.shape[1]} members, {np.isnan(y).mean():.1%} missing")
    print("left out, with more than half missing:", ", ".join(about[c][0] for c, k in zip(columns, keep) if not k))
    y, columns = y[:, keep], [c for c, k in zip(columns, keep) if k]
    names, party = [about[c][0] for c in columns], np.array([about[c][1] for c in columns])
    model = un.Ising(names)
    obs = un.iid(y, missing="keep")

    path = un.penalty_path(model, obs, "ridge", np.geomspace(0.1, 0.001, 5), folds=4, rng=1)
    print(f"\n{len(names)} members, {model.size:,} parameters; held-out pseudo-log-likelihood of a roll call:")
    for lam, score, se in zip(path.strengths, path.score, path.se):
        print(f"  ridge {lam:7.4f}  {score:8.3f}" + (f"  (se of the difference from the best {se:.3f})" if se else ""))
    fit = path.fit
    J = model.parts(fit.estimate).J
    same = party[:, None] == party
    upper = np.triu(np.ones_like(J, dtype=bool), 1)
    print(f"\nmean coupling within a party {J[same & upper].mean():.3f}, between {J[~same & upper].mean():.3f}")
    i, j = np.unravel_index(np.argsort(np.where(upper, J, -np.inf), axis=None)[::-1][:8], J.shape)
    which = [f"J[{names[a]},{names[b]}]" for a, b in zip(i, j)]
    table = fit.errors_of(which, simulated=2000, rng=2)
    print("strongest couplings (errors assume the model):")
    for name, value, se in zip(which, table["estimate"], table["se"]):
        print(f"  {name:45s} {value:.3f} ({se:.3f})")
    across = np.where(upper & ~same, J, -np.inf)
    a, b = np.unravel_index(np.argmax(across), J.shape)
    print(f"strongest across parties: {names[a]} and {names[b]}, {J[a, b]:.3f}")
    for note in fit.notes:
        print("note:", note)


if __name__ == "__main__":
    main(*sys.argv[1:3])
