"""One compiled function for every size: rows and contexts go through it in chunks padded to a few lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

CHUNK_BYTES = 32 * 2**20  # working set of one chunk; bounded memory whatever the number of contexts


def chunk_length(total: int, bytes_each: int, least: int = 16) -> int:
    """A power of two that keeps a chunk near CHUNK_BYTES and is no longer than the data need."""
    most = max(least, 2 ** int(np.log2(max(CHUNK_BYTES // max(bytes_each, 1), 1))))
    needed = max(least, 2 ** int(np.ceil(np.log2(max(total, 1)))))
    return int(min(most, needed))


def chunks(total: int, length: int) -> Iterator[tuple[np.ndarray, int]]:
    """Index arrays of exactly `length` (the last padded by repeating its first entry) and how many count."""
    for begin in range(0, total, length):
        count = min(length, total - begin)
        index = np.full(length, begin, dtype=np.intp)
        index[:count] = np.arange(begin, begin + count)
        yield index, count


def rowwise(function: Callable[..., Any], y: np.ndarray, arguments: tuple[Any, ...], bytes_each: int) -> np.ndarray:
    """Apply a compiled `function(y, arguments) -> (length, …)` to all rows, chunk by chunk."""
    total = y.shape[0]
    parts = [
        np.asarray(function(y[index], tree_take(arguments, index)))[:count]
        for index, count in chunks(total, chunk_length(total, bytes_each))
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def tree_take(tree: Any, index: np.ndarray) -> Any:
    """The same tree with `index` taken along the first axis of each leaf."""
    if isinstance(tree, dict):
        return {name: tree_take(leaf, index) for name, leaf in tree.items()}
    if isinstance(tree, tuple):
        return tuple(tree_take(leaf, index) for leaf in tree)
    return tree[index]


def tree_leaves(tree: Any) -> list[np.ndarray]:
    """The arrays of a tree of dicts and tuples, in order."""
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in tree_leaves(value)]
    if isinstance(tree, tuple):
        return [leaf for value in tree for leaf in tree_leaves(value)]
    return [tree]
