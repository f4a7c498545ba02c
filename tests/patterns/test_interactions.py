"""Every registered interaction against its definition, by brute force; trees, borders and compiled energies too."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import unnorm as un
from parts_in_contributing import example
from unnorm.patterns import REGISTRY
from unnorm.patterns.interactions import Interaction, Neighbours
from unnorm.patterns.interactions.reading import read_interaction
from unnorm.patterns.metropolis import interaction as compiled
from unnorm.patterns.places import Places, border_distance, close_pairs

RING = example("An interaction of point patterns")["Ring"]  # CONTRIBUTING.md's
EXAMPLES = (*REGISTRY.examples(), *RING.examples())
SQUARE = un.Box((0, 1), (0, 1))


def scattered(n: int = 120, seed: int = 1) -> Places:
    rng = np.random.default_rng(seed)
    return Places.of(rng.random((n, 2)), rng.integers(0, 2, n))


def marked(places: Places) -> un.Pattern:
    table = {"x": places.xy[:, 0], "y": places.xy[:, 1], "type": np.array(["a", "b"])[places.mark]}
    return un.pattern(table, y=("x", "y"), window=SQUARE, marks="type", types=("a", "b"))


def near(u: Places, x: Places, one: Interaction, own: np.ndarray | None = None, period=None) -> Neighbours:
    return Neighbours(u, x, np.full(u.n, -1) if own is None else own, one.reach, period)


@pytest.mark.parametrize("period", [None, np.array([1.0, 1.0])])
def test_close_pairs(period) -> None:
    u, x = scattered(50, 2), scattered(70, 3)
    u = Places(u.xy, u.mark, np.arange(u.n) % 2)
    x = Places(x.xy, x.mark, np.arange(x.n) % 2)
    step = np.abs(u.xy[:, None] - x.xy[None])
    step = step if period is None else np.minimum(step, 1 - step)
    d = np.hypot(*step.transpose(2, 0, 1))
    a, b = np.nonzero((d <= 0.2) & (u.replicate[:, None] == x.replicate[None]))
    found = close_pairs(u, x, 0.2, period)
    np.testing.assert_array_equal(found.a, a)
    np.testing.assert_array_equal(found.b, b)
    np.testing.assert_allclose(found.d, d[a, b], rtol=1e-12)


def test_border_distance() -> None:
    """To all edges, the hole's too."""
    window = un.Window([(0, 0), (4, 0), (4, 3), (0, 3)], holes=[[(1, 1), (2, 1), (2, 2), (1, 2)]])
    ring = [
        np.array([(0, 0), (4, 0), (4, 3), (0, 3), (0, 0)], float),
        np.array([(1, 1), (2, 1), (2, 2), (1, 2), (1, 1)], float),
    ]
    edge = np.concatenate([p + (q - p) * np.linspace(0, 1, 4001)[:, None] for one in ring for p, q in pairwise(one)])
    xy = window.uniform(200, 1)
    np.testing.assert_allclose(border_distance(xy, window), cdist(xy, edge).min(axis=1), atol=1e-4)
    box = un.Box((0, 4), (0, 3))
    np.testing.assert_array_equal(border_distance(np.array([[1.0, 1.5], [3.5, 1.0]]), box), [1.0, 0.5])


@pytest.mark.parametrize("one", EXAMPLES, ids=repr)
@pytest.mark.parametrize("period", [None, np.array([1.0, 1.0])])
def test_a_point_does_not_see_itself(one: Interaction, period) -> None:
    """t(x_i, x∖x_i) is what a place there would see, were the point not in the pattern."""
    x = scattered()
    at_data = one.statistics(near(x, x, one, np.arange(x.n), period))
    for i in (0, 17, 63):
        rest = x.take(np.arange(x.n) != i)
        alone = one.statistics(near(x.take(np.array([i])), rest, one, None, period))
        np.testing.assert_allclose(at_data[i], alone[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("one", EXAMPLES, ids=repr)
def test_without(one: Interaction) -> None:
    """t(x_i, x∖{x_i, x_j}) for every pair is t(x_i, ·) in the pattern less x_j."""
    x = scattered()
    around = near(x, x, one, np.arange(x.n))
    found = one.without(around)
    assert found.shape == (len(around.pairs.a), len(one.names(marked(x))))
    for p in range(0, len(around.pairs.a), 7):
        i, j = around.pairs.a[p], around.pairs.b[p]
        rest = x.take(np.setdiff1d(np.arange(x.n), [i, j]))
        want = one.statistics(near(x.take(np.array([i])), rest, one))
        np.testing.assert_allclose(found[p], want[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("one", EXAMPLES, ids=repr)
def test_reach(one: Interaction) -> None:
    """Points farther away than the reach change nothing."""
    x, u = scattered(), scattered(20, 9)
    for k in range(u.n):
        here = u.take(np.array([k]))
        close = x.take(cdist(here.xy, x.xy)[0] <= one.reach * (1 + 1e-12))
        np.testing.assert_allclose(
            one.statistics(near(here, x, one)), one.statistics(near(here, close, one)), atol=1e-12
        )


@pytest.mark.parametrize("one", EXAMPLES, ids=repr)
@pytest.mark.parametrize("period", [0.0, 1.0])
def test_compiled_energy(one: Interaction, period: float) -> None:
    """What a simulation adds up is φᵀt, for places and for points of the pattern."""
    x, u = scattered(), scattered(40, 5)
    k = len(one.names(marked(x)))
    phi = np.linspace(-0.7, 0.4, k)
    law = one.energy(marked(x), phi)
    cells = max(1, int(1 / law.reach))
    grid = (np.zeros(2), np.full(2, 1.0 / cells), cells, cells, np.full(2, period))
    head, after = np.full(cells * cells, -1), np.full(x.n, -1)
    for i in range(x.n):
        cx, cy = np.minimum((x.xy[i] * cells).astype(int), cells - 1)
        after[i], head[cy * cells + cx] = head[cy * cells + cx], i
    state = (np.ascontiguousarray(x.xy[:, 0]), np.ascontiguousarray(x.xy[:, 1]), head, after)
    arrays = (law.near2, law.breaks, law.steps, law.numbers)
    found, (more, room) = np.empty(200, np.int64), law.scratch(200)
    joined = np.array([1.0, 1.0]) if period else None
    for places, own in ((u, np.full(u.n, -1)), (x, np.arange(x.n))):
        around = near(places, x, one, own, joined)
        want = one.statistics(around) @ phi
        inside = np.zeros(places.n, dtype=bool)
        inside[around.pairs.a[around.pairs.d <= one.core]] = one.core > 0
        got = np.array(
            [
                compiled(*places.xy[i], places.mark[i], own[i], x.mark, state, grid, arrays, found, more, room)
                for i in range(places.n)
            ]
        )
        steps = 0.02 * np.abs(want).max() if len(law.breaks) > 10 else 1e-9  # ψ in small steps
        np.testing.assert_allclose(got[~inside], want[~inside], atol=steps + 1e-9)
        assert np.all(np.isneginf(got[inside]))


def test_area_by_polygons() -> None:
    """The covered share of a disc against shapely's, whose circles have 4,000 sides."""
    import shapely

    x, u, r = scattered(60, 4), scattered(15, 6), 0.08
    t = un.AreaInteraction(r).statistics(near(u, x, un.AreaInteraction(r)))[:, 0]
    union = shapely.union_all(shapely.buffer(shapely.points(x.xy), r, quad_segs=1000))
    discs = shapely.buffer(shapely.points(u.xy), r, quad_segs=1000)
    np.testing.assert_allclose(t, shapely.area(shapely.intersection(discs, union)) / shapely.area(discs), atol=2e-6)


def test_geyer_by_definition() -> None:
    """The change of Σ min(s, neighbours) that a point brings."""
    x, u, r, s = scattered(80, 7), scattered(10, 8), 0.09, 2.0

    def total(xy: np.ndarray) -> float:
        d = cdist(xy, xy) <= r
        return float(np.minimum(s, d.sum(axis=1) - 1).sum())

    t = un.Geyer(r, s).statistics(near(u, x, un.Geyer(r, s)))[:, 0]
    want = [total(np.concatenate([x.xy, one[None]])) - total(x.xy) for one in u.xy]
    np.testing.assert_allclose(t, want)


def test_softcore_by_definition() -> None:
    x, u = scattered(80, 7), scattered(10, 8)
    d = cdist(u.xy, x.xy)
    want = -np.where(d <= 0.2, (0.03 / d) ** (2 / 0.6), 0.0).sum(axis=1)
    one = un.Softcore(0.2, 0.6, 0.03)
    np.testing.assert_allclose(one.statistics(near(u, x, one))[:, 0], want, rtol=1e-10)


def test_a_pair_spline_ends_smoothly() -> None:
    one = un.PairwiseSpline(0.2, 5)
    d = np.array([0.2 - 1e-5, 0.2])
    ends = one.potential(d, d, d)
    np.testing.assert_allclose(ends[1], 0.0)
    assert np.abs(ends[0]).max() < 1e-6
    inner = np.linspace(0.0, 0.15, 9)
    assert np.linalg.matrix_rank(one.potential(inner, inner, inner)) == 5


@pytest.mark.parametrize("one", EXAMPLES, ids=repr)
def test_descriptions(one: Interaction) -> None:
    with REGISTRY.including(type(one)):
        assert REGISTRY.read(one.to_dict()) == one


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("strauss(7)", un.Strauss(7)),
        ("Geyer(5, sat=2)", un.Geyer(5, 2)),
        ("hard_core(2, strauss=9.5)", un.HardCore(2, 9.5)),
    ],
)
def test_reading(text: str, want: Interaction) -> None:
    assert read_interaction(text) == want


@pytest.mark.parametrize(
    "text", ["straus(7)", "strauss", "strauss(7, 8, 9)", "strauss(x)", "__import__('os')", "strauss(-1)"]
)
def test_bad_text(text: str) -> None:
    with pytest.raises(un.errors.InputError):
        read_interaction(text)


@pytest.mark.parametrize("how", ["isotropic", "translate"])
@pytest.mark.parametrize("one", [one for one in EXAMPLES if one.weighs], ids=repr)
def test_weighted_pairs(one: Interaction, how) -> None:
    """A point does not see itself, nor a second one that is left out, with weights of pairs either."""
    x = scattered()

    def around(u: Places, pattern: Places, own: np.ndarray | None = None) -> Neighbours:
        return Neighbours(u, pattern, np.full(u.n, -1) if own is None else own, one.reach, None, how, (SQUARE,))

    among = around(x, x, np.arange(x.n))
    found, less = one.statistics(among), one.without(among)
    plain = one.statistics(near(x, x, one, np.arange(x.n)))
    assert not plain.size or np.any(np.abs(found - plain) > 1e-6)
    for i in range(0, x.n, 17):
        here, rest = x.take(np.array([i])), np.arange(x.n) != i
        np.testing.assert_allclose(found[i], one.statistics(around(here, x.take(rest)))[0], rtol=1e-9, atol=1e-12)
        for p in np.flatnonzero(among.pairs.a == i)[:4]:
            fewer = rest & (np.arange(x.n) != among.pairs.b[p])
            np.testing.assert_allclose(less[p], one.statistics(around(here, x.take(fewer)))[0], rtol=1e-9, atol=1e-12)


def test_equal_discs_cover_once() -> None:
    """Two points in one place cover what one of them does."""
    area = un.AreaInteraction(0.04)
    x, u = scattered(), scattered(30, 8)
    twice = Places.joined([x, x.take(np.arange(60))])
    once, both = area.statistics(near(u, x, area)), area.statistics(near(u, twice, area))
    assert np.sum(once > 0) > 10
    np.testing.assert_allclose(both, once, atol=1e-10)
