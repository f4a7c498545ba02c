"""Writes rows.csv: choice sets of the toy chain (eq. 4.1), each a transition with its IID uniform reference points.

python tests/oracles/survival/rows.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import unnorm as un

N, K = 80, 7


def main() -> None:
    chain = un.datasets.toy_chain(N, -0.6, 6.0, rng=11)
    rng = np.random.default_rng(12)
    lines = ["set,z,y,y_prev"]
    for t in range(N):
        points = [(1, chain[t + 1]), *((0, u) for u in rng.uniform(-1, 1, K))]
        lines += [f"{t},{z},{float(y)!r},{float(chain[t])!r}" for z, y in points]
    (Path(__file__).parent / "rows.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
