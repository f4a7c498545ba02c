"""A window for each sequence: everything that a fit does goes by the context's own window."""

import json

import numpy as np
import pytest

import unnorm as un
from unnorm.errors import CombinationError, DataError, InputError, OutsideError
from unnorm.models.base import Unnormalised

SIZES = {"a": (8.0, 6.0), "b": (5.0, 10.0), "c": (8.0, 6.0)}
TERMS = "step + dcenter"
SLOPES = np.array([-0.6, -0.4])


def _grid(width: float, height: float, m: int = 30, cells: tuple[int, int] = (1, 1)) -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Legendre with m × m nodes in each of so many cells."""
    u, w = np.polynomial.legendre.leggauss(m)
    axes = [((np.arange(k)[:, None] + (u + 1) / 2) * side / k).ravel() for k, side in zip(cells, (width, height))]
    weights = [np.tile(w / 2, k) * side / k for k, side in zip(cells, (width, height))]
    x, y = np.meshgrid(*axes, indexing="ij")
    return np.column_stack([x.ravel(), y.ravel()]), np.outer(*weights).ravel()


def _features(y: np.ndarray, x: np.ndarray, size: tuple[float, float]) -> np.ndarray:
    """step and dcenter of points y (N, 2) from x (2,)."""
    return np.column_stack([np.hypot(*(y - x).T), np.hypot(*(y - np.array(size) / 2).T)])


def scanpaths(images: dict[str, tuple[float, float]], paths: int, steps: int, seed: int) -> dict[str, np.ndarray]:
    """Chains with f = −.6 step − .4 dcenter, each in the window of its image, by rejection from the uniform law."""
    rng = np.random.default_rng(seed)
    rows = []
    names = list(images)
    for path in range(paths):
        image = names[path % len(names)]
        size = np.array(images[image])
        x = size * rng.random(2)
        for t in range(steps):
            while t:
                y = size * rng.random(2)
                if np.log(rng.random()) < float(_features(y[None], x, images[image])[0] @ SLOPES):
                    x = y
                    break
            rows.append((path, image, t, *x))
    path, image, t, x, y = zip(*rows)
    return {"path": np.array(path), "image": np.array(image), "t": np.array(t), "x": np.array(x), "y": np.array(y)}


def observed(table: dict[str, np.ndarray]) -> un.Observations:
    return un.transitions(table, y=("x", "y"), order="t", group=("path", "image"))


@pytest.fixture(scope="module")
def data() -> un.Observations:
    return observed(scanpaths(SIZES, 60, 12, 5))


@pytest.fixture(scope="module")
def fitted(data: un.Observations) -> un.Fit:
    return un.fit(un.Additive(TERMS, un.Windows(SIZES, "image")), data, un.Logistic(per_point=20), rng=1)


class ExactLikelihood:
    """Σ_t f(y_t|x_t) − log ∫ exp f(y|x_t) dy, each integral by a rule over the context's own window."""

    def __init__(self, obs: un.Observations) -> None:
        data, nodes, weights = [], [], []
        for t in range(obs.n):
            size, x = SIZES[str(obs.group["image"][t])], obs.previous()[t]
            y, w = _grid(*size, m=40)
            data.append(_features(obs.outcome[[t]], x, size)[0])
            nodes.append(_features(y, x, size))
            weights.append(w)
        self.data, self.nodes, self.weights = np.array(data), np.array(nodes), np.array(weights)

    def __call__(self, theta: np.ndarray) -> float:
        log_z = np.log(np.sum(self.weights * np.exp(self.nodes @ theta), axis=1))
        return float(np.sum(self.data @ theta - log_z))


def test_estimates_are_those_of_the_exact_likelihood_with_each_window(fitted: un.Fit, data: un.Observations) -> None:
    from scipy.optimize import minimize

    loglik = ExactLikelihood(data)
    exact = minimize(lambda theta: -loglik(theta), SLOPES, method="BFGS")
    estimate = np.array([fitted.theta["step"], fitted.theta["dcenter"]])
    se = np.array([fitted.se[list(fitted.names).index(name)] for name in ("step", "dcenter")])
    assert np.all(np.abs(estimate - exact.x) < 0.35 * se)  # 20 points an observation
    assert np.all(np.abs(exact.x - SLOPES) < 3.5 * se)
    held = fitted.held_out(data)
    assert held.loglik == pytest.approx(loglik(estimate), abs=2e-4 * data.n)  # the rule above does not know the kink
    volumes = np.log([np.prod(SIZES[str(image)]) for image in data.group["image"]])
    assert held.bits_uniform == pytest.approx((held.loglik + volumes.sum()) / data.n / np.log(2), abs=1e-12)
    np.testing.assert_allclose(fitted.log_density(data), held.log_density, atol=2e-3)  # whose rule is not made finer


def test_one_box_for_all_would_be_wrong(fitted: un.Fit, data: un.Observations) -> None:
    hull = un.fit(un.Additive(TERMS, un.Box((0, 8), (0, 10)), centre=(4, 5)), data, un.Logistic(per_point=20), rng=1)
    gap = abs(hull.theta["dcenter"] - fitted.theta["dcenter"])
    assert gap > 2 * fitted.se[list(fitted.names).index("dcenter")]


@pytest.mark.filterwarnings("ignore::unnorm.errors.UnnormWarning")  # few data: a node lies far outside them
@pytest.mark.parametrize(
    "objective", [un.Logistic(per_point=10), un.Ranking(per_point=10)], ids=["logistic", "ranking"]
)
@pytest.mark.parametrize("terms", ["s(step, k=6) + s(dcenter, k=5)", "step + xrel + drel"])
def test_equal_sizes_give_the_fit_of_one_window(objective: un.Logistic, terms: str) -> None:
    same = dict.fromkeys("abc", (8.0, 6.0))
    obs = observed(scanpaths(same, 24, 10, 3))
    one = un.fit(un.Additive(terms, un.Box((0, 8), (0, 6))), obs, objective, rng=2)
    many = un.fit(un.Additive(terms, un.Windows(same, "image")), obs, objective, rng=2)
    np.testing.assert_allclose(many.estimate, one.estimate, rtol=0, atol=1e-10)
    np.testing.assert_allclose(many.se, one.se, rtol=0, atol=1e-10)
    assert many.held_out(obs).loglik == pytest.approx(one.held_out(obs).loglik, abs=1e-9)
    if one.smooths is not None and many.smooths is not None:
        np.testing.assert_allclose(many.smooths.beta, one.smooths.beta, rtol=0, atol=1e-10)


def test_every_reference_point_lies_in_its_window_with_the_law_cut_off_there(data: un.Observations) -> None:
    from unnorm.references.by_window import bound

    domain = un.Windows(SIZES, "image")
    for reference in (
        un.Uniform(),
        un.StepKernel(),
        un.Mixture((0.5, un.Gaussian(around="context")), (0.5, un.Uniform())),
    ):
        q = bound(reference, domain, data)
        t = np.repeat(np.arange(data.n), 5)
        y = q.sample(data, t, np.random.default_rng(1))
        size = np.array([SIZES[str(image)] for image in data.group["image"]])[t]
        assert np.all((y >= 0) & (y <= size))
        for image in "ab":  # the density integrates to one over the window
            i = int(np.flatnonzero(data.group["image"] == image)[0])
            nodes, w = _grid(*SIZES[image], m=80)
            total = w @ np.exp(q.log_density(nodes, data, np.full(len(w), i)))
            assert total == pytest.approx(1.0, abs=0.02)


def test_simulated_chains_stay_in_their_windows_and_follow_the_law(fitted: un.Fit) -> None:
    drawn = fitted.simulate(200, chains=30, rng=4)
    size = np.array([SIZES[str(image)] for image in drawn["image"]])
    points = np.column_stack([drawn["x"], drawn["y"]])
    assert np.all((points >= 0) & (points <= size))
    assert {*drawn["image"]} == {*SIZES}
    again = observed({**drawn, "path": drawn["chain"], "t": drawn["step"]})
    refit = un.fit(fitted.model, again, un.Logistic(per_point=10), rng=5)  # pyright: ignore[reportArgumentType]
    for name in ("step", "dcenter"):
        se = refit.se[list(refit.names).index(name)]
        assert abs(refit.theta[name] - fitted.theta[name]) < 3.5 * se


def test_covariates_are_relative_to_each_window(data: un.Observations) -> None:
    model: Unnormalised = un.Additive("xrel + yrel + drel + dcenter", un.Windows(SIZES, "image"))
    values = model.covariates(data).values(["xrel", "yrel", "drel", "dcenter"], data)
    size = np.array([SIZES[str(image)] for image in data.group["image"]])
    np.testing.assert_allclose(np.column_stack([values["xrel"], values["yrel"]]), data.outcome / size)
    np.testing.assert_allclose(values["dcenter"], np.hypot(*(data.outcome - size / 2).T))
    np.testing.assert_allclose(values["drel"], np.hypot(*(2 * data.outcome / size - 1).T))


def test_constants_follow_each_window_on_a_grid_as_at_every_context() -> None:
    """With many observations of a window its constants are interpolated; few have their own integrals."""
    from unnorm.models.base import Unnormalised as _
    from unnorm.objectives.representatives import representatives

    assert _
    table = scanpaths(SIZES, 300, 12, 8)
    obs = observed(table)
    model = un.Additive(TERMS, un.Windows(SIZES, "image"))
    places, weights = representatives(model, obs, ("step", "dcenter"), 9)
    assert places.n == 2 * 81
    z = places.context["x_prev"] ** 2 - 3 * places.context["y_prev"]
    np.testing.assert_allclose(weights @ z, obs.context["x_prev"] ** 2 - 3 * obs.context["y_prev"], atol=1e-9)
    windows = weights @ np.array([SIZES[str(image)][1] for image in places.group["image"]])
    np.testing.assert_allclose(windows, [SIZES[str(image)][1] for image in obs.group["image"]])


def test_constants_follow_a_map_for_each_image() -> None:
    """f = −.5 step + 1.5 z(y) with a map z of each image: the estimate is that of the exact likelihood."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(11)
    maps = {}
    for image, (width, height) in SIZES.items():
        axes = np.linspace(0, width, 9), np.linspace(0, height, 7)
        maps[image] = (rng.normal(size=(7, 9)), *axes)
    values, x, y = ({k: m[j] for k, m in maps.items()} for j in range(3))
    z = un.Map("z", values, x, y, key="image")
    model = un.Additive("step + z", un.Windows(SIZES, "image"), covariates=[z])
    table = {name: [] for name in ("path", "image", "t", "x", "y")}
    for path in range(45):
        image = "abc"[path % 3]
        size = np.array(SIZES[image])
        at = size * rng.random(2)
        for t in range(12):
            for name, value in zip(table, (path, image, t, *at)):
                table[name].append(value)
            y = size * rng.random((4000, 2))  # enough that one is kept
            f = -0.5 * np.hypot(*(y - at).T) + 1.5 * (z.grids[image].at(*y.T, "bilinear", "error") - 3.0)
            at = y[np.flatnonzero(np.log(rng.random(4000)) < f)[0]]
    obs = observed({name: np.array(column) for name, column in table.items()})
    fit = un.fit(model, obs, un.Logistic(un.Uniform("places"), per_point=40), rng=1)
    names = ("step", "z")
    data = np.column_stack([model.covariates(obs).values(names, obs)[name] for name in names])
    nodes, weights = [], []
    for t in range(obs.n):
        y, w = _grid(*SIZES[str(obs.group["image"][t])], m=5, cells=(8, 6))  # the map has kinks at its own grid
        columns = model.covariates(obs).values(names, obs, y, np.full(len(y), t))
        nodes.append(np.column_stack([columns[name] for name in names]))
        weights.append(w)
    nodes, weights = np.array(nodes), np.array(weights)
    exact = minimize(
        lambda theta: -np.sum(data @ theta - np.log(np.sum(weights * np.exp(nodes @ theta), axis=1))),
        np.zeros(2),
        method="BFGS",
    )
    se = np.array([fit.se[list(fit.names).index(name)] for name in names])
    estimate = np.array([fit.theta[name] for name in names])
    assert np.all(np.abs(estimate - exact.x) < 0.3 * se)
    assert np.all(np.abs(exact.x - [-0.5, 1.5]) < 3.5 * se)


def test_polygons_by_key_and_saving(tmp_path, data: un.Observations) -> None:
    triangle = un.Window([(0, 0), (8, 0), (8, 6), (0, 6)])
    domain = un.Windows({"a": triangle, "b": un.Box((0, 5), (0, 10)), "c": [(0, 0), (8, 0), (8, 6), (0, 6)]}, "image")
    assert len(domain.windows) == 2
    assert un.domains.from_dict(json.loads(json.dumps(domain.to_dict()))) == domain
    model = un.Additive(TERMS, domain)
    fit = un.fit(model, data, un.Logistic(per_point=10), rng=1)
    boxes = un.fit(un.Additive(TERMS, un.Windows(SIZES, "image")), data, un.Logistic(per_point=10), rng=1)
    assert fit.theta["step"] == pytest.approx(boxes.theta["step"], abs=0.3 * fit.se[0])
    fit.save(tmp_path / "fit")
    back = un.load(tmp_path / "fit", model=model)
    assert isinstance(back, un.Fit)
    np.testing.assert_allclose(back.log_density(data), fit.log_density(data))


def test_tables_of_sizes() -> None:
    sizes = un.Windows({"image": [1, 2, 1], "width": [8, 5, 8], "height": [6, 10, 6]}, key="image")
    assert sizes == un.Windows({1: (8, 6), 2: (0, 5, 0, 10)}, key="image")
    assert "2 windows for 2 values of 'image'" in repr(sizes)


def test_what_is_wrong_is_said(data: un.Observations) -> None:
    domain = un.Windows({"a": (8, 6), "c": (8, 6)}, "image")
    with pytest.raises(DataError, match=r"no window for 1 values of 'image' \(220 of 660 rows\), first 'b'; there are"):
        un.fit(un.Additive(TERMS, domain), data, un.Logistic(), rng=1)
    with pytest.raises(DataError, match="go by the column 'photo', which the observations do not have"):
        un.fit(un.Additive(TERMS, un.Windows({"a": (8, 6)}, "photo")), data, un.Logistic(), rng=1)
    small = un.Windows({**SIZES, "b": (2, 10)}, "image")
    with pytest.raises(OutsideError, match=r"with image b, whose window is Box\(\(0, 2\), \(0, 10\)\)"):
        un.fit(un.Additive(TERMS, small), data, un.Logistic(), rng=1)
    kept = un.fit(un.Additive(TERMS, small), data, un.Logistic(), rng=1, outside="drop")
    assert kept.n < data.n
    assert any("were dropped" in note for note in kept.notes)
    with pytest.raises(CombinationError, match="needs one Ω for all"):
        un.fit(un.Additive(TERMS, un.Windows(SIZES, "image")), data, un.Poisson(), un.Smooth("s(x_prev, k=5)"), rng=1)
    with pytest.raises(InputError, match="two different windows"):
        un.Windows({"image": [1, 1], "width": [8, 5], "height": [6, 10]}, key="image")
    with pytest.raises(InputError, match=r"image 2, in row 1 \(rows count from 0\): .*a < b"):
        un.Windows({"image": [1, 2], "width": [8, -5], "height": [6, 10]}, key="image")
    with pytest.raises(DataError, match=r"1 missing values in column 'width', first row 1 .*Fill them in"):
        un.Windows({"image": [1, 2], "width": [8, np.nan], "height": [6, 10]}, key="image")
    with pytest.raises(InputError, match="must have the columns width and height"):
        un.Windows({"image": [1], "size": [8]}, key="image")
    iid = un.iid({"x": [1.0, 2.0], "y": [1.0, 2.0]}, y=("x", "y"))
    with pytest.raises(CombinationError, match=r"un\.conditional"):
        un.fit(un.Additive("dcenter", un.Windows(SIZES, "image")), iid, un.Logistic(), rng=1)


def test_windows_that_do_not_begin_at_zero() -> None:
    domain = un.Windows({"a": (2.0, 10.0, 1.0, 7.0), "b": (-4.0, 0.0, 5.0, 6.0)}, "image")
    obs = un.conditional({"x": [4.0, -3.0], "y": [2.5, 5.25], "image": np.array(["a", "b"])}, y=("x", "y"), x="image")
    values = un.Additive("xrel", domain).covariates(obs).values(["xrel", "yrel", "dcenter"], obs)
    np.testing.assert_allclose(values["xrel"], [0.25, 0.25])
    np.testing.assert_allclose(values["yrel"], [0.25, 0.25])
    np.testing.assert_allclose(values["dcenter"], [np.hypot(2.0, 1.5), np.hypot(1.0, 0.25)])
