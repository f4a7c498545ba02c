import time

import numpy as np
import pytest
import shapely
from scipy.stats import norm, qmc

from unnorm.domains import Box, Window
from unnorm.domains import window as window_module
from unnorm.domains._slabs import slabs
from unnorm.errors import InputError

SQUARE = [(0, 0), (4, 0), (4, 3), (0, 3)]


def coastline(vertices: int, seed: int = 0) -> Window:
    """A rough star-shaped island with a lake, as a shapefile would give it."""
    rng = np.random.default_rng(seed)
    t = 2 * np.pi * np.arange(vertices) / vertices
    k = np.arange(1, vertices // 4)
    coefficients = rng.normal(size=(2, len(k))) / k**1.4
    r = np.exp(0.25 * (np.cos(np.outer(t, k)) @ coefficients[0] + np.sin(np.outer(t, k)) @ coefficients[1]))
    ring = np.column_stack([np.cos(t), np.sin(t)])
    return Window(500 * ring * r[:, None] + [4e5, 5e6], holes=[60 * ring[::7] * r[::7, None] + [4e5, 5e6]])


def green(polygon, a: int, b: int) -> float:
    """∫∫ x^a y^b over a polygon by Green's theorem, ∮ x^(a+1)/(a+1) y^b dy, edge by edge."""
    s, w = np.polynomial.legendre.leggauss(20)
    total = 0.0
    for piece in shapely.get_parts(polygon):
        piece = (
            shapely.orient_polygons(piece)
            if hasattr(shapely, "orient_polygons")
            else shapely.geometry.polygon.orient(piece)
        )
        for ring in shapely.get_rings(piece):
            xy = shapely.get_coordinates(ring)
            start, step = xy[:-1], np.diff(xy, axis=0)
            at = start[:, None] + 0.5 * (s[:, None] + 1) * step[:, None]
            total += 0.5 * np.einsum("s,es,e->", w, at[..., 0] ** (a + 1) / (a + 1) * at[..., 1] ** b, step[:, 1])
    return total


def star() -> Window:
    from unnorm.domains import REGISTRY

    window = REGISTRY["Window"].examples()[1]
    assert isinstance(window, Window)
    return window


@pytest.mark.parametrize("order", [1, 3, 10, 40])
@pytest.mark.parametrize("make", [star, lambda: Window(SQUARE, [[(1, 1), (2, 1), (2, 2)]])], ids=["star", "holed"])
def test_exact_for_polynomials_up_to_the_stated_degree(make, order: int) -> None:
    omega = make()
    rule = omega.quadrature(order)
    degree = int(rule.rule.split("degree ")[1].split(";")[0])
    assert degree >= 5
    x, y = rule.points.T
    for a, b in [(0, 0), (1, 0), (0, 2), (2, 2), (3, 2), (0, 5), (degree, 0), (degree // 2, degree - degree // 2)]:
        scale = rule.weights @ np.abs(x**a * y**b)
        assert rule.weights @ (x**a * y**b) == pytest.approx(green(omega.polygon, a, b), abs=1e-13 * scale)


def test_stated_error_on_a_square() -> None:
    rule = Window([(0, 0), (1, 0), (1, 1), (0, 1)]).quadrature()
    sd = np.sqrt(2) / 10
    for centre in np.random.default_rng(2).random((30, 2)):
        exact = np.prod(np.sqrt(2 * np.pi) * sd * (norm.cdf((1 - centre) / sd) - norm.cdf(-centre / sd)))
        got = rule.weights @ np.exp(-0.5 * (((rule.points - centre) / sd) ** 2).sum(axis=1))
        assert got == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("make", [star, lambda: coastline(700)], ids=["star", "coast"])
def test_stated_error_on_polygons(make) -> None:
    """Against the same integral by an independent rule: chords, Gauss–Legendre in the abscissa within each slab."""
    omega = make()
    sd = np.hypot(*(omega.upper - omega.lower)) / 10
    rule = omega.quadrature()
    s, w = np.polynomial.legendre.leggauss(12)
    for centre in omega.uniform(6, rng=1):
        got = rule.weights @ np.exp(-0.5 * (((rule.points - centre) / sd) ** 2).sum(axis=1))
        exact = 0.0
        cuts = slabs(omega._rings)
        k = np.repeat(np.arange(len(cuts.area)), np.diff(cuts.first))
        for node, weight in zip(0.5 * (s + 1), 0.5 * w):
            x = cuts.x[k] + node * (cuts.x[k + 1] - cuts.x[k])
            low, high = (side[:, 0] + node * (side[:, 1] - side[:, 0]) for side in (cuts.low, cuts.high))
            chord = sd * np.sqrt(2 * np.pi) * (norm.cdf((high - centre[1]) / sd) - norm.cdf((low - centre[1]) / sd))
            exact += weight * np.sum((cuts.x[k + 1] - cuts.x[k]) * np.exp(-0.5 * ((x - centre[0]) / sd) ** 2) * chord)
        assert got == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("make", [star, lambda: coastline(700)], ids=["star", "coast"])
def test_from_unit_gives_every_part_its_area(make) -> None:
    omega = make()
    u = qmc.Sobol(2, scramble=True, seed=np.random.default_rng(1)).random(2**15)
    y = omega.from_unit(u)
    assert omega.contains(y).all()
    (x0, y0), step = omega.lower, (omega.upper - omega.lower) / 6
    for i in range(6):
        for j in range(6):
            cell = shapely.box(x0 + i * step[0], y0 + j * step[1], x0 + (i + 1) * step[0], y0 + (j + 1) * step[1])
            share = shapely.intersection(omega.polygon, cell).area / omega.volume
            assert shapely.intersects_xy(cell, y[:, 0], y[:, 1]).mean() == pytest.approx(share, abs=2e-3)


def test_low_discrepancy_survives() -> None:
    """Moments of mapped Sobol points are far closer than those of as many IID points."""
    omega = star()
    rule = omega.quadrature()
    g = lambda y: np.column_stack([np.cos(y[:, 0] + 2 * y[:, 1]), np.exp(-0.5 * (y**2).sum(axis=1)), y[:, 0] * y[:, 1]])  # noqa: E731
    exact = rule.weights @ g(rule.points) / omega.volume
    rng = np.random.default_rng(0)
    sobol = [g(omega.from_unit(qmc.Sobol(2, seed=rng).random(2**10))).mean(axis=0) - exact for _ in range(20)]
    iid = [g(omega.uniform(2**10, rng)).mean(axis=0) - exact for _ in range(20)]
    assert (np.std(iid, axis=0) > 6 * np.std(sobol, axis=0)).all()


def test_a_rectangle_is_a_box() -> None:
    window, box = Window([(-2, 1), (5, 1), (5, 4), (-2, 4)]), Box((-2, 5), (1, 4))
    u = np.random.default_rng(1).random((1000, 2))
    np.testing.assert_allclose(window.from_unit(u), box.from_unit(u), rtol=0, atol=1e-14)
    np.testing.assert_allclose(window.centre, box.centre)
    assert window.bounds == box.bounds
    assert window.volume == box.volume
    y = np.random.default_rng(2).uniform(-3, 6, (1000, 2))
    np.testing.assert_array_equal(window.contains(y), box.contains(y))


def test_boundaries_belong() -> None:
    omega = Window(SQUARE, [[(1, 1), (2, 1), (2, 2), (1, 2)]])
    on = [(0, 0), (4, 1.7), (2.2, 3), (1, 1), (1, 1.3), (2, 2)]
    off = [(1.5, 1.5), (-1e-9, 1), (4.000001, 1), (1.000001, 1.3), (10, 10)]
    assert omega.contains(np.array(on + off)).tolist() == [True] * 6 + [False] * 5
    triangle = Window([(0, 0), (1, 0), (0.3, 0.7)])
    along = np.linspace(0, 1, 1001)[:, None]
    for a, b in [((0, 0), (0.3, 0.7)), ((1, 0), (0.3, 0.7))]:  # points of a slanted edge are off it by a rounding error
        assert triangle.contains(np.array(a) + along * (np.array(b) - a)).all()


def test_a_million_points_at_real_size() -> None:
    omega = coastline(5000)
    y = np.random.default_rng(1).uniform(omega.lower, omega.upper, (1_000_000, 2))
    started = time.process_time()
    inside = omega.contains(y)
    took = time.process_time() - started
    assert inside.mean() == pytest.approx(omega.volume / np.prod(omega.upper - omega.lower), abs=0.002)
    assert took < 10  # 1.5 s on a 2-core machine; a loop over points takes minutes
    assert omega.contains(omega.uniform(100_000, rng=1)).all()
    assert omega.quadrature().weights.sum() == pytest.approx(omega.volume, rel=1e-12)


def test_what_can_be_given() -> None:
    polygon = shapely.Polygon(SQUARE, [[(1, 1), (2, 1), (2, 2)]])
    by_coordinates = Window(SQUARE, holes=[[(1, 1), (2, 1), (2, 2)]])
    assert Window(polygon) == by_coordinates
    assert Window(np.array([*SQUARE, SQUARE[0]]), [[(2, 2), (1, 1), (2, 1)]]) == by_coordinates  # closed, turned
    assert Window(shapely.force_3d(polygon)) == by_coordinates

    class Feature:
        __geo_interface__ = shapely.geometry.mapping(polygon)

    assert Window(Feature()) == by_coordinates
    two = Window(shapely.MultiPolygon([shapely.box(0, 0, 1, 1), shapely.box(2, 0, 3, 2)]))
    assert two.volume == 3.0
    assert two.contains(np.array([[0.5, 0.5], [1.5, 0.5], [2.5, 1.5]])).tolist() == [True, False, True]
    assert repr(two) == "Window(2 pieces, 8 vertices, area 3)"
    assert repr(by_coordinates) == "Window(7 vertices, 1 hole, area 11.5)"


@pytest.mark.parametrize(
    ("polygon", "holes", "sentence"),
    [
        ([(0, 0), (1, 1), (1, 0), (0, 1)], (), "Self-intersection.*make_valid"),
        (SQUARE, [[(5, 5), (6, 5), (6, 6)]], "Hole lies outside shell"),
        (SQUARE, [[(1, 1), (3, 1), (3, 2)], [(2, 0.5), (2.5, 0.5), (2.5, 2.5)]], "holes inside and apart"),
        ([(0, 0), (1, 1)], (), r"at least three vertices, shape \(k, 2\); got shape \(2, 2\)"),
        ([(0, 0, 0), (1, 1, 0), (1, 0, 0)], (), r"got shape \(3, 3\)"),
        ([(0, 0), (1, np.nan), (1, 0)], (), "vertex 1 is"),
        (SQUARE, [[(1, 1), (2, np.inf), (2, 2)]], "Hole 1 of a Window must have finite vertices"),
        (shapely.Polygon(), (), "empty"),
        (shapely.Point(0, 0), (), "got a Point"),
        (shapely.LineString([(0, 0), (1, 1)]), (), "got a LineString"),
        (shapely.box(0, 0, 1, 1), [[(0.2, 0.2), (0.3, 0.2), (0.3, 0.3)]], "already holds its own"),
        ("a polygon", (), "must be numeric"),
    ],
)
def test_bad_polygons(polygon, holes, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Window(polygon, holes)


def test_degenerate_polygon() -> None:
    with pytest.raises(InputError):
        Window([(0, 0), (1, 1), (2, 2)])


def test_without_constrained_delaunay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where shapely cannot triangulate, the slabs' trapezoids do, to the same integrals."""
    omega = star()
    if window_module._constrained_delaunay(omega._polygon) is None:
        pytest.skip("this shapely cannot triangulate: every test is of the trapezoids")
    expected = omega.quadrature()
    monkeypatch.setattr(window_module, "_constrained_delaunay", lambda polygon: None)
    other = star()
    rule = other.quadrature()
    assert len(other._triangles) != len(omega._triangles)
    g = lambda y: np.exp(0.3 * y[:, 0] - 0.2 * y[:, 1] ** 2)  # noqa: E731
    assert rule.weights @ g(rule.points) == pytest.approx(expected.weights @ g(expected.points), rel=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_random_unions(seed: int) -> None:
    """Pieces, holes, shared abscissae, vertical edges, points of contact: the cuts cover, and every point is inside."""
    rng = np.random.default_rng(seed)
    corners, sides = rng.integers(0, 10, (12, 2)), rng.integers(1, 5, (12, 2))
    boxes = [shapely.box(*corner, *(corner + side)) for corner, side in zip(corners, sides)]
    triangles = [shapely.Polygon(10 * rng.random((3, 2))) for _ in range(10)]
    omega = Window(shapely.union_all(boxes if seed % 2 else triangles))
    assert omega._slabs.area.sum() == pytest.approx(omega.volume, rel=1e-12)
    u = rng.random((2000, 2))
    u[:300] = np.round(u[:300])
    u[300:600, 1] = np.round(u[300:600, 1])
    assert omega.contains(omega.from_unit(u)).all()
    rule = omega.quadrature(5)
    assert rule.weights.sum() == pytest.approx(omega.volume, rel=1e-12)
    assert omega.contains(rule.points).all()
