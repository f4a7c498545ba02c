"""Sorting and searching in compiled loops: NumPy's, compiled, take seconds, and these a tenth of one."""

from __future__ import annotations

from .._base.cached import njit


@njit(cache=True, nogil=True)
def sort_with(a, b, n):
    """The first n of `a` in increasing order, `b` moved along with them, in place (Shell's sort)."""
    gap = 1
    while 3 * gap + 1 < n:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(gap, n):
            one, other = a[k], b[k]
            j = k
            while j >= gap and a[j - gap] > one:
                a[j], b[j] = a[j - gap], b[j - gap]
                j -= gap
            a[j], b[j] = one, other
        gap //= 3


@njit(cache=True, nogil=True)
def first_at_least(a, value):
    """The first place of the increasing `a` where it is `value` or more; its length if none is."""
    low, high = 0, len(a)
    while low < high:
        mid = (low + high) // 2
        if a[mid] < value:
            low = mid + 1
        else:
            high = mid
    return low
