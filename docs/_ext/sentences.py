"""The page of errors: every sentence that unnorm may say when something is wrong, read from its source."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import unnorm

SOURCE = Path(unnorm.__file__).parent
# what a room of the source does, for those who meet its errors
ROOMS = {
    "_base": "Tables, files, threads and numbers",
    "bayes": "Posterior draws",
    "cli": "The command line",
    "data": "Data and covariates",
    "datasets": "Bundled data",
    "directions": "Directions",
    "domains": "Spaces of outcomes",
    "engine": "Additive models and un.gam",
    "groups": "Subjects and conditions",
    "inference": "Errors, tests and advice",
    "models": "Models",
    "objectives": "Objectives",
    "patterns": "Point patterns",
    "pysaliency": "pysaliency",
    "references": "Reference points",
    "report": "The report",
    "results": "Fitting and results",
    "sklearn": "scikit-learn",
    "solvers": "Solvers",
    "steps": "Step selection",
    "studies": "Reproducing the paper",
    "terms": "Terms and formulas",
}


KINDS = frozenset(
    name
    for name, kind in vars(unnorm.errors).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and kind.__module__ == unnorm.errors.__name__
)


def words(node: ast.expr) -> str | None:
    """The text of a string as written, with ‹name› for what is filled in; None where it is not a string."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else shown(part) for part in node.values)
        return "".join(str(part) for part in parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = words(node.left), words(node.right)
        return None if left is None or right is None else left + right
    return None


def shown(part: ast.expr) -> str:
    """‹name›, and what `words.at_row` puts around a row."""
    match part:
        case ast.FormattedValue(value=ast.Call(func=ast.Name(id="at_row"), args=[row])):
            return f"row ‹{filled(row)}›"
    return f"‹{filled(part)}›"


def filled(node: ast.expr) -> str:
    """What stands for a value that is filled in: the name of a variable or of a field, how many of them, or …"""
    match node:
        case ast.FormattedValue(value=inner) | ast.Subscript(value=inner):
            return filled(inner)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_").replace("_", " ")
        case ast.Call(func=ast.Name(id="len"), args=[counted]) if filled(counted) != "…":
            return f"number of {filled(counted)}"
        case ast.Call(func=ast.Name(), args=[only]):  # listed(names), repr(value)
            return filled(only)
    return "…"


def raised(tree: ast.Module) -> list[tuple[str, str]]:
    """(kind, sentence) of every `raise SomeError("…")` of a module, in its order."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name):
            text = words(node.exc.args[0]) if node.exc.args else None
            if text and node.exc.func.id in KINDS and " " in text:
                found.append((node.lineno, node.exc.func.id, text))
    return [(kind, text) for _, kind, text in sorted(found)]


def page() -> str:
    lines = [
        "# Errors",
        "",
        "You get: every sentence that unnorm may say when something is wrong, read from its source. Each says what was",
        "expected, what came and what to do. ‹path› stands for what is filled in there. To find yours, search this",
        "page for some words of it. The kinds of errors:",
        "",
        "| kind | cause |",
        "|---|---|",
    ]
    for name in sorted(KINDS):
        doc = (getattr(unnorm.errors, name).__doc__ or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        lines.append(f"| `{name}` | {doc} |")
    for room in sorted({path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py")}):
        files = sorted((SOURCE / room).rglob("*.py")) if (SOURCE / room).is_dir() else [SOURCE / room]
        said = [one for path in files for one in raised(ast.parse(path.read_text(encoding="utf-8")))]
        if said:
            title = ROOMS.get(room.removesuffix(".py"), room.removesuffix(".py").strip("_").capitalize())
            lines += ["", f"## {title}", ""]
            lines += [f"- `{kind}`: {escaped(text)}" for kind, text in dict.fromkeys(said)]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """As plain text in Markdown."""
    out = " ".join(text.split())
    for mark in "\\`*_<>[]{}#|$~":
        out = out.replace(mark, f"\\{mark}")
    return out


def generate(app: Any) -> None:
    target = Path(app.srcdir) / "reference" / "sentences.md"
    target.parent.mkdir(exist_ok=True)
    target.write_text(page(), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", generate)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
