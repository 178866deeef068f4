"""Scatter on the Numba backend: many updates of a small array in parts, operands computed where they are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.executable import NumbaExecutable
from hloom.numba_backend.runtime.threads import set_num_threads

from hloom import hlo
from tests.support.guarded import small_pieces

NDArray = np.ndarray

WHERE = "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"


def compiled(text: str, donated: Sequence[int] = ()) -> NumbaExecutable:
    return NumbaCompiler().compile(hlo.parse(text), donated=donated)


def same_bits(executable: NumbaExecutable, text: str, arguments: Sequence[NDArray]) -> None:
    """The result is the evaluator's, with the signs of zeros."""
    expected = np.asarray(hlo.evaluate(hlo.parse(text), *arguments))
    (found,) = np.atleast_1d(executable.execute([a.copy() for a in arguments])).reshape(1, -1)
    expected = expected.reshape(-1)
    assert found.dtype == expected.dtype
    if not np.issubdtype(found.dtype, np.integer):  # NaN is one value, whatever its bits are
        found, expected = (np.where(np.isnan(x), np.nan, x).astype(x.dtype) for x in (found, expected))
    assert found.tobytes() == expected.tobytes()


def updates_of(element: str, op: str, dims: str = "100", count: int = 40_000, window: str = "") -> str:
    size = dims + ("," + window if window else "")
    updates = f"{count}" + ("," + window if window else "")
    windows = "1" if window else ""
    return f"""HloModule m
    f {{ a = {element}[] parameter(0)  b = {element}[] parameter(1)  ROOT r = {element}[] {op}(a, b) }}
    ENTRY e {{ x = {element}[{size}] parameter(0)  i = s32[{count},1] parameter(1)
      u = {element}[{updates}] parameter(2)
      ROOT r = {element}[{size}] scatter(x, i, u), update_window_dims={{{windows}}}, {WHERE}, to_apply=f }}"""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("window", ["", "5"])
@pytest.mark.parametrize("op", ["add", "maximum", "minimum", "multiply"])
@pytest.mark.parametrize("element", ["f32", "f64", "s32", "u8", "s64"])
def test_many_updates_of_a_small_array_are_combined_in_parts(element: str, op: str, window: str) -> None:
    rng = np.random.default_rng(0)
    dtype = hlo.ElementType(element).dtype
    width = (int(window),) if window else ()
    at = rng.integers(-3, 103, (40_000, 1)).astype(np.int32)
    new = rng.integers(0, 3, (40_000, *width))
    if op == "multiply":  # exact in any order
        new = np.where(rng.random(new.shape) < 0.99, 1, new)
    new = new.astype(dtype)
    if dtype.kind == "f" and op in ("maximum", "minimum"):
        new = np.where(new == 0, np.where(rng.random(new.shape) < 0.5, dtype.type(-0.0), new), -new)
        new[rng.random(new.shape) < 1e-5] = np.nan
    text = updates_of(element, op, window=window)
    with small_pieces():
        executable = compiled(text)
    assert any("_parts" in kernel for kernel in executable.kernels().values())
    same_bits(executable, text, [rng.integers(0, 3, (100, *width)).astype(dtype), at, new])


@pytest.mark.parametrize("count", [2, 5, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("op", ["add", "subtract", "maximum"])
def test_wide_windows_have_owners(op: str, count: int) -> None:
    """Each is updated in the order of the indices, on one thread and on two; a kernel for one thread has no owners.
    Many indices are outside."""
    rng = np.random.default_rng(0)
    text = updates_of("f32", op, dims="50", count=count, window="160")
    executables = []
    for threads in (1, 2):
        set_num_threads(threads)
        with small_pieces():
            executables.append(compiled(text))
        assert any("& 3" in kernel for kernel in executables[-1].kernels().values()) == (threads > 1)
    at = rng.integers(-10, 60, (count, 1)).astype(np.int32)
    new = rng.standard_normal((count, 160)).astype(np.float32)
    for threads in (1, 2):
        set_num_threads(threads)
        for executable in executables:
            same_bits(executable, text, [np.zeros((50, 160), np.float32), at, new])
    set_num_threads(None)


@pytest.mark.parametrize(("op", "count"), [("add", 300), ("subtract", 40_000), ("maximum", 300)])
def test_updates_in_their_order(op: str, count: int) -> None:
    """Few updates, or a combiner that depends on the order."""
    rng = np.random.default_rng(0)
    text = updates_of("f32", op, count=count)
    executable = compiled(text)
    assert not any("_parts" in kernel for kernel in executable.kernels().values())
    at = rng.integers(-3, 103, (count, 1)).astype(np.int32)
    same_bits(executable, text, [np.zeros(100, np.float32), at, rng.standard_normal(count).astype(np.float32)])


def test_a_sum_is_the_same_whatever_the_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    text = updates_of("f32", "add")
    arguments = [np.zeros(100, np.float32), rng.integers(0, 100, (40_000, 1)).astype(np.int32)]
    arguments.append(rng.standard_normal(40_000).astype(np.float32))
    whole = compiled(text).execute(arguments)
    with small_pieces():
        pieces = compiled(text).execute(arguments)
    assert np.asarray(whole).tobytes() == np.asarray(pieces).tobytes()


@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_zeros_have_signs_and_nan_stays(op: str) -> None:
    values = np.array([0.0, -0.0, 0.0, -0.0, np.nan, 1.0, -np.inf, np.inf], np.float32)
    text = updates_of("f32", op, dims="8", count=512)
    rng = np.random.default_rng(0)
    for _ in range(5):
        at = rng.integers(0, 8, (512, 1)).astype(np.int32)
        new = rng.choice(values, 512, p=[0.3, 0.3, 0.15, 0.15, 0.001, 0.033, 0.033, 0.033]).astype(np.float32)
        executable = compiled(text)
        same_bits(executable, text, [rng.choice(values, 8).astype(np.float32), at, new])
    (kernel,) = executable.kernels().values()
    assert "if not" in kernel


ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }"
WRAPPED = """n = s32[] constant(50)  m = s32[60] broadcast(n), dimensions={}  z = s32[] constant(0)
      o = s32[60] broadcast(z), dimensions={}  c = pred[60] compare(i, o), direction=LT  p = s32[60] add(i, m)
      k = s32[60] select(c, p, i)  v = s32[60,1] reshape(k)"""


def wrapped(made: str, result: str = "ROOT r = ") -> str:
    return f"""HloModule m {ADD}
    ENTRY e {{ x = f32[50] parameter(0)  i = s32[60] parameter(1)  y = f32[60] parameter(2)  {WRAPPED}
      u = f32[60] {made}
      {result}f32[50] scatter(x, v, u), update_window_dims={{}}, {WHERE}, to_apply=add"""


INLINED = {
    "indices": (wrapped("copy(y)") + " }", 1),
    "updates, too": (wrapped("multiply(y, y)") + " }", 1),
    "expensive updates": (wrapped("exponential(y)") + " }", 2),
    "indices that are a result": (wrapped("copy(y)", "s = ") + "  ROOT t = (f32[50], s32[60]) tuple(s, k) }", 2),
    "two components": (
        f"""HloModule m {ADD}
        ENTRY e {{ x = f32[50,40] parameter(0)  i = s32[60] parameter(1)  u = f32[60] parameter(2)  {WRAPPED}
          j = s32[60] negate(i)  w = s32[60,1] reshape(j)  b = s32[60,2] concatenate(v, w), dimensions={{1}}
          ROOT r = f32[50,40] scatter(x, b, u), update_window_dims={{}}, inserted_window_dims={{0,1}},
            scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=1, to_apply=add }}""",
        1,
    ),
}


@pytest.mark.parametrize("case", INLINED)
def test_what_makes_indices_and_updates_is_in_the_kernel(case: str) -> None:
    text, kernels = INLINED[case]
    rng = np.random.default_rng(0)
    executable = compiled(text)
    assert len(executable.kernels()) == kernels, executable.kernels()
    shape = (50, 40) if case == "two components" else (50,)
    arguments = [rng.standard_normal(n).astype(np.float32) for n in (shape, 60)]
    arguments.insert(1, rng.integers(-60, 60, 60).astype(np.int32))
    found = executable.execute(arguments)
    for a, b in zip(_leaves(found), _leaves(hlo.evaluate(hlo.parse(text), *arguments)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


def _leaves(found: object) -> list[NDArray]:
    return [np.asarray(a) for a in found] if isinstance(found, tuple | list) else [np.asarray(found)]


@pytest.mark.parametrize("donated", [(), (0,)])
def test_indices_computed_from_the_array_that_is_updated(donated: Sequence[int]) -> None:
    """In place the indices must be computed before the first update."""
    text = f"""HloModule m
    set {{ a = s32[] parameter(0)  ROOT b = s32[] parameter(1) }}
    ENTRY e {{ x = s32[60] parameter(0)  u = s32[60] parameter(1)  n = s32[60] negate(x)  v = s32[60,1] reshape(n)
      ROOT r = s32[60] scatter(x, v, u), update_window_dims={{}}, {WHERE}, to_apply=set }}"""
    rng = np.random.default_rng(0)
    arguments = [-rng.integers(-5, 65, 60).astype(np.int32), -rng.integers(0, 60, 60).astype(np.int32)]
    same_bits(compiled(text, donated), text, arguments)
