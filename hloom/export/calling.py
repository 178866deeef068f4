"""Calls of exported functions: the arguments are checked, the program is read, and its computation is called.

A call is one of a jitted function, which is traced once for each combination of types; so other traced functions have
it as a nested call. Its derivative is the exported VJP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..autodiff.custom import custom_vjp
from ..extend.protocol import EFFECTS, text_of_effects
from ..hlo.ir import HloModule
from ..hlo.opcode import Opcode
from ..tracer.arguments import typeof
from ..tracer.arrays.array import as_value
from ..tracer.arrays.float0 import is_float0
from ..tracer.aval import FLOAT0, Float0Type
from ..tracer.core import Call, Primitive, Value, bind_call, call_of, run_program
from ..tracer.jit import PjitFunction, jit
from ..tracer.sharding.spmd import DEVICE_COUNTS
from ..tracer.traced import with_avals
from ..tracer.trees import tree
from ..tracer.trees.treedef import differences
from .paths import argument_names, path_text
from .placing import check_devices, device_order, placed_leaves
from .platforms import numbers_of_platforms
from .programs import at_sizes, constants_of, program_of, sizes_for
from .record import ExportedFunction

CALL_EXPORTED = Primitive("call_exported", evaluate=run_program)
"""A call of an exported program. Its parameters: the exported function."""
DEVICE_COUNTS[CALL_EXPORTED] = lambda call: (call.params.fun_name, call.params.nr_devices)


def called(module: HloModule) -> Iterator[ExportedFunction]:
    """The exported functions that a program calls."""
    for instruction in module.instructions():
        if instruction.opcode is Opcode.CALL:
            call = call_of(instruction.attributes)
            if call.primitive is CALL_EXPORTED:
                yield call.params


def call_exported(
    exported: ExportedFunction, args: tuple[Any, ...], kwargs: dict[str, Any], order: tuple[int, ...] | None = None
) -> Any:
    """The result for these arguments. `order`: of the devices (`device_order`); None: as the arguments say."""
    leaves, structure = tree.flatten((args, kwargs))
    if structure != exported.in_tree:
        raise ValueError(_other_structure(exported, args, kwargs))
    numbers_of_platforms(exported)
    if exported.nr_devices > 1:
        leaves = placed_leaves(exported, leaves)
        check_devices(exported, leaves)
        order = device_order(exported, leaves) if order is None else order
    order = order or ()
    functions: dict[Any, PjitFunction[..., Any]] = vars(exported).setdefault("_functions", {})
    function = functions.get(order)
    if function is None:
        function = functions[order] = jit(_function_of(exported, order))
    return tree.unflatten(exported.out_tree, function(*leaves))


def _other_structure(exported: ExportedFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    found = differences(exported.in_tree, (args, kwargs), "the exported function", exact=True, write=path_text)
    listed = "\n".join([f"   - {difference}" for difference in found])
    return (
        "The invocation args and kwargs must have the same pytree structure as when the function "
        f"'{exported.fun_name}' was exported, but they have the following structural differences:\n{listed}"
    )


def _function_of(exported: ExportedFunction, order: tuple[int, ...]) -> Callable[..., list[Any]]:
    """The function of the leaves. `order`: of the devices (`device_order`)."""

    def call(*leaves: Any) -> list[Any]:
        given = [Float0Type(x.shape) if is_float0(x) else typeof(x) for x in leaves]
        check_types(exported, given)
        sizes = sizes_for(exported, [a.shape for a in given])
        ins, outs = ([at_sizes(a, sizes) for a in avals] for avals in (exported.in_avals, exported.out_avals))

        @custom_vjp
        def run(*values: Any) -> tuple[Value, ...]:
            return tuple(_run(exported, order, list(_all(ins, values))))

        def forward(*values: Any) -> tuple[tuple[Value, ...], tuple[Any, ...]]:
            return run(*values), values

        def backward(values: tuple[Any, ...], cotangents: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(_pulled_back(exported, order, list(_all(ins, values)), list(_all(outs, cotangents))))

        run.defvjp(forward, backward)
        results = run(*[as_value(x) for x in leaves if not is_float0(x)])
        return list(_all(outs, results))

    call.__name__ = call.__qualname__ = exported.fun_name
    return call


def _all(avals: Sequence[Any], values: Sequence[Any]) -> Iterator[Any]:
    """`values`, and an array of float0 for each type of these."""
    given = iter(values)
    for aval in avals:
        yield np.zeros(aval.shape, FLOAT0) if aval.dtype == FLOAT0 else next(given)


def _run(exported: ExportedFunction, order: tuple[int, ...], leaves: Sequence[Any]) -> list[Value]:
    """The results that are no float0 arrays."""
    program = program_of(exported, [x.shape for x in leaves], order)
    given = [leaves[k] for k in exported.module_kept_var_idx]
    kept = [as_value(np.zeros(x.shape, np.bool_)) if is_float0(x) else x for x in given]
    name = exported.fun_name
    effects = exported.ordered_effects
    attributes = (("name", name), *([(EFFECTS, text_of_effects(effects))] if effects else []))
    call = Call(CALL_EXPORTED, program.computation, exported, label=name, attributes=attributes)
    results = bind_call(call, [*constants_of(exported, program), *kept])
    pairs = [(r, a) for r, a in zip(results, program.out_avals, strict=True) if a.dtype != FLOAT0]
    return with_avals([r for r, _ in pairs], [a for _, a in pairs])


def _pulled_back(
    exported: ExportedFunction, order: tuple[int, ...], leaves: Sequence[Any], cotangents: Sequence[Any]
) -> Iterator[Any]:
    """The cotangents of the arguments, by the exported VJP."""
    vjp = exported.vjp()
    types = vjp.in_avals[len(leaves) :]
    outs = [np.zeros(ct.shape, FLOAT0) if t.dtype == FLOAT0 else ct for t, ct in zip(types, cotangents, strict=True)]
    found = call_exported(vjp, (*leaves, *outs), {}, order)
    for aval, ct in zip(exported.in_avals, tree.leaves(found), strict=True):
        if aval.dtype != FLOAT0:
            yield ct


def check_types(exported: ExportedFunction, avals: Sequence[Any]) -> None:
    """ValueError for arguments of other types than the function takes."""
    for wanted, given, name in zip(exported.in_avals, avals, argument_names(exported.in_tree), strict=True):
        types = f"expected {wanted.shape} and called with {given.shape}"
        if len(wanted.shape) != len(given.shape):
            raise ValueError(f"Rank mismatch for {name}: {types}")
        if wanted.dtype != given.dtype:
            raise ValueError(f"Dtype mismatch for {name}: expected {wanted.dtype} and called with {given.dtype}")
        for d, (size, own) in enumerate(zip(wanted.shape, given.shape, strict=True)):
            if isinstance(size, int) and size != own:
                raise ValueError(f"Shape mismatch for {name}.shape[{d}] (expected same constant): {types}")
