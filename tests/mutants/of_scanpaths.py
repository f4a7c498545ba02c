"""Faults in what scanpaths need: windows of their own, scores of predicted points, what a model misses."""

MUTANTS: dict[str, list[tuple[str, str, str]]] = {
    "data/placing.py": [
        (
            "out[rows] = window.from_unit(u[rows])",
            "out[rows] = domain.windows[0].from_unit(u[rows])",
            "places of another",
        ),
        ("out[rows] = window.contains(y[rows])", "out[rows] = domain.hull.contains(y[rows])", "membership of the hull"),
        ("[window_codes(domain, obs)]", "[0]", "the first window's area for all"),
        ("np.stack([high for _, high in boxes]) - lower", "np.stack([high for _, high in boxes])", "widths from zero"),
    ],
    "references/by_window.py": [
        ("place[t[rows]]", "t[rows]", "contexts of other observations"),
        ("yield self.own(w, some), rows", "yield self.own(0, some), rows", "one window's law for all"),
    ],
    "objectives/window_grids.py": [
        ("np.full(len(mesh[0]), rows[0])", "np.zeros(len(mesh[0]), dtype=int)", "grids in the first window"),
    ],
    "data/covariates/relative.py": [
        ("np.hypot(2.0 * rows", "np.hypot(1.0 * rows", "the centre at a side"),
        (
            "c = self.frame.centre[self.frame.window(rows.obs, rows.t)]",
            "c = self.frame.centre[:1]",
            "one centre for all",
        ),
    ],
    "results/scores.py": [
        ("np.expm1(log_square - 2.0 * log_z + log_v)", "np.exp(log_square - 2.0 * log_z + log_v)", "second moment"),
        ("(there < here) + 0.5", "(there > here) + 0.5", "AUC upside down"),
        ("(-1) ** (size + 1)", "1", "two-way errors without the intersection"),
        ("v = c / max(c - 1, 1) * float", "v = float", "clusters without C/(C − 1)"),
        ("r = w * (values", "r = (values", "errors without weights"),
        ("and (within or len(more) > 1)", "and len(more) > 1", "errors clustered by groups of subjects"),
        ("each[OVER_BASELINE] = each[GAIN] - base", "each[OVER_BASELINE] = each[GAIN] + base", "sign of the baseline"),
    ],
    "results/centre_bias.py": [
        ("p = all_cells[cell[rows]] / here.mean()", "p = all_cells[cell[rows]]", "no constant within the window"),
        ("0.5 * (below + upto)", "below", "ties lost"),
        ("_smoothed(total - own, h, 0.0)", "_smoothed(total, h, 0.0)", "a bandwidth chosen on its own data"),
    ],
    "report/misfit.py": [
        (
            "lacks = found.term_values(label)[~case]",
            "lacks = found.term_values(label)[case]",
            "sizes over observed points",
        ),
        ("2 * turning.sum() > here.sum()", "True", "turns of paths that have none"),
        ("min(place.shape[1] // EACH, MOST_CELLS)", "MOST_CELLS", "more places than a context may have"),
        ("self.p <= SURELY and self.size > MATTERS", "self.p <= SURELY", "whatever does not matter is missed"),
    ],
    "report/sections/misfit.py": [
        ("np.where(goes_on(obs), own[:-1], np.nan)", "own[:-1]", "turns from another path's step"),
        ("(analysis.fits or {GROUP: analysis.main})", "{GROUP: analysis.main}", "all levels from the group's fit"),
    ],
}
