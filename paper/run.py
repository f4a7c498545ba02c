"""Every figure and every claim of the paper, measured.

    python paper/run.py [--quick] [--only TEXT] [--out FOLDER] [--write]

Prints a table: claim, what the paper says, what we measure, verdict; and fails if a verdict is not the one that
README.md prints. `--quick` takes five minutes, the whole at most an hour. `--write` renews the table in README.md.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import warnings
from pathlib import Path

from claims import CLAIMS, Claim, Verdict

from unnorm.errors import UnnormWarning

HERE = Path(__file__).parent
SCRIPTS = ("section_2", "section_3", "section_4_toy", "section_4_eye", "appendix", "sections_1_and_5")
BEGIN, END = "<!-- table -->", "<!-- end of table -->"


def measured(claim: Claim, quick: bool, out: Path) -> tuple[Verdict, float]:
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnnormWarning)  # the paper's settings are not the library's
        found = claim.measure(quick, out)
    return found, time.perf_counter() - begun


def table(found: list[tuple[Claim, Verdict]]) -> str:
    lines = ["| claim | script | the paper says | we measure | verdict |", "|---|---|---|---|---|"]
    for claim, verdict in found:
        note = f". {verdict.note}" if verdict.note else ""
        cells = (claim.where, f"`{claim.script}`", claim.says, verdict.measured, f"{verdict.holds}{note}")
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines)


def write(text: str) -> None:
    readme = HERE / "README.md"
    before, _, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    readme.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, default=Path("paper-output"))
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.write and (given.only or given.quick):
        parser.error("--write renews the whole table, from the whole run: leave --only and --quick out")
    for script in SCRIPTS:
        importlib.import_module(script)
    given.out.mkdir(parents=True, exist_ok=True)
    found, wrong = [], 0
    for claim in CLAIMS:
        if given.only.lower() not in f"{claim.where} {claim.script}".lower():
            continue
        verdict, seconds = measured(claim, given.quick, given.out)
        found.append((claim, verdict))
        as_told = verdict.holds == claim.expected
        wrong += not as_told
        mark = "" if as_told else f"   README.md says: {claim.expected}"
        print(f"{claim.where}: {verdict.holds}{mark}\n    {verdict.measured}  ({seconds:.1f} s)", flush=True)
    if given.write:
        write(table(found))
    print(f"{len(found) - wrong} of {len(found)} verdicts as in README.md; figures in {given.out}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
