"""Faults in models of bits, graphs and words: change statistics, samplers, pseudo-likelihood, references, row steps."""

MUTANTS: dict[str, list[tuple[str, str, str]]] = {
    "models/changes.py": [
        ("return moved.reshape(n, d, -1) - base[:, None]", "return moved.reshape(n, d, -1)", "changes not differences"),
        ("out[:, i] = 1.0 - out[:, i]", "out[:, i] = 1.0", "flips only set"),
    ],
    "models/gibbs.py": [
        (
            "log_w += (beta - before) * (now - start - log_q)",
            "log_w += (beta - before) * (now - start)",
            "log q left out",
        ),
        ("delta = beta * (f - now) + (1.0 - beta) * back", "delta = beta * (f - now)", "annealing leaves q at once"),
    ],
    "models/gibbs_loops.py": [
        ("(beta - betas[k]) * (f - log_q)", "(beta - betas[k]) * f", "log q left out of compiled annealing"),
        ("both = beta * change + (1.0 - beta) * back", "both = change", "compiled annealing is at β = 1 throughout"),
        ("back = either_way and rng.random() < 0.5", "back = False", "sweeps in one direction are not reversible"),
    ],
    "models/centring.py": [
        ("(self.by * np.asarray(theta)[self.of].T).T", "np.asarray(theta)[self.of]", "levels of covariates left out"),
        ("return self.estimate(self.estimate(V).T).T", "return self.estimate(V)", "T V for T V Tᵀ"),
        ("at] -= self.by[mine]", "at] += self.by[mine]", "errors of a field: the sign of the level"),
    ],
    "models/base_kernels.py": [
        ("return top + math.log(total)", "return top", "the nearest component of q alone"),
    ],
    "models/ising_kernels.py": [("sign = 1.0 - 2.0 * y[i]", "sign = 1.0", "fields grow with every flip")],
    "models/ising_changes.py": [
        ("both + both.T, W)", "both, W)", "a coupling belongs to one of its bits"),
        ("u -= 2.0 * self.Y * u", "u -= self.Y * u", "ones do not flip back"),
        ("u: Any = Y @ (0.5 * J) + h", "u: Any = Y @ J + h", "pairs counted twice"),
    ],
    "models/operators.py": [("X[live] += step * P[live]", "X[live] = step * P[live]", "the last step alone")],
    "objectives/flips.py": [
        (
            "if free is None else w[:, None] * free",
            "if free is None else w[:, None] + 0 * free",
            "missing bits flipped",
        ),
        ("return p * (1.0 - p)", "return p", "curvature of a logistic row"),
        ("out += (w[:, None] * one).T @ one", "out += g.T @ g", "w² for w in Godambe's matrix"),
        ("left = 1.0 - np.minimum(share, ALONE)", "left = np.ones_like(share)", "few observations: no correction"),
        ("return self.weight - 1.0 if self._few else None", "return None", "few observations: the normal law"),
        (
            "return float(obs.weights.sum()) * (G.T @ G) / draws",
            "return (G.T @ G) / draws",
            "scores of one observation",
        ),
        ("y = sampler.sweep(like.outcome, SWEEPS,", "y = sampler.sweep(0 * like.outcome, 0,", "simulated: no draws"),
    ],
    "objectives/pseudo.py": [
        ("(ones > 1 - UNLIKE * (1 - observed))", "(ones > 1.0)", "complete graphs are not degenerate"),
        ("(ones < UNLIKE * observed)", "(ones < 0.0)", "empty graphs are not degenerate"),
        ("sums = self._sums - (off.T / kept) @ off", "sums = self._sums", "scores' mean counted as variance"),
        ("here = ~self.lost", "here = np.ones_like(self.lost)", "draws of chains that left are counted"),
        (
            "(len(self.kept) / max(self.kept.sum() - self._centred.sum(), 1.0))",
            "1.0",
            "sum over simulations, not their mean",
        ),
        ("self.lost |= self._judged &", "self.lost |= True |", "every chain has left"),
        ("few = float(obs.weights.sum()) < MANY * model.size", "few = False", "one graph's own score"),
    ],
    "objectives/imputed.py": [
        ("return H @ np.linalg.inv(H - C)", "return H @ np.linalg.inv(H)", "draws that follow θ̂ are not counted"),
        ("/ (K - 1)\n        H =", "/ K\n        H =", "no K/(K − 1)"),
    ],
    "objectives/penalised.py": [
        ("return value, g - self.ridge * theta", "return value, g + self.ridge * theta", "sign")
    ],
    "objectives/simulations.py": [
        ("second - mean.T @ (self.weight[:, None] * mean)", "second", "the information is about zero"),
        ("return spread * batches / (batches - 1)", "return spread", "batches/(batches − 1)"),
        ("total += weight * float(draws.weight", "total -= weight * float(draws.weight", "sign of the path"),
    ],
    "objectives/monte_carlo.py": [
        ("gradient + other, cov - within", "gradient + other, cov + within", "missing ties add information"),
    ],
    "objectives/row_errors.py": [
        (" - weights[:, None] * (g[data].sum(axis=0) / weights.sum())", "", "the data's scores about zero"),
        ("b.curvature * (one - means[self._of(b)])", "b.curvature * one", "ν not profiled out"),
        ("else _centred(g[~data])", "else 0.0", "points without error"),
        ("points = np.where(b.rows.data, 0.0, b.slope)", "points = b.slope", "the data among fresh points"),
    ],
    "models/graphs/kernels.py": [
        ("+ (in_i[k] & in_j[k]) + (out_i[k] & in_j[k])", "+ (in_i[k] & in_j[k])", "short cuts of ttriple"),
        ("m = P[i, k] - on", "m = P[i, k]", "a tie's own two-paths counted"),
        ("ratio = place_it / remove if on else remove / place_it", "ratio = 1.0", "no Hastings ratio"),
        ("place_it = 0.5 / F if more > 1 else 1.0 / F", "place_it = 0.5 / F", "proposals at the empty graph"),
        ("            P[k, j] += by\n", "            P[k, j] -= by\n", "two-paths after a toggle"),
    ],
    "models/graphs/counts.py": [
        ('"D" if out[third] == 2 else "U" if into', '"U" if out[third] == 2 else "D" if into', "120D and 120U"),
    ],
    "models/graphs/structural.py": [
        ("return float(np.sum(A * A.T)) / 2", "return float(np.sum(A * A.T))", "mutual pairs counted twice"),
    ],
    "solvers/stochastic/row_steps.py": [
        ("total = jax.ops.segment_sum(", "total = jax.ops.segment_max(", "rows that occur twice are not summed"),
        ("-rate * total / jnp", "rate * total / jnp", "steps go down"),
        ("squares[rows] + total**2", "squares[rows] + jnp.abs(total)", "|g| for g²"),
    ],
    "references/alias.py": [
        ("share[j] -= 1.0 - share[i]", "share[j] -= share[i]", "what the poor take from the rich"),
        ('u[..., 1] < params["cut"][at]', 'u[..., 1] >= params["cut"][at]', "1 − cut"),
    ],
    "references/bernoulli_tree.py": [
        ("return out + before @ (none[1] - none[0])", "return out", "constants of a tree's conditionals"),
        ("/ (n - both[j, j] + 2 * self.add)", "/ (n + 2 * self.add)", "P(1 | parent 0)"),
    ],
    "references/logistic_bernoulli.py": [
        ("(1.0 + np.exp(eta)) >= 1.0", "(1.0 + np.exp(-eta)) >= 1.0", "odds the wrong way round"),
        ("[B[:, :1] - (inside @ centre)[:, None]", "[B[:, :1] + (inside @ centre)[:, None]", "centring of the context"),
        ("        ridge *= 2.0\n", "        break\n", "a law as free as the data"),
    ],
    "references/gibbs_steps.py": [
        ("return self._law.log_f(obs, obs.outcome[t], t)", "return self._law.log_f(obs, y, t)", "no ratio"),
    ],
    "results/gibbs_draws.py": [
        ("np.stack([seen, np.full(d, 0.5), 1.0 - seen])", "np.stack([seen, seen, seen])", "annealing from one mode"),
        (".mean(axis=1) / each) / mean", ".mean(axis=1)) / mean", "sd for standard error"),
        ("y[rng.permutation(chosen)]", "y[rng.permutation(N)[:n]]", "modes by their basins, not by their weights"),
    ],
    "results/graph_gof.py": [
        ("np.vstack([self.observed, self.simulated])", "np.vstack([self.simulated[0], self.simulated])", "no data"),
        ("graphs[t][:, missing[t]] = 0.0", "pass", "missing ties count in simulations alone"),
        ("below = (1 + np.sum(", "below = (0 + np.sum(", "p-values of 0"),
    ],
    "references/discrete.py": [
        ("((u >= 1.0 - p) & self._free)", "(u >= 1.0 - p)", "ties on structural zeros"),
        ("self._bits = np.flatnonzero(domain.free)", "self._bits = np.arange(domain.dim)", "structural zeros flipped"),
        ("self._none = np.log1p(-table) * self._free", "self._none = np.log1p(-table)", "q sums to less than one"),
    ],
    "models/graphs/attributes.py": [
        ("values[column.missing] = None", "pass", "missing attributes are the first level, or 0"),
    ],
    "models/graphs/model.py": [
        ("(edge & rising) | none", "edge & rising", "counts at zero have estimates of −13 (566)"),
    ],
    "models/lookup.py": [
        ("(x < most)", "(x < np.inf)", "the last word in place of an unknown one"),
    ],
    "models/ising.py": [
        ("density @ s", "density @ s * 0.5", "block by block: the mean"),
        (
            "(at < self.size - self.domain.dim * len(self.columns))",
            "(at < self.size)",
            "covariates' effects are shrunk",
        ),
    ],
    "results/penalty_path.py": [
        (" - np.nan_to_num(scored.se)", "", "the best, not the largest within an error of it"),
        (" - np.outer(total, total) / n", "", "NCIC: the scores of a penalised estimate about zero"),
        ("V = np.linalg.inv(J + np.diag(ridge[at]))", "V = np.linalg.inv(J)", "NCIC: the penalty of no penalty"),
        (
            "nonzero[k, j] = np.count_nonzero(theta[model.penalised])",
            "nonzero[k, j] = np.count_nonzero(theta)",
            "fields counted",
        ),
    ],
}
