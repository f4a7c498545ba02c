"""Faults in the errors and intervals of directions, and in the integrals that models with a closed form give."""

MUTANTS: dict[str, list[tuple[str, str, str]]] = {
    "directions/quantities.py": [
        ("-turn * sine], [turn * sine", "turn * sine], [-turn * sine", "ends the wrong way round"),
        ("/ abs(given.scale)\n        if ends", "\n        if ends", "standard errors in radians"),
        ("* se / np.hypot(one, x)", "* se / one", "asinh without its slope"),
        ("se = np.sqrt(np.diag(P @ V @ P)) / length", "se = np.sqrt(np.diag(V)) / length", "the error along the mean"),
        ("(1.0 / np.hypot(1.0, kappa) - h) / kappa**2", "-h / kappa**2", "no error of κ in Fieller's region"),
        ("chi2.ppf(level, parts) * se**2", "chi2.ppf(level, 1) * se**2", "a length told from 0 as one number is"),
        ("one = max(1.0, self.steps * se)", "one = 1.0", "β on the scale of κ"),
        ("1.0 / np.sqrt(1.0 - c / known)", "1.0", "the delta method's region"),
        ("chi2.ppf(level, 2)", "chi2.ppf(level, 1)", "one degree of freedom for a direction in space"),
    ],
    "directions/torus_reading.py": [
        ("signs[_LAMBDA] = -1.0 if flips[0] != flips[1] else 1.0", "signs[_LAMBDA] = 1.0", "λ keeps its sign"),
        ("slope[mean, by] += u * np.sign(values[by] or 1.0)", "", "a mean's length without its error"),
        ("if any(weak) and", "if False and", "κ ≥ 0 where its sign is not known"),
        ("read[2 * j] = Angle(NAMES[3 + j], lost=gone[j])", "", "a mean told where nothing tells it"),
    ],
    "directions/torus_start.py": [
        ("turn2 = -turn1", "turn2 = turn1", "a wrong slope"),
    ],
    "directions/bessel.py": [
        ("square, 1.0)), v[0])", "square, 1.0)), 0.0)", "a κ of 0 without an error"),
    ],
    "models/closed.py": [
        ("+ (a[:, None] * mean).T @ mean", "", "variance for second moment"),
        ("jnp.where(tilt, values, 0.0)", "0.0", "𝓜 without its mass"),
    ],
    "directions/rules.py": [
        ("np.sin(angle) * (0.5 if half else 1.0)", "np.sin(angle)", "axes counted twice"),
        ("z, r, weight = np.concatenate([z, -z])", "z, r, weight = np.concatenate([z, z])", "one pole for two"),
    ],
}  # fmt: skip
