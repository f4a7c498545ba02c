"""Pages made from the code: the API reference, and tables of what each part declares of itself."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import unnorm as un
from unnorm import domains, objectives, references

# page → (title, what it says first, public names; registries and modules give theirs)
PAGES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "fitting": ("Fitting", "From a model and observations to a fit.",
                ("fit", "fit_each", "compare", "bootstrap", "redraws", "simulate", "sample", "load", "gam",
                 "kernel_path", "penalty_path")),
    "data": ("Data", "Tables and arrays become observations.",
             ("iid", "transitions", "conditional", "networks", "pattern", "Observations", "Pattern")),
    "domains": ("Domains", "Ω, the space of outcomes, and its measure.", (*domains.REGISTRY, "PoissonProcess")),
    "models": ("Models", "What gives f_θ, the log density up to a constant.",
               ("ExponentialFamily", "Additive", "Energy", "Ising", "GraphStatistics", "Tilt")),
    "terms": ("Terms", "Smooth, linear and factor terms of f, χ and η.",
              ("s", "te", "ti", "t2", "kernel", "linear", "factor", "interaction")),
    "covariates": ("Covariates", "What terms are functions of.", ("Function", "Expression", "Map", "Distance")),
    "normalisers": ("Constants", "What represents the normalising constants.",
                    ("Anchored", "Constant", "PerContext", "Smooth", "Kernel", "Linear", "Fixed", "minwise")),
    "objectives": ("Objectives", "What is maximised.", tuple(objectives.REGISTRY)),
    "references": ("Reference laws", "q, the law of the reference points.", tuple(references.REGISTRY)),
    "points": ("Point schemes", "How reference points are drawn from q.", tuple(references.SCHEMES)),
    "solvers": ("Solvers", "How the maximum is found.",
                ("Newton", "LBFGS", "Smoothing", "Imputing", "SGD", "Network", "Features", "Device",
                 "unbiased_gradient", "log_z")),
    "results": ("Results", "What a fit answers.",
                ("Fit", "FitGroup", "Gam", "Comparison", "Repeats", "KernelPath", "PenaltyPath", "GraphGof",
                 "graph_gof", "PredictionScores")),
    "bayes": ("Sampling", "Posterior draws.", ("Langevin", "NUTS", "Draws", "Flat", "Normal")),
    "patterns": ("Point patterns", "Intensities and interactions.", ("fit_pattern", "PatternFit", "Dummies",
                 "AreaInteraction", "Geyer", "HardCore", "MultiStrauss", "PairwiseSpline", "Softcore", "Strauss")),
    "directions": ("Directions", "Named families of angles, axes and directions in space.",
                   ("fit_direction", "DirectionFit")),
    "steps": ("Step selection", "Tracks, movement kernels and habitat.",
              ("fit_steps", "StepFit", "track", "Track", "random_steps")),
}  # fmt: skip
# module → its names that are not public by themselves; those of base classes are in CONTRIBUTING.md
MODULES: dict[str, tuple[str, ...]] = {
    "datasets": ("eye", "eye_truth", "simulate_eye", "EyeCurves", "toy_chain", "toy_log_normaliser"),
    "directions": ("von_mises", "generalised_von_mises", "wrapped_normal", "wrapped_cauchy", "von_mises_fisher",
                   "watson", "bingham", "kent", "fisher_bingham", "bivariate_von_mises", "regression", "chain",
                   "Family", "rose", "sphere_map"),
    "domains": ("from_dict", "quadrature_error"),
    "errors": ("UnnormError", "InputError", "DataError", "OutsideError", "TermError", "WriteError", "CombinationError",
               "EstimationError", "NoEstimateError", "NotIdentifiedError", "ConvergenceError", "MemoryLimitError",
               "MissingLibraryError", "WorkersError", "UnnormWarning", "hush", "overhear", "told"),
    "kernels": ("Gaussian", "Matern", "Periodic", "Linear", "Hamming", "Jaccard", "Spectrum"),
    "losses": ("ncd", "importance", "ranking", "conditional_nce", "gradients"),
    "patterns": ("K", "L", "pair_correlation", "F", "G", "J", "envelope", "process", "Summary", "Envelope", "Process"),
    "pysaliency": ("observations", "windows", "scanpath_model"),
    "references": ("Gamma", "Exponential", "Weibull", "LogNormal", "HalfNormal", "UniformAngle", "VonMisesAngle",
                   "from_dict"),
}  # fmt: skip
MEMBERS = frozenset(("results", "data", "bayes", "patterns", "directions", "steps"))  # whose classes list their methods


def undocumented() -> set[str]:
    """Public names that no page has."""
    listed = {name for _, _, names in PAGES.values() for name in names}
    return set(un.__all__) - listed - {"__version__", *MODULES}


def first_line(name: str) -> str:
    """What a public name is, in one line."""
    text = inspect.getdoc(getattr(un, name)) or ""
    return text.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def link(name: str) -> str:
    """A public name, linked to its entry."""
    return f"{{py:obj}}`un.{name} <unnorm.{name}>`"


def page(key: str) -> str:
    title, opening, names = PAGES[key]
    lines = [f"# {title}", "", opening, "", "| | |", "|---|---|"]
    lines += [f"| {link(name)} | {first_line(name)} |" for name in names]
    for name in names:
        what = getattr(un, name)
        kind = "autoclass" if isinstance(what, type) else "autofunction"
        options = [":members:"] if kind == "autoclass" and key in MEMBERS else []
        lines += ["", f"## un.{name}", "", "```{eval-rst}", f".. {kind}:: unnorm.{name}"]
        lines += [*(f"   {option}" for option in options), "```"]
    return "\n".join(lines) + "\n"


def modules_page() -> str:
    lines = ["# Modules", "", "Further names, by module.", ""]
    for module, names in MODULES.items():
        home = getattr(un, module)
        sys.modules.setdefault(f"unnorm.{module}", home)  # whose file is elsewhere; autodoc imports by this name
        lines += [f"## un.{module}", "", (inspect.getdoc(home) or "").split("\n\n")[0], ""]
        for name in names:
            kind = "autofunction" if inspect.isfunction(getattr(home, name)) else "autoclass"
            lines += ["```{eval-rst}", f".. {kind}:: unnorm.{module}.{name}", "```", ""]
    return "\n".join(lines) + "\n"


def _yes(value: bool) -> str:
    return "yes" if value else ""


def objectives_table() -> str:
    """What objectives declare."""
    heads = ("draws reference points", "constants cancel", "a likelihood (AIC, ratios)")
    lines = [f"| objective | {' | '.join(heads)} |", "|---|---|---|---|"]
    y = un.transitions(un.datasets.toy_chain(20, 0.5, 5.0, rng=1))
    for name, kind in objectives.REGISTRY.items():
        one: Any = next(iter(kind.examples()), None) or kind()
        cells = (one.reference is not None, one.cancels, one.is_likelihood(y, un.PerContext()))
        lines.append(f"| {link(name)} | {' | '.join(map(_yes, cells))} |")
    return "\n".join(lines) + "\n"


def domains_table() -> str:
    """What domains declare."""
    lines = ["| domain | for example | dimension | finite | rule for integrals |", "|---|---|---|---|---|"]
    for name, kind in domains.REGISTRY.items():
        if not kind.examples():  # a window for each context: none of its own
            lines.append(f"| {link(name)} | a Box or a Window for each value of a column | 2 | | that of each window |")
            continue
        one: Any = kind.examples()[0]
        try:
            rule = one.quadrature().rule.partition(":")[0].replace("|", "\\|").replace("**2", "²")
        except un.errors.UnnormError:
            rule = "none: a smooth χ, ranking or conditional NCE"
        lines.append(f"| {link(name)} | `{one!r}` | {one.dim} | {_yes(one.finite)} | {rule} |")
    return "\n".join(lines) + "\n"


def references_table() -> str:
    lines = ["| reference | law | lives on |", "|---|---|---|"]
    for name, kind in references.REGISTRY.items():
        lines.append(f"| {link(name)} | {first_line(name)} | {kind.lives_on} |")
    return "\n".join(lines) + "\n"


def write(path: Path, text: str) -> None:
    """Only where it has changed, so that Sphinx reads no page again without need."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def generate(app: Any) -> None:
    missing = undocumented()
    if missing:
        raise RuntimeError(f"docs/_ext/parts.py has no page for {', '.join(sorted(missing))}: add them to PAGES.")
    folder = Path(app.srcdir) / "reference"
    for key in PAGES:
        write(folder / f"{key}.md", page(key))
    write(folder / "modules.md", modules_page())
    toc = "\n".join((*PAGES, "modules", "sentences"))
    lines = ["# Reference", "", "You get: every public name, what it is, its arguments and an example.", ""]
    lines += ["| page | what is there |", "|---|---|"]
    lines += [f"| [{title}]({key}.md) | {opening} |" for key, (title, opening, _) in PAGES.items()]
    lines += ["| [Modules](modules.md) | Further names, by module. |"]
    lines += ["| [Errors](sentences.md) | Every sentence that unnorm may say when something is wrong. |", ""]
    lines += ["```{toctree}", ":hidden:", "", toc, "```"]
    write(folder / "index.md", "\n".join(lines) + "\n")
    tables = Path(app.srcdir) / "_tables"
    for name, table in (("objectives", objectives_table), ("domains", domains_table), ("references", references_table)):
        write(tables / f"{name}.md", table())


def plain_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """|Ω| and |A ∩ B| are sizes, not reStructuredText's substitutions; docs/size.md is a page of this site."""
    for i, line in enumerate(lines):
        line = re.sub(r"docs/(\w+)\.md", r":doc:`/\1`", line)
        if not line.lstrip().startswith((">>>", "...")):
            pieces = line.split("`")  # odd ones are code
            lines[i] = "`".join(piece if k % 2 else piece.replace("|", "\\|") for k, piece in enumerate(pieces))


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", generate)
    app.connect("autodoc-process-docstring", plain_bars)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
