"""Custom calls that stand for operations: of MHLO, whose names StableHLO does not have, and JAX's operations whose
sizes are operands. Source: the names in JAX's lowering rules and in StableHLO's pass stablehlo-refine-shapes."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ShapeError, UnsupportedError
from ..instruction import HloInstruction
from ..mlir.tree import Operation, Tensor
from ..opcode import Opcode
from ..ops.collective import CollectiveAttributes
from ..ops.movement import SliceAttributes
from ..ops.random import RngBitGeneratorAttributes
from ..ops.sort import SortAttributes, TopKAttributes
from ..shape import Shape
from .attribute_mappings import groups_of
from .attributes import (
    function_name,
    integers,
    read_boolean,
    read_integer,
    read_integers,
    read_string,
    read_table,
    table,
)
from .ops import OP_NAMED, fields_of
from .refine import check_sizes, integer_of, integers_of, pairs_of
from .scope import Rule, Scope
from .table_rules import by_table, made
from .types import element_of

Results = Sequence[HloInstruction]


def rule_of_target(target: str) -> Rule | None:
    """The rule of a target that stands for an operation."""
    dialect, _, name = target.partition(".")
    if dialect == "mhlo" and target not in _RULES and (f"chlo.{name}" in OP_NAMED or f"stablehlo.{name}" in OP_NAMED):
        return _of_mhlo
    return _RULES.get(target)


def _of_mhlo(scope: Scope, operation: Operation) -> Results:
    """`@mhlo.erf(...) {mhlo.attributes = {}, mhlo.version = 1 : i64}`"""
    name = read_string(operation.attributes.get("call_target_name")).partition(".")[2]
    row = OP_NAMED.get(f"chlo.{name}") or OP_NAMED[f"stablehlo.{name}"]
    given = operation.attributes.get("mhlo.attributes", {})
    assert isinstance(given, dict)
    renamed = Operation(row.name, [], operation.results, given, operation.regions)
    return by_table(scope, renamed, row, _arguments(scope, operation))


def _arguments(scope: Scope, operation: Operation) -> list[HloInstruction]:
    """The operands without the sizes of results, which follow from the others."""
    sizes = operation.attributes.get("indices_of_shape_operands")
    which = () if sizes is None else read_integers(sizes)
    return [operand for k, operand in enumerate(scope.operands(operation)) if k not in which]


def _check_counts(operation: Operation, operands: int, results: int | None = None) -> None:
    """ShapeError if there are fewer operands, or another number of results."""
    if len(operation.operands) < operands:
        raise ShapeError(f"it has {len(operation.operands)} operands, not {operands}")
    if results not in (None, len(operation.results)):
        raise ShapeError(f"it has {len(operation.results)} results, not {results}")


def _topk(scope: Scope, operation: Operation) -> Results:
    given = operation.attributes.get("mhlo.attributes", {})
    assert isinstance(given, dict)
    attributes = TopKAttributes(read_integer(given.get("k")), read_boolean(given.get("largest", True)))
    return scope.unpacked(scope.main(Opcode.TOPK, _arguments(scope, operation), attributes, None), 2)


def _shape_assertion(scope: Scope, operation: Operation) -> Results:
    """It is checked now: its condition, the first operand, follows from sizes. The message names further operands by
    `{0}`, `{1}`, ..."""
    _check_counts(operation, 1, 0)
    holds, *values = scope.operands(operation)
    if not integer_of(holds, "the condition of a shape assertion"):
        message = read_string(operation.attributes.get("error_message", "the sizes do not fit"))
        for k, value in enumerate(values):
            message = message.replace(f"{{{k}}}", str(integer_of(value, "a size in a message")))
        raise ShapeError(message, "shape_assertion")
    return []


def _dynamic_top_k(scope: Scope, operation: Operation) -> Results:
    """Operands: the array, k, and the sizes of both results."""
    _check_counts(operation, 2, 2)
    operand, k, *sizes = scope.operands(operation)
    attributes = TopKAttributes(integer_of(k, "k"))
    results = scope.unpacked(scope.main(Opcode.TOPK, (operand,), attributes, None), 2)
    for given in sizes:
        check_sizes(given, results[0].shape)
    return results


def _dynamic_rng_bit_generator(scope: Scope, operation: Operation) -> Results:
    """Operands: the state, and the sizes of the bits."""
    _check_counts(operation, 2, 2)
    state, sizes, *_ = scope.operands(operation)
    fields = fields_of(OP_NAMED["stablehlo.rng_bit_generator"], operation.attributes, ())
    type_ = operation.results[1].type
    if not isinstance(type_, Tensor):
        raise UnsupportedError("its second result must be a tensor")
    bits = Shape.array(element_of(type_), integers_of(sizes, "the sizes of random bits"))
    attributes = RngBitGeneratorAttributes(**fields)
    found = scope.main(Opcode.RNG_BIT_GENERATOR, (state,), attributes, Shape.tuple([state.shape, bits]))
    return scope.unpacked(found, 2)


_WINDOW = ("window_dimensions", "window_strides", "base_dilations", "window_dilations")


def _dynamic_reduce_window(scope: Scope, operation: Operation) -> Results:
    """Operands: N arrays, N init values, then window dimensions, strides, both dilations, padding. The function that
    combines is a called computation."""
    _check_counts(operation, 7)
    operands = scope.operands(operation)
    *values, padding = operands[-5:]
    parts = {name: integers(integers_of(o, name)) for name, o in zip(_WINDOW, values, strict=True)}
    rows = pairs_of(padding, "the padding")
    row = OP_NAMED["stablehlo.reduce_window"]
    arrays = operands[:-5]
    called = operation.attributes.get("called_computations")
    if not isinstance(called, tuple) or len(called) != 1:
        raise UnsupportedError("it must call one computation")
    computation = scope.program.computation(function_name(called[0]), None)
    renamed = Operation(row.name, [], operation.results, {**parts, "padding": table(rows)})
    return by_table(scope, renamed, row, arrays, to_apply=computation)


def _approx_top_k(scope: Scope, operation: Operation) -> Results:
    """Exactly, as on XLA's CPU: the operands sorted by the called comparator, and the first of them. Operands: N
    arrays, N values that are last in the order."""
    _check_counts(operation, 2)
    operands = scope.operands(operation)
    arrays = operands[: len(operands) // 2]
    config = operation.attributes.get("mhlo.backend_config", operation.attributes.get("backend_config"))
    called = operation.attributes.get("called_computations")
    if not isinstance(config, dict) or not isinstance(called, tuple) or len(called) != 1:
        raise UnsupportedError("it needs a dictionary as its backend_config, and a comparator")
    dimension, count = (read_integer(config.get(name)) for name in ("reduction_dim", "top_k"))
    comparator = scope.program.computation(function_name(called[0]), None)
    sizes = arrays[0].shape.dimensions
    found = scope.op(Opcode.SORT, arrays, SortAttributes(dimension, comparator, is_stable=True))
    limits = tuple(count if d == dimension else size for d, size in enumerate(sizes))
    first = SliceAttributes((0,) * len(sizes), limits, (1,) * len(sizes))
    return [scope.op(Opcode.SLICE, (each,), first) for each in scope.unpacked(found, len(arrays))]


def _ragged_all_to_all(scope: Scope, operation: Operation) -> Results:
    """JAX's form of the collective; its configuration has the groups."""
    config = operation.attributes.get("mhlo.backend_config", operation.attributes.get("backend_config"))
    if not isinstance(config, dict):
        raise UnsupportedError("its backend_config must be a dictionary with replica_groups")
    channel = config.get("channel_id")
    number = None if channel is None or read_integer(channel) <= 0 else read_integer(channel)
    attributes = CollectiveAttributes(groups_of(read_table(config.get("replica_groups"))), number)
    return made(scope, operation, Opcode.RAGGED_ALL_TO_ALL, scope.operands(operation), attributes)


_RULES: dict[str, Rule] = {
    "ragged_all_to_all": _ragged_all_to_all,
    "ApproxTopK": _approx_top_k,
    "mhlo.topk": _topk,
    "shape_assertion": _shape_assertion,
    "stablehlo.dynamic_top_k": _dynamic_top_k,
    "stablehlo.dynamic_rng_bit_generator": _dynamic_rng_bit_generator,
    "stablehlo.dynamic_reduce_window": _dynamic_reduce_window,
}
