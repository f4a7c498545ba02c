"""A tiny dense penalised fit with REML or ML by brute force: slow, obvious, and independent of the engine."""

from types import SimpleNamespace

import numpy as np
from scipy import optimize

from unnorm.engine.response import response as response_of

INTERCEPT = "(Intercept)"


class Dense:
    """X and the penalties of built terms, dense."""

    def __init__(self, terms, columns, intercept=True):
        n = len(next(iter(columns.values())))
        parts = [np.ones((n, 1))] if intercept else []
        self.slices, self.S, self.labels, self.fixed, at = {}, [], [], [], int(intercept)
        if intercept:
            self.slices[INTERCEPT] = slice(0, 1)
        places = []
        for term in terms:
            parts.append(term.design(columns))
            self.slices[term.label] = slice(at, at + term.size)
            places += [(slice(at, at + term.size), penalty) for penalty in term.penalties]
            self.fixed += list(term.fixed_sp)
            at += term.size
        self.X = np.hstack(parts)
        for place, penalty in places:
            S = np.zeros((at, at))
            S[place, place] = penalty.matrix
            self.S.append(S)
            self.labels.append(penalty.label)
        total = sum((S / np.linalg.norm(S) for S in self.S), np.zeros((at, at)))
        value, vector = np.linalg.eigh(total)
        self.range = vector[:, value > 1e-10 * max(value[-1], 1e-300)]


def fit(dense, y, family, weights=None, offset=None, method="REML", sp=None):
    """REML or ML by Nelder–Mead then BFGS on finite differences."""
    X, n = dense.X, y.size
    dist = response_of(family)
    w = np.ones(n) if weights is None else weights
    o = np.zeros(n) if offset is None else offset
    rho0 = np.array([0.0 if v is None else np.log(v) for v in dense.fixed])
    free = np.array([v is None for v in dense.fixed], dtype=bool)
    if sp is not None:
        rho0, free = np.log(np.asarray(sp, dtype=float)), np.zeros(len(dense.S), dtype=bool)
    state = {"beta": np.zeros(X.shape[1])}

    def pirls(S):
        beta = state["beta"]
        for _ in range(100):
            eta = X @ beta + o
            mu = dist.mean(eta)
            v = dist.variance(mu)
            A = X.T @ ((w * v)[:, None] * X)
            step = np.linalg.solve(A + S, X.T @ (w * (y - mu)) - S @ beta)
            old, size = penalised(beta, S), 1.0
            while penalised(beta + size * step, S) > old + 1e-9 * abs(old) and size > 1e-8:
                size /= 2
            beta = beta + size * step
            if np.max(np.abs(step)) < 1e-11 * (1 + np.max(np.abs(beta))):
                break
        state["beta"] = beta
        mu = dist.mean(X @ beta + o)
        return beta, X.T @ ((w * dist.variance(mu))[:, None] * X), float(np.sum(w * dist.unit_deviance(y, mu)))

    def penalised(beta, S):
        with np.errstate(over="ignore"):
            return float(np.sum(w * dist.unit_deviance(y, dist.mean(X @ beta + o))) + beta @ S @ beta)

    saturated = dist.loglik(y, y, w) if dist.scale_known else 0.0
    null = X.shape[1] - dense.range.shape[1]

    def criterion(rho_free):
        rho = rho0.copy()
        rho[free] = rho_free
        S = sum((np.exp(r) * M for r, M in zip(rho, dense.S)), np.zeros((X.shape[1],) * 2))
        beta, A, D = pirls(S)
        Dp = D + beta @ S @ beta
        df = n - (null if method == "REML" else 0)
        if method == "REML":
            logdet = np.linalg.slogdet(A + S)[1]
        else:
            U = dense.range
            logdet = np.linalg.slogdet(U.T @ (A + S) @ U)[1]
        logS = np.linalg.slogdet(dense.range.T @ S @ dense.range)[1] if dense.S else 0.0
        if dist.scale_known:
            constant = null * np.log(2 * np.pi) if method == "REML" else 0.0
            return 0.5 * Dp - saturated + 0.5 * (logdet - logS - constant)
        phi = Dp / df
        return 0.5 * (df * (1 + np.log(2 * np.pi * phi)) + logdet - logS - float(np.sum(np.log(w))))

    rho = rho0.copy()
    if free.any():
        found = optimize.minimize(criterion, rho0[free], method="BFGS", options={"gtol": 1e-7})
        rho[free] = found.x
    S = sum((np.exp(r) * M for r, M in zip(rho, dense.S)), np.zeros((X.shape[1],) * 2))
    beta, A, D = pirls(S)
    F = np.linalg.solve(A + S, A)
    edf = np.diag(F)
    scale = 1.0 if dist.scale_known else D / (n - edf.sum())
    return SimpleNamespace(
        beta=beta, rho=rho, score=criterion(rho[free]), edf=edf, edf1=2 * edf - np.diag(F @ F), deviance=D, scale=scale,
        A=A, H=A + S, criterion=criterion, free=free,
    )  # fmt: skip
