"""Results of note.py → the marked parts of docs/note.md, its findings, its figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Results = dict[str, Any]
Finding = tuple[str, bool]  # a sentence, and whether the results bear it out
WAYS = ("anchored", "smooth", "smooth, REML")
LAWS = {"interval": "interval", "square": "square"}
COLOUR = {"anchored": "C0", "smooth": "C1", "smooth, REML": "C3", "IID": "C3", "lattice": "C0"}


def number(value: float, digits: int = 2) -> str:
    """.05, −1.20: no zero before the point, a true minus."""
    text = f"{abs(value):.{digits}f}"
    negative = value < 0 and float(text) != 0.0
    return ("−" if negative else "") + (text[1:] if text.startswith("0.") else text)


def percent(value: float) -> str:
    """A share in percent: 12 %, 1.5 %, .08 %, 4e−5 %."""
    v = 100 * value
    if v >= 9.95 or v == 0:
        return f"{v:.0f} %"
    if v < 0.001:
        return f"{v:.0e} %".replace("e-0", "e−").replace("e-", "e−")
    return f"{number(v, 1 if v >= 0.95 else 2 if v >= 0.0095 else 3)} %"


def times(value: float) -> str:
    """Two significant digits: 18, 29,000."""
    return f"{float(f'{value:.2g}'):,.0f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def share(ratio: float) -> float:
    """V_reference/(V_sampling + V_reference) from V_reference/V_sampling."""
    return ratio / (1.0 + ratio)


# --- the parts -------------------------------------------------------------------------------------------------------


def anchored_table(a: Results) -> str:
    def cells(row: Results) -> list[str]:
        return [", ".join(number(row[way][key]) for key in ("shift", "rmse", "cover")) for way in WAYS]

    rows = [
        [f"ω = {one['omega']:g}", *cells(one), number(one["exact ML"]["cover"]), percent(one["rejects"])]
        for one in a["wave"]
    ]
    toy = a["toy"]
    rows.append(["the paper's chain", *cells(toy), number(toy["exact ML"]["cover"]), percent(toy["rejects"])])
    head = ["law", *WAYS, "exact ML: cover", "test of δ rejects"]
    said = (
        f"θ = (½, 2), n = {a['n']}, k = {a['k']} lattice points, {a['reps']} data sets. χ has {a['basis']} spline "
        "functions. The three figures in a cell are shift, rmse and cover, each of its worst parameter. Shift: mean "
        "distance from exact ML, in standard deviations of ML. Rmse: that of θ̂ over ML's. Cover: of 95 % intervals. "
        "The last column is the share of data sets in which the test of δ rejects at 5 %; f is right in all of them."
    )
    return f"{said}\n\n{table(head, rows)}"


def lattice_table(found: Results) -> str:
    cells = [(law, points) for law in LAWS for points in ("IID", "lattice")]
    by = {(o["law"], o["points"], o["k"]): o for o in found["by_k"]}
    ks = sorted({k for *_, k in by})
    rows = [
        [f"{k}", *(f"{percent(share(o['seen']))} ({percent(share(o['said']))})" for o in (by[(*c, k)] for c in cells))]
        for k in ks
    ]
    rates = {(o["law"], o["points"]): o for o in found["rates"]}
    rows.append(["slope in k", *(number(rates[c]["in_k"], 1) for c in cells)])
    rows.append(["slope in n", *(number(rates[c]["in_n"], 1) for c in cells)])
    head = ["k", *(f"{law}, {points}" for law, points in cells)]
    said = (
        f"One chain of n = {found['n']} on an interval, one in a square, θ = (−2, 10); {found['times']} redraws of the "
        "points. Share of the variance of θ̂ that comes from the points, measured over the redraws; in brackets what "
        "the fits themselves say. The slopes are those of "
        "$\\log V_{\\text{reference}}/V_{\\text{sampling}}$, in log k from k = 8 on, and in "
        f"log n at k = {found['k']}."
    )
    return f"{said}\n\n{table(head, rows)}"


def split_table(s: Results) -> str:
    names = {"theta1": "θ1", "theta2": "θ2"}
    rows = [
        [f"{o['points']}, k = {o['k']}", names[o["parameter"]]]
        + [f"{number(o['sd' + part], 3)} / {number(o['se' + part], 3)}" for part in ("_sampling", "_reference", "")]
        + [number(o["cover"])]
        for o in s["rows"]
    ]
    said = (
        f"The paper's chain, n = {s['n']}, θ = (−2, 10); {s['reps']} data sets, {s['times']} draws of the points for "
        "each. A cell has the standard deviation that was measured, then the standard error that the fits state (root "
        "mean square). Cover is that of 95 % intervals from the total."
    )
    head = ["points", "", "data sets: sd / se", "redraws: sd / se", "both: sd / se", "cover"]
    return f"{said}\n\n{table(head, rows)}"


def parts(results: Results) -> dict[str, str]:
    """The marked parts of docs/note.md, by name; those whose results are there."""
    made = {"anchored": anchored_table, "lattice": lattice_table, "split": split_table}
    said = findings(results)
    return {
        name: f"{make(results[name])}\n\n" + "\n".join(f"- {text}" for text, _ in said[name])
        for name, make in made.items()
        if name in results
    }


def renewed(page: str, results: Results) -> str:
    """The page with its marked parts made from the results."""
    for name, text in parts(results).items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        assert page.count(begin) == page.count(end) == 1, f"docs/note.md must have one part {begin} … {end}."
        page = f"{page.partition(begin)[0]}{begin}\n\n{text}\n\n{end}{page.partition(end)[2]}"
    return page


# --- the findings ----------------------------------------------------------------------------------------------------


def anchored_findings(a: Results) -> list[Finding]:
    every = [*a["wave"], a["toy"]]
    off = max(abs(o["anchored"]["shift"]) for o in every)
    rmse = max(o["anchored"]["rmse"] for o in every)
    last, toy = a["wave"][-1], a["toy"]
    first = a["wave"][0]["smooth"]
    reml = [abs(o["smooth, REML"]["shift"]) for o in a["wave"]]
    return [
        (f"Anchored constants stay within {number(off)} standard deviations of exact ML. Their rmse is at most "
         f"{number(rmse)} times that of ML.", off < 0.1 and rmse < 1.1),
        (f"A smooth χ is as good while its basis can follow: its shift is {number(first['shift'])} at the smallest ω. "
         f"At the largest it is {number(last['smooth']['shift'])}, and the intervals cover "
         f"{number(last['smooth']['cover'])}.",
         abs(first["shift"]) < 0.1 and abs(last["smooth"]["shift"]) > 0.5),
        (f"A penalised χ is off sooner: by {number(reml[1])} at ω = 1.", reml[1] > 0.3),
        ("On the paper's own chain the constants are gentle functions of the context. There a smooth χ moves θ̂ by "
         f"{number(toy['smooth']['shift'])}, anchored constants by {number(toy['anchored']['shift'])}, a penalised χ "
         f"by {number(toy['smooth, REML']['shift'])}. Where the basis suffices, the anchor gains nothing.",
         abs(toy["smooth"]["shift"]) < 0.1),
    ]  # fmt: skip


def lattice_findings(found: Results) -> list[Finding]:
    rates = {(o["law"], o["points"]): o for o in found["rates"]}
    by = {(o["law"], o["points"], o["k"]): o for o in found["by_k"]}
    ks = sorted({k for *_, k in by})
    gain = {law: by[law, "IID", 8]["seen"] / by[law, "lattice", 8]["seen"] for law in LAWS}
    few = {law: by[law, "lattice", ks[0]]["seen"] / by[law, "IID", 32]["seen"] for law in LAWS}
    iid, even = ([rates[law, points]["in_k"] for law in LAWS] for points in ("IID", "lattice"))
    in_n = {law: rates[law, "lattice"]["in_n"] for law in LAWS}
    still = [rates[law, "IID"]["in_n"] for law in LAWS]
    fair = [(o["said"] / o["seen"]) ** 0.5 for o in found["by_k"]]
    quick = found["times"] < 30  # slopes of few redraws at two or three k are noisy
    sure, off = (0.6, 0.6) if quick else (0.35, 0.0)
    uneven: list[Finding] = []
    if 4 in ks:
        two, four = (share(by["square", "lattice", k]["said"]) for k in (2, 4))
        uneven = [
            ("In the square the lattice's share does not fall at every step: some k suit the sequence less. By the "
             f"fits' own account it is {percent(two)} at k = 2 and {percent(four)} at k = 4.", four > two),
        ]  # fmt: skip
    return [
        (f"IID points: the variance falls as k to the power {number(iid[0], 1)} on the interval and "
         f"{number(iid[1], 1)} in the square. Theory says −1, for large k.",
         all(-1.5 - off < s < -0.7 + off for s in iid)),
        (f"Lattice points: the powers are {number(even[0], 1)} and {number(even[1], 1)}.",
         all(s < t - 0.2 + off for s, t in zip(even, iid))),
        (f"At k = 8 the variance from IID points is {times(gain['interval'])} times that from the lattice on the "
         f"interval, and {times(gain['square'])} times in the square.", min(gain.values()) > 2),
        (f"{ks[0]} lattice points for each context have {number(few['interval'])} and {number(few['square'])} times "
         "the variance of 32 IID points.", max(few.values()) < 3),
        ("More data do not change the IID share: the powers of n are "
         f"{number(still[0], 1)} and {number(still[1], 1)}. They lower the lattice's, as the powers "
         f"{number(in_n['interval'], 1)} and {number(in_n['square'], 1)} of n: neighbouring contexts "
         "share one lattice.",
         max(in_n.values()) < -0.3 + off and max(map(abs, still)) < 0.3 + off),
        (f"Standard errors of the points as the fits state them are {number(min(fair))} to {number(max(fair))} times "
         f"the standard deviation over {found['times']} redraws.", 1 - sure < min(fair) and max(fair) < 1 + sure),
        *uneven,
    ]  # fmt: skip


def split_findings(s: Results) -> list[Finding]:
    rows = s["rows"]

    def ratios(part: str, points: tuple[str, ...] = ("IID", "lattice")) -> list[float]:
        return [o[f"se{part}"] / o[f"sd{part}"] for o in rows if o["points"] in points]

    loose = 0.15 if s["reps"] >= 100 else 0.6
    out: list[Finding] = []
    for part, what in (("_sampling", "Data"), ("_reference", "Points"), ("", "Both together")):
        r = ratios(part)
        out.append((f"{what}: se over sd lies between {number(min(r))} and {number(max(r))}.",
                    1 - loose < min(r) and max(r) < 1 + loose))  # fmt: skip
    chance = (2 * s["reps"]) ** -0.5
    out.insert(1, (
        f"For exact ML, on the same data sets, it is {number(s['exact'][0])} and {number(s['exact'][1])}. The measured "
        f"sd of {s['reps']} data sets has a relative standard error of {percent(chance)}.", True,
    ))  # fmt: skip
    cover = [o["cover"] for o in rows]
    out.append((f"The intervals cover {number(min(cover))} to {number(max(cover))}.", min(cover) > 0.95 - loose / 3))
    return out


def findings(results: Results) -> dict[str, list[Finding]]:
    """What the note says of its results, and whether they bear it out."""
    made: dict[str, Callable[[Results], list[Finding]]] = {
        "anchored": anchored_findings, "lattice": lattice_findings, "split": split_findings,
    }  # fmt: skip
    return {name: make(results[name]) for name, make in made.items() if name in results}


# --- the figures -----------------------------------------------------------------------------------------------------


def panels(count: int, width: float = 4.2) -> tuple[Any, Any]:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(1, count, figsize=(width * count, 3.3), layout="constrained")


def saved(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_anchored(results: Results, path: Path) -> None:
    figure, (left, right) = panels(2)
    wave = results["anchored"]["wave"]
    omega = [o["omega"] for o in wave]
    for way, marker in zip(WAYS, "os^"):
        left.plot(omega, [o[way]["shift"] for o in wave], marker=marker, color=COLOUR[way], label=way)
        right.plot(omega, [o[way]["rmse"] for o in wave], marker=marker, color=COLOUR[way], label=way)
    left.axhline(0, color="black", lw=0.8)
    right.axhline(1, color="black", lw=0.8)
    left.set(ylabel="shift from ML / sd of ML", xlabel="ω: sharper constants →", xscale="log", xticks=omega)
    right.set(ylabel="rmse / rmse of ML", xlabel="ω: sharper constants →", xscale="log", xticks=omega)
    for axis in (left, right):
        axis.set_xticklabels([f"{o:g}" for o in omega])
        axis.minorticks_off()
    right.legend(frameon=False)
    saved(figure, path)


def draw_lattice(results: Results, path: Path) -> None:
    figure, axes = panels(2)
    for axis, law in zip(axes, LAWS):
        for points in ("IID", "lattice"):
            rows = [o for o in results["lattice"]["by_k"] if (o["law"], o["points"]) == (law, points)]
            k = [o["k"] for o in rows]
            axis.plot(k, [share(o["seen"]) for o in rows], "o", color=COLOUR[points], label=f"{points}: over redraws")
            axis.plot(k, [share(o["said"]) for o in rows], color=COLOUR[points], label=f"{points}: as the fits say")
        axis.set(xscale="log", yscale="log", xlabel="k, reference points for each context", title=law, xticks=k)
        axis.set_xticklabels(k)
        axis.minorticks_off()
    axes[0].set_ylabel("reference share of the variance")
    axes[0].legend(frameon=False, fontsize=8)
    saved(figure, path)


def draw_split(results: Results, path: Path) -> None:
    figure, axes = panels(2)
    rows = results["split"]["rows"]
    for axis, (name, title) in zip(axes, (("theta1", "θ1"), ("theta2", "θ2"))):
        own = [o for o in rows if o["parameter"] == name]
        for i, o in enumerate(own):
            for at, kind, hatch in ((i - 0.2, "sd", ""), (i + 0.2, "se", "//")):
                first, second = o[f"{kind}_sampling"] ** 2, o[f"{kind}_reference"] ** 2
                label = {"sd": "measured", "se": "stated"}[kind] if i == 0 else None
                axis.bar(at, first, 0.36, color="C0", hatch=hatch, edgecolor="white", label=label and f"data, {label}")
                axis.bar(at, second, 0.36, bottom=first, color="C1", hatch=hatch, edgecolor="white",
                         label=label and f"points, {label}")  # fmt: skip
        axis.set(title=title, xticks=range(len(own)))
        axis.set_xticklabels([f"{o['points']}\nk = {o['k']}" for o in own], fontsize=8)
    axes[0].set_ylabel("variance of θ̂")
    axes[0].set_ylim(0, 1.35 * axes[0].get_ylim()[1])
    axes[0].legend(frameon=False, fontsize=7, ncol=2)
    saved(figure, path)


FIGURES: dict[str, Callable[[Results, Path], None]] = {
    "note_anchored.png": draw_anchored,
    "note_lattice.png": draw_lattice,
    "note_split.png": draw_split,
}
