"""Constants side by side: bias, rmse and time of Anchored, Smooth (unpenalised, REML), Ranking and Exact.

    python benchmarks/constants.py            # two laws, 100 data sets each
    python benchmarks/constants.py --reps 400
    python benchmarks/constants.py osie       # one subject, the paper's formula: seconds, and what more nodes move
    python benchmarks/constants.py steps      # chains with shorter and shorter steps: uniform against default reference
    python benchmarks/constants.py kernels    # constants in a kernel space: how far θ is from maximum likelihood

`osie` reads ../shared/data/eye_osie_fixations.csv.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
from eye import CHI, MODEL, osie_observations  # benchmarks/eye.py

import unnorm as un

CIRCLE, REGRESSION = np.array([2.0, 0.7, -0.5]), np.array([-1.0, 1.2, 0.9])
SQUARE, SHORT = un.Box((0, 1), (0, 1)), np.array([1.0, 3.0, -2.0])


def circle(rng: np.random.Generator, n: int = 300) -> un.Observations:
    """f = 2 cos(y − x) + .7 cos y − .5 cos 2y."""
    grid = np.linspace(-np.pi, np.pi, 721)
    own = CIRCLE[1] * np.cos(grid) + CIRCLE[2] * np.cos(2 * grid)
    y = [0.0]
    for u in rng.uniform(size=n):
        p = np.exp(CIRCLE[0] * np.cos(grid - y[-1]) + own)
        total = np.concatenate([[0.0], np.cumsum((p[1:] + p[:-1]) / 2)])
        y.append(float(np.interp(u * total[-1], total, grid)))
    return un.transitions(np.array(y))


def regression(rng: np.random.Generator, n: int = 400) -> un.Observations:
    """f = −y + 1.2 z y + .9 w sin 3y on [0, 2]."""
    z, w, grid = rng.standard_normal(n), rng.uniform(0, 2, n), np.linspace(0, 2, 1001)
    f = (REGRESSION[0] + REGRESSION[1] * z)[:, None] * grid + REGRESSION[2] * w[:, None] * np.sin(3 * grid)
    p = np.exp(f - f.max(axis=1, keepdims=True))
    total = np.concatenate([np.zeros((n, 1)), np.cumsum((p[:, 1:] + p[:, :-1]) / 2, axis=1)], axis=1)
    u = rng.uniform(size=n) * total[:, -1]
    y = np.array([np.interp(a, t, grid) for a, t in zip(u, total)])
    return un.conditional({"y": y, "z": z, "w": w}, y="y", x=("z", "w"))


LAWS: dict[str, tuple[Any, Any, np.ndarray, int, str]] = {
    "circle": (
        circle,
        un.ExponentialFamily(
            lambda y, x: (jnp.cos(y - x), jnp.cos(y), jnp.cos(2 * y)), ("near", "east", "axis"), un.Circle()
        ),
        CIRCLE,
        5,
        "s(y_prev, bs='cc', k=12)",
    ),
    "regression": (
        regression,
        un.ExponentialFamily(
            lambda y, x: (y, x["z"] * y, x["w"] * jnp.sin(3 * y)), ("t1", "t2", "t3"), un.Interval(0, 2)
        ),
        REGRESSION,
        8,
        "s(z) + s(w)",
    ),
}


def ways(k: int, chi: str) -> dict[str, dict[str, Any]]:
    logistic = un.Logistic(un.Uniform(), per_point=k)
    iid = un.Logistic(un.Uniform(), per_point=k, points=un.IID())
    return {
        "exact": {},
        "anchored": {"objective": logistic},
        "anchored, IID points": {"objective": iid},
        "smooth": {"objective": logistic, "normaliser": un.Smooth(chi)},
        "smooth, REML": {"objective": logistic, "normaliser": un.Smooth(chi, smoothing="reml")},
        "ranking": {"objective": un.Ranking(un.Uniform(), per_point=k)},
    }


def compare(name: str, reps: int) -> None:
    draw, model, truth, k, chi = LAWS[name]
    how = ways(k, chi)
    found: dict[str, list[np.ndarray]] = {way: [] for way in how}
    seconds = dict.fromkeys(how, 0.0)
    cover = {way: np.zeros(truth.size) for way in how}
    data = [draw(np.random.default_rng([7, r])) for r in range(reps)]
    for r, obs in enumerate(data):
        for way, given in how.items():
            if r == 0:
                un.fit(model, obs, rng=1, **given)  # compiles
            began = time.perf_counter()
            fit = un.fit(model, obs, rng=np.random.default_rng([11, r]), **given)
            seconds[way] += time.perf_counter() - began
            found[way].append(fit.estimate)
            table = fit.tidy()
            cover[way] += (np.array(table["lower"]) <= truth) & (truth <= np.array(table["upper"]))
    exact = np.array(found["exact"])
    sd = exact.std(axis=0)
    print(f"\n{name}, k = {k}, {reps} data sets; the worst parameter of each")
    print(
        f"{'constants':<24}{'bias / sd':>10}{'shift / sd':>12}{'rmse / ML':>11}{'cover':>8}{'ms':>8}{'Exact/this':>12}"
    )
    for way, values in found.items():
        e = np.array(values)
        bias, shift = (e.mean(axis=0) - truth) / sd, (e - exact).mean(axis=0) / sd
        rmse = np.sqrt(np.mean((e - truth) ** 2, axis=0) / np.mean((exact - truth) ** 2, axis=0))
        worst = cover[way][np.argmax(np.abs(cover[way] / reps - 0.95))] / reps
        ms = 1e3 * seconds[way] / reps
        print(f"{way:<24}{bias[np.argmax(abs(bias))]:>10.2f}{shift[np.argmax(abs(shift))]:>12.2f}{rmse.max():>11.3f}"
              f"{worst:>8.3f}{ms:>8.1f}{seconds['exact'] / seconds[way]:>12.2f}")  # fmt: skip


def best(work: Any, reps: int) -> tuple[float, Any]:
    found = work()
    times = []
    for _ in range(reps):
        began = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - began)
    return min(times), found


EXACT_SIZES = (200, 400, 800)  # transitions of one subject: minutes on one core
EXACT_ORDER = 64  # nodes on each axis, about the distance of the knots of s(dcenter, k=40)


def osie(reps: int, exact: bool) -> None:
    from unnorm.objectives import anchor

    obs = osie_observations()
    one = obs.take(obs.group["subject"] == 1)
    objective = un.Logistic(un.Uniform(), per_point=20)

    def fit(normaliser: Any, given: Any = objective) -> un.Fit:
        return un.fit(MODEL, one, given, normaliser, rng=1, outside="drop")

    smooth, _ = best(lambda: fit(CHI), reps)
    anchored, at = best(lambda: fit(un.Anchored()), reps)
    print(f"one OSIE subject, {one.n:,} transitions, k = 20: Smooth {smooth:.2f} s, Anchored {anchored:.2f} s, "
          f"ratio {anchored / smooth:.2f}")  # fmt: skip
    enough = anchor.ENOUGH
    anchor.ENOUGH = enough / 16  # twice the nodes on each axis, and twice the grid
    finer = fit(un.Anchored())
    nodes = [(f.diagnostics["order"], f.diagnostics["grid"]) for f in (at, finer)]
    for label in ("s(step)", "s(dcenter)", "s(angle)"):
        a, b = at.effect(label), finer.effect(label)
        gap = np.abs(np.array(a["estimate"]) - np.array(b["estimate"])) / np.array(a["se"])
        print(f"  {label}: order and grid {nodes[0]} → {nodes[1]} move it by at most {gap.max():.3f} se")
    if exact:
        exact_fits(one)


def exact_fits(one: un.Observations) -> None:
    """Exact and Anchored, both to the end, on the first transitions of the subject: CPU seconds, and how they grow.

    The rule must resolve the terms: with 40 nodes on each axis, 20 pixels apart, s(dcenter, k=40) rises at the data
    between the nodes where no integral sees it, and REML's λ falls to zero. Exact grows with the number of contexts;
    the anchor's integrals are interpolated over a grid of them.
    """
    print(f"  Exact, order {EXACT_ORDER}, and Anchored on the first n transitions, seconds of CPU:")
    for n in EXACT_SIZES:
        some, seconds = one.take(np.arange(n)), {}
        for name, objective in {"Exact": un.Exact(order=EXACT_ORDER), "Anchored": un.Logistic(un.Uniform())}.items():
            un.fit(MODEL, some.take(np.arange(40)), objective, rng=1, outside="drop")  # compiles
            began = time.process_time()
            found = un.fit(MODEL, some, objective, rng=1, outside="drop")
            seconds[name] = time.process_time() - began
            seconds[f"{name} steps"] = found.iterations
        print(f"    n = {n:>5}: Exact {seconds['Exact']:.1f} ({seconds['Exact steps']} steps), "
              f"Anchored {seconds['Anchored']:.2f}, ratio {seconds['Exact'] / seconds['Anchored']:.0f}",
              flush=True)  # fmt: skip


def short_chain(rng: np.random.Generator, s: float, n: int = 300) -> un.Observations:
    """f = −|y − x|²/2s² + 3 y1 − 2 y2 on the unit square: two truncated normals."""
    from scipy.special import ndtr, ndtri

    y = [np.array([0.5, 0.5])]
    for u in rng.random((n, 2)):
        centre = y[-1] + s**2 * SHORT[1:]
        low, high = ndtr(-centre / s), ndtr((1.0 - centre) / s)
        y.append(np.clip(centre + s * ndtri(low + u * (high - low)), 1e-9, 1 - 1e-9))
    return un.transitions(np.array(y))


def steps(reps: int, k: int = 20) -> None:
    """rmse beside maximum likelihood's, and rms distance from it in its standard deviations, of the worst parameter."""
    print(f"{'s':>5}{'step':>8}  {'reference':<28}{'rmse / ML':>10}{'from ML / sd':>14}{'ms':>7}   ({reps} data sets)")
    for s in (0.02, 0.05, 0.1, 0.15, 0.2, 0.3):
        model = un.ExponentialFamily(
            lambda y, x, s=s: (-0.5 * jnp.sum((y - x) ** 2) / s**2, y[0], y[1]), ("near", "east", "north"), SQUARE
        )
        data = [short_chain(np.random.default_rng([3, r]), s) for r in range(reps)]
        order = int(np.clip(4 / s, 24, 80))
        ml = np.array([un.fit(model, obs, un.Exact(order=order)).estimate for obs in data])
        length = np.mean([np.sqrt(np.mean((obs.outcome - obs.previous()) ** 2 * 2)) for obs in data])
        mixed = un.Mixture((0.5, un.StepKernel()), (0.5, un.Uniform()))
        for name, q in {"uniform": un.Uniform(), "half a step kernel": mixed, "default": un.Defensive()}.items():
            began = time.process_time()
            fits = [un.fit(model, obs, un.Logistic(q, per_point=k), rng=1000 + r) for r, obs in enumerate(data)]
            ms = 1e3 * (time.process_time() - began) / reps
            e = np.array([fit.estimate for fit in fits])
            worse = np.sqrt(np.mean((e - SHORT) ** 2, axis=0) / np.mean((ml - SHORT) ** 2, axis=0)).max()
            away = (np.sqrt(np.mean((e - ml) ** 2, axis=0)) / ml.std(axis=0)).max()
            listed = ", ".join(sorted({fit.diagnostics["law"]["reference"] for fit in fits}))
            label = f"{name} ({listed})"
            print(f"{s:>5}{length:>8.3f}  {label:<28}{worse:>10.2f}{away:>14.2f}{ms:>7.0f}",
                  flush=True)  # fmt: skip


def kernels(reps: int) -> None:
    """Mean distance from maximum likelihood in standard errors, toy chain at θ = (−1, 20), n = 300, k = 10."""
    toy = un.ExponentialFamily(lambda y, x: (y, -0.5 * (y - x) ** 2), ("theta1", "theta2"), un.Interval(-1, 1))
    gaussian, points = un.kernels.Gaussian(scale=0.5), un.Logistic(un.Uniform(), per_point=10)
    ways = {"Kernel, REML": un.Kernel(gaussian, lam="reml"), "Kernel": un.Kernel(gaussian), "Anchored": un.Anchored()}
    found: dict[str, list[np.ndarray]] = {name: [] for name in ways}
    for rep in range(reps):
        obs = un.transitions(un.datasets.toy_chain(300, -1.0, 20.0, rng=rep))
        ml = un.fit(toy, obs)
        for name, chi in ways.items():
            found[name].append((un.fit(toy, obs, points, chi, rng=rep).estimate - ml.estimate) / ml.se)
    for name, each in found.items():
        theta1, theta2 = np.mean(each, axis=0)
        print(f"{name:<14} θ1 {theta1:6.2f}  θ2 {theta2:6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="laws", choices=("laws", "osie", "steps", "kernels"))
    parser.add_argument("--reps", type=int, default=None)
    parser.add_argument("--exact", action="store_true", help="fit Exact too, to parts of the subject (minutes)")
    given = parser.parse_args()
    warnings.simplefilter("ignore", un.errors.UnnormWarning)
    if given.what == "osie":
        osie(given.reps or 5, given.exact)
        return
    if given.what == "steps":
        steps(given.reps or 30)
        return
    if given.what == "kernels":
        kernels(given.reps or 20)
        return
    for name in LAWS:
        compare(name, given.reps or 100)


if __name__ == "__main__":
    main()
