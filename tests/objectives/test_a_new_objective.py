"""An objective is one file and one line: CONTRIBUTING's example goes through the generic matrix by being registered."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # the matrix and the examples are shared by several folders

import test_matrix
from parts_in_contributing import example, registry_line
from unnorm.objectives import REGISTRY
from unnorm.objectives import registry as lines

NEW = example("An objective")["TruncatedImportance"]


def test_the_line_is_like_the_others() -> None:
    assert lines.__file__ is not None
    others = [line for line in Path(lines.__file__).read_text(encoding="utf-8").splitlines() if " as _" not in line]
    words = registry_line("An objective").split()
    assert words[3] == words[5] == NEW.__name__
    assert [len(line.split()) for line in others if line.startswith("from")] == [len(words)] * len(REGISTRY)


@pytest.mark.parametrize("variant", ["plain", "weights", "clusters", "offsets"])
@pytest.mark.parametrize(("kind", "scheme"), [("iid", None), ("transitions", None), ("transitions", "IID")])
def test_the_matrix_takes_it(kind: str, scheme: str | None, variant: str) -> None:
    with REGISTRY.including(NEW):
        test_matrix.test_one_model_three_ways(kind, NEW.__name__, scheme, variant)
        test_matrix.test_weights_are_repeated_rows("family", kind, NEW.__name__, scheme)


def test_it_is_described_and_read_back() -> None:
    with REGISTRY.including(NEW):
        for one in NEW.examples():
            assert REGISTRY.read(one.to_dict()) == one
    assert NEW.__name__ not in REGISTRY
