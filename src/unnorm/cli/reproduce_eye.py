"""`unnorm reproduce eye`: the figures of Section 4.2 and Appendix C."""

from __future__ import annotations

import numpy as np

from .options import Force, Number, Quiet, Resume
from .output import check_target, whole_folder
from .progress import Progress

MARK = "effects.png"  # by which an earlier output is known


def eye(
    data: str | None = None,
    /,
    *,
    k: Number = "20",
    seed: Number = "1",
    out: str = "reproduce-eye",
    force: Force = False,
    resume: Resume = False,
    quiet: Quiet = False,
) -> None:
    """Section 4.2: a scanpath, the three effects with subjects and group, five replicates with bands.

    Args:
        data: a table with the columns subject, image, fix, x, y on 800 × 600 pixels; default the bundled scanpaths.
        k: reference points for each fixation.
        seed: of the reference points.
        out: the folder to make.
        force: replace an earlier output there.
        resume: go on from what an interrupted run left in OUT.part.
        quiet: print nothing but errors.
    """
    from .._base.checkpoints import digest
    from .._base.frames import read_table
    from ..groups import load_group
    from ..studies import reproduce_eye as paper
    from ..studies.datasets import eye as bundled
    from .checkpoint import Part
    from .config import LARGEST_SEED, MOST_REFERENCES, whole

    references, start = whole("--k", k, 1, MOST_REFERENCES), whole("--seed", seed, 0, LARGEST_SEED)
    target = check_target(out, force, MARK)
    table = bundled() if data is None else read_table(data)
    depends = {"k": references, "seed": start, "data": digest(table)}
    with Progress((*paper.STEPS, "figures"), quiet) as progress, Part(target, depends, resume) as part:
        found = paper.run(
            table, start, references, progress.step, lambda name, make: part.stage(name, load_group, make)
        )
        with progress.step("figures"), whole_folder(target, force, MARK) as folder:
            paths = paper.draw(found, folder)
    if quiet:
        return
    share = found.monte_carlo()
    print(
        f"s(angle) over {paper.REPLICATES} replicates with {references} independent points: Monte Carlo sd "
        f"{np.median(share):.2f} of the standard error (median over subjects; largest {share.max():.2f})"
    )
    for path in paths:
        print(target / path.name)
