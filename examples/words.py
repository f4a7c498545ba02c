"""A log-bilinear and a small neural language model without their normalising constants (Mnih & Teh 2012).

    python examples/words.py TEXT.txt [--vocabulary 10000] [--dim 64] [--lags 3] [--steps 2000] [--neural]

p(word | three words before) ∝ exp f_θ. Three ways to train f without a sum over the vocabulary, each then normalised
exactly on held-out text, next to a bigram and to the same model trained with the full softmax:

- noise-contrastive, χ(context) learnt: one number for each last word of the context;
- noise-contrastive, constants ignored: χ = 0, and f learns to normalise itself;
- ranking: the constants cancel.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import unnorm as un
from unnorm.errors import UnnormWarning

Table = dict[str, Any]


@dataclass(frozen=True)
class Text:
    """Words by number, 0 for those outside the vocabulary; the last tenth is held out."""

    train: np.ndarray
    test: np.ndarray
    vocabulary: tuple[str, ...]


def read(path: Path, size: int) -> Text:
    """Lower-case words and punctuation marks, the most frequent first."""
    tokens = re.findall(r"[a-z']+|[.,;:!?]", path.read_text(encoding="utf-8").lower())
    cut = len(tokens) * 9 // 10
    known = [word for word, _ in Counter(tokens[:cut]).most_common(size - 1)]  # of the training text alone
    number = {word: i + 1 for i, word in enumerate(known)}
    words = np.array([number.get(word, 0) for word in tokens], dtype=float)
    return Text(words[:cut], words[cut:], ("<other>", *known))


# --- the models: f sees the rows of its tables, not the tables -------------------------------------------------------


def bilinear(theta: Table, y: Any, x: Any) -> Any:
    """f = b_y + ⟨o_y, Σ_l c_l ∘ i_{x_l}⟩."""
    return theta["bias"] + theta["out"] @ jnp.sum(theta["lag"] * theta["in"], axis=0)


def neural(theta: Table, y: Any, x: Any) -> Any:
    """f = b_y + ⟨o_y, W₂ tanh(W₁ vec(i_x))⟩: Bengio et al. (2003), one hidden layer."""
    hidden = jnp.tanh(theta["first"] @ theta["in"].ravel() + theta["shift"])
    return theta["bias"] + theta["out"] @ (theta["second"] @ hidden)


def start(text: Text, dim: int, lags: int, net: bool, seed: int = 1) -> Table:
    rng, V = np.random.default_rng(seed), len(text.vocabulary)
    counts = np.bincount(text.train.astype(int), minlength=V) + 1.0
    theta: Table = {
        "bias": np.log(counts / counts.sum()),
        "in": rng.normal(size=(V, dim)) / np.sqrt(dim),
        "out": 0.1 * rng.normal(size=(V, dim)) / np.sqrt(dim),
    }
    if not net:
        return theta | {"lag": np.ones((lags, dim)) / lags}
    wide = 2 * dim
    return theta | {
        "first": rng.normal(size=(wide, lags * dim)) / np.sqrt(lags * dim),
        "shift": np.zeros(wide),
        "second": rng.normal(size=(dim, wide)) / np.sqrt(wide),
    }


def chi_of_last_word(size: int) -> un.Network:
    """χ(x) = a number for each last word of the context."""
    import equinox as eqx

    class LastWord(eqx.Module):
        level: Any

        def __call__(self, x: Any) -> Any:
            return self.level[x[0].astype(int)]

    return un.Network(LastWord(jnp.zeros(size)), standardise=False)


# --- how good they are on held-out text, normalised by sums over all words -------------------------------------------


def nats(f: Callable[..., Any], theta: Table, test: un.Observations, lags: int) -> tuple[float, float]:
    """Mean −log p of held-out words, and the mean of log² Z: how far from normalised f is by itself."""
    x = np.stack([test.previous(lag)[:, 0] for lag in range(1, lags + 1)], axis=1).astype(int)
    y = test.outcome[:, 0].astype(int)
    tree = {name: jnp.asarray(value, dtype=jnp.float32) for name, value in theta.items()}

    @jax.jit
    def table(x: Any) -> Any:  # (c, V): a product of the contexts' vectors with all rows of `out`
        def one(x: Any) -> Any:
            rest = tree | {"in": tree["in"][x]}
            return jax.vmap(lambda out, bias: f(rest | {"out": out, "bias": bias}, None, None))(
                tree["out"], tree["bias"]
            )

        return jax.vmap(one)(x)

    loss, squared = 0.0, 0.0
    for begin in range(0, len(y), 512):
        eta = np.asarray(table(x[begin : begin + 512]), dtype=np.float64)
        top = eta.max(axis=1)
        log_z = top + np.log(np.exp(eta - top[:, None]).sum(axis=1))
        loss += float(np.sum(log_z - eta[np.arange(len(eta)), y[begin : begin + 512]]))
        squared += float(np.sum(log_z**2))
    return loss / len(y), squared / len(y)


def bigram(text: Text) -> float:
    """Interpolated with the unigram by absolute discounting (0.75)."""
    V, train, test = len(text.vocabulary), text.train.astype(int), text.test.astype(int)
    unigram = (np.bincount(train, minlength=V) + 1.0) / (len(train) + V)
    pairs = Counter(zip(train[:-1].tolist(), train[1:].tolist()))
    after, kinds = np.bincount(train[:-1], minlength=V), np.zeros(V)
    for first, _ in pairs:
        kinds[first] += 1
    loss = 0.0
    for a, b in zip(test[:-1].tolist(), test[1:].tolist()):
        seen = max(after[a], 1)
        back = 0.75 * kinds[a] / seen if after[a] else 1.0
        loss -= np.log(max(pairs[a, b] - 0.75, 0.0) / seen + back * unigram[b])
    return loss / (len(test) - 1)


def softmax(f: Callable[..., Any], theta: Table, obs: un.Observations, steps: int, batch: int) -> tuple[Table, float]:
    """The exact likelihood, by Adam: every step sums over the vocabulary. The parameters, and seconds a step."""
    x = np.stack([obs.previous(lag)[:, 0] for lag in range(1, obs.lags + 1)], axis=1).astype(np.int32)
    y = obs.outcome[:, 0].astype(np.int32)
    optimiser = optax.adam(optax.cosine_decay_schedule(2e-3, steps))
    tree = {name: jnp.asarray(value, dtype=jnp.float32) for name, value in theta.items()}

    def loss(tree: Any, x: Any, y: Any) -> Any:
        def one(x: Any, y: Any) -> Any:
            rest = tree | {"in": tree["in"][x]}
            eta = jax.vmap(lambda o, b: f(rest | {"out": o, "bias": b}, None, None))(tree["out"], tree["bias"])
            return jax.nn.logsumexp(eta) - eta[y]

        return jnp.mean(jax.vmap(one)(x, y))

    @jax.jit
    def step(tree: Any, state: Any, x: Any, y: Any) -> Any:
        update, state = optimiser.update(jax.grad(loss)(tree, x, y), state)
        return optax.apply_updates(tree, update), state

    rng, state, begun = np.random.default_rng(2), optimiser.init(tree), 0.0
    for i in range(steps):
        at = rng.integers(0, len(y), batch)
        tree, state = step(tree, state, x[at], y[at])
        if i == 0:
            jax.block_until_ready(tree)
            begun = time.perf_counter()
    jax.block_until_ready(tree)
    return {name: np.asarray(value) for name, value in tree.items()}, (time.perf_counter() - begun) / max(steps - 1, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--vocabulary", type=int, default=10_000)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--lags", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--points", type=int, default=25)
    parser.add_argument("--neural", action="store_true")
    parser.add_argument("--softmax", type=int, default=1500, help="steps of the exactly normalised model; 0 for none")
    a = parser.parse_args()
    text = read(a.text, a.vocabulary)
    V, f = len(text.vocabulary), neural if a.neural else bilinear
    train, test = (un.transitions(part, lags=a.lags) for part in (text.train, text.test))
    theta0 = start(text, a.dim, a.lags, a.neural)
    model = un.Energy(f, theta0, un.FiniteSet(range(V)), by_outcome=("out", "bias"), by_context=("in",))
    print(f"{train.n:,} words to learn from, {test.n:,} held out, vocabulary {V:,}, {model.size:,} parameters")
    print(f"{'':34}{'nats a word':>12}{'mean log² Z':>13}{'ms a step':>11}")
    unigram = (np.bincount(text.train.astype(int), minlength=V) + 1.0) / (text.train.size + V)
    print(f"{'unigram':34}{-np.mean(np.log(unigram[text.test.astype(int)])):12.3f}")
    print(f"{'bigram, absolute discounting':34}{bigram(text):12.3f}")
    q = un.Marginal()
    ways = {
        "noise-contrastive, χ(context)": (un.Logistic(q, per_point=a.points, points=un.IID()), chi_of_last_word(V)),
        "noise-contrastive, χ = 0": (un.Logistic(q, per_point=a.points, points=un.IID()), un.Fixed(0.0)),
        "ranking": (un.Ranking(q, per_point=a.points), None),
    }
    solver = un.SGD(optax.adam(2e-3), steps=a.steps, batch=a.batch, sampling="iid", dtype="float32", average=0.8)
    for name, (objective, normaliser) in ways.items():
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnnormWarning)  # some thousand steps are not at the maximum
            fit = un.fit(model, train, objective, normaliser, solver=solver, rng=1)
        spent = time.perf_counter() - begun  # compilation and the look at the end included
        loss, squared = nats(f, fit.theta, test, a.lags)
        print(f"{name:34}{loss:12.3f}{squared:13.2f}{1e3 * spent / a.steps:11.1f}", flush=True)
    if a.softmax:
        theta, seconds = softmax(f, theta0, train, a.softmax, a.batch)
        loss, name = nats(f, theta, test, a.lags)[0], f"full softmax, {a.softmax:,} steps"
        print(f"{name:34}{loss:12.3f}{'':13}{1e3 * seconds:11.1f}")


if __name__ == "__main__":
    main()
