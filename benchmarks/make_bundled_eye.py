"""Writes the bundled eye.csv.gz: the scanpaths of `un.datasets.eye()`, from the law stated in unnorm.studies.eye."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from unnorm.studies.eye import SEED, draw_subjects, simulate_eye


def main() -> None:
    rng = np.random.default_rng(SEED)
    curves = draw_subjects(14, rng)
    table = simulate_eye(rng, curves=curves)
    target = Path(__file__).parent.parent / "src" / "unnorm" / "studies" / "bundled" / "eye.csv.gz"
    target.parent.mkdir(exist_ok=True)
    lines = ["subject,image,fix,x,y"]
    lines += [
        f"{s},{i},{f},{x:.1f},{y:.1f}" for s, i, f, x, y in zip(*(table[k].tolist() for k in lines[0].split(",")))
    ]
    data = gzip.compress(("\n".join(lines) + "\n").encode("ascii"), compresslevel=9, mtime=0)
    target.write_bytes(data)
    counts = np.unique(table["subject"], return_counts=True)[1]
    print(f"{target.name}: {len(data):,} bytes, {len(table['x']):,} fixations, {counts.tolist()} by subject")


if __name__ == "__main__":
    main()
