"""Programs of the client interface for tests: built with ComputationBuilder, run by a client."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hloom.hlo import Computation, ComputationBuilder, ComputationDataHandle, LocalClient, Shape, element_type_of

from hloom.backend_check.op_values import NDArray

B = ComputationBuilder
Handle = ComputationDataHandle
Given = Callable[..., Handle]
"""given(value, dtype=float32): a parameter of the program, and the value that it is run on."""
Program = Callable[[B, Given], Handle]


@dataclass(frozen=True)
class Example:
    """A worked example: its section, the computation, and the section's result."""

    section: str
    what: str
    program: Program
    expected: Any
    """An array (its dtype counts), or a tuple of such."""
    tolerance: float = 0
    """Relative; 0: equal bit by bit."""

    @property
    def id(self) -> str:
        return f"{self.section}: {self.what}"


def built(program: Program, name: str = "example") -> tuple[Computation, list[NDArray]]:
    """The computation, and the values of its parameters."""
    builder = ComputationBuilder(name)
    values: list[NDArray] = []

    def given(value: Any, dtype: Any = np.float32) -> Handle:
        array = np.asarray(value, dtype)
        values.append(array)
        shape = Shape.array(element_type_of(array.dtype), array.shape)
        return builder.parameter(len(values) - 1, shape, f"p{len(values) - 1}")

    builder.set_return_value(program(builder, given))
    return builder.build(), values


def run(program: Program, backend: str) -> Any:
    """The program's result as NumPy arrays, nested in tuples as it is."""
    computation, values = built(program)
    client = LocalClient(backend)
    literal = client.execute_and_transfer(computation, [client.transfer_to_server(v) for v in values])
    return arrays(literal)


def arrays(literal: Any) -> Any:
    return tuple(map(arrays, literal)) if isinstance(literal, tuple) else literal.array


def check(actual: Any, expected: Any, tolerance: float = 0) -> None:
    """AssertionError unless structure, dtypes, dimensions and values agree."""
    if isinstance(expected, tuple):
        assert isinstance(actual, tuple) and len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            check(a, e, tolerance)
        return
    expected = np.asarray(expected)
    assert actual.dtype == expected.dtype, f"{actual.dtype}, not {expected.dtype}"
    assert actual.shape == expected.shape, f"{actual.shape}, not {expected.shape}"
    if tolerance:
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(actual, expected)


def f32(*values: Any) -> NDArray:
    return np.array(values[0] if len(values) == 1 else values, np.float32)


def s32(*values: Any) -> NDArray:
    return np.array(values[0] if len(values) == 1 else values, np.int32)


def scalar_computation(name: str, method: str, dtype: str = "f32", count: int = 2) -> Computation:
    """A computation of scalars that is one method of the builder."""
    builder = ComputationBuilder(name)
    operands = [builder.parameter(k, Shape.parse(f"{dtype}[]"), "xyz"[k]) for k in range(count)]
    getattr(builder, method)(*operands)
    return builder.build()
