"""Figures of Section 4.1: two realisations of the toy chain, and the estimators' errors against n.

    python paper/toy.py [folder]

The same as `unnorm reproduce toy --out folder --check`: twelve minutes or so on two cores, and it can be interrupted.
"""

from __future__ import annotations

import sys

from unnorm.cli import main

if __name__ == "__main__":
    main(["reproduce", "toy", "--out", sys.argv[1] if len(sys.argv) > 1 else "reproduce-toy", "--check"])
