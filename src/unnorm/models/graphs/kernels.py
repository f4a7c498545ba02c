"""Change statistics and the toggle sampler, compiled: Δ_ij s(y) = s(y with i → j) − s(y without), tie by tie.

The state of a graph is `G`, (2, n, n) bytes: the adjacency matrix and its transpose, so that both are read along rows;
`P`, (n, n): two-paths P_ik = #{j : i → j → k} off the diagonal, which shared partners need; `deg`, (2, n): degrees out
and in. An undirected graph has both entries of a tie set, so that G[0] = G[1] and deg[0] = deg[1].

`on` is y_ij itself: what the tie adds to degrees and two-paths is taken off before the difference is formed.
"""

from __future__ import annotations

import math

import numpy as np

from ..._base.cached import njit
from ..base_kernels import base_change, log_sum

DYADIC, MUTUAL, TTRIPLE, CTRIPLE, TRIANGLE, OUT, IN, DEGREE, ESP, DSP = range(10)


@njit(nogil=True, cache=True)
def change(code, h, directed, G, P, deg, i, j):
    """Δ_ij of one statistic that depends on other ties; h is its table over degrees or shared partners."""
    n, on = G.shape[1], np.int64(G[0, i, j])
    if code == MUTUAL:
        return float(G[0, j, i])
    if code == OUT:
        m = deg[0, i] - on
        return h[m + 1] - h[m]
    if code == IN:
        m = deg[1, j] - on
        return h[m + 1] - h[m]
    if code == DEGREE:
        a, b = deg[0, i] - on, deg[0, j] - on
        if directed:
            a, b = deg[0, i] + deg[1, i] - on, deg[0, j] + deg[1, j] - on
        return h[a + 1] - h[a] + h[b + 1] - h[b]
    out_i, out_j, in_i, in_j = G[0, i], G[0, j], G[1, i], G[1, j]
    count = 0
    if code in (TTRIPLE, TRIANGLE):
        if not directed:
            for k in range(n):
                count += out_i[k] & out_j[k]
            return float(count)
        for k in range(n):  # i → j as the first leg, the second leg, and the short cut
            count += (out_j[k] & out_i[k]) + (in_i[k] & in_j[k]) + (out_i[k] & in_j[k])
    if code in (CTRIPLE, TRIANGLE):
        for k in range(n):
            count += out_j[k] & in_i[k]
    if code in (TTRIPLE, CTRIPLE, TRIANGLE):
        return float(count)
    total = h[P[i, j]] if code == ESP else 0.0
    every = np.uint8(code == DSP)
    for k in range(n):
        after, ahead = out_j[k] & (out_i[k] | every), in_i[k] & (in_j[k] | every)
        if after | ahead:
            if after and k != i:  # i → j → k
                m = P[i, k] - on
                total += h[m + 1] - h[m]
            if ahead and k != j:  # k → i → j
                m = P[k, j] - on
                total += h[m + 1] - h[m]
    return total


@njit(nogil=True, cache=True)
def toggle(directed, paths, G, P, deg, i, j):
    """Set or remove i → j (both entries of an undirected tie), and what hangs on it."""
    n = G.shape[1]
    by = 1 - 2 * np.int64(G[0, i, j])
    deg[0, i] += by
    deg[1, j] += by
    G[0, i, j] ^= 1
    G[1, j, i] ^= 1
    if not directed:
        deg[0, j] += by
        deg[1, i] += by
        G[0, j, i] ^= 1
        G[1, i, j] ^= 1
    if not paths:
        return
    for k in range(n):
        if G[0, j, k] and k != i:
            P[i, k] += by
            if not directed:
                P[k, i] += by
        if G[1, i, k] and k != j:
            P[k, j] += by
            if not directed:
                P[j, k] += by


@njit(nogil=True, cache=True)
def all_changes(codes, tables, directed, G, P, deg, W, pairs, out):
    """Δ of every statistic for each of `pairs`, (F, p); W holds the weights of the dyadic statistics, in order."""
    for r in range(len(pairs)):
        i, j = pairs[r]
        dyadic = 0
        for c in range(len(codes)):
            if codes[c] == DYADIC:
                out[r, c] = W[dyadic, i, j]
                dyadic += 1
            else:
                out[r, c] = change(codes[c], tables[c], directed, G, P, deg, i, j)


@njit(nogil=True, cache=True)
def sums_of_changes(codes, tables, directed, paths, W, pairs, ties, empty, out):
    """(N, p) statistics of graphs given as (N, F) ties on `pairs`: those of the empty graph, and tie after tie."""
    n = tables.shape[1] // 2
    for g in range(len(ties)):
        G, P, deg = np.zeros((2, n, n), np.uint8), np.zeros((n, n), np.int32), np.zeros((2, n), np.int64)
        out[g] = empty
        for r in range(len(pairs)):
            if ties[g, r] == 0.0:
                continue
            i, j = pairs[r]
            dyadic = 0
            for c in range(len(codes)):
                if codes[c] == DYADIC:
                    out[g, c] += W[dyadic, i, j]
                    dyadic += 1
                else:
                    out[g, c] += change(codes[c], tables[c], directed, G, P, deg, i, j)
            toggle(directed, paths, G, P, deg, i, j)


@njit(nogil=True, cache=True)
def sample(codes, tables, directed, paths, G, P, deg, W, pairs, offset, theta, s, plan, rng, stats, kept):
    """Metropolis–Hastings by toggles, tie / no tie (Morris, Handcock & Hunter 2008); the state ends at the last graph.

    With probability ½ one of the E present ties is proposed, else any of the F dyads, so that of E ties

        q(remove) = ½/E + ½/F,      q(set) = ½/F     (1/F where there is none to remove).

    `plan` = (burn, thin): proposals before the first draw, and from draw to draw; `offset` (F,) is added to the change
    of f; `s` are the statistics of the state, `stats` (M, p) those of the draws and `kept` (M or 0, F) their ties.
    Returns the share of proposals accepted, and the mean share of dyads with a tie.
    """
    F, p, draws = len(pairs), len(codes), len(stats)
    eta = offset.copy()
    of = np.zeros(p, np.int64)  # the row of W, of a dyadic statistic
    dyadic = 0
    for c in range(p):
        of[c] = dyadic
        if codes[c] == DYADIC:
            for r in range(F):
                eta[r] += theta[c] * W[dyadic, pairs[r, 0], pairs[r, 1]]
            dyadic += 1
    tie, place, E = np.empty(F, np.int64), np.empty(F, np.int64), 0
    for r in range(F):
        if G[0, pairs[r, 0], pairs[r, 1]]:
            tie[E], place[r] = r, E
            E += 1
    delta = np.zeros(p)
    accepted, tied = 0, 0.0
    for m in range(draws):
        for _ in range(plan[0] if m == 0 else plan[1]):
            u = rng.random()
            if E > 0 and u < 0.5:
                r = tie[min(int(2.0 * u * E), E - 1)]
            else:
                u = 2.0 * u - 1.0 if E > 0 else u
                r = min(int(u * F), F - 1)
            i, j = pairs[r]
            on = G[0, i, j]
            f = eta[r]
            for c in range(p):
                if codes[c] != DYADIC:
                    delta[c] = change(codes[c], tables[c], directed, G, P, deg, i, j)
                    f += theta[c] * delta[c]
            more = E if on else E + 1  # ties with this one present
            remove = 0.5 / more + 0.5 / F
            place_it = 0.5 / F if more > 1 else 1.0 / F
            ratio = place_it / remove if on else remove / place_it
            if np.log(rng.random()) >= (-f if on else f) + np.log(ratio):
                continue
            accepted += 1
            by = -1.0 if on else 1.0
            for c in range(p):
                s[c] += by * (W[of[c], i, j] if codes[c] == DYADIC else delta[c])
            toggle(directed, paths, G, P, deg, i, j)
            if on:
                E -= 1
                tie[place[r]] = tie[E]
                place[tie[E]] = place[r]
            else:
                tie[E], place[r] = r, E
                E += 1
        stats[m] = s
        tied += E / (F * draws)
        if len(kept):
            for r in range(F):
                kept[m, r] = G[0, pairs[r, 0], pairs[r, 1]]
    return accepted / max(plan[0] + plan[1] * (draws - 1), 1), tied


@njit(nogil=True, cache=True, error_model="numpy")
def anneal(codes, tables, directed, paths, G, P, deg, W, pairs, theta, log_odds, parts, betas, rng):
    """Annealing by Gibbs sweeps over `pairs` from q to the model (gibbs.py): the log weight, less that at the start.

    `log_odds` (K, F) are q's, on `pairs`, and `parts` (K,) its log q_k at the graph where the chain starts.
    """
    moved, begin = np.empty(len(parts)), log_sum(parts)
    log_w, f, log_q = 0.0, 0.0, 0.0
    for step in range(len(betas) - 1):
        beta = betas[step + 1]
        log_w += (beta - betas[step]) * (f - log_q)
        for r in range(len(pairs)):
            i, j = pairs[r]
            up, dyadic = 0.0, 0
            for c in range(len(codes)):
                if codes[c] == DYADIC:
                    up += theta[c] * W[dyadic, i, j]
                    dyadic += 1
                else:
                    up += theta[c] * change(codes[c], tables[c], directed, G, P, deg, i, j)
            sign = 1.0 - 2.0 * G[0, i, j]
            back = base_change(parts, begin + log_q, log_odds, r, sign, moved)
            if rng.random() * (1.0 + math.exp(-(beta * sign * up + (1.0 - beta) * back))) < 1.0:
                toggle(directed, paths, G, P, deg, i, j)
                f += sign * up
                log_q += back
                parts[:] = moved
    return log_w
