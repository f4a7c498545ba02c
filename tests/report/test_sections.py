"""Every registered section on small results of each kind; a section that is added appears; one number for one level."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import InputError, hush
from unnorm.report import (
    SECTIONS,
    Analysis,
    Provenance,
    effects_table,
    grouped,
    make_sections,
    parameters_table,
    pooled,
    render,
)
from unnorm.report.figures import wanted
from unnorm.report.page import Cell, Section, Table
from unnorm.report.sections import constants, monte_carlo, places
from unnorm.report.sections.conditions import differences_table

BOX = un.Box((0, 800), (0, 600))
LOGISTIC = {
    "objective": un.Logistic(un.Uniform(), per_point=5),
    "normaliser": un.Smooth("s(x_prev, y_prev, k=8)"),
    "rng": 1,
}
RANKING = {"objective": un.Ranking(un.Uniform(), per_point=10), "rng": 1}
PROVENANCE = Provenance("A title", [("data", "some")], ["a note"], "unnorm fit …")


@pytest.fixture(scope="module")
def obs() -> un.Observations:
    rng = np.random.default_rng(7)
    rows = []
    for who in ("a", "b", "c"):
        for image in range(5):
            y = rng.uniform((200, 150), (600, 450))
            for fix in range(14):
                rows.append((who, image, fix, *y))
                y = np.clip(y + rng.normal(0, 90, 2) + 0.1 * (np.array([400, 300]) - y), 1, [799, 599])
    table = dict(zip(("who", "image", "fix", "x", "y"), map(np.array, zip(*rows))))
    table["task"] = np.where(table["image"] % 2, "search", "free")
    return un.transitions(table, y=("x", "y"), order="fix", group=("who", "image", "task"))


@pytest.fixture(scope="module")
def model() -> un.Additive:
    return un.Additive("s(step, k=5) + s(dcenter, k=5) + s(angle, bs='cc', k=6)", BOX, y_down=True)


@pytest.fixture(scope="module")
def each(model: un.Additive, obs: un.Observations) -> un.FitGroup:
    return un.fit_each(model, obs, "who", **LOGISTIC)


@pytest.fixture(scope="module")
def analyses(model: un.Additive, obs: un.Observations, each: un.FitGroup) -> dict[str, Analysis]:
    def refit_levels(train: un.Observations, seed: int) -> dict[str, un.Fit]:
        return dict(un.fit_each(model, train, "who", group=False, **{**LOGISTIC, "rng": seed}).fits)

    def refit(train: un.Observations, seed: int) -> dict[str, un.Fit]:
        return {"group": un.fit(model, train, **{**LOGISTIC, "rng": seed})}

    lonely = un.Additive("s(x, y, step, k=12)", BOX)
    with hush("The constants of "):  # of levels this small: 27 transitions
        conditions = un.fit_each(model, obs, "who", between="task", **LOGISTIC)
    return {
        "pooled": pooled(un.fit(model, obs, **LOGISTIC), model, obs, refit=refit),
        "levels": grouped(each, model, obs, refit=refit_levels),
        "conditions": grouped(conditions, model, obs),
        "levels without a group": grouped(replace(each, group=None), model, obs),
        "constants that cancel": pooled(un.fit(model, obs, **RANKING), model, obs),
        "nothing to draw": pooled(un.fit(lonely, obs, **LOGISTIC), lonely, obs),
    }


SILENT: dict[str, tuple[str, ...]] = {  # but for these kinds; no data here have durations
    "conditions": ("conditions",),
    "subjects": ("conditions", "levels", "levels without a group"),
    "durations": (),
}
KINDS = ("pooled", "levels", "conditions", "levels without a group", "constants that cancel", "nothing to draw")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("anchor", SECTIONS)
@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
def test_a_section(analyses: dict[str, Analysis], kind: str, anchor: str) -> None:
    title, make = SECTIONS[anchor]
    section = make(analyses[kind])
    assert re.fullmatch("[a-z][a-z-]*", anchor)
    assert title
    if kind not in SILENT.get(anchor, KINDS):
        assert section is None
        return
    assert section is not None
    assert section.text or section.pictures or section.tables
    for text in section.text:
        assert text.strip()
        assert "nan" not in text
    for picture in section.pictures:
        assert picture.uri.startswith("data:image/svg+xml;base64,")
        assert len(picture.alt) > 20
        assert "nan" not in picture.alt
    for table in section.tables:
        assert table.rows
        assert all(len(row) == len(table.head) for row in table.rows)
    assert len(repr(section)) < 20_000  # images are not printed


def test_the_page_has_every_section_in_order(analyses: dict[str, Analysis]) -> None:
    seen: list[str] = []

    @contextmanager
    def step(name: str):
        seen.append(name)
        yield

    page = render(PROVENANCE, make_sections(analyses["conditions"], step))
    assert seen == list(SECTIONS)  # what progress bars count
    shown = {name: title for name, (title, _) in SECTIONS.items() if name != "durations"}  # these data have none
    assert re.findall(r'<section id="([^"]+)"', page) == ["fitted", *shown, "repeat"]
    for anchor, title in shown.items():
        assert f'<a href="#{anchor}">{title}</a>' in page


def test_a_toy_section_appears(analyses: dict[str, Analysis], monkeypatch: pytest.MonkeyPatch) -> None:
    def toy(analysis: Analysis) -> Section:
        return Section((f"{analysis.obs.n} & counting",), tables=(Table("A table", ("one",), ((Cell("1", 1.0),),)),))

    def silent(analysis: Analysis) -> None:
        return None

    def failing(analysis: Analysis) -> Section:
        raise InputError("There is no such thing.")

    monkeypatch.setattr("unnorm.report.sections.SECTIONS", registry := {})
    registry["toy"] = ("A toy", toy)
    registry["silent"] = ("Silence", silent)
    registry["failing"] = ("Failure", failing)
    page = render(PROVENANCE, make_sections(analyses["pooled"]))
    assert '<section id="toy" aria-labelledby="h-toy">' in page
    assert f"{analyses['pooled'].obs.n} &amp; counting" in page
    assert "<caption>A table</caption>" in page
    assert "Silence" not in page
    assert "This section could not be made: There is no such thing." in page


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # terms extrapolated
def test_one_number_for_one_level_and_the_worst_is_named(analyses: dict[str, Analysis], each: un.FitGroup) -> None:
    """The table and the sentence say what the fit itself found of a level."""
    section = constants.section(analyses["levels"])
    (table,) = section.tables
    found = {row[0].text: row[4].text for row in table.rows}
    for row in table.rows:
        fit = each.fits[row[0].text]
        assert fit.constants is not None
        assert row[1].value == fit.diagnostics["constants_rms"]
        assert f"differ by {row[1].value:.2g} (rms) and at most {row[2].value:.2g}" in fit.constants
        assert row[4].text == ("fails" if fit.constants_failed else "passes")
    failed = [name for name, verdict in found.items() if verdict == "fails"]
    worst = max(failed or found, key=lambda name: each.fits[name].diagnostics["constants_bias"])
    assert f"Consistency check of who {worst}, the worst: {each.fits[worst].constants}" in section.text
    says = f"Of 3, {len(failed)} fail the check of them ({', '.join(failed)})" if failed else "None of 3 fails"
    assert says in section.text[0]


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # terms extrapolated
def test_maps_of_the_constants_are_the_checks_own(analyses: dict[str, Analysis]) -> None:
    analysis = analyses["pooled"]
    images = constants._images(analysis, analysis.main)
    assert images is not None
    (x, y, chi), (_, _, integral) = images
    j, i = 3, 5
    here = {"x_prev": np.array([x[i]]), "y_prev": np.array([y[j]])}
    point = replace(analysis.obs.take([0]), context={**analysis.obs.take([0]).context, **here})
    assert chi[j, i] == pytest.approx(analysis.smooths().chi(here, 1)[0])
    assert integral[j, i] == pytest.approx(-analysis.main.density.log_z(point, constants.ORDER)[0], abs=1e-9)


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # terms extrapolated
def test_shares_of_the_reference_points(analyses: dict[str, Analysis]) -> None:
    shares = monte_carlo.reference_shares(analyses["levels"])
    table = analyses["levels"].fits["b"].smooths.effect("s(step)", analyses["levels"].grids["s(step)"])  # type: ignore[union-attr]
    expected = np.sqrt(np.sum(table["se_reference"] ** 2) / np.sum(table["se"] ** 2))
    assert shares["b"]["s(step)"] == pytest.approx(expected)
    (sheet,) = monte_carlo.section(analyses["levels"]).tables
    row = next(row for row in sheet.rows if row[0].text == "s(step)")
    assert row[3].value == pytest.approx(max(shares[level]["s(step)"] for level in "abc"))


def test_terms_of_the_place_alone(analyses: dict[str, Analysis]) -> None:
    assert places.spatial_labels(analyses["pooled"]) == ("s(dcenter)",)
    assert places.spatial_labels(analyses["nothing to draw"]) == ()


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # terms extrapolated
def test_held_out_bits_are_the_librarys(analyses: dict[str, Analysis], model: un.Additive) -> None:
    from unnorm.report.held_out import ORDER, held_out_bits, held_out_scores
    from unnorm.results.held_out import halves

    analysis = analyses["pooled"]
    train, test = halves(analysis.obs)
    fit = un.fit(model, analysis.obs.take(train), **{**LOGISTIC, "rng": analysis.seed + 1})
    rows = np.flatnonzero(test)
    found = fit.held_out(analysis.obs.take(rows), order=ORDER)
    assert held_out_bits(analysis)["group"][0] == pytest.approx(found.bits_uniform, abs=3e-3)
    levels = held_out_scores(analyses["levels"])
    gains, n = zip(*((levels[level].scores["information gain over uniform"][0], levels[level].n) for level in "abc"))
    assert levels["group"].scores["information gain over uniform"][0] == pytest.approx(np.average(gains, weights=n))
    assert levels["group"].n == sum(n)


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
def test_held_out_bits_beside_the_figures_are_those_alone(
    analyses: dict[str, Analysis], monkeypatch: pytest.MonkeyPatch
) -> None:
    from unnorm.report import analysis, held_out

    monkeypatch.setattr(analysis, "cores", lambda: 1)
    alone = held_out.held_out_bits(replace(analyses["levels"], begun={}, kept={}))
    monkeypatch.setattr(analysis, "cores", lambda: 2)
    beside = replace(analyses["levels"], begun={}, kept={})
    held_out.begin(beside)
    assert list(beside.begun) == [held_out.BITS]
    assert held_out.held_out_bits(beside) == alone


def test_what_is_missed_beside_the_figures_is_what_is_missed_alone(
    analyses: dict[str, Analysis], monkeypatch: pytest.MonkeyPatch
) -> None:
    from unnorm.report.sections import misfit

    found = []
    for count in (1, 2):
        monkeypatch.setattr("unnorm.report.analysis.cores", lambda count=count: count)
        analysis = replace(analyses["levels"], begun={}, kept={})
        misfit.begin(analysis)
        assert list(analysis.begun) == [misfit.MEASURED] * (count - 1)
        found.append(misfit.section(analysis))
    assert found[0] == found[1]


def test_held_out_fits_are_made_once_on_one_core(
    analyses: dict[str, Analysis], monkeypatch: pytest.MonkeyPatch
) -> None:
    from unnorm.report import held_out

    made = []
    monkeypatch.setattr("unnorm.report.analysis.cores", lambda: 1)
    monkeypatch.setattr(held_out, "_computed", lambda analysis: made.append(analysis) or {})
    analysis = replace(analyses["levels"], begun={}, kept={})
    held_out.begin(analysis)
    assert held_out.held_out_scores(analysis) == held_out.held_out_scores(analysis) == {}
    assert len(made) == 1


def test_held_out_bits_that_fail_beside_the_figures_say_why(
    analyses: dict[str, Analysis], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refit(*_: object) -> dict[str, un.Fit]:
        raise un.errors.EstimationError("no such fit")

    monkeypatch.setattr("unnorm.report.analysis.cores", lambda: 2)
    page = render(PROVENANCE, make_sections(replace(analyses["pooled"], refit=refit, begun={})))
    assert "Held-out bits could not be computed: no such fit" in page


def test_rows_of_the_group_and_of_a_level(analyses: dict[str, Analysis]) -> None:
    analysis = analyses["levels"]
    assert analysis.rows("group").tolist() == list(range(195))
    assert analysis.rows("b").tolist() == list(range(65, 130))


def test_parameters_come_with_their_intervals(obs: un.Observations) -> None:
    model = un.Additive("linear(step) + s(dcenter, k=5)", BOX)
    fit = un.fit(model, obs, **LOGISTIC)
    table = parameters_table(pooled(fit, model, obs, level=0.9))
    (i,) = np.flatnonzero(table["kind"] == "parameter")
    tidy = fit.tidy(level=0.9)
    for name in ("estimate", "se", "lower", "upper"):
        assert table[name][i] == pytest.approx(tidy[name][0])
    assert table["kind"].tolist().count("normaliser") == 1


def test_reprs_are_short(analyses: dict[str, Analysis]) -> None:
    assert repr(analyses["levels"]) == (
        "Analysis(s(step, k=5) + s(dcenter, k=5) + s(angle, k=6, bs='cc'); 195 transitions, 3 levels of 'who')"
    )


def test_contributing_shows_how_to_add_one(analyses: dict[str, Analysis], monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"### A report section\n.*?```python\n(.*?)```", text, re.S)
    assert len(block.strip().splitlines()) <= 12
    monkeypatch.setattr("unnorm.report.sections.SECTIONS", {})
    exec(compile(block, "CONTRIBUTING.md", "exec"), {})
    page = render(PROVENANCE, make_sections(analyses["pooled"]))
    assert re.search(r"15 sequences, with a median of 13 transitions", page)
    assert '<section id="lengths"' in page


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")
def test_conditions_in_tables_and_files(analyses: dict[str, Analysis]) -> None:
    analysis = analyses["conditions"]
    found = analysis.conditions
    effects = effects_table(analysis)
    assert list(dict.fromkeys(effects["by"])) == ["group", "task=free", "task=search", *analysis.fits]
    table = differences_table(analysis)
    assert set(table["contrast"]) == {"free − search"}
    here = table["term"] == "s(step)"
    lower = found.difference_columns("s(step)", at=analysis.grids["s(step)"])["lower_simultaneous"]
    np.testing.assert_allclose(table["lower_simultaneous"][here], lower)
    assert np.isnan(table["dcenter"][here]).all()
    assert analysis.rows("b · free").size == np.sum(
        (analysis.obs.group["who"] == "b") & (analysis.obs.group["task"] == "free")
    )
    with wanted(("pdf", "png")):
        section = SECTIONS["conditions"][1](analysis)
    assert all(picture.files["pdf"].startswith(b"%PDF") for picture in section.pictures)
    assert all(picture.files["png"].startswith(b"\x89PNG") for picture in section.pictures)
    assert not SECTIONS["conditions"][1](analysis).pictures[0].files
    assert len(section.pictures) == 6  # of each effect its curves, and the difference
    assert [row[0].text for row in section.tables[0].rows] == ["all effects", "s(step)", "s(dcenter)", "s(angle)"]


def test_every_other_sequence_of_each_level_is_left_out(analyses: dict[str, Analysis]) -> None:
    """Also where the sequences of two levels alternate in the file: every other one is then the same level's."""
    from unnorm.report.held_out import left_out

    analysis = analyses["levels"]
    obs = analysis.obs.take(np.isin(analysis.obs.group["who"], ("a", "b")))
    level = (obs.group["who"] == "b").astype(int)
    of = np.unique(np.column_stack([level, np.asarray(obs.sequence)]), axis=0, return_inverse=True)[1].ravel()
    rank = of - np.where(level == 1, of[level == 1].min(), 0)
    alternating = 2 * rank + level
    order = np.argsort(alternating, kind="stable")
    mixed = replace(obs.take(order), sequence=alternating[order])
    fits = {name: analysis.fits[name] for name in "ab"}
    two = replace(analysis, obs=mixed, fits=fits)
    test = left_out(mixed, {which: two.rows(which) for which in "ab"})
    for which in "ab":
        sequences = alternating[order][two.rows(which)]
        out = sequences[test[two.rows(which)]]
        assert np.unique(out).size == pytest.approx(np.unique(sequences).size / 2, abs=1)
