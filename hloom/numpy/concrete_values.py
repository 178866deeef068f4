"""Values that a function needs while it is traced: those on which the size of a result depends."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..hlo.sizes import as_size
from ..tracer.arrays.array import as_value
from ..tracer.errors import ConcretizationTypeError
from ..tracer.tracer import Tracer


def known_array(what: str, x: Any, advice: str) -> np.ndarray[Any, Any]:
    """The values of an array as NumPy's. ConcretizationTypeError if they are traced."""
    if isinstance(x, Tracer):
        found = x.to_concrete_value()
        if found is None:
            raise unknown_array(what, x, advice)
        x = found
    return np.asarray(as_value(x))


def unknown_array(what: str, x: Tracer, advice: str) -> ConcretizationTypeError:
    """The error where the values of a traced array are needed."""
    return x.unknown(f"{what} needs the values of an array", advice)


def known_size(name: str, size: Any) -> int:
    """The argument `size` of a function. ConcretizationTypeError if it is traced, TypeError if it is no integer."""
    if isinstance(size, Tracer) and size.to_concrete_value() is None:
        raise size.unknown(
            f"{name}: the size of the result must be known while tracing",
            "Make it static: static_argnums, static_argnames.",
        )
    return as_size(size)


def require_known(what: str, given: Any) -> None:
    """ConcretizationTypeError if a number is traced in `given`, which is one or nested sequences of them."""
    if isinstance(given, dict):
        given = list(given.values())
    if isinstance(given, list | tuple):
        for each in given:
            require_known(what, each)
    elif isinstance(given, Tracer) and given.to_concrete_value() is None:
        raise given.unknown(
            f"{what} must be known while tracing: the size of the result depends on it",
            "Make it static: static_argnums, static_argnames.",
        )


SIZE_ADVICE = "The size of the result depends on values: give it as size=, which also works under jit."
