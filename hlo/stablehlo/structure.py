"""The checks of MLIR's verifier on a tree, before anything else uses it: the numbers of operands, results and regions
of each operation, and the attributes of functions and constants.

The generic form of text, and bytecode, can state anything. For an operation in the table of ops the numbers follow from
its opcode. Source of the others: the declarations of the operations (StablehloOps.td, FuncOps.td). HLO's operations
check the shapes.
"""

from __future__ import annotations

from ..errors import ShapeError
from ..mlir.attribute_writer import type_text
from ..mlir.tree import DYNAMIC, Block, Dense, Function, Operation, Quantized, Tensor, Type, TypeAttribute
from ..ops import SPECS
from .ops import OP_NAMED, Op, regions_of

_ANY = -1
_Counts = tuple[int, int, int]
"""Of operands, results and regions."""
_WITHOUT_ROW: dict[_Counts, str] = {
    (0, 1, 0): "constant create_token",
    (1, 1, 0): "async_done broadcast cross-replica-sum dynamic_iota get_tuple_element unary_einsum "
    "uniform_dequantize uniform_quantize",
    (2, 1, 0): "dot dynamic_broadcast_in_dim dynamic_reshape einsum torch_index_select",
    (3, 1, 0): "dynamic_conv dynamic_gather rng",
    (4, 1, 0): "real_dynamic_slice",
    (5, 1, 0): "dynamic_pad",
    (1, _ANY, 0): "infeed recv",
    (_ANY, 1, 0): "after_all outfeed send tuple",
    (_ANY, _ANY, 0): "all_to_all custom_call optimization_barrier",
    (_ANY, 0, 0): "return",
    (_ANY, 1, 1): "async_start",
    (_ANY, _ANY, 1): "collective_reduce",
    (_ANY, _ANY, 2): "while",
    (1, _ANY, 2): "if",
    (1, _ANY, _ANY): "case",
    (_ANY, _ANY, _ANY): "composite",
}
"""The operations that the table of ops does not have."""
_LEAST: dict[str, _Counts] = {
    "case": (1, 0, 1), "recv": (1, 1, 0), "infeed": (1, 1, 0), "outfeed": (1, 1, 0), "send": (1, 1, 0),
}  # fmt: skip
"""Where any number is allowed, but not none."""


def _of_row(op: Op) -> tuple[_Counts, _Counts]:
    """The numbers for an operation in the table of ops, and the least numbers. An operation on any number of arrays has
    at least one. HLO's shape rule determines the number of results."""
    arity = SPECS[op.opcode].arity
    regions = len(regions_of(op))
    return (_ANY if arity is None else arity, _ANY, regions), (1 if arity is None else arity, 1, regions)


_COUNTS: dict[str, tuple[_Counts, _Counts]] = {
    **{
        f"stablehlo.{name}": (counts, _LEAST.get(name, (0, 0, 0)))
        for counts, names in _WITHOUT_ROW.items() for name in names.split()
    },
    **{name: _of_row(op) for name, op in OP_NAMED.items()},
    "func.func": ((0, 0, 1), (0, 0, 1)),
    "func.call": ((_ANY, _ANY, 0), (0, 0, 0)),
    "func.return": ((_ANY, 0, 0), (0, 0, 0)),
}  # fmt: skip
"""How many of each there are, and at least."""
_ARGUMENTS = ("stablehlo.while", "stablehlo.if", "stablehlo.case")
_PARTS = ("operands", "results", "regions")


def check_structure(module: Operation) -> None:
    """Check all operations of a module. Of operations of other dialects, only the regions are checked.

    ShapeError, with the operation as its attribute `operation`, for an operation with wrong parts."""
    _check_names(module)
    left = [each for region in module.regions for block in region.blocks for each in block.operations]
    while left:
        operation = left.pop()
        _check_counts(operation)
        if operation.name == "func.func":
            _check_function(operation)
        if operation.name == "stablehlo.constant":
            _check_constant(operation)
        if operation.name in _ARGUMENTS:
            _check_arguments(operation)
        for region in operation.regions:
            if len(region.blocks) != 1 and not (operation.name == "func.func" and not region.blocks):
                _fail(operation, f"a region of it has {len(region.blocks)} blocks, not one")
            for block in region.blocks:
                if not block.operations:
                    _fail(operation, "a region of it has no operations")
                left += block.operations


def _check_counts(operation: Operation) -> None:
    counts = _COUNTS.get(operation.name)
    if counts is None:
        return
    found = len(operation.operands), len(operation.results), len(operation.regions)
    for part, count, wanted, least in zip(_PARTS, found, *counts, strict=True):
        if count < least or wanted not in (_ANY, count):
            named = part[:-1] if count == 1 else part
            _fail(operation, f"it has {count} {named}, not {least if wanted == _ANY else wanted}")


def _check_function(operation: Operation) -> None:
    type_, attributes = operation.attributes.get("function_type"), operation.attributes
    if not isinstance(attributes.get("sym_name"), str):
        _fail(operation, "it has no name")
    if not isinstance(type_, TypeAttribute) or not isinstance(type_.type, Function):
        _fail(operation, "it has no type of functions")
        return
    blocks = operation.regions[0].blocks
    if blocks and len(blocks[0].arguments) != len(type_.type.inputs):
        _fail(operation, f"its body has {len(blocks[0].arguments)} arguments, its type {len(type_.type.inputs)}")
    elif blocks:
        _check_body(operation, blocks[0], type_.type)
    for name, types in (("arg_attrs", type_.type.inputs), ("res_attrs", type_.type.results)):
        given = attributes.get(name, ())
        if not isinstance(given, tuple) or not all(isinstance(each, dict) for each in given):
            _fail(operation, f"{name} is no list of dictionaries")
        elif len(given) not in (0, len(types)):
            _fail(operation, f"{name} has {len(given)} dictionaries for {len(types)} values")


def _check_body(operation: Operation, body: Block, type_: Function) -> None:
    """The types of a function's arguments and results are those that its body has."""
    returned = [value.type for value in body.operations[-1].operands] if body.operations else []
    if len(returned) != len(type_.results):
        _fail(operation, f"its body returns {len(returned)} values, its type has {len(type_.results)}")
    own = [*(a.type for a in body.arguments), *returned]
    for found, said in zip(own, (*type_.inputs, *type_.results), strict=True):
        if found != said:
            _fail(operation, f"its body has {type_text(found)} where its type has {type_text(said)}")


def _check_names(module: Operation) -> None:
    seen: set[str] = set()
    for operation in module.regions[0].block.operations if module.regions[0].blocks else ():
        name = operation.attributes.get("sym_name")
        if isinstance(name, str):
            if name in seen:
                _fail(operation, f"the name @{name} is defined twice")
            seen.add(name)


def _check_arguments(operation: Operation) -> None:
    """The regions of a loop take its state, the regions of a conditional take nothing."""
    wanted = [value.type for value in operation.operands] if operation.name == "stablehlo.while" else []
    for region in operation.regions:
        for block in region.blocks:
            if len(block.arguments) != len(wanted):
                _fail(operation, f"a region of it has {len(block.arguments)} arguments, not {len(wanted)}")
            for argument, type_ in zip(block.arguments, wanted, strict=True):
                if not _is_like(argument.type, type_):
                    _fail(operation, f"a region of it takes {type_text(argument.type)}, not {type_text(type_)}")


def _is_like(one: Type, other: Type) -> bool:
    """Whether two types agree but for sizes that one of them leaves open."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        same = one.element == other.element and len(one.dimensions) == len(other.dimensions)
        return same and all(n == m or DYNAMIC in (n, m) for n, m in zip(one.dimensions, other.dimensions))
    return one == other


def _check_constant(operation: Operation) -> None:
    value, type_ = operation.attributes.get("value"), operation.results[0].type
    if not isinstance(value, Dense) or not isinstance(type_, Tensor) or not _is_compatible(value.type, type_):
        shown = type_text(value.type) if isinstance(value, Dense) else "no tensor"
        _fail(operation, f"its value is {shown}, its result {type_text(type_)}")


def _is_compatible(value: Tensor, result: Tensor) -> bool:
    """Sizes of the result may be unknown; a quantized result has a value of integers."""
    sizes = zip(value.dimensions, result.dimensions)
    is_element = value.element == result.element or isinstance(result.element, Quantized)
    same = len(value.dimensions) == len(result.dimensions)
    return is_element and same and all(known in (size, DYNAMIC) for size, known in sizes)


def _fail(operation: Operation, reason: str) -> None:
    error = ShapeError(f"{operation.name}: {reason}")
    error.operation = operation
    raise error
