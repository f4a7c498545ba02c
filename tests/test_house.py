"""The house stays in order: sizes of files, functions, signatures and classes, unless a reason stands at the line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import unnorm as un

SOURCE = Path(un.__file__).parent
MOST_LINES = 480  # in a file, its docstrings not counted
MOST_BODY = 60  # lines of a function, its docstring not counted
MOST_PARAMETERS = 8
MOST_METHODS = 25
REASON = "# long: "  # at the line of the definition, or the one above


def _definitions() -> Iterator[tuple[Path, list[str], ast.AST]]:
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")
        for node in ast.walk(ast.parse(text)):
            yield path, lines, node


def _excused(lines: list[str], node: ast.FunctionDef | ast.ClassDef) -> bool:
    first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
    return any(REASON in line for line in lines[first - 2 : node.body[0].lineno])


def _body(node: ast.FunctionDef) -> int:
    begin = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
    assert node.end_lineno is not None
    return node.end_lineno - begin.lineno + 1


def _public() -> set[str]:
    return set(un.__all__)


def _lines_of_code(text: str) -> int:
    """Docstrings not counted, as in functions: complete arguments and examples are not what makes a file long."""
    tree, docs = ast.parse(text), 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            docs += (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
    return text.count("\n") - docs


def test_files_are_short() -> None:
    long = {
        str(p.relative_to(SOURCE)): n
        for p in SOURCE.rglob("*.py")
        if (n := _lines_of_code(p.read_text(encoding="utf-8"))) > MOST_LINES
    }
    assert not long


def test_functions_and_signatures_are_short() -> None:
    found = []
    for path, lines, node in _definitions():
        if not isinstance(node, ast.FunctionDef) or _excused(lines, node) or path.name == "kernels.py":  # compiled
            continue
        where = f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}"
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        count = len([name for name in names if name not in ("self", "cls")])
        if _body(node) > MOST_BODY:
            found.append(f"{where}: {_body(node)} lines")
        if count > MOST_PARAMETERS and node.name not in _public() and path.parent.name != "cli":
            found.append(f"{where}: {count} parameters")
    assert not found


def test_classes_have_few_methods() -> None:
    found = []
    for path, lines, node in _definitions():
        if isinstance(node, ast.ClassDef) and not _excused(lines, node):
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            if len(methods) > MOST_METHODS:
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno} {node.name}: {len(methods)} methods")
    assert not found


MODULES = {"os", "shutil", "tempfile"}  # whose functions make, move and remove files
MOVERS = {"mkdir", "makedirs", "replace", "rename", "remove", "unlink", "rmtree", "move", "copyfile"}


def _writes(node: ast.AST) -> bool:
    """Whether a call writes to a file, by its name and its arguments."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id == "open" and _mode(node, 1)
    if not isinstance(node.func, ast.Attribute):
        return False
    name, owner = node.func.attr, node.func.value
    module = isinstance(owner, ast.Name) and owner.id in MODULES
    if name in ("write_text", "write_bytes", "savez", "savez_compressed", "tofile", "savetxt", "mkdtemp", "mkstemp"):
        return True
    if name == "savefig":  # into memory, or to the path that `whole_file` gave
        return not (isinstance(node.args[0], ast.Name) and node.args[0].id in ("scratch", "buffer"))
    if name in ("mkdir", "touch", "unlink", "rmtree"):
        return True
    return (module and name in MOVERS) or (name == "open" and not module and _mode(node, 0))


def _mode(call: ast.Call, place: int) -> bool:
    given = [call.args[place]] if len(call.args) > place else [k.value for k in call.keywords if k.arg == "mode"]
    return any(isinstance(one, ast.Constant) and set(str(one.value)) & set("wax+") != set() for one in given)


def test_there_is_one_way_to_write() -> None:
    """Files and folders are written by `_base/atomic.py`, and a result's two files by `_base/storage.py` in a scratch
    folder: whole or not at all, with a name in the error."""
    allowed = {Path("_base/atomic.py"), Path("_base/storage.py")}
    found = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"  # pyright: ignore[reportAttributeAccessIssue]
        for path, _, node in _definitions()
        if _writes(node) and path.relative_to(SOURCE) not in allowed
    ]
    assert not found


def test_files_of_tests_have_names_of_their_own() -> None:
    """Tests are collected by the names of their files: of two with the same name one would not run."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def test_warnings_are_given_and_hushed_in_one_way() -> None:
    """`warnings.catch_warnings` changes the filters of every thread, and two fits side by side undo each other's."""
    other = {"bayes/draws.py"}  # a FutureWarning of ArviZ, outside of any fit
    found = {str(p.relative_to(SOURCE)) for p in SOURCE.rglob("*.py") if "warnings." in p.read_text()}
    assert found - {"errors.py"} == other


def test_numba_compiles_behind_the_shield() -> None:
    """`_base/cached.py` makes Ctrl-C wait while Numba compiles, wherever the first kernel is: a kernel that was
    decorated by Numba itself would be without it until another file is imported."""
    own = re.compile(r"^\s*(?:import numba\b|from numba import .*(?:jit|vectorize|cfunc))", re.M)
    found = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if own.search(path.read_text())}
    assert found == {"_base/cached.py"}
