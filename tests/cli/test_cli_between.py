"""`unnorm fit --between`, `--figures` and `--json`."""

from __future__ import annotations

import csv
import html
import json
import re

import numpy as np
import pytest

import unnorm as un
from unnorm.results.scores import GAIN

COMMON = ["--y", "x,y", "--order", "fix", "--group", "subject,image", "--by", "subject", "--window", "0,800,0,600",
          "--references", "4", "--normaliser", "s(x_prev,y_prev,k=8)"]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    home = tmp_path_factory.mktemp("between")
    rng = np.random.default_rng(8)
    with open(home / "data.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["subject", "image", "fix", "x", "y", "group", "mixed", "gap", "phase", "one"])
        for subject in range(4):
            for image in range(5):
                at = rng.uniform((200, 150), (600, 450))
                for fix in range(14):
                    mixed = "b" if subject == 3 and image == 4 else "ab"[subject % 2 == 0]
                    gap = "" if (subject, image) == (1, 2) else "ab"[subject % 2]
                    out.writerow(
                        [
                            subject,
                            image,
                            fix,
                            *at.round(1).tolist(),
                            "AB"[subject % 2],
                            mixed,
                            gap,
                            "early" if fix < 5 else "late",
                            "o",
                        ]
                    )
                    at = np.clip(at + rng.normal(0, 90, 2), 1, [799, 599])
    return home


def test_from_the_table_to_differences_and_figures(folder, unnorm) -> None:
    out = folder / "out"
    terms = ["--terms", "s(step, k=5) + s(dcenter, k=5)"]
    more = ["--between", "group", "--figures", "svg,pdf", "--json", "--out", str(out)]
    ran = unnorm("fit", str(folder / "data.csv"), *COMMON, *terms, *more)
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    assert summary["transitions"] == 4 * 5 * 13
    assert summary["conditions"]["design"] == "between"
    assert summary["conditions"]["members"] == {"A": ["0", "2"], "B": ["1", "3"]}
    assert [one["term"] for one in summary["conditions"]["tests"]] == ["all effects", "s(step)", "s(dcenter)"]
    assert all(0 < one["p"] <= 1 for one in summary["conditions"]["tests"])
    _misfit_and_scores(summary, (out / "report.html").read_text(encoding="utf-8"))
    with open(out / "differences.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    each = un.load(out / "fit", un.Additive("s(step, k=5) + s(dcenter, k=5)", un.Box((0, 800), (0, 600))))
    first = next(row for row in rows if row["term"] == "s(step)")
    known = each.difference("s(step)", "A", "B", {"step": [float(first["step"])]})
    assert float(first["estimate"]) == pytest.approx(known["estimate"][0], abs=1e-6)
    assert float(first["upper_simultaneous"]) == pytest.approx(known["upper_simultaneous"][0], abs=1e-6)
    names = sorted(path.name for path in (out / "figures").iterdir())
    assert "01-effects-s-step.pdf" in names
    assert sum(name.endswith(".svg") for name in names) == len(names) / 2
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count('src="data:image/svg+xml') == len(names) / 2
    assert "Do the conditions of group differ?" in page
    assert 'between = "group"' in (out / "config.toml").read_text(encoding="utf-8")
    with open(out / "tests.csv", newline="", encoding="utf-8") as file:
        assert [row["contrast"] for row in csv.DictReader(file)] == ["all"] * 3


def _misfit_and_scores(summary: dict, page: str) -> None:
    """The same numbers as in the report."""
    text = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page)))
    misfit = summary["misfit"]
    assert misfit["verdict"] in text
    assert [one["feature"] for one in misfit["features"]] == ["step", "direction", "turn", "place"]
    for one in misfit["features"]:
        means = [", ".join(f"{mean:.3g}" for mean in one[name]) for name in ("observed_mean", "drawn_mean")]
        assert f"{' '.join(means)} {one['error']:.2f}" in text
        assert one["missed"] == (one["p"] <= 0.01 and one["error"] > 0.1)
    assert "Observed against drawn points feature observed mean" in text
    scores = summary["scores"]
    assert set(scores) == {"group", "0", "1", "2", "3"}
    assert scores["group"]["points"] == sum(scores[level]["points"] for level in "0123")
    assert {"NSS", "AUC", GAIN} <= {one["score"] for one in scores["group"]["table"]}
    for one in scores["group"]["table"]:
        ends = f"{one['lower']:.3f} to {one['upper']:.3f}"
        assert f"{one['score']} {one['mean']:.3f} {one['se']:.3f} {ends}" in text
    assert scores["group"]["baseline"] in text
    assert scores["group"]["clusters"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--between", "mixed"], r"3 levels are in one condition of 'mixed', and 1 in several, first subject=3"),
        (["--between", "gap"], r"gap.*first"),
        (["--between", "nothing"], r"nothing"),
        (
            ["--between", "subject"],
            r"--between must name the conditions, and --by the subjects; got 'subject' for both",
        ),
        (["--between", "one"], r"needs at least two conditions; 'one' has one, 'o'. Leave --between out"),
        (["--duration", "image"], r"52 of 'image' are not, the first in row 2 \(rows count from 1, the"),
        (["--duration", "group"], r"Durations must be numbers; column 'group' holds text, first 'A'"),
        (["--figures", "gif"], r"--figures.*svg.*got 'gif'"),
    ],
)
def test_bad_input(folder, unnorm, options: list[str], sentence: str) -> None:
    ran = unnorm("fit", str(folder / "data.csv"), *COMMON, *options, "--out", str(folder / "no"))
    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert re.search(sentence, ran.err), ran.err


def test_conditions_need_subjects(folder, unnorm) -> None:
    bare = [word for word in COMMON if word not in ("--by", "subject")]
    ran = unnorm("fit", str(folder / "data.csv"), *bare, "--between", "group", "--out", str(folder / "no"))
    assert ran.code == 2
    assert "--by subject --between group; got no --by" in ran.err


def test_steps_from_one_condition_to_another_are_counted(folder, unnorm) -> None:
    from unnorm.cli.config import checked_job
    from unnorm.cli.jobs import prepare

    given = {
        "data": str(folder / "data.csv"),
        "order": "fix",
        "group": "subject,image",
        "by": "subject",
        "window": "0,800,0,600",
    }
    whole, parted = (prepare(checked_job({**given, "between": name})).obs for name in ("group", "phase"))
    assert not any("leads from one condition" in note or "lead from one condition" in note for note in whole.notes)
    assert whole.n - parted.n == 20  # one for each sequence
    assert "20 steps lead from one condition to another" in parted.notes[0]
