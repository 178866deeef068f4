"""Parts of the pullbacks from `vjp`: the values that they keep, the cotangents that they take and give.

`args_res` has the arguments that are kept as they are, in the arrangement of the arguments. Names and semantics follow
jax.vjp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..hlo.ir import HloInstruction
from ..hlo.support.records import dataclass
from ..tracer.arrays.array import as_value
from ..tracer.aval import ShapedArray
from ..tracer.core import Value, current_trace
from ..tracer.dtypes import is_complex
from ..tracer.ops import is_inexact, zeros
from ..tracer.sharding.lenience import not_refused
from ..tracer.sharding.placement import of_type, with_sums
from ..tracer.source import function_line
from ..tracer.trees import tree
from ..tracer.trees.nodes import one_level
from .grad_checks import at
from .linearize import LinearProgram
from .tangents import float0, float0_zeros
from .transpose import transpose_program


@dataclass(frozen=True, slots=True)
class NotNeeded:
    """In `args_res`, in place of an argument that the pullback does not use."""


@dataclass(frozen=True, slots=True)
class NotSaveable:
    """In `args_res`, in place of an argument that the pullback uses and that `saveable_args` excludes."""


tree.register_pytree_node(NotNeeded, lambda _: ((), None), lambda _, __: NotNeeded())
tree.register_pytree_node(NotSaveable, lambda _: ((), None), lambda _, __: NotSaveable())


@dataclass(frozen=True, slots=True)
class Saved:
    """The values that a linear program does not compute: those of the user's arguments, and others."""

    of_arguments: list[tuple[HloInstruction, int]]
    """Parameters of the program that are arguments, and which leaf of the arguments each one is."""
    of_others: list[HloInstruction]
    """Parameters that are elements of `opaque_residuals`, in its order."""

    args_res: list[Any]
    opaque_residuals: list[Value]

    def values(
        self, args_res: Sequence[Any], opaque_residuals: Sequence[Any], in_tree: Any, fun: Callable[..., Any]
    ) -> dict[HloInstruction, Value]:
        """The value of each parameter; ValueError where an argument that was not saved has not been restored."""
        kept = tree.leaves(args_res, is_leaf=lambda x: isinstance(x, NotNeeded | NotSaveable))
        missing = sorted({k for _, k in self.of_arguments if isinstance(kept[k], NotSaveable)})
        if missing:
            _refuse_missing(missing, in_tree, fun)
        return {
            **{p: as_value(kept[k]) for p, k in self.of_arguments},
            **dict(zip(self.of_others, opaque_residuals, strict=True)),
        }


def saved(
    program: LinearProgram, arguments: Sequence[Value | None], in_tree: Any, is_saveable: Sequence[bool]
) -> Saved:
    """The values that `program` uses.

    arguments: the leaves of the arguments; None for one that is no value of the program, such as a reference.
    is_saveable: for each leaf.
    """
    indices = {id(v): k for k, v in enumerate(arguments) if v is not None}
    needed = program.needed()
    of_arguments, of_others, others = [], [], []
    for parameter, value in (*program.residuals.items(), *program.constants.items()):
        if parameter in needed:
            index = indices.get(id(value))
            if index is not None:
                of_arguments.append((parameter, index))
            else:
                of_others.append(parameter)
                others.append(value)
    used = {id(arguments[k]) for _, k in of_arguments}
    kept: list[Any] = [
        NotNeeded() if id(v) not in used else v if s else NotSaveable()
        for v, s in zip(arguments, is_saveable, strict=True)
    ]
    return Saved(of_arguments, of_others, list(in_tree.walk(lambda nodes, _: tuple(nodes), None, kept)), others)


def saveable_flags(given: Any, in_tree: Any) -> list[bool]:
    """`saveable_args` for each leaf of the arguments. Containers of both trees match if they have equally many
    children; ValueError where they do not."""
    if isinstance(given, bool):
        return [given] * in_tree.num_leaves
    out: list[bool] = []
    pending = [("saveable_args", given, in_tree)]
    while pending:
        name, part, structure = pending.pop()
        if isinstance(part, bool):
            out += [part] * structure.num_leaves
            continue
        level = one_level(part)
        if level is None:
            raise ValueError(
                "the saveable_args argument to vjp must be a tree of bools, like a tuple-tree (made of bools and "
                f"tuples only), but {name} is {part!r} of type {type(part).__name__}"
            )
        parts, of_structure = [child for _, child in level[0]], structure.children()
        if len(parts) != len(of_structure) or tree.treedef_is_strict_leaf(structure):
            found = "is a leaf" if tree.treedef_is_strict_leaf(structure) else f"has {len(of_structure)} children"
            raise ValueError(
                "the saveable_args argument to vjp must form a tree prefix of the arguments (up to container types, so "
                f"containers need only match in their number of children), but {name} has {len(parts)} children while "
                f"the corresponding part of the arguments {found}"
            )
        named = [(f"{name}[{k}]", p, s) for k, (p, s) in enumerate(zip(parts, of_structure, strict=True))]
        pending += reversed(named)
    return out


def _refuse_missing(missing: Sequence[int], in_tree: Any, fun: Callable[..., Any]) -> NoReturn:
    paths = tree.paths_of_structure(in_tree)
    listed = "\n".join(
        f"  * the argument at position args{tree.keystr(paths[k])} of the differentiated function "
        f"{function_line(fun)};"
        for k in missing
    )
    raise ValueError(
        "the VJP function was applied before restoring its not-saveable residuals.\n\n"
        "vjp was called with `saveable_args`, so `NotSaveable()` stands in `args_res` where some arguments would have "
        "been saved. Assign these to `args_res` of the VJP function, or give them to its method `replace`:\n" + listed
    )


def given_cotangent(leaf: Any, aval: ShapedArray, fun: Callable[..., Any]) -> Value | None:
    """The user's cotangent of a result of type `aval`. An integer result takes a cotangent of its shape and any dtype,
    which has no effect."""
    aval = aval.plain()
    wanted = aval.str_short() if is_inexact(aval.dtype) else f"float0[{','.join(map(str, aval.shape))}]"
    if getattr(leaf, "dtype", None) == float0:
        got, value = f"float0[{','.join(map(str, leaf.shape))}]", None
    else:
        value = as_value(leaf)
        got = value.aval.plain().str_short()
        if not is_inexact(aval.dtype) and value.aval.shape == aval.shape:
            return None
    if got != wanted:
        raise ValueError(
            f"unexpected JAX type (shape, dtype) of argument to vjp function: got {got}, but expected {wanted} because "
            f"the corresponding output of the differentiated function has type {aval.str_short()}.{at(fun)}"
        )
    return value


def pull_back(
    program: LinearProgram, avals: Sequence[ShapedArray], cotangents: Sequence[Value | None], is_strong: bool = False
) -> list[Any]:
    """A cotangent for each input, zeros where there is none, divided as the input.

    It is weakly typed as the input, unless `is_strong`. That of a complex input of a function without complex results
    is strong, too: every way from one to the other takes a real part or an absolute value, and JAX's rules for those
    return strong types.
    """
    takes_parts = not any(ct is not None and is_complex(ct.aval.dtype) for ct in cotangents)
    with not_refused():
        found = iter(transpose_program(program, [None if ct is None else with_sums(ct) for ct in cotangents]))
    trace = current_trace()
    out: list[Any] = []
    for aval in avals:
        if not is_inexact(aval.dtype):
            out.append(float0_zeros(aval))
            continue
        ct = next(found)
        is_weak = aval.weak_type and not is_strong and not (takes_parts and is_complex(aval.dtype))
        wanted = aval.to_ct_aval()
        assert isinstance(wanted, ShapedArray), f"{aval} is inexact"
        out.append(of_type(zeros(aval) if ct is None else trace.with_weak_type(ct, is_weak), wanted))
    return out
