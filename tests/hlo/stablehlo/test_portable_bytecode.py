"""Portable artifacts: read and written as StableHLO's own serializer does, in all its versions."""

from __future__ import annotations

import base64
import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hloom.hlo import UnsupportedError, stablehlo
from hloom.hlo.element_type import ElementType
from hloom.hlo.mlir.bytecode_reader import producer_of
from hloom.hlo.mlir.tree import (
    DYNAMIC,
    Block,
    Dense,
    DenseArray,
    Enumerated,
    Function,
    IndexType,
    Integer,
    Location,
    Operation,
    OtherType,
    Quantized,
    Record,
    Region,
    Symbol,
    Tensor,
    Token,
    Tuple,
    Type,
    TypeAttribute,
    Unit,
    Value,
)
from hloom.hlo.stablehlo.text import read, write
from hloom.hlo.stablehlo.vhlo import read_bytecode, write_bytecode

import hloom
import hloom.numpy as jnp
from support.mlir_trees import lines_of
from support.portable_programs import SHARDED, VERSIONS, module

NDArray: TypeAlias = "np.ndarray[Any, Any]"
_DATA = Path(__file__).resolve().parents[2] / "data" / "portable_artifacts.json.xz"
_NEWEST = "1.20.0"


@cache
def _recorded() -> dict[str, bytes]:
    return {name: base64.b64decode(data) for name, data in json.loads(lzma.decompress(_DATA.read_bytes())).items()}


_T = Tensor((2, 3), ElementType.F32)


def _function(*operations: Operation, arguments: list[Value], attributes: dict[str, object] | None = None) -> Operation:
    """A module with one function, which returns the results of the last operation."""
    results = operations[-1].results
    body = [*operations, Operation("func.return", list(results))]
    type_ = Function(tuple(v.type for v in arguments), tuple(v.type for v in results))
    function = Operation(
        "func.func", [], [], {"function_type": TypeAttribute(type_), "sym_name": "main"},
        [Region([Block(arguments, body)])],
    )  # fmt: skip
    return Operation("builtin.module", [], [], dict(attributes or {}), [Region([Block([], [function])])])


def _one(name: str, attributes: dict[str, object], operands: int = 1, regions: list[Region] | None = None) -> Operation:
    x = Value(_T)
    return _function(Operation(name, [x] * operands, [Value(_T)], attributes, regions or []), arguments=[x])


def _only(top: Operation) -> Operation:
    """The first operation of the only function."""
    return top.regions[0].block.operations[0].regions[0].block.operations[0]


@pytest.mark.parametrize("version", ["0.10.0", "0.12.0", "0.14.0", "1.0.0", "1.16.0"])
def test_versions_of_one_program_are_one_tree(version: str) -> None:
    assert lines_of(read_bytecode(_recorded()[version])) == lines_of(read_bytecode(_recorded()["0.9.0"]))


def test_shardings_are_those_of_the_text() -> None:
    assert lines_of(read_bytecode(_recorded()["sharded"])) == lines_of(read(SHARDED))


def test_shardings_are_written() -> None:
    tree = read(SHARDED)
    data = write_bytecode(tree)
    assert producer_of(data) == "StableHLO_v1.11.0"
    assert lines_of(read_bytecode(data)) == lines_of(tree)
    with pytest.raises(UnsupportedError, match=r"sdy\.\w+ needs StableHLO 1\.11\.0"):
        write_bytecode(tree, "1.10.0")
    oracle = pytest.importorskip("support.jaxlib_artifacts")
    assert oracle.generic_text(data) == oracle.generic_text(_recorded()["sharded"])


@pytest.mark.parametrize("version", ["1.16.0", _NEWEST, ""])
def test_what_is_written_is_read_again(version: str) -> None:
    tree = read_bytecode(_recorded()["all"])
    again = read_bytecode(write_bytecode(tree, version))
    assert lines_of(again, locations=True) == lines_of(tree, locations=True)


@pytest.mark.parametrize("version", ["0.9.0", "0.10.0", "0.12.0", "0.14.0", "0.15.0"])
def test_every_version_of_the_format_is_written(version: str) -> None:
    tree = read_bytecode(_recorded()["0.9.0"])
    written = write_bytecode(tree, version)
    assert producer_of(written) == f"StableHLO_v{version}"
    assert lines_of(read_bytecode(written), locations=True) == lines_of(tree, locations=True)


def test_attributes_are_those_of_stablehlo() -> None:
    functions = {
        each.attributes["sym_name"]: each for each in read_bytecode(_recorded()["all"]).regions[0].block.operations
    }
    found: dict[str, list[dict[str, object]]] = {}
    for function in functions.values():
        for operation in function.regions[0].block.operations:
            found.setdefault(operation.name, []).append(operation.attributes)
    assert found["stablehlo.transpose"] == [{"permutation": DenseArray(ElementType.S64, (1, 0))}]
    assert found["stablehlo.cholesky"] == [{"lower": True}, {}]
    assert found["stablehlo.compare"][0] == {
        "comparison_direction": Enumerated("stablehlo", "comparison_direction", "LT"),
        "compare_type": Enumerated("stablehlo", "comparison_type", "TOTALORDER"),
    }
    assert found["func.call"] == [{"callee": Symbol(("f0",))}]
    assert found["stablehlo.all_gather"][0]["use_global_device_ids"] == Unit()
    assert found["stablehlo.all_gather"][0]["channel_handle"] == Record(
        "stablehlo", "channel_handle", {"handle": 3, "type": 0}
    )
    gather = found["stablehlo.gather"][0]["dimension_numbers"]
    assert gather == Record(
        "stablehlo", "gather",
        {"offset_dims": (1,), "collapsed_slice_dims": (0,), "start_index_map": (0,), "index_vector_dim": 1},
    )  # fmt: skip
    convolution = found["stablehlo.convolution"][0]["dimension_numbers"]
    assert isinstance(convolution, Record) and convolution.fields == {
        "input_batch_dimension": 0, "input_feature_dimension": 2, "input_spatial_dimensions": (1,),
        "kernel_input_feature_dimension": 1, "kernel_output_feature_dimension": 2, "kernel_spatial_dimensions": (0,),
        "output_batch_dimension": 0, "output_feature_dimension": 2, "output_spatial_dimensions": (1,),
    }  # fmt: skip
    custom = found["stablehlo.custom_call"][1]
    assert custom["backend_config"] == "a\0\udcffb" and custom["api_version"] == Integer(2, ElementType.S32)
    assert custom["called_computations"] == (Symbol(("f0",)),)
    assert custom["mhlo.frontend_attributes"] == {"a": "1", "b": "2"}
    assert functions["private"].attributes["sym_visibility"] == "private"


def test_places_are_the_innermost_ones_with_the_outer_name() -> None:
    functions = read_bytecode(_recorded()["all"]).regions[0].block.operations
    (places,) = (each for each in functions if each.attributes["sym_name"] == "places")
    found = [each.location for each in places.regions[0].block.operations]
    assert found == [
        Location("jit(f)/add", "d/e.py", 10, 2), Location("", "h.py", 1, 2), Location("only a name"), None,
    ]  # fmt: skip
    arguments = [each.regions[0].block.argument_locations for each in functions if each.regions[0].blocks]
    assert [Location("arg", "a/b.py", 3, 4)] in [each[:1] for each in arguments]


@pytest.mark.parametrize(
    ("operation", "version"),
    [
        (_one("stablehlo.negate", {}), "1.0.0"),
        (_one("stablehlo.tan", {}), "1.4.0"),
        (_one("stablehlo.tanh", {}), "1.0.0"),
        (_one("stablehlo.tanh", {"result_accuracy": Record("stablehlo", "result_accuracy", {
            "ulps": 3, "mode": Enumerated("stablehlo", "result_accuracy_mode", "TOLERANCE")})}), "1.10.0"),
        (_one("stablehlo.custom_call", {"call_target_name": "f"}), "1.0.0"),
        (_one("stablehlo.custom_call", {"call_target_name": "f", "backend_config": {"n": True}}), "1.3.0"),
        (_one("stablehlo.custom_call", {"call_target_name": "f", "result_tilings": (1.5,)[:0]}), "1.0.0"),
    ],
)  # fmt: skip
def test_the_oldest_version_that_has_it_all_is_written(operation: Operation, version: str) -> None:
    assert producer_of(write_bytecode(operation)) == f"StableHLO_v{version}"


@pytest.mark.parametrize(
    ("operation", "version", "named"),
    [
        (_one("stablehlo.tan", {}), "1.3.0", "stablehlo.tan needs StableHLO 1.4.0"),
        (_one("stablehlo.negate", {}), "1.21.0", "version '1.21.0' of StableHLO; known are 0.9.0 to 1.20.0"),
        (_one("stablehlo.negate", {}), "newest", "version 'newest'"),
        (_one("chlo.acos", {}), "", "chlo.acos"),
        (_one("stablehlo.no_such_op", {}), "", "stablehlo.no_such_op"),
        (_one("stablehlo.transpose", {}), "", "stablehlo.transpose without its attribute permutation"),
        (_one("stablehlo.negate", {"test.unit": Unit()}), "", "Unit"),
        (_one("stablehlo.custom_call", {"call_target_name": "f", "backend_config": {}}), "1.2.0", "1.3.0"),
    ],
)
def test_what_cannot_be_written_is_named(operation: Operation, version: str, named: str) -> None:
    with pytest.raises(UnsupportedError, match=named.replace("(", r"\(")):
        write_bytecode(operation, version)


def _constant(array: NDArray, element: ElementType) -> Operation:
    type_ = Tensor(array.shape, element)
    return _function(Operation("stablehlo.constant", [], [Value(type_)], {"value": Dense(type_, array)}), arguments=[])


def _random_bits(element: ElementType, count: int) -> NDArray:
    """Numbers of a type with random bits."""
    if element is ElementType.PRED or (element.is_integral and element.bit_width < 8):
        low, high = (0, 1) if element is ElementType.PRED else element.limits
        return np.random.default_rng(count).integers(low, high + 1, count, np.int8).astype(element.dtype)
    bits = np.random.default_rng(count).integers(0, 256, count * element.byte_width, np.uint8)
    return (bits & (1 << min(8, element.bit_width)) - 1).view(element.dtype)


@pytest.mark.parametrize("element", [each for each in ElementType if each.value not in ("s1", "u1")], ids=repr)
def test_constants_keep_their_bits(element: ElementType) -> None:
    arrays = [_random_bits(element, count) for count in (0, 1, 3, 8, 300)]
    for array in (*arrays, np.broadcast_to(arrays[1], (5, 3))):
        found = _only(read_bytecode(write_bytecode(_constant(array, element), "1.8.0"))).attributes["value"]
        assert isinstance(found, Dense) and found.type == Tensor(array.shape, element)
        assert found.array.dtype == element.dtype
        assert np.ascontiguousarray(found.array).tobytes() == np.ascontiguousarray(array).tobytes()


def test_equal_elements_are_stored_once() -> None:
    arrays = np.zeros((1000, 1000), np.float32), np.broadcast_to(np.float32(0), (1000, 1000))
    sizes = [len(write_bytecode(_constant(array, ElementType.F32))) for array in arrays]
    assert sizes[0] == sizes[1] < 400


@pytest.mark.one_in(3)
@pytest.mark.parametrize("version", VERSIONS)
def test_jaxlib_reads_what_is_written_as_what_it_wrote(version: str) -> None:
    oracle = pytest.importorskip("support.jaxlib_artifacts")
    theirs = oracle.artifact(module(version), version)
    tree = read_bytecode(theirs)
    assert oracle.generic_text(write_bytecode(tree, version)) == oracle.generic_text(theirs)
    assert oracle.generic_text(write_bytecode(tree)) == oracle.generic_text(theirs)
    assert lines_of(tree) == lines_of(read_bytecode(oracle.artifact(module(version), "1.16.0")))
    text = oracle.generic_text(theirs, places=True)
    assert lines_of(read(text), locations=True) == lines_of(tree, locations=True)


@pytest.mark.parametrize("generic", [True, False])
def test_text_of_what_is_read_says_the_same(generic: bool) -> None:
    tree = read_bytecode(_recorded()["all"])
    text = write(tree, generic=generic)
    assert lines_of(read(text)) == lines_of(tree)
    oracle = pytest.importorskip("support.jaxlib_artifacts")
    assert oracle.generic_text(oracle.artifact(text, "1.16.0")) == oracle.generic_text(_recorded()["all"])


_TYPES = (
    "!quant.uniform<i8:f32, 5.000000e-01:3>", "!quant.uniform<u8<1:200>:bf16, 0.1>",
    "!quant.uniform<i4:f32:1, {5.000000e-01:3,2.500000e-01}>", "!quant.uniform<i8<-127:127>:f32:0, {1.000000e-01:-3}>",
)  # fmt: skip


@pytest.mark.parametrize(
    "type_",
    [
        *(Tensor((2,), Quantized(text)) for text in _TYPES),
        Tensor((DYNAMIC, 4), ElementType.F32, Record("stablehlo", "bounds", {"bounds": (8, DYNAMIC)})),
        Tensor((2,), OtherType("f6E3M2FN")),
        Tensor((), IndexType()),
        Tuple((_T, Token(), Tuple(()))),
        OtherType("memref<2x?xi8>"),
        OtherType("!stablehlo.future<tensor<2xf32>, tensor<i1>>"),
        OtherType("tensor<*xf32>"),
    ],
)
def test_types_keep_their_text(type_: Type) -> None:
    tree = _function(Operation("stablehlo.create_token", [], [Value(type_)]), arguments=[])
    found = _only(read_bytecode(write_bytecode(tree))).results[0].type
    if isinstance(found, Tensor) and isinstance(found.element, Quantized):
        assert isinstance(type_, Tensor) and isinstance(type_.element, Quantized)
        assert found.element.text.replace("1.000000e-01", "0.1") == type_.element.text.replace("1.000000e-01", "0.1")
    else:
        assert found == type_


@pytest.mark.parametrize("text", ["memref<2xf32, 1>", "vector<2xf32>", "si32", "!sdy.mesh"])
def test_types_that_the_portable_form_lacks(text: str) -> None:
    tree = _function(Operation("stablehlo.create_token", [], [Value(OtherType(text))]), arguments=[])
    with pytest.raises(UnsupportedError, match=text.replace("<", ".")[:5]):
        write_bytecode(tree)


TRACED: dict[str, tuple[Any, str]] = {
    "functions of CHLO": (lambda x: (hloom.lax.erf(x), jnp.arcsinh(x), hloom.lax.top_k(x, 2)), "@mhlo.erf("),
    "factorisations": (lambda x: jnp.linalg.inv(x @ x.T + jnp.eye(4)), "result_layouts = [dense<[0, 1]>"),
    "ragged products": (lambda x: hloom.lax.ragged_dot(x, jnp.ones((2, 3, 2)), 2 * jnp.arange(2) + 1), "dot_general"),
    "composites": (lambda x: hloom.lax.composite(lambda x: x + 1, name="mine")(x), '"hloom.mine"'),
    "names that MLIR lacks": (lambda x: hloom.lax.composite(lambda x: x + 1, name="my.own-name")(x), "call @"),
    "foreign functions": (
        lambda x: hloom.ffi.ffi_call("lapack_sgetrf_ffi", [
            hloom.ShapeDtypeStruct((4, 3), np.float32), hloom.ShapeDtypeStruct((3,), np.int32),
            hloom.ShapeDtypeStruct((), np.int32),
        ], input_layouts=[(0, 1)], output_layouts=[(0, 1), None, None])(x), "%0:3 = stablehlo.custom_call @lapack",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRACED)
def test_traced_programs_have_a_portable_form(name: str) -> None:
    f, part = TRACED[name]
    x = np.linspace(-1, 1.5, 12, dtype=np.float32).reshape(4, 3)
    data = stablehlo.to_bytecode(hloom.jit(f).lower(x).module)
    text = write(read_bytecode(data))
    assert part in text, text
    assert " chlo." not in text
    found = hloom.run_hlo(stablehlo.parse_bytecode(data), x)
    for own, wanted in zip(hloom.tree.leaves(found), hloom.tree.leaves(hloom.jit(f)(x)), strict=True):
        np.testing.assert_allclose(own, wanted, rtol=1e-5, atol=1e-6)


def test_a_module_with_a_mesh() -> None:
    text = """module @m {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%parameter: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    %0 = sdy.sharding_constraint %parameter <@mesh, [{"x"}]> : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}"""
    module = stablehlo.parse(text)
    again = stablehlo.parse_bytecode(stablehlo.to_bytecode(module))
    assert stablehlo.to_text(again) == stablehlo.to_text(module)
