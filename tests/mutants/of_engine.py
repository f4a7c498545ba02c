"""Faults in the additive engine's criterion, in what it says of hard data, and in how terms meet their rows."""

MUTANTS: dict[str, list[tuple[str, str, str]]] = {
    "engine/criteria.py": [
        (
            "return -working.loglik - float(working.score @ d) + 0.5 * float(d @ working.cross.dot(d))",
            "r = working.cross.dot(working.beta) + working.score\n"
            "    return working.c0 - 0.5 * float((r + state.forces.sum(axis=1)) @ state.beta)",
            "the criterion about zero: digits of β times r",
        ),
        (
            "+ 0.5 * float(state.beta @ state.forces.sum(axis=1))",
            "+ float(state.beta @ state.forces.sum(axis=1))",
            "twice the penalty",
        ),
        ("np.log(2 * np.maximum(half_dp, working.least) / left)", "np.log(2 * half_dp / left)", "log of an exact fit"),
        (
            "share * curve - 0.5 * left * np.outer(each, each)",
            "share * curve",
            "curvature of log D_p without its square",
        ),
        ("diagonal = diagonal + first", "pass", "the trace is not on the Hessian's diagonal"),
    ],
    "engine/gather.py": [
        ("0.5 * (part[i, j] + part[j, i])", "part[i, j] + part[j, i]", "squares of a block's own functions, twice"),
        ("or (not inside and b > a)", "", "pairs of a context's blocks are gathered twice"),
    ],
    "engine/core.py": [
        ("result = replace(result, beta=result.beta + design.to_user(level))", "pass", "the level is not put back"),
        (
            "if not known and result.deviance <= _NOTHING * result.null_deviance:",
            "if False:",
            "an exact fit goes unsaid",
        ),
    ],
    "engine/inference.py": [
        (
            "V_e = V_e + (H_inv[index] @ Z) @ (H_inv[index] @ Z).T",
            "V_e = V_e + 0.0",
            "other random effects held, not integrated out",
        ),
    ],
    "engine/links.py": [
        (
            "s * (1.0 - s * (6.0 - s * (50.0 - s * 518.0)))",
            "s * (3.0 - s * (20.0 - s * 210.0))",
            "another series of probit's curvature far out",
        ),
    ],
    "engine/gam_summary.py": [
        ("drop / df / large.scale", "drop / df / small.scale", "F with the smaller model's scale"),
        ("fdtrc(df, residual[id(large)]", "fdtrc(df, residual[id(small)]", "F with the smaller model's residuals"),
    ],
    "engine/restarts.py": [
        (
            "held = held if held.any() else _falling(problem, criterion, found)",
            "held = held",
            "a minimum beside a fall without end is called converged",
        ),
        (
            "less = not held.any() and _lower_without(problem, criterion, found)",
            "less = False",
            "a minimum above what all small smoothing parameters give is called converged",
        ),
        (
            "out += _pairs(problem, criterion, found, centre) if every else []",
            "out += []",
            "minima over two penalties are not looked for",
        ),
        (
            "out += _taken_over(problem, criterion, found, centre) + ",
            "out += ",
            "a term in place of another is not looked for",
        ),
        (
            "rough = problem.count <= _FEW or bool(",
            "rough = bool(",
            "few rows are not asked at less smoothing",
        ),
        (
            "if every else _valleys(problem, criterion, found, centre)",
            "if every else []",
            "other minima of tensor products are not looked for where rows are many",
        ),
        (
            "(np.concatenate([_ROUGH, _GRID]) if rough else _GRID)",
            "_GRID",
            "steep data are not asked at less smoothing",
        ),
    ],
    "engine/outer.py": [
        ("(doubted is None or self.at_rest(doubted))", "True", "nobody asks whether the last step moves rows far"),
        ("@ (penalties.diagonals > 0)", "@ np.ones_like(penalties.diagonals)", "smoothing starts from all columns"),
        (
            "if (said := exhausted(self.design, self.problem.family, working.beta)) is not None:",
            "if (said := None) is not None:",
            "rows without information are called collinear",
        ),
    ],
    "engine/gam_rows.py": [
        (
            "if column.order is not None:\n        values",
            "if False:\n        values",
            "a category of numbers is a slope",
        ),
        (
            "return [level_name(level) for level in column.order]",
            "return [level_name(level) for level in sorted(column.order)]",
            "a category's own order is lost",
        ),
    ],
    "engine/gam_result.py": [
        ("own = 0.0 if self.theta_known else float(", "own = float(", "a theta that was given counts in AIC"),
    ],
    "terms/curves.py": [
        ("error <= ERROR * max", "error <= 1e4 * ERROR * max", "a coarse table"),
        ("    out[gone] = 0.0", "    out[gone] += 0.0", "rows without a direction have a curve"),
        ("        term.warn_if_far({name: x})", "        pass", "extrapolated and silent"),
    ],
    "terms/sample.py": [
        (
            "thin = some_rows(data, _ROWS)",
            "thin = np.column_stack([x[:: max(1, rows // _ROWS)] for x in data])",
            "order",
        ),
        ("        taken *= 4\n", "        break\n", "copies of a row leave too few different ones"),
    ],
    "terms/side.py": [
        (
            "({*_own(a), a.by} & {*_own(b), b.by} - {None})",
            "(set(_own(a)) & set(_own(b)))",
            "a multiplier is no function",
        ),
        ("(name, term.by, level)", "(name, term.by)", "curves of levels give up those of s(x)"),
    ],
    "terms/sphere.py": [
        ("- middle + 180.0) % 360.0 - 180.0", "- middle)", "a longitude of 370° is far from 10°"),
    ],
}
