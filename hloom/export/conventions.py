"""JAX's calling convention, added to a program in StableHLO.

A program for several platforms or with symbolic sizes has constants that are known when it is compiled: the number of
the platform, and the variables of its sizes. Functions that need one take all of them first, as arguments with the
attribute `jax.global_constant`. `main` takes the number of the platform. It computes the variables from the sizes of
its arguments, asserts what must hold, and calls `_wrapped_jax_export_main`. Tokens (`tokens.py`) come between the
constants and the arrays. Source: "Module calling convention" in JAX's documentation of export.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..hlo.element_type import ElementType
from ..hlo.mlir.tree import (
    Attribute,
    Block,
    Function,
    Integer,
    Operation,
    Region,
    TypeAttribute,
    Value,
    function_type,
    operations,
)
from ..hlo.stablehlo.discardable_attributes import add_shardings, complete_attributes
from ..hlo.symbolic.arguments import Solution
from ..tracer.control_flow.platforms import PLATFORM_INDEX
from .dynamic import asked_size, is_dynamic, make_dynamic, with_question_marks
from .emit import SCALAR, Emitter, Sizes, unused_name
from .functions import callee_of, functions_of, rename
from .nested import WRAPPED, inline_program, is_nested_program

PLATFORM = "_platform_index"


def describe_main(
    module: Operation, devices: int, shardings: tuple[Sequence[str], Sequence[str]], results: Sequence[str]
) -> None:
    """Say in the module what its `main` takes and returns. shardings: of the arguments and of the results, as
    `add_shardings` takes them. results: their names, for readers. Each function gets attributes of its arguments and
    results."""
    functions = functions_of(module)
    for function in functions.values():
        complete_attributes(function)
    add_shardings(functions["main"], *shardings)
    main = functions["main"].attributes
    named: Any = main["res_attrs"]
    main["res_attrs"] = tuple([{"jax.result_info": name, **a} for a, name in zip(named, results, strict=True)])
    module.attributes["mhlo.num_partitions"] = Integer(devices, ElementType.S32)
    module.attributes["mhlo.num_replicas"] = Integer(1, ElementType.S32)


def add_convention(
    module: Operation, platforms: Sequence[str], solution: Solution | None, uses_constants: bool, tokens: int
) -> None:
    """Change the module in place. solution: of the variables of its arguments' sizes; None: they are numbers.
    uses_constants: whether the program, or one that it calls, has such constants. tokens: how many `main` takes."""
    functions = functions_of(module)
    constants = [PLATFORM] if len(platforms) > 1 else []
    constants += sorted(solution.values) if solution is not None else []
    module.attributes["jax.uses_shape_polymorphism"] = uses_constants
    if constants:
        taking = _taking(functions, constants)
        for name, function in functions.items():
            _use_constants(module, function, taking.get(name, {}), taking)
    with_question_marks(module)
    if solution is not None or tokens:
        _wrap_main(module, functions["main"], constants, solution or Solution({}, (), ()), tokens)


# ---- constants


def _taking(functions: Mapping[str, Operation], constants: Sequence[str]) -> dict[str, dict[str, Value]]:
    """Give the functions that need a constant all of them, as their first arguments: their values, by function."""
    needing = {name for name, f in functions.items() if any(map(_needs_constant, operations(f)))} | {"main"}
    while True:
        more = {n for n, f in functions.items() if any(callee_of(o) in needing for o in operations(f))} - needing
        if not more:
            return {name: _new_arguments(functions[name], constants) for name in sorted(needing)}
        needing |= more


def _needs_constant(operation: Operation) -> bool:
    return _asks_platform(operation) or is_dynamic(operation) or is_nested_program(operation)


def _asks_platform(operation: Operation) -> bool:
    return operation.name == "stablehlo.custom_call" and operation.attributes["call_target_name"] == PLATFORM_INDEX


def _new_arguments(function: Operation, constants: Sequence[str]) -> dict[str, Value]:
    block, type_ = function.regions[0].block, function_type(function)
    added = {name: Value(SCALAR) for name in constants}
    block.arguments[:0] = added.values()
    if block.argument_locations:
        block.argument_locations[:0] = [None] * len(added)
    inputs = (*[SCALAR] * len(added), *type_.inputs)
    function.attributes["function_type"] = TypeAttribute(Function(inputs, type_.results))
    others: Any = function.attributes["arg_attrs"]
    named: list[Attribute] = [{"jax.global_constant": name} for name in constants]
    function.attributes["arg_attrs"] = (*named, *others)
    return added


def _use_constants(
    module: Operation, function: Operation, own: Mapping[str, Value], taking: Mapping[str, Any]
) -> None:
    block = function.regions[0].block
    start: list[Operation] = []
    variables = {name: value for name, value in own.items() if name != PLATFORM}
    sizes = Sizes(Emitter(start), variables)
    replaced: dict[Value, Value] = {}
    _use_in_block(module, block, own, taking, sizes, replaced)
    block.operations[:0] = start
    used = set()
    for operation in operations(function):
        operation.operands[:] = [replaced.get(o, o) for o in operation.operands]
        used.update(operation.operands)
    block.operations[:] = [o for o in block.operations if o.name != "stablehlo.dynamic_iota" or o.results[0] in used]


def _use_in_block(
    module: Operation, block: Block, own: Mapping[str, Value], taking: Mapping[str, Any], sizes: Sizes,
    replaced: dict[Value, Value],
) -> None:  # fmt: skip
    kept: list[Operation] = []
    for operation in block.operations:
        for region in operation.regions:
            for inner in region.blocks:
                _use_in_block(module, inner, own, taking, sizes, replaced)
        if _asks_platform(operation):
            replaced[operation.results[0]] = own[PLATFORM]
            continue
        if is_nested_program(operation):
            inline_program(module, operation, Emitter(kept), own.get(PLATFORM), replaced)
            continue
        if operation.name == "stablehlo.get_dimension_size" and is_dynamic(operation):
            replaced[operation.results[0]] = sizes.scalar(asked_size(operation))
            continue
        if is_dynamic(operation):
            make_dynamic(operation, sizes, Emitter(kept, module.regions[0].block.operations))
        if callee_of(operation) in taking:
            operation.operands[:0] = own.values()
        kept.append(operation)
    block.operations[:] = kept


# ---- the function that users call


def _wrap_main(
    module: Operation, inner: Operation, constants: Sequence[str], solution: Solution, tokens: int
) -> None:
    """A new `main`, without the variables of sizes among its arguments."""
    taken = {*functions_of(module)}
    if WRAPPED in taken:  # of an exported program that this one calls
        rename(module, {WRAPPED: unused_name(WRAPPED, taken)})
    inner.attributes.update(sym_name=WRAPPED, sym_visibility="private")
    type_ = function_type(inner)
    first, count = [n for n in constants if n == PLATFORM], len(constants)
    inputs = (*[SCALAR] * len(first), *type_.inputs[count:])
    block = Block([Value(t) for t in inputs])
    attributes: Any = inner.attributes["arg_attrs"]
    main = Operation(
        "func.func",
        attributes={
            "sym_name": "main",
            "sym_visibility": "public",
            "function_type": TypeAttribute(Function(inputs, type_.results)),
            "arg_attrs": (*attributes[: len(first)], *attributes[count:]),
            "res_attrs": inner.attributes["res_attrs"],
        },
        regions=[Region([block])],
    )
    module.regions[0].block.operations.insert(0, main)
    emitter = Emitter(block.operations)
    arrays = block.arguments[len(first) + tokens :]
    given = {name: emitter.size(arrays[k], d) for name, k, d in solution.sizes}
    sizes = Sizes(emitter, given)
    for check in solution.checks:
        _assert(emitter, sizes, check)
    values = [sizes.scalar(solution.values[name]) for name in constants if name != PLATFORM]
    given_on = block.arguments[len(first) :]
    results = emitter.call(WRAPPED, [*block.arguments[: len(first)], *values, *given_on], type_.results)
    emitter.add("func.return", results, [])


def _assert(emitter: Emitter, sizes: Sizes, check: Any) -> None:
    holds = emitter.compare("EQ" if check.is_equality else "GE", sizes.scalar(check.left), sizes.scalar(check.right))
    message, shown = check.numbered_message()
    emitter.add(
        "stablehlo.custom_call", [holds, *[sizes.scalar(s) for s in shown]], [], call_target_name="shape_assertion",
        api_version=Integer(2, ElementType.S32), error_message=message, has_side_effect=True,
    )  # fmt: skip
