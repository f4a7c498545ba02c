"""Theorems 7 and 8, Lemmas 9 and 10: noise-contrastive divergence tends to the Poisson transform as m grows.

𝓜 is computed here from the families' own closed forms or adaptive quadrature, without unnorm's integrals.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from families import FAMILIES, Family
from scipy.special import expit

import unnorm as un
from unnorm.references import IID, Uniform

SIZES = {"truncated_gaussian": (2**9, 2**11, 2**13, 2**15), "toy_chain": (2**4, 2**6, 2**8, 2**10)}
MANY = {"truncated_gaussian": (2**13, 2**15, 2**17), "toy_chain": (2**7, 2**9, 2**11)}
VOLUME = {"truncated_gaussian": 3.0, "toy_chain": 2.0}


@dataclass(frozen=True)
class Case:
    """A family with uniform reference points: m in all for IID data, k for each transition of the chain."""

    name: str
    family: Family

    @property
    def iid(self) -> bool:
        return self.name == "truncated_gaussian"

    @property
    def normaliser(self):
        return un.Constant() if self.iid else un.PerContext()

    def objective(self, size: int) -> un.Logistic:
        count = {"total": size} if self.iid else {"per_point": size}
        return un.Logistic(Uniform(), points=IID(), **count)

    def problem(self, size: int, seed: int):
        return self.objective(size).bind(self.family.model, self.family.obs, self.normaliser, rng=seed)

    def constant(self, size: int) -> float:
        """n log(m/n) + Σ log q(y_i)."""
        n = self.family.obs.n
        m = size if self.iid else size * n
        return n * np.log(m / n) - n * np.log(VOLUME[self.name])

    def total_f(self, theta: np.ndarray) -> float:
        y = self.family.obs.outcome[:, 0]
        if self.iid:
            return float(theta[0] * y.sum() - 0.5 * theta[1] * (y**2).sum())
        return float(theta[0] * y.sum() - 0.5 * theta[1] * ((y - self.family.obs.previous()[:, 0]) ** 2).sum())

    def poisson_transform(self, theta: np.ndarray, nu: np.ndarray) -> float:
        """𝓜(θ, ν): eq. 2.3, or eq. 2.5 with the chain's own integrals in closed form."""
        n = self.family.obs.n
        if self.iid:
            log_z = np.array([(self.total_f(theta) - self.family.loglik(theta)) / n])
            return self.total_f(theta) + n * float(nu[0]) - n * float(np.exp(nu[0] + log_z[0]))
        log_z = un.datasets.toy_log_normaliser(theta[0], theta[1], self.family.obs.previous()[:, 0])
        return self.total_f(theta) + float(nu.sum()) - float(np.exp(nu + log_z).sum())

    def some_nu(self, theta: np.ndarray, spread: float = 0.3) -> np.ndarray:
        """Constants near ν*(θ), not at it."""
        if self.iid:
            n = self.family.obs.n
            return np.array([spread - (self.total_f(theta) - self.family.loglik(theta)) / n])
        x = self.family.obs.previous()[:, 0]
        return spread * np.cos(3 * x) - un.datasets.toy_log_normaliser(theta[0], theta[1], x)


@pytest.fixture(params=list(SIZES))
def case(request: pytest.FixtureRequest) -> Case:
    family = FAMILIES[request.param]()
    if request.param == "truncated_gaussian":
        full = family
        keep = np.arange(30)
        y = full.obs.outcome[keep, 0]

        def loglik(theta: np.ndarray) -> float:  # the family's log Z, with these observations
            everyone = full.obs.outcome[:, 0]
            f_all = theta[0] * everyone.sum() - 0.5 * theta[1] * (everyone**2).sum()
            log_z = (f_all - full.loglik(theta)) / len(everyone)
            return float(theta[0] * y.sum() - 0.5 * theta[1] * (y**2).sum() - len(y) * log_z)

        family = Family(full.model, full.obs.take(keep), full.energy, loglik, full.truth)
    return Case(request.param, family)


def slope(sizes, errors) -> float:
    """Of log error against log m, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def test_the_oracle_is_the_poisson_transform(case: Case) -> None:
    """The sum that the tests below compare with is 𝓜 as unnorm has it by quadrature."""
    theta = case.family.truth * 0.9
    nu = case.some_nu(theta)
    model, obs = case.family.model, case.family.obs
    problem = un.Poisson().bind(model, obs, un.Poisson().default_normaliser(model, obs))
    assert problem.joint_value(theta, nu) == pytest.approx(case.poisson_transform(theta, nu), rel=1e-9)


def test_theorem_7_pointwise(case: Case) -> None:
    """𝓡^m(θ, ν) + n log(m/n) + Σ log q(y_i) → 𝓜(θ, ν), with an error of order m^{−1/2} for IID points.

    Besides that, logistic and exponential differ by a deterministic term of order 1/m, which is gone at these m.
    """
    theta = case.family.truth * 0.9
    nu = case.some_nu(theta)
    target = case.poisson_transform(theta, nu)
    sizes, rms = MANY[case.name], []
    for size in sizes:
        values = np.array([case.problem(size, seed).joint_value(theta, nu) for seed in range(64)])
        rms.append(np.sqrt(np.mean((values + case.constant(size) - target) ** 2)))
    assert slope(sizes, rms) == pytest.approx(-0.5, abs=0.1)
    assert rms[-1] < 0.5


def test_theorem_7_says_n_log_m_over_n(case: Case) -> None:
    """The appendix's log(m/n), without the n, does not converge to 𝓜: it is off by (n − 1) log(m/n)."""
    theta = case.family.truth * 0.9
    nu = case.some_nu(theta)
    size, n = SIZES[case.name][-1], case.family.obs.n
    m = size if case.iid else size * n
    value = case.problem(size, 0).joint_value(theta, nu) + case.constant(size) - (n - 1) * np.log(m / n)
    assert abs(value - case.poisson_transform(theta, nu)) > 0.9 * (n - 1) * np.log(m / n)


def test_lemma_10_uniformly(case: Case) -> None:
    """sup over a box of (θ, ν) of the same error falls like m^{−1/2} too."""
    box = [
        (case.family.truth * np.array([a, b]), c)
        for a in (-1.0, 0.0, 1.0)
        for b in (0.2, 1.0)
        for c in (-1.0, 0.0, 0.3)
    ]
    points = [(theta, case.some_nu(theta, c)) for theta, c in box]
    targets = np.array([case.poisson_transform(theta, nu) for theta, nu in points])
    sizes, sup = MANY[case.name], []
    for size in sizes:
        worst = []
        for seed in range(8):
            problem = case.problem(size, seed)
            values = np.array([problem.joint_value(theta, nu) for theta, nu in points])
            worst.append(np.max(np.abs(values + case.constant(size) - targets)))
        sup.append(np.mean(worst))
    assert all(b < a for a, b in pairwise(sup))
    assert slope(sizes, sup) == pytest.approx(-0.5, abs=0.15)


def test_theorem_8_the_maximisers_converge(case: Case) -> None:
    """θ̃_m → θ̂. IID: |θ̃_m − θ̂| is of order m^{−1/2}. With one ν_t a transition there is a bias of order 1/k besides."""
    exact = un.fit(case.family.model, case.family.obs)
    sizes, rms = SIZES[case.name], []
    for size in sizes:
        found = np.array(
            [
                un.fit(
                    case.family.model, case.family.obs, case.objective(size), normaliser=case.normaliser, rng=seed
                ).estimate
                for seed in range(12)
            ]
        )
        rms.append(np.sqrt(np.mean(((found - exact.estimate) / exact.se) ** 2)))
    assert all(b < a for a, b in pairwise(rms))
    assert -0.9 < slope(sizes, rms) < -0.35
    assert rms[-1] < 0.12


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # a χ of few functions is said to be off
def test_theorem_8_semiparametric() -> None:
    """eq. 3.4 with a smooth χ: the distance from the MLE falls with k, to within what smoothing leaves."""
    chain = un.datasets.toy_chain(200, 0.5, 5.0, rng=2)
    obs = un.transitions(chain)
    model = FAMILIES["toy_chain"]().model
    exact = un.fit(model, obs)
    rms = []
    for k in (4, 32, 256):
        found = [
            un.fit(
                model,
                obs,
                un.Logistic(Uniform(), per_point=k, points=IID()),
                normaliser=un.Smooth("s(y_prev, k=10)"),
                rng=seed,
            ).estimate
            for seed in range(5)
        ]
        rms.append(np.sqrt(np.mean(((np.array(found) - exact.estimate) / exact.se) ** 2)))
    assert rms[1] < 0.5 * rms[0]
    assert rms[2] < 0.12


def test_lemma_9_nu_stays_bounded(case: Case) -> None:
    """With |f_θ − log q| ≤ C the maximising ν lie in [−C, C], for 𝓜 and for 𝓡^m alike, however few or odd the points.

    For 𝓡^m: its slope in ν is Σ_i (1 − σ_i) − Σ_j σ_j, and where ν > C every σ is above n/(n + m), so that the slope is
    below n − (n + m) n/(n + m) = 0; likewise below −C.
    """
    rng = np.random.default_rng(4)
    grid = np.linspace(-1, 2, 301) if case.iid else np.linspace(-1, 1, 301)
    for _ in range(20):
        theta = case.family.truth * rng.uniform(-1.5, 1.5, 2)
        if case.iid:
            theta[1] = abs(theta[1])
            f = theta[0] * grid - 0.5 * theta[1] * grid**2
        else:
            f = theta[0] * grid - 0.5 * theta[1] * (grid - grid[:, None]) ** 2
        C = float(np.max(np.abs(f + np.log(VOLUME[case.name]))))
        poisson = un.Poisson().bind(case.family.model, case.family.obs, case.normaliser)
        assert np.all(np.abs(poisson.nu_star(poisson.integrals.log_z(theta))) <= C)
        for size in (1, 3, 50):
            problem = case.problem(size, int(rng.integers(1000)))
            nu = problem.nu_at(theta)
            assert np.all(np.abs(nu) <= C + 1e-9)


def test_profiled_constants_solve_their_equations(case: Case) -> None:
    """ν*(θ): Σ over a constant's rows of z − σ(η) is zero, from any start and after any other θ."""
    problem = case.problem(SIZES[case.name][0], 3)
    rng = np.random.default_rng(0)
    for _ in range(5):
        theta = case.family.truth * rng.uniform(-1, 2, 2)
        nu = problem.nu_at(theta)
        rows = problem.source.whole()
        J = problem.model.jacobian(theta, rows.y, problem.model.arguments(problem.obs, rows.context))
        of = problem.layout.of[rows.context]
        residual = rows.data - expit(J @ theta + rows.offset + nu[of])
        total = np.bincount(of, weights=residual)
        np.testing.assert_allclose(total, 0.0, atol=1e-9 * len(residual))
