"""Arrays in any layout as a program's parameters and results: the executable converts NumPy arrays to and from
buffers."""

from __future__ import annotations

import ctypes
import random
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo import ExecutionError, HloParseError, Shape, VerificationError, parse, verify
from hloom.hlo.host_buffers import HostBuffer, PhysicalBuffer, RetypedBuffer, array_in, buffer_of
from hloom.hlo.physical_array import to_physical
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.executable import result_maker

import hloom
from tests.support.random_targets import RandomTarget, random_layout

NDArray = np.ndarray[Any, Any]

SHAPES = (
    "f32[3,5]{1,0}",
    "f32[3,5]{0,1}",
    "f32[3,5]{1,0:T(2,2)}",
    "f32[3,5]{0,1:T(2,2)}",
    "f32[2,3,4]{0,2,1}",
    "bf16[10,130]{1,0:T(8,128)(2,1)}",
    "s4[7]{0:E(4)}",
    "s4[5,6]{0,1:T(2,4)E(4)}",
    "pred[40,3]{1,0:T(32,2)(32,1)E(1)}",
    "f32[5]{0:T(4)L(16)}",
    "f32[]",
    "f32[]{:T(128)}",
    "f32[0,3]{0,1}",
    "f32[0,3]{1,0:T(8,128)}",
    "c64[3,2]{0,1:T(2)}",
    "u8[6]{0:S(1)}",
)


def values_of(shape: Shape) -> NDArray:
    count = np.arange(shape.num_elements) * 7 % (2 if shape.element.dtype == np.bool_ else 8)
    return count.astype(shape.element.dtype).reshape(shape.dimensions)


def memory_at(buffer: Any, size: int) -> bytes:
    return ctypes.string_at(buffer.address, size)


@pytest.mark.parametrize("text", SHAPES)
def test_a_buffer_holds_an_array_in_its_layout(text: str) -> None:
    shape = Shape.parse(text)
    array = values_of(shape)
    buffer = buffer_of(array, shape)
    assert memory_at(buffer, shape.byte_size) == to_physical(array, shape).tobytes()
    for copy in (None, True):
        got = np.array(buffer, copy=copy)
        assert got.dtype == array.dtype and got.shape == array.shape and (got == array).all()
        assert copy is None or got.flags.writeable
    assert not np.asarray(buffer).flags.writeable
    if shape.num_elements and np.dtype(shape.element.dtype).kind in "fiub":
        assert np.asarray(buffer, np.float64).dtype == np.float64


@pytest.mark.parametrize("seed", range(100))
def test_buffers_in_random_layouts(seed: int) -> None:
    rng = random.Random(seed)
    element = rng.choice(["f32", "s4", "u2", "pred", "bf16", "c64", "f64"])
    plain = Shape.parse(f"{element}[{','.join(str(rng.choice((0, 1, 2, 3, 7, 9))) for _ in range(rng.randint(0, 4)))}]")
    shape = plain.with_layout(random_layout(plain, rng, permuted=True))
    array = values_of(shape)
    buffer = buffer_of(array, shape)
    assert memory_at(buffer, shape.byte_size) == to_physical(array, shape).tobytes()
    np.testing.assert_array_equal(np.asarray(buffer), array)


def test_a_dense_array_in_the_order_of_its_layout_is_used_in_place() -> None:
    array = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    buffer = buffer_of(array, Shape.parse("f32[2,3]{0,1}"))
    assert buffer.address == array.ctypes.data
    assert np.may_share_memory(np.asarray(buffer), array)
    assert not np.may_share_memory(np.asarray(buffer_of(array, buffer.shape, copy=True)), array)
    row_major = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert buffer_of(row_major, Shape.parse("f32[2,3]")).address == row_major.ctypes.data
    assert buffer_of(row_major, Shape.parse("f32[2,3]"), copy=True).address != row_major.ctypes.data


def test_a_view_that_cannot_be_is_an_error() -> None:
    buffer = buffer_of(np.zeros((3, 5), np.float32), Shape.parse("f32[3,5]{1,0:T(2,2)}"))
    with pytest.raises(ValueError, match=r"T\(2,2\).*without a copy"):
        np.asarray(buffer, copy=False)


def test_a_result_in_a_block() -> None:
    shape = Shape.parse("f32[3,5]{1,0:T(2,2)}")
    array = values_of(shape)
    buffer = result_maker(shape)()
    memory = (ctypes.c_uint8 * shape.byte_size).from_address(buffer.address)
    memory[:] = to_physical(array, shape).tobytes()
    np.testing.assert_array_equal(np.asarray(buffer), array)
    assert np.asarray(buffer).dtype == np.float32


def test_a_donated_buffer_is_read_as_what_it_became() -> None:
    array = np.arange(12, dtype=np.float32)
    buffer = RetypedBuffer(HostBuffer(array, Shape.parse("f32[12]")), Shape.parse("s32[3,4]{0,1}"))
    found = np.asarray(buffer)
    np.testing.assert_array_equal(found, array.view(np.int32).reshape(4, 3).T)
    assert np.may_share_memory(found, array)
    del buffer, array
    assert found[1, 0] == np.float32(1).view(np.int32), "the view keeps the memory alive"
    empty = RetypedBuffer(HostBuffer(np.zeros(0, np.float32), Shape.parse("f32[0]")), Shape.parse("s32[2,0]"))
    assert np.asarray(empty).shape == (2, 0)


def test_memory_must_have_the_size() -> None:
    with pytest.raises(AssertionError, match=r"60 bytes for f32\[3,5\]"):
        PhysicalBuffer(np.zeros(60, np.uint8), Shape.parse("f32[3,5]{1,0:T(2,2)}"))
    assert array_in(np.zeros(96, np.uint8), Shape.parse("f32[3,5]{1,0:T(2,2)}")).shape == (3, 5)


ALIASED = """HloModule m, input_output_alias={{ {{}}: (0, {{}}, {kind}) }}, entry_computation_layout={{({0})->{1}}}
ENTRY e {{ x = f32[3,5] parameter(0)  ROOT y = f32[3,5] negate(x) }}"""


@pytest.mark.parametrize("kind", ["may-alias", "must-alias"])
def test_aliases_need_one_size_in_memory(kind: str) -> None:
    """As in XLA: the layouts may differ, the sizes may not."""
    with pytest.raises(HloParseError, match=r"needs a parameter of its size in memory: .* 96 bytes, .* 60") as caught:
        parse(ALIASED.format("f32[3,5]{1,0}", "f32[3,5]{1,0:T(2,2)}", kind=kind))
    assert caught.value.label == "module_c4"
    module = parse(ALIASED.format("f32[3,5]{0,1}", "f32[3,5]{1,0}", kind=kind))
    verify(module)
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    given = x.copy()
    (y,) = hloom.run_hlo(module, given)
    np.testing.assert_array_equal(y, -x)
    np.testing.assert_array_equal(given, x)


def test_the_verifier_asks_for_sizes_in_memory() -> None:
    module = parse(ALIASED.format("f32[3,5]{1,0}", "f32[3,5]{1,0}", kind="may-alias"))
    tiled = Shape.parse("f32[3,5]{1,0:T(2,2)}").array_layout
    with pytest.raises(VerificationError, match="96 bytes"):
        verify(replace(module, entry_result_layouts=(tiled,)))
    verify(replace(module, entry_result_layouts=(tiled,), entry_parameter_layouts=(tiled,)))


def test_small_types_take_a_byte_in_numpy_and_less_in_packed_buffers() -> None:
    shape = Shape.parse("s4[8]{0:E(4)}")
    assert shape.byte_size == 4
    array = np.arange(-4, 4).astype(ml_dtypes.int4)
    np.testing.assert_array_equal(np.asarray(buffer_of(array, shape)), array)


BACKENDS = pytest.mark.parametrize("backend", ["numba", "evaluator"])
LAYOUTS = [
    ("f32[3,5]{1,0:T(2,2)}", "f32[3,5]{1,0:T(2,2)}"),
    ("f32[3,5]{0,1:T(2,2)}", "f32[3,5]{1,0}"),
    ("f32[3,5]{1,0}", "f32[3,5]{0,1:T(8,128)}"),
    ("f32[3,5]{0,1:S(1)}", "f32[3,5]{1,0:T(4)L(64)}"),
    ("f32[3,5]{1,0:S(1)}", "f32[3,5]{1,0:S(1)}"),
]


@BACKENDS
@pytest.mark.parametrize("target", ["cpu", "tpu"])
@pytest.mark.parametrize("given, wanted", LAYOUTS)
def test_users_pass_plain_arrays_whatever_the_layouts(backend: str, target: str, given: str, wanted: str) -> None:
    text = f"""HloModule m, entry_computation_layout={{({given})->{wanted}}}
    ENTRY e {{ x = f32[3,5] parameter(0)  y = f32[3,5] exponential(x)  ROOT z = f32[3,5] add(y, x) }}"""
    x = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)
    (z,) = hloom.run_hlo(text, x, backend=backend, target=target)
    np.testing.assert_allclose(z, np.exp(x) + x, rtol=1e-6)
    (z,) = hloom.run_hlo(text, np.asfortranarray(x), backend=backend, target=target)
    np.testing.assert_allclose(z, np.exp(x) + x, rtol=1e-6)
    with pytest.raises(ExecutionError, match=r"must be f32\[3,5\]|f32\[3,5\]"):
        hloom.run_hlo(text, x.T, backend="numba", target=target)


@BACKENDS
@pytest.mark.parametrize("target", ["cpu", "tpu"])
def test_packed_elements_at_the_entry(backend: str, target: str) -> None:
    """As JAX prints programs on 4-bit integers."""
    text = """HloModule m, entry_computation_layout={(s4[9]{0:E(4)}, pred[9]{0:E(1)})->(s4[9]{0:E(4)}, s4[9]{0})}
    ENTRY e { x = s4[9]{0:E(4)} parameter(0)  p = pred[9]{0:E(1)} parameter(1)  n = s4[9]{0:E(4)} negate(x)
      y = s4[9]{0:E(4)} select(p, x, n)  ROOT t = (s4[9]{0:E(4)}, s4[9]{0:E(4)}) tuple(y, x) }"""
    x = (np.arange(9) - 4).astype(ml_dtypes.int4)
    p = np.arange(9) % 3 == 0
    y, same = hloom.run_hlo(text, x, p, backend=backend, target=target)
    np.testing.assert_array_equal(y.astype(int), np.where(p, x.astype(int), -x.astype(int)))
    np.testing.assert_array_equal(same, x)
    assert y.dtype == ml_dtypes.int4


def test_sizes_are_those_in_memory() -> None:
    text = """HloModule m, entry_computation_layout={(f32[3,5]{1,0:T(8,128)}, s4[9]{0:E(4)})->f32[3,5]{1,0:T(2,2)}}
    ENTRY e { x = f32[3,5] parameter(0)  s = s4[9] parameter(1)  ROOT y = f32[3,5] negate(x) }"""
    executable = NumbaCompiler().compile(parse(text))
    memory = executable.memory_analysis()
    assert memory.argument_size_in_bytes == 8 * 128 * 4 + 5
    assert memory.output_size_in_bytes == 6 * 4 * 4
    assert [s.byte_size for s in executable.parameter_shapes] == [4096, 5]


@pytest.mark.parametrize(
    "given, wanted, aliased",
    [
        ("f32[3,5]{1,0:T(2,2)}", "f32[3,5]{1,0:T(2,2)}", True),
        ("f32[4,6]{1,0:T(2,2)}", "f32[4,6]{1,0}", False),
        ("f32[4,6]{0,1}", "f32[4,6]{1,0}", False),
    ],
)
@pytest.mark.parametrize("target", ["cpu", "tpu"])
def test_donated_arguments_in_layouts(given: str, wanted: str, aliased: bool, target: str) -> None:
    """Memory is offered to a result of the same type and layout."""
    dims = given[: given.index("{")]
    text = f"""HloModule m, entry_computation_layout={{({given})->{wanted}}}
    ENTRY e {{ x = {dims} parameter(0)  ROOT y = {dims} negate(x) }}"""
    executable = NumbaCompiler().compile(parse(text), target=target, donated=(0,))
    x = np.arange(Shape.parse(given).num_elements, dtype=np.float32).reshape(Shape.parse(given).dimensions)
    before = x.copy()
    np.testing.assert_array_equal(executable.execute([x])[0], -x)
    np.testing.assert_array_equal(x, before)
    buffer = buffer_of(x, executable.parameter_shapes[0], copy=True)
    (result,) = executable.call([buffer])
    np.testing.assert_array_equal(np.asarray(result), -x)
    assert (result.address == buffer.address) is aliased
    assert (executable.memory_analysis().alias_size_in_bytes > 0) is aliased


@pytest.mark.parametrize("target", ["cpu", "tpu"])
def test_an_alias_may_change_the_layout_where_the_size_stays(target: str) -> None:
    text = ALIASED.format("f32[3,5]{0,1}", "f32[3,5]{1,0}", kind="must-alias")
    executable = NumbaCompiler().compile(parse(text), target=target)
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    buffer = buffer_of(x, executable.parameter_shapes[0], copy=True)
    (result,) = executable.call([buffer])
    assert result.address == buffer.address and result.shape == executable.result_shapes[0]
    np.testing.assert_array_equal(np.asarray(result), -x)


@pytest.mark.parametrize("target", ["cpu", "tpu", RandomTarget(3)], ids=["cpu", "tpu", "random"])
def test_constants_in_layouts(target: str | RandomTarget) -> None:
    """Of one constant in two layouts there are two; results may be constants."""
    text = """HloModule m, entry_computation_layout={(f32[2,3]{1,0})->(f32[2,3]{0,1:T(2,2)}, f32[2,3], f32[2,3]{0,1})}
    ENTRY e { x = f32[2,3] parameter(0)  c = f32[2,3] constant({{1, 2, 3}, {4, 5, 6}})
      ROOT t = (f32[2,3], f32[2,3], f32[2,3]) tuple(c, c, c) }"""
    c = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    for result in NumbaCompiler().compile(parse(text), target=target).execute([c]):
        np.testing.assert_array_equal(result, c)


@pytest.mark.parametrize("target", ["cpu", "tpu", RandomTarget(4)], ids=["cpu", "tpu", "random"])
def test_results_of_jit_are_arguments_of_others(target: str | RandomTarget) -> None:
    """jit's arguments and results are row-major on every target, so arrays go from one target to another."""
    before = hloom.config.hloom_target
    try:
        x = hloom.numpy.arange(12.0).reshape(3, 4)
        for each in (target, "cpu", target):
            hloom.config.update("hloom_target", each)
            f = hloom.jit(lambda x: (x.T @ x, x + 1))
            square, x = f(x)
        np.testing.assert_allclose(x, np.arange(12.0).reshape(3, 4) + 3)
        y = np.arange(12.0).reshape(3, 4) + 2
        np.testing.assert_allclose(square, y.T @ y)
    finally:
        hloom.config.update("hloom_target", before)


def test_what_the_module_says_of_its_entry_counts_before_what_instructions_say() -> None:
    """Also where it says the default."""
    text = """HloModule m, entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{1,0}}
    ENTRY e { x = f32[2,3]{0,1} parameter(0)  ROOT y = f32[2,3]{0,1} negate(x) }"""
    module = parse(text)
    assert [s.to_text() for s in (*module.entry_parameter_shapes, module.entry_result_shape)] == ["f32[2,3]{1,0}"] * 2
    executable = NumbaCompiler().compile(module)
    assert [s.to_text() for s in (*executable.parameter_shapes, *executable.result_shapes)] == ["f32[2,3]{1,0}"] * 2
    plain = parse(text.replace(", entry_computation_layout={(f32[2,3]{1,0})->f32[2,3]{1,0}}", ""))
    assert NumbaCompiler().compile(plain).result_shapes[0].to_text() == "f32[2,3]{0,1}"
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for each in (module, plain):
        np.testing.assert_array_equal(NumbaCompiler().compile(each).execute([x])[0], -x)
