"""The README's Python runs as it stands, and CI runs the README's own test command."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_python_blocks_run_in_order() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.S)
    assert len(blocks) >= 3
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)


def test_ci_runs_the_readmes_test_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.search(r"```sh\n(.*?)```", readme, flags=re.S)
    assert commands is not None
    install, test = commands.group(1).strip().splitlines()
    assert "unnorm demo" in install
    assert "pip install '.[test]'" in test
    assert "pytest" in test
    assert "grep -m1 -F \"pip install '.[test]'\" README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
