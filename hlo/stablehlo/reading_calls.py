"""Reading calls: of functions, of composites, of code that is known by name only, and Shardy's regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..aliases import OutputOperandAlias
from ..builder import make_tuple
from ..errors import ShapeError, UnsupportedError
from ..instruction import HloComputation, HloInstruction
from ..layout import Layout
from ..mlir.tree import Attribute, Opaque, Operation, Record, Tensor
from ..opcode import Opcode
from ..ops.control_flow import CallAttributes, Composite
from ..ops.custom_call import CustomCallApiVersion, CustomCallAttributes
from ..shape import Shape
from ..shardy import (
    GLOBAL_TO_LOCAL,
    IN_SHARDINGS,
    LOCAL_TO_GLOBAL,
    MANUAL_AXES,
    OUT_SHARDINGS,
    SHARDING,
)
from .attributes import function_name, read_boolean, read_integer, read_integers, read_string, wrong
from .dictionaries import dictionary_text, pairs_of
from .discardable_attributes import ONE_VALUE, OWN_COMPOSITES, PER_VALUE, text_of_xla
from .ops import OP_NAMED, mappings_of
from .reading_custom import rule_of_target
from .refine import integers_of, is_size
from .scope import Discardable, Rule, Scope, captures, declared
from .table_rules import by_table
from .types import element_of

Results = Sequence[HloInstruction]


def _call(scope: Scope, operation: Operation) -> Results:
    operands = scope.operands(operation)
    computation = scope.program.computation(function_name(operation.attributes.get("callee")), operands)
    count = len(operation.results)
    sizes = _sizes_among(computation, count) if scope.program.is_refined else {}
    known = {k: scope.op(Opcode.CONSTANT, (), size.attributes) for k, size in sizes.items()}
    if count and len(known) == count:
        return list(known.values())
    found = scope.unpacked(scope.main(Opcode.CALL, operands, CallAttributes(computation), None), count)
    return [known.get(k, value) for k, value in enumerate(found)]


def _sizes_among(computation: HloComputation, count: int) -> dict[int, HloInstruction]:
    """The results of a function that are constants, such as sizes that it calculates."""
    results = computation.roots if count != 1 else (computation.root,)
    return {k: each for k, each in enumerate(results) if is_size(each)}


def _composite(scope: Scope, operation: Operation) -> Results:
    """A call of the decomposition, with the name and the attributes. An op of CHLO that came as a composite, because
    the portable form has no CHLO, is that op."""
    name = read_string(operation.attributes.get("name"))
    given = operation.attributes.get("composite_attributes", {})
    assert isinstance(given, dict)
    operands = scope.operands(operation)
    row = OP_NAMED.get(name) if name.startswith("chlo.") else None
    if row is not None and {n for mapping in mappings_of(row) for n in mapping.names} - {"is_stable"} <= set(given):
        return by_table(scope, Operation(name, [], operation.results, given), row, operands)
    computation = scope.program.computation(function_name(operation.attributes.get("decomposition")), operands)
    own = name.removeprefix(OWN_COMPOSITES)
    version = read_integer(operation.attributes.get("version", 0))
    composite = Composite(name if "." in own else own, pairs_of(given), version=version)
    found = scope.main(Opcode.CALL, operands, CallAttributes(computation, composite), None)
    return scope.unpacked(found, len(operation.results))


# ---- custom calls

_VERSIONS = tuple(CustomCallApiVersion)


def _custom_call(scope: Scope, operation: Operation) -> Results:
    target = read_string(operation.attributes.get("call_target_name"))
    special = rule_of_target(target)
    if special is not None:
        return special(scope, operation)
    attributes = operation.attributes
    operands = scope.operands(operation)
    shape = declared(operation)
    sizes = attributes.get("indices_of_shape_operands")
    if sizes is not None:
        which = read_integers(sizes)
        if len(which) != len(operation.results) or not all(0 <= k < len(operands) for k in which):
            raise ShapeError(f"indices_of_shape_operands = {list(which)} does not name an operand for each result")
        shape = _sized(operation, [integers_of(operands[k], "the sizes of results") for k in which])
        operands = [o for k, o in enumerate(operands) if k not in which]
    shape, constraints = _with_layouts(attributes, shape, operands)
    number = read_integer(attributes.get("api_version", 1))
    if isinstance(attributes.get("mhlo.backend_config"), dict):
        number = _VERSIONS.index(CustomCallApiVersion.TYPED_FFI)  # JAX writes it so for versions that lack it
    if not 0 <= number < len(_VERSIONS):
        raise UnsupportedError(f"api_version = {number} of a custom call is not known")
    called = attributes.get("called_computations", ())
    aliases = attributes.get("output_operand_aliases", ())
    assert isinstance(called, tuple) and isinstance(aliases, tuple)
    callees = tuple(scope.program.computation(function_name(symbol), None) for symbol in called)
    call = CustomCallAttributes(
        target, _config(attributes), _VERSIONS[number], read_boolean(attributes.get("has_side_effect", False)),
        callees, constraints, tuple(map(_alias, aliases)),
    )  # fmt: skip
    return scope.unpacked(scope.main(Opcode.CUSTOM_CALL, operands, call, shape), len(operation.results))


def _config(attributes: dict[str, Attribute]) -> str:
    config = attributes.get("mhlo.backend_config", attributes.get("backend_config", ""))
    if isinstance(config, dict):
        return dictionary_text(config)
    return read_string(config)


def _sized(operation: Operation, sizes: Sequence[Sequence[int]]) -> Shape:
    shapes = []
    for value, dimensions in zip(operation.results, sizes, strict=True):
        assert isinstance(value.type, Tensor)
        shapes.append(Shape.array(element_of(value.type), dimensions))
    return shapes[0] if len(shapes) == 1 else Shape.tuple(shapes)


def _with_layouts(
    attributes: dict[str, Attribute], shape: Shape | None, operands: Sequence[HloInstruction]
) -> tuple[Shape | None, tuple[Shape, ...] | None]:
    """The shapes of the result and of the operands, with the layouts that the operation states."""
    of_operands, of_results = attributes.get("operand_layouts"), attributes.get("result_layouts")
    if not isinstance(of_operands, tuple) or not isinstance(of_results, tuple) or shape is None:
        return shape, None
    given = iter([_layout(each) for each in of_operands])
    constraints = tuple(_laid_out(o.shape, given) for o in operands)
    return _laid_out(shape, iter([_layout(each) for each in of_results])), constraints


def _layout(attribute: object) -> Layout:
    return Layout(read_integers(attribute))


def _laid_out(shape: Shape, layouts: Any) -> Shape:
    if shape.is_token:
        next(layouts, None)
        return shape
    if shape.tuple_shapes is not None:
        return Shape.tuple([_laid_out(element, layouts) for element in shape.tuple_shapes])
    layout = next(layouts, None)
    if layout is None:
        raise UnsupportedError("there are fewer layouts than arrays")
    return shape.with_layout(layout)


def _alias(attribute: object) -> OutputOperandAlias:
    if not isinstance(attribute, Record):
        raise wrong(attribute, "#stablehlo.output_operand_alias<...>")
    fields = attribute.fields
    return OutputOperandAlias(
        read_integers(fields.get("output_tuple_indices", ())), read_integer(fields.get("operand_index", 0)),
        read_integers(fields.get("operand_tuple_indices", ())),
    )  # fmt: skip


# ---- Shardy: as its export writes it in HLO


def _sharding_constraint(scope: Scope, operation: Operation) -> Results:
    (operand,) = scope.operands(operation)
    text = _sdy_text(operation.attributes.get("sharding"))
    frontend = (*scope.discardable.frontend_attributes, (SHARDING, PER_VALUE.format(text.removeprefix(ONE_VALUE))))
    sharding = ("sharding", text_of_xla(text, scope.program.meshes))
    discardable = Discardable(scope.discardable.metadata, frontend, (*scope.discardable.annotations, sharding))
    return [scope.op(Opcode.CUSTOM_CALL, (operand,), CustomCallAttributes("Sharding"), operand.shape, discardable)]


def _identity(scope: Scope, operation: Operation) -> Results:
    """An operation that only guides the partitioner."""
    return scope.operands(operation)[: len(operation.results)]


def _sdy_text(attribute: object) -> str:
    if not isinstance(attribute, Opaque):
        raise wrong(attribute, "a sharding, #sdy.sharding<...>")
    return attribute.text


def _manual_computation(scope: Scope, operation: Operation) -> Results:
    """The region as a computation that is called between a change to local shapes and one back."""
    operands = scope.operands(operation)
    region = operation.regions[0]
    if captures([region]):
        raise UnsupportedError("the region of a manual computation uses a value from outside of it")
    into, out, axes = (
        _sdy_text(operation.attributes.get(name)) for name in ("in_shardings", "out_shardings", "manual_axes")
    )
    shapes = [_declared_of(argument) for argument in region.block.arguments]
    begin = [(IN_SHARDINGS, into), (MANUAL_AXES, axes)]
    locals_ = scope.unpacked(_changed(scope, GLOBAL_TO_LOCAL, operands, begin, shapes), len(operands))
    inner = Scope(scope.program, "xla.sdy.manual_computation_body")
    for k, argument in enumerate(region.block.arguments):
        inner.values[argument] = inner.parameter(k, shapes[k], argument.name)
    body: HloComputation = inner.computation(inner.packed(inner.run(region.block)))
    called = scope.op(Opcode.CALL, locals_, CallAttributes(body))
    results = scope.unpacked(called, len(operation.results))
    whole = [_declared_of(value) for value in operation.results]
    end = [(OUT_SHARDINGS, out), (MANUAL_AXES, axes)]
    return scope.unpacked(_changed(scope, LOCAL_TO_GLOBAL, results, end, whole), len(results))


def _named_computation(scope: Scope, operation: Operation) -> Results:
    """Its region, in its place."""
    (region,) = operation.regions
    scope.values.update(zip(region.block.arguments, scope.operands(operation), strict=True))
    return scope.run(region.block)


def _declared_of(value: Any) -> Shape:
    shape = declared(Operation("", [], [value]))
    if shape is None:
        raise UnsupportedError("sizes `?` in a manual computation are not supported")
    return shape


def _changed(
    scope: Scope, target: str, operands: Sequence[HloInstruction], frontend: Sequence[tuple[str, str]],
    shapes: Sequence[Shape],
) -> HloInstruction:  # fmt: skip
    if not operands:
        return scope.add(make_tuple([]))
    shape = shapes[0] if len(shapes) == 1 else Shape.tuple(shapes)
    discardable = Discardable(scope.discardable.metadata, tuple(frontend))
    return scope.op(Opcode.CUSTOM_CALL, operands, CustomCallAttributes(target), shape, discardable)


RULES: dict[str, Rule] = {
    "func.call": _call,
    "call": _call,
    "stablehlo.composite": _composite,
    "stablehlo.custom_call": _custom_call,
    "sdy.sharding_constraint": _sharding_constraint,
    "sdy.reshard": _sharding_constraint,
    "sdy.sharding_group": _identity,
    "sdy.propagation_barrier": _identity,
    "sdy.manual_computation": _manual_computation,
    "sdy.named_computation": _named_computation,
}
