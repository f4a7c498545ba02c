"""Arrowhead algebra, penalties, local bases and the small factorisation, against dense NumPy."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest

import unnorm as un
from unnorm._base.blas import _libraries, single_threaded
from unnorm.engine.arrow import Arrow, Singular
from unnorm.engine.penalties import Group, Penalties, PenaltyPiece, square_root
from unnorm.engine.splines import local_basis


def positive(p: int, rng: np.random.Generator) -> np.ndarray:
    a = rng.normal(size=(2 * p, p))
    return a.T @ a


def arrow(rng: np.random.Generator, shared: int = 5, own: tuple[int, ...] = (4, 3, 6)) -> Arrow:
    whole = positive(shared + sum(own), rng)
    at = np.cumsum([0, shared, *own])
    for a in range(1, len(own) + 1):
        for b in range(1, len(own) + 1):
            if a != b:
                whole[at[a] : at[a + 1], at[b] : at[b + 1]] = 0.0
    whole += 10 * np.eye(len(whole))
    blocks = [slice(a, b) for a, b in itertools.pairwise(at[1:])]
    return Arrow(
        whole[:shared, :shared], tuple(whole[b, b] for b in blocks), tuple(whole[b, :shared].copy() for b in blocks)
    )


@pytest.mark.parametrize("own", [(), (4, 3, 6), (1, 1)])
def test_arrow_inverse_is_the_dense_inverse(own):
    rng = np.random.default_rng(0)
    H = arrow(rng, 5, own)
    P, dense = H.invert(), H.dense()
    inverse = np.linalg.inv(dense)
    np.testing.assert_allclose(P.dense(), inverse, atol=1e-12)
    np.testing.assert_allclose(P.logdet, np.linalg.slogdet(dense)[1], rtol=1e-12)
    v = rng.normal(size=(len(dense), 3))
    np.testing.assert_allclose(P.dot(v), inverse @ v, atol=1e-12)
    np.testing.assert_allclose(H.dot(v), dense @ v, atol=1e-10)
    np.testing.assert_allclose(P.diagonal(), np.diag(inverse), atol=1e-12)
    np.testing.assert_allclose(P.rows(np.array([0, 4])), inverse[[0, 4]], atol=1e-12)
    for level in range(len(own)):
        at = np.concatenate([np.arange(5), np.arange(P.starts[level + 1], P.starts[level + 2])])
        np.testing.assert_allclose(P.segment(level), inverse[np.ix_(at, at)], atol=1e-12)
    keep = rng.random(len(dense)) < 0.6
    keep[0] = True
    kept = H.keep(keep).invert().embed(keep, H.starts).dense()
    np.testing.assert_allclose(kept[np.ix_(keep, keep)], np.linalg.inv(dense[np.ix_(keep, keep)]), atol=1e-12)
    assert not kept[~keep].any()


def test_a_singular_block_is_named_with_its_direction():
    rng = np.random.default_rng(1)
    H = arrow(rng)
    a = rng.normal(size=(9, 4))
    a[:, 3] = a[:, 0] - 2 * a[:, 1]
    broken = Arrow(H.shared, (a.T @ a, *H.own[1:]), (np.zeros((4, 5)), *H.cross[1:]))
    with pytest.raises(Singular) as found:
        broken.invert()
    direction = found.value.direction / found.value.direction[3]
    assert found.value.block == 0
    np.testing.assert_allclose(direction, [-1, 2, 0, 1], atol=1e-6)


@pytest.mark.parametrize("own", [(), (4, 3, 6)])
@pytest.mark.parametrize("diagonal", [True, False])
def test_traces_by_blocks_are_the_dense_traces(own, diagonal):
    rng = np.random.default_rng(2)
    H = arrow(rng, 7, own)
    starts = H.starts

    def matrix(p: int) -> np.ndarray:
        return np.diag(rng.uniform(0.5, 2.0, p)) if diagonal else positive(p, rng)

    pieces = [(PenaltyPiece(-1, slice(1, 4), matrix(3)),), (PenaltyPiece(-1, slice(4, 7), matrix(3)),)]
    if own:
        pieces += [
            (PenaltyPiece(0, slice(0, 4), matrix(4)),),
            (PenaltyPiece(1, slice(0, 3), matrix(3)), PenaltyPiece(2, slice(2, 5), matrix(3))),
            (PenaltyPiece(2, slice(0, 2), matrix(2)),),
        ]
    penalties = Penalties(tuple("abcde"[: len(pieces)]), tuple(pieces), (), starts, np.zeros(starts[-1], bool))
    assert (penalties.diagonals is not None) == diagonal
    S = []
    for group in pieces:
        dense = np.zeros((starts[-1], starts[-1]))
        for piece in group:
            at = slice(starts[piece.block + 1] + piece.at.start, starts[piece.block + 1] + piece.at.stop)
            dense[at, at] = piece.matrix
        S.append(dense)
    P = np.linalg.inv(H.dense())
    first, pairs = penalties.traces(H.invert())
    np.testing.assert_allclose(first, [np.trace(P @ s) for s in S], rtol=1e-10)
    np.testing.assert_allclose(pairs, [[np.trace(P @ s @ P @ t) for t in S] for s in S], rtol=1e-9)
    v = rng.normal(size=starts[-1])
    np.testing.assert_allclose(penalties.columns(v), np.stack([s @ v for s in S], axis=1), atol=1e-12)


def test_traces_are_numbers_where_a_variance_has_no_square():
    """Rows and penalty of a column may both be 10⁻¹⁸⁰ (warnings are errors here)."""
    weights = np.array([0.0, 1e-180, 2.0, 3.0])
    pieces = ((PenaltyPiece(-1, slice(0, 4), np.diag(weights)),),)
    group = Group((0,), (np.diag(weights[1:]),), (np.diag(np.sqrt(weights[1:])),))
    penalties = Penalties(("x",), pieces, (group,), np.array([0, 4]), np.array([True, False, False, False]))
    first, pairs = penalties.traces(Arrow(np.diag([1.0, 1e-180, 4.0, 4.0]), (), ()).invert())
    np.testing.assert_allclose(first, 1.0 + 0.5 + 0.75)
    np.testing.assert_allclose(pairs, 1.0 + 0.5**2 + 0.75**2)


def test_log_determinant_of_several_penalties_where_they_differ_by_20_orders_of_magnitude():
    # two complementary penalties rotated together: the determinant is known exactly, whatever λ
    rng = np.random.default_rng(3)
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    d1, d2 = np.array([3.0, 2, 1, 0, 0, 0]), np.array([0.0, 0, 0, 5, 4, 2])
    group = Group((0, 1), (turn @ np.diag(d1) @ turn.T, turn @ np.diag(d2) @ turn.T))
    for rho in ([0.0, 0.0], [25.0, -20.0], [-30.0, 15.0]):
        value, gradient, hessian = group.logdet(np.array(rho))
        assert value == pytest.approx(3 * sum(rho) + np.log(6) + np.log(40), abs=1e-6)
        np.testing.assert_allclose(gradient, [3, 3], atol=1e-6)
        np.testing.assert_allclose(hessian, np.zeros((2, 2)), atol=1e-6)


def test_log_determinant_derivatives_are_those_of_the_dense_one():
    rng = np.random.default_rng(4)
    group = Group((0, 1, 2), (positive(5, rng), positive(5, rng), np.diag([1.0, 0, 0, 0, 2])))
    rho = np.array([0.3, -1.0, 2.0])

    def dense(r):
        return np.linalg.slogdet(sum(np.exp(x) * s for x, s in zip(r, group.matrices)))[1]

    value, gradient, hessian = group.logdet(rho)
    e = 1e-4 * np.eye(3)
    assert value == pytest.approx(dense(rho), rel=1e-12)
    np.testing.assert_allclose(gradient, [(dense(rho + h) - dense(rho - h)) / 2e-4 for h in e], rtol=1e-6)
    np.testing.assert_allclose(
        hessian, [(group.logdet(rho + h)[1] - group.logdet(rho - h)[1]) / 2e-4 for h in e], rtol=1e-6, atol=1e-8
    )


def test_cholesky_inverse():
    from unnorm.engine.matrix_kernels import cholesky_inverse

    rng = np.random.default_rng(5)
    for p in (1, 2, 4, 7, 61, 80):
        a = positive(p, rng)
        fours = -(-p // 4) * 4
        for scale in (np.ones(p), 1 / np.sqrt(a.diagonal())):
            inverse, room = np.full((p, p), np.nan), np.full((fours, 2 * fours), np.nan)
            logs, least = cholesky_inverse(a, scale, room, inverse)
            np.testing.assert_allclose(inverse @ a, np.eye(p), atol=1e-10)
            unit = a * np.outer(scale, scale)
            assert 2 * logs == pytest.approx(np.linalg.slogdet(unit)[1], abs=1e-12)
            assert least == pytest.approx(np.diag(np.linalg.cholesky(unit)).min())
            np.testing.assert_array_equal(inverse, inverse.T)
    assert cholesky_inverse(np.diag([1.0, -1.0]), np.ones(2), np.empty((4, 8)), np.empty((2, 2)))[1] == -1.0


@cache
def natural(knots: int):
    from scipy.interpolate import CubicSpline

    rng = np.random.default_rng(6)
    at = np.sort(rng.uniform(0, 1, knots))
    return at, CubicSpline(at, rng.normal(size=(knots, 4)), bc_type="natural")


def test_local_form_of_a_spline_is_exact_and_its_error_is_measured():
    at, spline = natural(12)
    basis = local_basis(at, None, spline, 4)
    assert basis.error < 1e-10
    assert basis.breaks is not None
    np.testing.assert_allclose(basis.breaks, at)
    kinked = local_basis(np.linspace(0, 1, 6), None, lambda x: np.abs(x - 0.37)[:, None], 1)
    assert kinked.error > 1e-2


def test_many_breaks_are_thinned_where_the_columns_are_smooth():
    breaks = np.linspace(0, 1, 400)
    basis = local_basis(breaks, None, lambda x: np.stack([np.sin(6 * x), x**2], axis=1), 2)
    assert basis.breaks.size < 60
    assert basis.error < 2e-4


def test_blas_threads_are_put_back():
    before = [library.num_threads for library in _libraries()]
    with single_threaded(), single_threaded():
        assert all(library.num_threads == 1 for library in _libraries())
    assert [library.num_threads for library in _libraries()] == before


def test_work_on_the_pool_may_spread_work_itself():
    """More outer tasks than threads, each spreading its own: a nested wait on the same pool would never end."""
    from unnorm._base.threads import run_tasks

    found = run_tasks(
        lambda i: sum(run_tasks(lambda j: i * j, [(j,) for j in range(5)], 2)), [(i,) for i in range(6)], 2
    )
    assert found == [10 * i for i in range(6)]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_error_of_the_first_task_that_fails_is_raised_and_the_next_call_works(threads):
    from unnorm._base.threads import run_tasks

    def work(i: int) -> int:
        if i % 2:
            raise ValueError(str(i))
        return i

    for _ in range(20):
        with pytest.raises(ValueError, match=r"^1$"):
            run_tasks(work, [(i,) for i in range(8)], threads)
        assert run_tasks(work, [(2 * i,) for i in range(8)], threads) == list(range(0, 16, 2))


@pytest.mark.parametrize("formula", ["te(x, g, bs=('cr', 're'), k=4)", "s(x, g, bs='fs', k=4)", "te(x, z, k=3)"])
def test_the_log_determinant_of_penalties_has_these_derivatives(formula):
    """Also where a group stands for the equal blocks of many levels."""
    rng = np.random.default_rng(7)
    table = {"x": rng.random(300), "z": rng.random(300), "g": np.array([f"g{i % 60}" for i in range(300)])}
    fit = un.gam("y ~ " + formula, {**table, "y": table["x"] + rng.normal(size=300)})
    penalties = fit.smoothed.design.penalties
    rho = np.linspace(-1.0, 1.5, penalties.count)
    value, gradient, hessian = penalties.logdet(rho)
    S = sum(np.exp(r) * block for r, block in zip(rho, _dense(fit)))
    eigenvalues = np.linalg.eigvalsh(S)
    ranks = np.linalg.matrix_rank(S)
    start = penalties.logdet(np.zeros(rho.size))[0]
    plain = np.linalg.eigvalsh(sum(_dense(fit)))
    assert value - start == pytest.approx(np.log(eigenvalues[-ranks:]).sum() - np.log(plain[-ranks:]).sum(), rel=1e-6)
    for j, h in enumerate(1e-4 * np.eye(rho.size)):
        ahead, behind = penalties.logdet(rho + h), penalties.logdet(rho - h)
        assert gradient[j] == pytest.approx((ahead[0] - behind[0]) / 2e-4, rel=1e-5)
        np.testing.assert_allclose(hessian[j], (ahead[1] - behind[1]) / 2e-4, rtol=1e-5, atol=1e-6)


def _dense(fit):
    out = []
    for start, block in fit.blocks:
        S = np.zeros((fit.smoothed.size, fit.smoothed.size))
        S[start : start + len(block), start : start + len(block)] = block
        out.append(S)
    return out


def test_the_root_of_a_matrix_keeps_what_is_small():
    Q = np.linalg.qr(np.random.default_rng(2).normal(size=(4, 4)))[0]
    S = Q @ np.diag([1.0, 1e-4, 1e-8, 0.0]) @ Q.T
    E = square_root(S)
    assert E.shape == (3, 4)
    np.testing.assert_allclose(E.T @ E, S, atol=1e-14)
