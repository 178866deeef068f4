"""The coefficients of the special functions are what `support.special_tables` makes."""

from __future__ import annotations

import numpy as np

from hloom.lax import special_tables
from support.special_tables import tables


def test_coefficients() -> None:
    for name, _, rows in tables():
        found = getattr(special_tables, name)
        pairs = zip(found, rows, strict=True) if isinstance(rows[0], list) else [(found, rows)]
        for written, exact in pairs:
            np.testing.assert_array_equal(written, [float(c) for c in exact], name)
