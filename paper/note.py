"""Beyond the paper: the simulations, figures and tables of docs/note.md.

    python paper/note.py [--quick] [--out FOLDER] [--write] [--page]

Prints what was measured, and fails if a finding of the note does not hold. The whole takes under ten CPU-minutes,
`--quick` under one. Results and figures go to FOLDER. `--write` also renews paper/note.json, the figures in docs/ and
the marked parts of docs/note.md; it needs the whole run. `--page` renews figures and page from paper/note.json alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from note_text import FIGURES, findings, parts, renewed

import unnorm as un
from unnorm.errors import hush

HERE = Path(__file__).parent
PAGE, KEPT = HERE.parent / "docs" / "note.md", HERE / "note.json"
TOY = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
PLANE = un.ExponentialFamily(
    lambda y, x: (y[0], -0.5 * jnp.sum((y - x) ** 2)), ("theta1", "theta2"), un.Box((-1, 1), (-1, 1))
)
SCHEMES = {"IID": un.IID(), "lattice": un.Lattice()}


# --- 1. anchored constants -------------------------------------------------------------------------------------------

WAVE = np.array([0.5, 2.0])  # θ of f = θ1 y + θ2 y sin(ωπx)


def wave_model(omega: float) -> un.ExponentialFamily:
    """f = θ1 y + θ2 y sin(ωπx) on [−1, 1]: the larger ω, the sharper −log Z_θ(x)."""
    return un.ExponentialFamily(
        lambda y, x: (y, y * jnp.sin(omega * np.pi * x["x"])), ("theta1", "theta2"), un.Interval(-1, 1)
    )


def wave_data(omega: float, n: int, rng: np.random.Generator) -> un.Observations:
    """Exact draws: given x, y has density a exp(ay)/(2 sinh a), a = θ1 + θ2 sin(ωπx)."""
    x, u = rng.uniform(-1, 1, n), rng.uniform(size=n)
    a = WAVE[0] + WAVE[1] * np.sin(omega * np.pi * x)
    y = np.log(np.exp(-a) + u * 2 * np.sinh(a)) / a
    return un.conditional({"y": y, "x": x}, y="y", x="x")


def constants(model: Any, data: list[un.Observations], truth: np.ndarray, k: int, chi: str) -> dict[str, Any]:
    """Exact ML, anchored, smooth and penalised smooth constants on the same data and the same kind of points."""
    logistic = un.Logistic(un.Uniform(), per_point=k)
    ways: dict[str, tuple] = {
        "exact ML": (),
        "anchored": (logistic, un.Anchored()),
        "smooth": (logistic, un.Smooth(chi)),
        "smooth, REML": (logistic, un.Smooth(chi, smoothing="reml")),
    }
    at, se, p = {way: [] for way in ways}, {way: [] for way in ways}, []
    for r, obs in enumerate(data):
        for way, given in ways.items():
            with hush():  # the constants' check warns of what is measured here
                fit = un.fit(model, obs, *given, rng=np.random.default_rng([2, r]))
            at[way].append(fit.estimate)
            se[way].append(fit.tidy()["se"])
            if way == "anchored":
                p.append(fit.anchoring.p)
    exact = np.array(at["exact ML"])
    sd, best = exact.std(axis=0, ddof=1), np.mean((exact - truth) ** 2, axis=0)
    out: dict[str, Any] = {"rejects": float(np.mean(np.array(p) < 0.05))}
    for way in ways:
        e, s = np.array(at[way]), np.array(se[way])
        shift = (e - exact).mean(axis=0) / sd
        rmse = np.sqrt(np.mean((e - truth) ** 2, axis=0) / best)
        cover = np.mean(np.abs(e - truth) <= 1.959964 * s, axis=0)
        worst = int(np.argmax(np.abs(shift)))
        out[way] = {"shift": shift[worst], "rmse": rmse.max(), "cover": cover.min()}
    return out


def anchored(quick: bool) -> dict[str, Any]:
    n, k, reps = 400, 10, 14 if quick else 150
    found = []
    for omega in (0.5, 1, 2, 4, 8):
        data = [wave_data(omega, n, np.random.default_rng([1, r])) for r in range(reps)]
        found.append({"omega": omega, **constants(wave_model(omega), data, WAVE, k, "s(x, k=10)")})
    chains = un.datasets.toy_chain(n, -2.0, 50.0, rng=1, reps=reps)
    toy = constants(TOY, [un.transitions(y) for y in chains], np.array([-2.0, 50.0]), k, "s(y_prev, k=10)")
    return {"n": n, "k": k, "reps": reps, "basis": 10, "wave": found, "toy": toy}


# --- 2. lattice reference points -------------------------------------------------------------------------------------


def law(name: str, n: int) -> tuple[Any, un.Observations]:
    """A chain on an interval or in a square: f = θ1 y₁ − ½ θ2 |y − x|², θ = (−2, 10)."""
    if name == "interval":
        return TOY, un.transitions(un.datasets.toy_chain(n, -2.0, 10.0, rng=3))
    path = un.simulate(PLANE, {"theta1": -2.0, "theta2": 10.0}, n, x0=np.zeros(2), rng=3)
    columns = [key for key in path if key.startswith("y")]
    return PLANE, un.transitions(np.column_stack([path[key] for key in columns]))


def redrawn(name: str, n: int, scheme: str, k: int, times: int) -> dict[str, Any]:
    """V_reference beside V_sampling, the mean of both parameters: over redraws of the points, and as the fits say."""
    model, obs = law(name, n)
    objective = un.Logistic(un.Uniform(), per_point=k, points=SCHEMES[scheme])
    with hush():
        fits = [un.fit(model, obs, objective, rng=np.random.default_rng([4, r])) for r in range(times)]
    tables = [fit.tidy() for fit in fits]
    sampling = np.mean([table["se_sampling"] ** 2 for table in tables], axis=0)
    said = np.mean([table["se_reference"] ** 2 for table in tables], axis=0)
    seen = np.var([fit.estimate for fit in fits], axis=0, ddof=1)
    return {
        "law": name, "n": n, "points": scheme, "k": k,
        "seen": float(np.mean(seen / sampling)), "said": float(np.mean(said / sampling)),
    }  # fmt: skip


def slope(rows: list[dict[str, Any]], of: str) -> float:
    """The power of k or n that V_reference/V_sampling follows."""
    return float(np.polyfit(np.log([o[of] for o in rows]), np.log([o["seen"] for o in rows]), 1)[0])


def lattice(quick: bool) -> dict[str, Any]:
    n, times = 300, 12 if quick else 40
    ks, ns = ((2, 8, 32), (75, 300)) if quick else ((2, 4, 8, 16, 32, 64), (75, 300, 1200))
    cells = [(name, scheme) for name in ("interval", "square") for scheme in SCHEMES]
    by_k = [redrawn(name, n, scheme, k, times) for name, scheme in cells for k in ks]
    by_n = [redrawn(name, m, scheme, 8, times) for name, scheme in cells for m in ns]
    rates = []
    for name, scheme in cells:
        a, b = ([one for one in rows if (one["law"], one["points"]) == (name, scheme)] for rows in (by_k, by_n))
        a = [one for one in a if one["k"] >= 8]
        rates.append({"law": name, "points": scheme, "in_k": slope(a, "k"), "in_n": slope(b, "n")})
    return {"n": n, "k": 8, "times": times, "by_k": by_k, "by_n": by_n, "rates": rates}


# --- 3. errors split in two ------------------------------------------------------------------------------------------


def split_of(scheme: str, k: int, chains: np.ndarray, times: int, truth: np.ndarray) -> list[dict[str, Any]]:
    """One-way analysis of variance: data sets × redraws of the points, against the fits' own two parts."""
    objective = un.Logistic(un.Uniform(), per_point=k, points=SCHEMES[scheme])
    e, V = np.empty((len(chains), times, 2)), np.empty((3, len(chains), times, 2))
    for d, y in enumerate(chains):
        obs = un.transitions(y)
        for r in range(times):
            with hush():
                fit = un.fit(TOY, obs, objective, rng=np.random.default_rng([6, d, r]))
            table = fit.tidy()
            e[d, r] = fit.estimate
            V[:, d, r] = [table[name] ** 2 for name in ("se_sampling", "se_reference", "se")]
    within = e.var(axis=1, ddof=1).mean(axis=0)
    between = e.mean(axis=1).var(axis=0, ddof=1) - within / times
    said = np.sqrt(V.mean(axis=(1, 2)))
    cover = np.mean(np.abs(e - truth) <= 1.959964 * np.sqrt(V[2]), axis=(0, 1))
    return [
        {
            "points": scheme, "k": k, "parameter": name,
            "sd_sampling": np.sqrt(between[j]), "se_sampling": said[0, j],
            "sd_reference": np.sqrt(within[j]), "se_reference": said[1, j],
            "sd": np.sqrt(between[j] + within[j]), "se": said[2, j], "cover": cover[j],
        }
        for j, name in enumerate(("theta1", "theta2"))
    ]  # fmt: skip


def exactly(chains: np.ndarray) -> list[float]:
    """se over sd of exact maximum likelihood, by parameter: what these data sets do to an error without points."""
    fits = [un.fit(TOY, un.transitions(y)) for y in chains]
    sd = np.std([fit.estimate for fit in fits], axis=0, ddof=1)
    return list(np.sqrt(np.mean([fit.tidy()["se"] ** 2 for fit in fits], axis=0)) / sd)


def split(quick: bool) -> dict[str, Any]:
    n, reps, times, truth = 300, 30 if quick else 250, 3 if quick else 4, (-2.0, 10.0)
    chains = un.datasets.toy_chain(n, *truth, rng=5, reps=reps)
    cells = (("IID", 2), ("IID", 5), ("IID", 20), ("lattice", 2), ("lattice", 5))
    rows = [row for scheme, k in cells for row in split_of(scheme, k, chains, times, np.array(truth))]
    return {"n": n, "reps": reps, "times": times, "exact": exactly(chains), "rows": rows}


# --- results, figures, page ------------------------------------------------------------------------------------------


def rounded(value: Any) -> Any:
    """Four significant digits: what a reader can use, and a file that does not change in the last bit."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{float(value):.4g}") if isinstance(value, float | np.floating) else value


def publish(results: dict[str, Any]) -> None:
    """The figures in docs/, and the page."""
    for name, draw in FIGURES.items():
        draw(results, PAGE.parent / name)
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("paper-output"))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    if given.page:
        publish(json.loads(KEPT.read_text(encoding="utf-8")))
        return 0
    if given.quick and given.write:
        parser.error("--write needs the whole run: leave out --quick.")
    given.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    for name, measure in (("anchored", anchored), ("lattice", lattice), ("split", split)):
        begun = time.process_time()
        results[name] = rounded(measure(given.quick))
        print(f"{parts(results)[name]}\n({time.process_time() - begun:.0f} CPU-seconds)\n", flush=True)
    kept = json.dumps(results, indent=1, ensure_ascii=False) + "\n"
    (given.out / "note.json").write_text(kept, encoding="utf-8")
    for name, draw in FIGURES.items():
        draw(results, given.out / name)
    if given.write:
        KEPT.write_text(kept, encoding="utf-8")
        publish(results)
    failed = [text for name in results for text, holds in findings(results)[name] if not holds]
    for text in failed:
        print(f"does not hold: {text}")
    print(f"{len(failed)} findings do not hold; results and figures in {given.out}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
