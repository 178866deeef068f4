"""Exported programs as HLO, for the sizes of a call's arguments. They are kept with the exported function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..hlo.builder import make_computation, make_tuple
from ..hlo.element_type import ElementType
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.mlir.tree import Operation
from ..hlo.opcode import Opcode
from ..hlo.ops.custom_call import CustomCallAttributes
from ..hlo.passes.rewrite import clone_computation, cloned_effects
from ..hlo.shape import Shape
from ..hlo.sizes import is_symbolic
from ..hlo.stablehlo.discardable_attributes import MHLO_SHARDING, SDY_SHARDING
from ..hlo.stablehlo.to_hlo import hlo_of
from ..hlo.support.records import dataclass
from ..hlo.symbolic.arguments import Solution, solve
from ..hlo.symbolic.evaluate import evaluate
from ..tracer.aval import Float0Type, ShapedArray
from ..tracer.core import Value
from ..tracer.sharding.shardy import WHOLE, whole_text
from .artifacts import module_of
from .functions import functions_of
from .nested import nested_program
from .paths import argument_names
from .placing import stored_rank, text_of, with_order, with_whole_meshes
from .platforms import index_for
from .record import ExportedFunction
from .tokens import drop_tokens


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """An exported program for arguments of certain sizes."""

    computation: HloComputation
    """Parameters: the number of the platform, if it takes that, and the kept arguments. Its root is a tuple."""
    out_avals: tuple[Any, ...]
    takes_platform: bool


def program_of(exported: ExportedFunction, shapes: Sequence[Sequence[Any]], order: tuple[int, ...] = ()) -> Program:
    """The program for arguments of these shapes, one for each leaf, on devices in this order (`placing.device_order`).
    ValueError if they do not fit the function's."""
    made: dict[Any, Program] = vars(exported).setdefault("_programs", {})
    key = order, tuple(map(tuple, shapes)) if exported.uses_global_constants else ()
    found = made.get(key)
    if found is None:
        found = made[key] = _made(exported, shapes, order)
    return found


def constants_of(exported: ExportedFunction, program: Program) -> list[Value]:
    """The operands that come before the arguments."""
    return [index_for(exported)] if program.takes_platform else []


def _made(exported: ExportedFunction, shapes: Sequence[Sequence[Any]], order: tuple[int, ...]) -> Program:
    values = sizes_for(exported, shapes)
    out_avals = tuple([at_sizes(a, values) for a in exported.out_avals])
    arguments = [stored_type(at_sizes(exported.in_avals[k], values)).hlo for k in exported.module_kept_var_idx]
    if any(is_symbolic(n) for shape in shapes for n in shape):
        results = [stored_type(a).hlo for a in out_avals]
        return Program(nested_program(exported, arguments, results), out_avals, False)
    tree = module_of(exported)
    count = len(exported.platforms) > 1
    types = [Shape.array(ElementType.S32, ())] * count + arguments
    main = functions_of(tree).get("main")
    if main is None:
        raise ValueError(f"the program of {exported} has no function @main")
    if exported.ordered_effects:
        drop_tokens(tree)
    takes = len(main.regions[0].block.arguments)
    if takes != len(types):
        raise ValueError(
            f"the program of {exported} takes {takes} arguments, and its types say {len(types)} for "
            f"{len(exported.platforms)} platforms and {len(exported.ordered_effects)} ordered effects"
        )
    _drop_places(main)
    entry = with_whole_meshes(hlo_of(tree, types if exported.uses_global_constants else None))
    ins = [exported._in_named_shardings[k] for k in exported.module_kept_var_idx]
    given = [_place(s, exported.in_avals[k]) for k, s in zip(exported.module_kept_var_idx, ins, strict=True)]
    made = [_place(s, a) for s, a in zip(exported._out_named_shardings, exported.out_avals, strict=True)]
    entry = _with_places(entry, [*[_ANYWHERE] * count, *given], made)
    return Program(with_order(entry, order), out_avals, count)


def stored_type(aval: Any) -> ShapedArray:
    """The type of an argument or a result of the program: booleans stand for float0."""
    return ShapedArray(aval.shape, np.bool_) if isinstance(aval, Float0Type) else aval


def sizes_for(exported: ExportedFunction, shapes: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """The values of the variables in the function's types for arguments of these shapes. ValueError if they do not fit:
    a size that no values give, or a constraint that does not hold."""
    own = [a.shape for a in exported.in_avals]
    if not any(is_symbolic(n) for shape in own for n in shape):
        return {}
    solution: Solution | None = vars(exported).get("_solution")
    if solution is None:
        solution = vars(exported)["_solution"] = solve(own, argument_names(exported.in_tree))
    return solution.evaluate(shapes)


def at_sizes(aval: Any, values: dict[str, Any]) -> Any:
    """The type with these values of the variables."""
    if not any(map(is_symbolic, aval.shape)):
        return aval
    shape = tuple([evaluate(n, values) for n in aval.shape])
    return Float0Type(shape) if isinstance(aval, Float0Type) else aval.update(shape=shape)


def _drop_places(main: Operation) -> None:
    """Leave out the places of arguments and results: the fields of the exported function have them, too."""
    for name in ("arg_attrs", "res_attrs"):
        given = main.attributes.get(name)
        if isinstance(given, tuple):
            main.attributes[name] = tuple(
                [{k: v for k, v in each.items() if k not in (MHLO_SHARDING, SDY_SHARDING)} for each in given]  # type: ignore[union-attr]
            )


Place = tuple[str, str]
"""A sharding in XLA's words, and as `whole_text`."""
_ANYWHERE: Place = ("", "")


def _place(sharding: Any, aval: Any) -> Place:
    return text_of(sharding, aval), whole_text(sharding, stored_rank(aval))


def _with_places(entry: HloComputation, ins: Sequence[Place], outs: Sequence[Place]) -> HloComputation:
    """A computation that returns a tuple, with arguments and results divided over devices as shardings say."""
    if entry.root.opcode is Opcode.TUPLE and not any(text for text, _ in (*ins, *outs)):
        return entry
    parameters = [replace(p) for p in entry.parameters]
    given = {p: _placed(new, s) for p, new, s in zip(entry.parameters, parameters, ins, strict=True)}
    _, copies = clone_computation(entry, given)
    placed = [_placed(copies[r], s) for r, s in zip(entry.roots, outs, strict=True)]
    return make_computation(entry.name, make_tuple(placed), parameters, cloned_effects(entry, copies))


def _placed(x: HloInstruction, place: Place) -> HloInstruction:
    sharding, whole = place
    if not sharding:
        return x
    found = HloInstruction(Opcode.CUSTOM_CALL, x.shape, (x,), CustomCallAttributes("Sharding"))
    return replace(found, annotations=(("sharding", sharding),), frontend_attributes=((WHOLE, whole),))
