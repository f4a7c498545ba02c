"""Faults in the scores that the additive engine, penalised Newton and the joint fit of levels hand on."""

MUTANTS: dict[str, list[tuple[str, str, str]]] = {
    "engine/build.py": [
        (
            "if split or not levels.issubset(partition.values):",
            "if split:",
            "a level missing from some rows is an error",
        ),
    ],
    "solvers/anchored.py": [
        (
            "blind = unvarying(within, between)",
            "blind = unvarying(within, between)[:, :0]",
            "functions of the context alone left free",
        ),
        (
            "left = term.null_dim - untouched(held, term.penalties).shape[1]",
            "left = term.null_dim",
            "rank of the ridge",
        ),
        (
            "anchored = (here.mean @ beta - here.log_z)[context]",
            "anchored = (-here.mean @ beta - here.log_z)[context]",
            "offset of the linearised constants",
        ),
        ("theta=None), design.less(mean, context)", "theta=None), design", "columns without their context's mean"),
        ("move <= NEARLY * least and SURELY * rate < 1.0", "True", "any move is foreseen"),
        ("return SURELY * rate * move if", "return move if", "no move is foreseen"),
        ("ahead = 0.5 * (ahead + beta)", "break", "a step that lowers the likelihood is taken whole"),
        ("level[0] += float(np.mean(after - before))", "pass", "a round that starts at the old level"),
        ("else failures + 1", "else 0", "rounds without end that do not converge"),
        (
            "eta = eta + curved - moved.log_z[context] + change",
            "eta = eta + curved + change",
            "held back without Z",
        ),
    ],
    "solvers/anchored_parts.py": [
        ("here.mean @ beta - here.log_z)", "-here.log_z)", "offset of the linearised constants, in parts"),
        (
            "eta = less.design.predict(beta) + less.rows.offset",
            "eta = part.design.predict(beta) + less.rows.offset",
            "η of parts without their contexts' means",
        ),
        ("self.here.log_z + self.here.mean @", "self.here.mean @", "curvature of parts without Z"),
    ],
    "solvers/weaker.py": [
        ("if worst < BIAS:", "if True:", "χ's penalty as the criterion has it"),
        ("right = H @ smoothed.beta", "right = bare @ smoothed.beta", "a right-hand side without the penalty"),
    ],
    "solvers/engine_rows.py": [
        ("X - self.mean[self.context[begin:end]]", "X", "scores of anchored fits in f's own columns"),
        ("penalty=np.array(smoothed.penalty),", "penalty=None,", "additive fit without S_λ"),
        ("smoothing=smoothing_uncertainty(self.gam),", "smoothing=None,", "λ taken as known"),
        (
            "centred=problem.normaliser.terms is None or problem.normaliser.anchored,",
            "centred=False,",
            "one χ for all: points not about their context's mean",
        ),
        (
            "drawn=problem.drawn if reference_error",
            "drawn=Drawn.NONE if reference_error",
            "reference error of a smooth χ zero",
        ),
        (
            "reselection=self._reselection if reference_error else None",
            "reselection=None",
            "reference error with λ held",
        ),
        ("J = inner.dbeta_drho[:, free]", "J = -inner.dbeta_drho[:, free]", "sign of dβ̂/dρ"),
        ("-0.5 * (w * cumulant.variance(eta))[:, None]", "0.5 * (w * cumulant.variance(eta))[:, None]", "sign of ε"),
        ("-0.5 * (w * cumulant.variance(eta))[:, None]", "-1.0 * (w * cumulant.variance(eta))[:, None]", "ε without ½"),
        ("-0.5 * (w * cumulant.variance(eta))[:, None]", "-0.5 * variance[:, None]", "ε without the weights"),
        (
            "return V @ inner.design.penalties.blocks(lam)[0] @ V",
            "return V",
            "ε with the hat matrix for its change with λ",
        ),
    ],
    "solvers/redraw_scores.py": [
        ("                v = slopes[0]", "                v = 0.0 * slopes[0]", "no reference error"),
        ("Cx += (C @ Z.T)[:, here]", "Cx += 0.0 * (C @ Z.T)[:, here]", "fresh points without χ"),
        ("Kx = Kx - (C[1:]", "Kx = Kx + (C[1:]", "K x for K x̂"),
        (
            "by_context @ probe.B - probe.K @ out",
            "by_context @ probe.B + probe.K @ out",
            "sign of K g in a probe's sum",
        ),
        ("[a + b for a, b in zip(held, sums)]", "sums", "the last piece of the rows alone"),
        ("np.bincount(i, v - far, CELLS + 1)", "np.bincount(i, v, CELLS + 1)", "scores counted at both ends of a cell"),
    ],
    "solvers/penalised.py": [
        ("smoothing=smoothing)", "smoothing=None)", "λ taken as known"),
        ("reselection=again, smoothing", "reselection=None, smoothing", "reference error with λ held"),
        ("-end.lam[j] * end.V[:, span]", "-end.V[:, span]", "dβ̂/dλ for dβ̂/dρ"),
        ("return replace(scores, penalty=end.penalty)  #", "return replace(scores)  #", "fixed λ: no S_λ"),
        ("np.diag(2 * F - F @ F)", "np.diag(F)", "edf for edf₁"),
        ("0.5 * crossed + float(end.beta @", "0.5 * crossed - float(end.beta @", "sign in the criterion's Hessian"),
        ("out = -0.5 * end.joint", "out = 0.0 * end.joint", "log|S|₊ missing in the criterion's Hessian"),
        ("null = len(V) - joint.rank - len(ridges)", "null = len(V) - joint.rank", "unseen directions counted as null"),
    ],
    "solvers/stochastic/finish.py": [
        ("sigma2=curvature.noise / curvature.steps", "sigma2=curvature.noise", "one step's noise for the run's"),
        (
            "curvature.information if model_based else",
            "curvature.information if True else",
            "Σ1 = −H without a likelihood",
        ),
        ("one.T @ (w * other)", "one.T @ (w**2 * other)", "empirical Σ1 ∝ w²"),
        ("scale *= frequency(part.W)", "scale *= 1.0", "no N/(N − 1)"),
        (
            "s - np.average(s, axis=0, weights=w[:, 0])",
            "s - np.average(s, axis=0)",
            "scores about their unweighted mean",
        ),
        ("np.mean(g[1::2], axis=0)", "np.mean(g[::2], axis=0)", "the points' variance in Σ1"),
        ("scale = e.W / part.W", "scale = 1.0", "Σ1 of some of the observations for all"),
    ],
    "solvers/stochastic/ending.py": [
        ("rowvar=False)), M + known)", "rowvar=False)), M)", "the run's own steps left out of its Monte Carlo error"),
        ("known = run if trace.P is not None else 0.0", "known = run", "steps of any optimiser counted as independent"),
    ],
    "groups/scores.py": [
        (
            "return self.information - self.points_spread(1) if",
            "return self.information if",
            "group covariance without −iid",
        ),
        ("r = r / level.rows.root if power == 1 else r", "r = r", "Σ_t w² where Σ_t w is wanted"),
        ("weighted(level.member, self.c * r**2)", "weighted(level.member, r**2)", "c times as many points count once"),
        ("moved.T @ moved / (len(sums) - 1)", "moved.T @ moved / len(sums)", "variance over redraws /R"),
        (
            "level.slopes(c)[1] * np.where(level.rows.data, 1.0, c)",
            "level.slopes(c)[1]",
            "−H at c: reference rows count once",
        ),
        ("KNOWN = 1e30", "KNOWN = 1.0", "the level, which the constants absorb, with an error"),
    ],
    "groups/crossed.py": [
        (
            "out[:i, i - 1], out[i, i - 1] = -1.0, i",
            "out[:i, i - 1], out[i, i - 1] = -1.0, i + 1",
            "contrasts off zero",
        ),
        (
            "keep[begin : begin + layout.random * layout.q] = False",
            "keep[begin] = False",
            "random curves known in part",
        ),
    ],
    "groups/crossed_penalties.py": [
        ("times = [1.0 + layout.contrasts,", "times = [1.0,", "the mean of the conditions' curves varies as each does"),
        ('one.random(ledger, e, f":{by}:{between}")', "pass", "subjects' differences without a law"),
    ],
    "groups/views.py": [
        ("(shared - own @ inverse.slopes[s]).T", "shared.T", "influence without the subject's own curves"),
        ("self.df / max(share, 0.05) ** 2", "self.df / max(share, 0.05)", "Satterthwaite: a share for its square"),
        ("out = A @ inverse @ B", "out = A @ inverse @ A", "a parallel sum of one part"),
    ],
    "groups/exchange.py": [
        (
            "return Outcome(float(T[0]), as_large / len(T)",
            "return Outcome(float(T[0]), (as_large - 1) / len(T)",
            "p of none",
        ),
        ("drawn[i, list(chosen)] = 1", "drawn[i, chosen[0]] = 1", "groups of other sizes"),
        ("U, U @ R.T)", "U, U)", "reassignments of unequal subjects not rescaled"),
        ("white = np.array([half @ r[0]", "white = np.array([r[0]", "long records exchanged with short ones"),
    ],
    "groups/difference.py": [
        ("level) / np.sqrt(self.widened)", "level)", "simultaneous bands widened twice"),
    ],
    "groups/population.py": [
        ("return (count - 1) / (count - 3) if count > 3 else 3.0", "return 1.0", "few levels as good as many"),
        ("return (count - 1) / (count - 3) if", "return (count - 1) / (count - 2) if", "few levels: a wrong df"),
        (
            "widened=few_levels((df if effective is None else effective) + 1)",
            "widened=1.0",
            "few levels as good as many",
        ),
        ("smoothing=joint.smoothing", "smoothing=None", "λ taken as known"),
    ],
    "groups/joint.py": [
        (
            "return shared - inverse.sigma @ inverse.slopes[s].T",
            "return shared",
            "influence without the level's own curves",
        ),
        ("float(2 * np.trace(F[span, span]) -", "float(np.trace(F[span, span]) -", "edf₁ of the group"),
        ("np.maximum(values, 0.0) + 1 / 50)", "np.maximum(values, 0.0) + 10.0)", "a strong prior on log λ"),
    ],
    "engine/inference.py": [
        ("0.5 * nu * (1.0 - nu)", "nu * (1.0 - nu)", "smooth_test: ½ missing in the fractional pseudo-inverse"),
        ("p = 0.5 * (tail(T, ", "p = 1.0 * (tail(T, ", "smooth_test: the sum of two p-values for their mean"),
        ("first = 0.5 * (rho +", "first = 0.5 * (1.0 +", "smooth_test: weights of the null law"),
        (
            "np.array([[1.0, b], [b, nu]])",
            "np.array([[1.0, b], [b, 1.0]])",
            "smooth_test: whole rank for a fractional one",
        ),
    ],
}
