"""LAPACK's routines, called for each matrix of a batch."""

from __future__ import annotations

import numpy as np
import pytest
from hloom.hlo.custom_call_targets.library import each, each_with_work, from_columns, to_columns
from hloom.hlo.element_type import ElementType
from hloom.hlo.errors import UnsupportedError


@pytest.mark.parametrize(("count", "n"), [(0, 3), (1, 3), (7, 3), (2000, 5), (3, 40), (1, 200)])
def test_each_matrix_of_a_batch(count: int, n: int) -> None:
    """geqrf: a routine with a workspace."""
    a = np.random.default_rng(count).standard_normal((count, n, n))
    columns, tau, info = to_columns(a), np.zeros((count, n)), np.zeros(count, np.int32)
    each_with_work("geqrf", ElementType.F64, count, (n, n, columns, n, tau), [ElementType.F64], [info])
    assert not info.any()
    packed = from_columns(columns, (count,))
    for k in range(0, count, 97):
        np.testing.assert_allclose(np.triu(packed[k]), np.linalg.qr(a[k], mode="r"), atol=1e-12 * n)


def test_a_routine_that_is_missing() -> None:
    with pytest.raises(UnsupportedError, match="no routine snothing"):
        each("nothing", ElementType.F32, 1, 1)
