"""`Custom(sample, log_density)`: pairs that belong together pass, others are refused with the quantity that differs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference_cases import screen, transitions
from scipy import stats

import unnorm as un
from unnorm.errors import InputError
from unnorm.references import REGISTRY, Custom, agreement


def chain(domain: un.domains.Domain, n: int = 60) -> un.Observations:
    return transitions(domain, n=n)


def iid(domain: un.domains.Domain) -> un.Observations:
    return un.iid(domain.uniform(30, 4))


LINE, PLANE, CIRCLE, BITS = un.Interval(-1, 1), screen(), un.Circle(), un.BinaryVectors(6)
MANY = un.BinaryVectors(40)
SPACE = un.Box(*[(0, 1)] * 5)  # without a rule


def beta(a: float, b: float) -> tuple[Any, Any]:
    """Beta(a, b) on [−1, 1]."""
    law = stats.beta(a, b, -1, 2)
    return (lambda rng, n, x: law.rvs(n, random_state=rng)), (lambda y, x: law.logpdf(y))


def kernel(sd: float) -> tuple[Any, Any]:
    """N(x, sd²) truncated to the plane, coordinate by coordinate."""
    top = np.array([8.0, 6.0])

    def laws(x):
        return stats.truncnorm(-x / sd, (top - x) / sd, x, sd)

    return (lambda rng, n, x: laws(x).rvs((n, 2), random_state=rng)), (lambda y, x: laws(x).logpdf(y).sum(axis=1))


def bernoulli(p: float, d: int) -> tuple[Any, Any]:
    def log_density(y, x):
        return (y * np.log(p) + (1 - y) * np.log1p(-p)).sum(axis=1)

    return (lambda rng, n, x: (rng.random((n, d)) < p).astype(float)), log_density


def sticky(stay: float) -> tuple[Any, Any]:
    """Each bit stays as it was with this probability."""

    def sample(rng, n, x):
        return np.where(rng.random(x.shape) < stay, x, 1 - x)

    def log_density(y, x):
        return np.where(y == x, np.log(stay), np.log1p(-stay)).sum(axis=1)

    return sample, log_density


def von_mises(kappa: float) -> tuple[Any, Any]:
    law = stats.vonmises(kappa)
    wrap = lambda a: (a + np.pi) % (2 * np.pi) - np.pi  # noqa: E731
    return (lambda rng, n, x: wrap(x + law.rvs(n, random_state=rng))), (lambda y, x: law.logpdf(y - x))


def uniform(domain: un.domains.Domain) -> tuple[Any, Any]:
    def sample(rng, n, x):
        y = domain.uniform(n, rng)
        return y[:, 0] if domain.scalar else y

    return sample, (lambda y, x: np.full(len(y), -domain.log_volume))


RIGHT = {
    "interval": (LINE, iid(LINE), beta(2, 3)),
    "interval, peaked at the end": (LINE, iid(LINE), beta(0.6, 4)),
    "plane": (PLANE, chain(PLANE), kernel(0.7)),
    "plane, narrower than the rule sees": (PLANE, chain(PLANE), kernel(0.02)),
    "circle": (CIRCLE, chain(CIRCLE), von_mises(3.0)),
    "bits": (BITS, iid(BITS), bernoulli(0.3, 6)),
    "bits, given the last": (BITS, chain(BITS), sticky(0.8)),
    "too many bits to list": (MANY, iid(MANY), bernoulli(0.3, 40)),
    "five dimensions": (SPACE, iid(SPACE), uniform(SPACE)),
    "uniform": (PLANE, chain(PLANE), uniform(PLANE)),
}
# sampler, density, and the quantity that gives them away
WRONG = {
    "interval": (LINE, iid(LINE), beta(2, 3)[0], beta(3, 2)[1], "mean of (y|log_density)"),
    "interval, same mean": (LINE, iid(LINE), beta(2, 2)[0], beta(5, 5)[1], "of (y|log_density)"),
    "drawn from a kernel, claimed uniform": (
        PLANE, chain(PLANE), kernel(0.7)[0], uniform(PLANE)[1], "(distance|step) .*previous",
    ),
    "drawn uniform, claimed a kernel": (PLANE, chain(PLANE), uniform(PLANE)[0], kernel(0.7)[1], "log_density|distance"),
    "narrow kernel, claimed uniform": (
        PLANE, chain(PLANE), kernel(0.02)[0], uniform(PLANE)[1], "(distance|step) .*previous",
    ),
    "drawn uniform, claimed narrow": (PLANE, chain(PLANE), uniform(PLANE)[0], kernel(0.02)[1], "log_density|distance"),
    "kernel of another width": (PLANE, chain(PLANE), kernel(0.7)[0], kernel(1.0)[1], "distance|step|log_density"),
    "circle": (CIRCLE, chain(CIRCLE), von_mises(3.0)[0], uniform(CIRCLE)[1], "(distance|step) .*previous"),
    "circle, the other way": (CIRCLE, chain(CIRCLE), uniform(CIRCLE)[0], von_mises(3.0)[1], "log_density|distance"),
    "bits": (BITS, iid(BITS), bernoulli(0.3, 6)[0], uniform(BITS)[1], "mean of"),
    "bits, given the last": (BITS, chain(BITS), sticky(0.8)[0], uniform(BITS)[1], "distance"),
    "too many bits": (MANY, iid(MANY), bernoulli(0.3, 40)[0], uniform(MANY)[1], "sum of all coordinates"),
    "too many bits, the other way round": (MANY, iid(MANY), uniform(MANY)[0], bernoulli(0.3, 40)[1], "mean of"),
    "five dimensions": (
        SPACE, iid(SPACE), lambda rng, n, x: rng.beta(2, 1, (n, 5)), uniform(SPACE)[1], "sum of all coordinates",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", RIGHT)
def test_right_pairs_pass(case: str) -> None:
    domain, obs, (sample, log_density) = RIGHT[case]
    assert Custom(sample, log_density).bind(domain, obs).cube_dim is None


@pytest.mark.parametrize("case", WRONG)
def test_wrong_pairs_are_refused(case: str) -> None:
    domain, obs, sample, log_density, what = WRONG[case]
    sentence = rf"of Custom 'mine' do not belong together: .*({what}).*points that sample drew.*Let log_density return"
    with pytest.raises(InputError, match=sentence):
        Custom(sample, log_density, name="mine").bind(domain, obs)


def test_covariates_as_contexts() -> None:
    """The draws' mean moves with x; a density that ignores it has the right marginal and is refused all the same."""
    rng = np.random.default_rng(1)
    obs = un.conditional({"y": rng.random(80), "x": rng.choice([1.0, 4.0], 80)}, y="y", x="x")
    omega = un.Interval(0, 1)

    def sample(rng, n, x):
        return rng.random(n) ** (1 / x["x"])

    def log_density(y, x):
        with np.errstate(divide="ignore"):
            return np.log(x["x"]) + (x["x"] - 1) * np.log(y)

    def mixed(y, x):
        return np.log(0.5 + 0.5 * 4 * y**3)

    assert Custom(sample, log_density).bind(omega, obs)
    with pytest.raises(InputError, match="do not belong together"):
        Custom(lambda rng, n, x: sample(rng, n, {"x": rng.choice([1.0, 4.0], n)}), log_density).bind(omega, obs)
    assert Custom(lambda rng, n, x: sample(rng, n, {"x": rng.choice([1.0, 4.0], n)}), mixed).bind(omega, obs)


def test_the_standard_error_that_this_prevents() -> None:
    """Habitat-only step selection by a false density: refused, with the distance named."""
    rng = np.random.default_rng(2)
    model = un.ExponentialFamily(lambda y, x: (y[0],), ("east",), PLANE)
    obs = chain(PLANE, 100)
    false = Custom(kernel(0.7)[0], uniform(PLANE)[1], name="steps")
    with pytest.raises(InputError, match=r"Custom 'steps' do not belong together"):
        un.fit(model, obs, un.Ranking(false, per_point=10), rng=rng)
    true = Custom(*kernel(0.7), name="steps")
    assert un.fit(model, obs, un.Ranking(true, per_point=10), rng=rng).converged


def test_the_mass_is_judged_where_there_is_no_rule() -> None:
    sample, log_density = bernoulli(0.4, 40)
    with pytest.raises(InputError, match=r"log_density|integrates to (1[5-9]|2[0-5]) over"):
        Custom(sample, lambda y, x: log_density(y, x) + 3.0).bind(MANY, iid(MANY))
    with pytest.raises(InputError, match=r"integrates to 1.2\d* over Interval.*subtract the log"):
        Custom(beta(2, 3)[0], lambda y, x: beta(2, 3)[1](y, x) + 0.2).bind(LINE, iid(LINE))


def test_points_from_a_table_are_taken_on_trust() -> None:
    table = np.linspace(-0.9, 0.9, 50)
    handed_out = Custom(lambda rng, n, x: table[:n], lambda y, x: np.full(len(y), -np.log(2.0)), check=False)
    assert handed_out.bind(LINE, iid(LINE)).cube_dim is None


def test_what_no_log_density_can_be() -> None:
    sample = beta(2, 3)[0]
    with pytest.raises(InputError, match=r"must be a number or −inf everywhere.*it is nan"):
        Custom(sample, lambda y, x: np.where(y > 0.5, np.nan, -np.log(2))).bind(LINE, iid(LINE))
    with pytest.raises(InputError, match=r"density is zero at [\d,]+ of 500 points that sample drew"):
        Custom(sample, lambda y, x: np.where(y > 0, 0.0, -np.inf)).bind(LINE, iid(LINE))


def test_binding_leaves_the_users_generator_alone_and_always_says_the_same() -> None:
    seen = []

    def sample(rng, n, x):
        y = rng.random(n)
        seen.append(y[0])
        return y

    pair = Custom(sample, lambda y, x: np.zeros(len(y)))
    for _ in range(2):
        pair.bind(un.Interval(0, 1), iid(un.Interval(0, 1)))
    assert seen[: len(seen) // 2] == seen[len(seen) // 2 :]


def wrapped(q: Any, obs: un.Observations, domain: un.domains.Domain) -> Custom:
    """A reference of unnorm's own as a pair of functions of (y, x)."""

    def there(x: Any, n: int) -> un.Observations:
        steps = [x] if obs.lags == 1 else [x[:, lag] for lag in range(obs.lags)]
        context = {}
        for end, points in zip(("_prev", "_prev2"), steps):
            context |= {name + end: points.reshape(n, -1)[:, j] for j, name in enumerate(obs.outcome_names)}
        return un.Observations("transitions", np.zeros((n, domain.dim)), obs.outcome_names, context, lags=obs.lags)

    def sample(rng, n, x):
        return q.sample(there(x, n), np.arange(n), rng)

    def log_density(y, x):
        return q.log_density(y.reshape(len(y), -1), there(x, len(y)), np.arange(len(y)))

    return Custom(sample, log_density)


OWN = [one for one in REGISTRY.examples() if one.reference.saved and type(one.reference) is not un.StepKernel]


@pytest.mark.parametrize("example", OWN, ids=lambda one: f"{type(one.reference).__name__} on {one.domain!r}")
def test_every_reference_of_our_own_passes(example: Any) -> None:
    obs = transitions(example.domain, lags=example.lags)
    q = example.reference.bind(example.domain, obs)
    if q.given != "outcome":
        assert wrapped(q, obs, example.domain).bind(example.domain, obs)


@pytest.mark.slow
@pytest.mark.parametrize("case", RIGHT)
def test_false_alarms_are_rare(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 runs of each right pair: none refused, and few at a level of 20 %, since the bound holds for any law."""
    domain, obs, (sample, log_density) = RIGHT[case]
    bound = Custom(sample, log_density).bind(domain, obs)
    alarms, fresh = {1e-6: 0, 0.2: 0}, np.random.default_rng
    for seed in range(300):
        monkeypatch.setattr(agreement.np.random, "default_rng", lambda _, seed=seed: fresh(seed))
        for level in alarms:
            monkeypatch.setattr(agreement, "FALSE_ALARM", level)
            try:
                agreement.check_agreement(bound, obs, "mine")
            except InputError:
                alarms[level] += 1
    print(f"{case}: {alarms} of 300")
    assert alarms[1e-6] == 0
    assert alarms[0.2] <= 60
