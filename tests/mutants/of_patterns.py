"""Faults in the errors, functions, weights and simulation of point patterns."""

MUTANTS: dict[str, list[tuple[str, str, str]]] = {
    "patterns/scores.py": [
        ("A1 = self._cross(p * (1 - p) ** 2)", "A1 = self._cross(p * (1 - p))", "A1 of the logistic information"),
        ("np.expm1(change[s])[:, None] * h_j) + D_i.T @ D_j", "np.expm1(change[s])[:, None] * h_j)", "no A3"),
        ("np.expm1(change[s])[:, None] * h_j)", "-np.expm1(change[s])[:, None] * h_j)", "sign of A2"),
        ("r = back[s]", "r = s", "x_j's statistic that of x_i"),
        ("sigma2 = self._cross(p**2 * (1 - p))", "sigma2 = self._cross(p**2)", "Σ2 without ρ/(λ + ρ)"),
        (
            "return sigma2 - np.outer(a, a) / self.fitted.dummies.places.n",
            "return sigma2",
            "a fixed number of dummy points as if it were random",
        ),
        (
            "return sigma2 - np.outer(a, a) / self.fitted.dummies.places.n",
            "return sigma2 - np.outer(a, a) / np.sum(1 - p)",
            "a fixed number within the border",
        ),
        (
            "(self.forbidden(interaction.core) if interaction.core else 0.0)",
            "0.0",
            "pairs within a hard core left out",
        ),
        ("(fitted.pattern)).less(own)", "(fitted.pattern))", "a dummy point beside itself"),
        (
            "close_pairs(places, first, core, fitted.model.period(fitted.pattern))",
            "close_pairs(places, first, core)",
            "a hard core that ends at joined sides",
        ),
        ("return 0.5 * out", "return out", "two draws counted as one"),
        ("return self._dependence.M - sigma2", "return self._dependence.M", "dummy points twice in robust errors"),
    ],
    "patterns/dependence.py": [
        ("M = g.T @ touching(g, shape)", "M = g.T @ g", "pairs across a border of cells left out"),
        ("2 * V - V @ H @ V, around", "2 * V - 2 * V @ H @ V, around", "E0 without what the fit takes"),
        ("A = (Q / np.sqrt(w)) @ Q.T", "A = np.eye(len(w))", "M not stretched"),
        ("float(kept / (share @ touching(share, shape)))", "float(1.0 / (share @ share))", "as many df as cells"),
        ("if R > MANY:", "if R > 10 * MANY:", "many replicates cut into cells"),
    ],
    "patterns/edge_weights.py": [
        (
            "return 2.0 * (a + b + c + d) - overlap",
            "return 2.0 * (a + b + c + d)",
            "corners counted by both of their sides",
        ),
        ("if end > begin and not _inside(", "if end > begin and _inside(", "inside for outside"),
        ("share = overlap(step, window) / window.volume", "share = np.ones(len(step))", "windows that overlap wholly"),
        (
            "out[here] = isotropic(xy[here], d[here], window) if",
            "out[here] = isotropic(xy[here], d[here], windows[0]) if",
            "every replicate in the first one's window",
        ),
    ],
    "patterns/interactions/pairwise.py": [
        (
            "return psi if near.weights is None else near.weights[:, None] * psi",
            "return psi",
            "pairs without their weights",
        ),
        (
            "return self.statistics(near)[near.pairs.a] - self._weighted(near)",
            "return self.statistics(near)[near.pairs.b] - self._weighted(near)",
            "the statistic of the other point",
        ),
    ],
    "patterns/interactions/kernels.py": [
        (
            "c = count[b[k]] - (back[k] if own[a] >= 0 else 0.0)",
            "c = count[b[k]]",
            "a point among its own neighbours' neighbours",
        ),
        ("c -= back[at]  # and x_j", "pass", "a second point among the neighbours' neighbours"),
        ("if k < skip:  # of equal discs", "if k >= 0:  # of equal discs", "equal discs cover nothing"),
    ],
    "patterns/functions/distances.py": [
        (
            "at_risk = len(near) - np.concatenate([[0], np.cumsum(ends)[:-1]])",
            "at_risk = len(near) - np.cumsum(ends)",
            "Kaplan–Meier's risk after the event",
        ),
        ("seen = near <= gap", "seen = near < gap + 1e9", "no censoring at the border"),
        (
            "value = np.where(f.value < 1.0, (1.0 - g.value) / (1.0 - f.value), np.nan)",
            "value = np.where(f.value < 1.0, (1.0 - f.value) / (1.0 - g.value), np.nan)",
            "J upside down",
        ),
    ],
    "patterns/functions/inhomogeneous.py": [
        ('np.searchsorted(grid, gap, side="right")', "np.full(u.n, len(grid))", "no border correction"),
        ("pairs = pairs.less(np.arange(u.n))", "pass", "a point is its own neighbour"),
        ("after = np.exp(total - before[a])", "after = np.exp(total)", "products over all places"),
    ],
    "patterns/functions/second_order.py": [
        (
            "times = (first[i] & second[j]).astype(float) + (first[j] & second[i])",
            "times = (first[i] & second[j]).astype(float)",
            "half of the pairs in a polygon",
        ),
        ("return np.sqrt(pattern.area / np.sum(1.0 / given)) / given", "return 1.0 / given", "Σ1/λ not the area"),
    ],
    "patterns/functions/envelope.py": [
        (
            "ranks = np.sort(np.minimum(low, len(curves) + 1 - low), axis=1)",
            "ranks = np.sort(low, axis=1)",
            "extreme at the lower end only",
        ),
        ("p = float(np.mean(order <= order[0]))", "p = float(np.mean(order < order[0]))", "data not among the extreme"),
    ],
    "patterns/metropolis.py": [
        ("log_size - np.log(n + 1.0) if birth", "log_size - np.log(n + 2.0) if birth", "births against n + 2"),
        ("log_ratio += e if new else -e", "log_ratio += e", "a point that goes counted as one that comes"),
        ("total += min(sat, c + 1.0) - min(sat, float(c))", "pass", "Geyer alone"),
    ],
    "patterns/rows.py": [
        (
            "return borders(places, pattern.windows) >= self.reach",
            "return borders(places, pattern.windows) >= 0.0",
            "rows whose neighbours are hidden",
        ),
        (".labelled(labels)", "", "numbers of replicates taken for numbers"),
    ],
    "patterns/saving.py": [
        ('kept = arrays["kept"]', 'kept = np.sort(arrays["kept"])[::-1]', "rows in another order"),
        (
            'windows=tuple(windows[k] for k in about["window"])',
            "windows=tuple(windows)",
            "one window for all replicates",
        ),
    ],
    "patterns/diagnostics.py": [
        (
            "return np.where(fitted.data, 1.0, -fitted.intensity / np.exp(fitted.log_rho))",
            "return np.where(fitted.data, 1.0, -fitted.intensity)",
            "residuals without dummy points' weight",
        ),
        ("np.maximum(spread - taken, 0.0)", "spread", "limits of a model that was known before"),
    ],
}  # fmt: skip
