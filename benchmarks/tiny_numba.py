"""a + b in Numba, with its cache on."""

from numba import njit


@njit(cache=True)
def add(a, b):  # type: ignore[no-untyped-def]
    return a + b
