"""Exported functions that another export calls with symbolic sizes: their functions become functions of its module.

While such a function is traced, the program of the called one is a custom call, which names the exported function.
Calls with sizes that are numbers are traced as calls of the program (`programs.py`).
"""

from __future__ import annotations

import re
from weakref import WeakValueDictionary

from ..hlo.builder import make_computation, make_get_tuple_element, make_parameter, make_tuple
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.mlir.tree import Operation, Token, Type, Value, function_type
from ..hlo.opcode import Opcode
from ..hlo.ops.custom_call import CustomCallAttributes
from ..hlo.shape import Shape
from .artifacts import module_of
from .dynamic import open_type
from .emit import Emitter, unused_name
from .functions import rename
from .platforms import numbers_of_platforms
from .record import ExportedFunction

TARGET = "hloom.call_exported"
WRAPPED = "_wrapped_jax_export_main"
"""The function that `main` calls, in a program with symbolic sizes."""
_CALLED: WeakValueDictionary[str, ExportedFunction] = WeakValueDictionary()
"""The exported functions in custom calls, by the text of the call's backend_config."""


def nested_program(exported: ExportedFunction, operands: list[Shape], results: list[Shape]) -> HloComputation:
    """The computation with the custom call."""
    key = f"{id(exported)}"  # the call holds the object as a parameter, so its id stays unique
    _CALLED[key] = exported
    parameters = [make_parameter(k, s) for k, s in enumerate(operands)]
    attributes = CustomCallAttributes(TARGET, key)
    shape = results[0] if len(results) == 1 else Shape.tuple(results)
    call = HloInstruction(Opcode.CUSTOM_CALL, shape, tuple(parameters), attributes)
    found = [make_get_tuple_element(call, k) for k in range(len(results))] if shape.is_tuple else [call]
    return make_computation("call_exported", make_tuple(found), parameters)


def is_nested_program(operation: Operation) -> bool:
    """Whether it is such a custom call."""
    return operation.name == "stablehlo.custom_call" and operation.attributes["call_target_name"] == TARGET


def inline_program(
    module: Operation, operation: Operation, here: Emitter, platform: Value | None, replaced: dict[Value, Value]
) -> None:
    """Add the functions of the called program to the module, and call its `main` in the place of the operation."""
    exported = _CALLED[str(operation.attributes["backend_config"])]
    main = _added(module, exported)
    arguments = main.regions[0].block.arguments
    tokens = len(exported.ordered_effects)
    given = []
    if len(exported.platforms) > 1:
        numbers = numbers_of_platforms(exported)
        given.append(here.number(numbers[0]) if platform is None else here.entry(platform, numbers))
    given += [here.one("create_token", [], Token()) for _ in range(tokens)]
    given += operation.operands
    converted = [_as(here, x, a.type) for x, a in zip(given, arguments, strict=True)]
    name = str(main.attributes["sym_name"])
    results = here.call(name, converted, function_type(main).results)
    for old, new in zip(operation.results, results[tokens:], strict=True):
        replaced[old] = _as(here, new, old.type)


def _as(here: Emitter, value: Value, type_: Type) -> Value:
    """The value with more, or fewer, sizes known in its type."""
    wanted = open_type(type_)
    return value if open_type(value.type) == wanted else here.one("convert", [value], wanted)


def _added(module: Operation, exported: ExportedFunction) -> Operation:
    """The `main` of the called program, which is now a function of the module, under another name. Its other functions
    and its meshes become those of the module, too."""
    inner = module_of(exported)
    own = module.regions[0].block.operations
    taken = {"main", WRAPPED, *[o.attributes.get("sym_name") for o in own]}
    added = [o for o in inner.regions[0].block.operations if "sym_name" in o.attributes]
    names = {}
    for operation in added:
        old = str(operation.attributes["sym_name"])
        stem = re.sub(r"\W", "_", f"call_exported_{exported.fun_name}" if old == "main" else old)
        name = unused_name(stem, taken)
        taken.add(name)
        names[old] = name
    rename(inner, names)
    for operation in added:
        if operation.name == "func.func":
            operation.attributes["sym_visibility"] = "private"
    own += added
    return next(o for o in added if o.attributes["sym_name"] == names["main"])
