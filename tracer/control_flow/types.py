"""The types that enter the functions of control flow and that must come out: the types of carries and of branches, and
the errors where they differ, which name each leaf by its path.

These rules and for the substance of the messages follow jax.lax.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from ...hlo.support.records import dataclass
from .. import dtypes
from ..arguments import entered, leaf_describer, values_of
from ..aval import ShapedArray
from ..core import Value, varying
from ..errors import TreeStructureError
from ..ops import convert
from ..settings.context import current_context
from ..source import function_line
from ..traced import Traced
from ..trees import tree
from ..trees.treedef import PyTreeDef, keys_of_root, root_of
from ..wrapping import signature

_SHOWN = 8
"""How many differences a message lists."""


def arguments_of(fun: Callable[..., Any], *args: Any, before: int = 0) -> tuple[list[Value], Any]:
    """The leaves of positional arguments as values, and the structure of (args, {}).

    before: how many arguments of `fun` come before these; messages name arguments by the parameters of `fun`.
    """
    leaves, treedef = tree.flatten((entered(*args), {}))
    return values_of(leaves, leaf_describer(fun, ((),) * before + args)), treedef


def avals_of(values: Sequence[Value]) -> list[ShapedArray]:
    return [v.aval for v in values]


def require_functions(name: str, **functions: Any) -> None:
    """TypeError unless each argument of `lax.<name>` is a function."""
    for argument, fun in functions.items():
        if not callable(fun):
            raise TypeError(f"lax.{name}: {argument} argument should be callable, not {type(fun).__name__} ({fun!r})")


def leaf_names(treedef: Any, root: str) -> list[str]:
    """Each leaf of a structure as an expression: ``c['x'][0]``, if the tree is called ``c``."""
    return [root + tree.keystr(path) for path in tree.paths_of_structure(treedef)]


def started(value: Value, aval: ShapedArray) -> Value:
    """The initial value of a loop, in the form that its body takes."""
    found = convert(value, aval.dtype, aval.weak_type)
    missing = aval.vma - found.aval.vma
    return varying(found, missing, current_context().manual_axes) if missing else found


def differ(a: ShapedArray, b: ShapedArray) -> bool:
    """Whether two types are different for a program: weak types do not matter."""
    return a.dtype != b.dtype or a.shape != b.shape


# ---- carries: the types that go in must come out


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a loop, for messages."""

    what: str
    """The name of the user's loop function."""
    fun: Callable[..., Any]
    tree: Any
    """The structure of the carry."""
    position: int = 0
    """Which of the function's parameters is the carry."""
    first: int = 0
    """How many leaves of the loop's own are in front of the carry."""

    def settle(
        self, values: list[Value], trace: Callable[[list[ShapedArray]], Traced]
    ) -> tuple[list[Value], Traced]:
        """Carry values and the body traced on them: a weakly typed value takes the dtype that the body gives it.

        `trace` traces the body for carry types; its first results are the carry. TreeStructureError if types differ.
        """
        for _ in range(3 + len(values)):
            traced = trace(avals_of(values))
            changed = list(values)
            for k, (value, out) in enumerate(zip(values, traced.out_avals)):
                if value.aval.weak_type and value.aval.shape == out.shape and value.aval.dtype != out.dtype:
                    dtype, _ = dtypes.promote([(value.aval.dtype, True), (out.dtype, out.weak_type)])
                    changed[k] = convert(value, dtype, False)
                if out.vma - value.aval.vma:
                    changed[k] = varying(changed[k], out.vma, current_context().manual_axes)
            if all(a.aval is b.aval for a, b in zip(values, changed)):
                break
            values = changed
        self._check_types(avals_of(values)[self.first :], traced.out_avals[self.first : len(values)])
        return values, traced

    def check_structure(self, found: Any) -> None:
        """TreeStructureError unless the new carry has the old one's structure."""
        if found != self.tree:
            self._refuse(
                "have the same pytree structure",
                [
                    f"{self._component(path)} is a {one} but the corresponding component of the carry output is a "
                    f"{other}, so {why}"
                    for path, one, other, why in structure_differences(self.tree, found)
                ],
                "Revise the function so that the carry output has the same structure as the carry input.",
            )

    def _check_types(self, wanted: Sequence[ShapedArray], found: Sequence[ShapedArray]) -> None:
        if not any(differ(a, b) or a.vma != b.vma for a, b in zip(wanted, found, strict=True)):
            return
        self._refuse(
            "have equal types",
            [
                f"{self._component(path)} has type {a.str_short()} but the corresponding output carry component has "
                f"type {b.str_short()}, so {_mismatch(a, b)}"
                for path, a, b in zip(leaf_names(self.tree, ""), wanted, found, strict=True)
                if differ(a, b) or a.vma != b.vma
            ],
            "Revise the function so that all output types match the corresponding input types (astype, or start with "
            "another dtype or shape).",
        )

    def _refuse(self, rule: str, differences: list[str], remedy: str) -> NoReturn:
        raise TreeStructureError(
            f"{self.what} body function carry input and carry output must {rule}, but they "
            f"differ:{_listed(differences)}  body function: {function_line(self.fun)}\n  {remedy}"
        )

    def _component(self, path: str) -> str:
        return f"the input carry {'component ' if path else ''}{self._carry_name()}{path}"

    def _carry_name(self) -> str:
        """The user's name for the carry."""
        try:
            return list(signature(self.fun).parameters)[self.position]
        except (ValueError, TypeError, IndexError):
            return "carry"


def _at(path: str) -> str:
    return f" at path {path}" if path else ""


def _mismatch(a: ShapedArray, b: ShapedArray) -> str:
    kinds = ["dtypes"] * (a.dtype != b.dtype) + ["shapes"] * (a.shape != b.shape)
    if not kinds:
        axes = ", ".join([repr(x) for x in sorted(a.vma ^ b.vma, key=str)])
        return f"the manual axis types do not match: hloom.lax.pcast(..., ({axes},), to='varying') makes them alike"
    return ", and ".join([f"the {kind} do not match" for kind in kinds])


def _listed(differences: list[str]) -> str:
    """One difference as a sentence, several on a line each."""
    if len(differences) == 1:
        return f"\n\n{re.sub('^the ', 'The ', differences[0])}.\n"
    shown = [f"  * {difference}" for difference in differences[:_SHOWN]]
    if len(differences) > _SHOWN:
        shown.append(f"  * and {len(differences) - _SHOWN} more")
    return "\n\n" + ";\n".join(shown) + ".\n"


def structure_differences(one: PyTreeDef, other: PyTreeDef, path: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Where two structures differ, outermost first: the path, the part of each, and their difference."""
    roots = [None if tree.treedef_is_strict_leaf(t) else root_of(t) for t in (one, other)]
    kind, other_kind = [root and root[0] for root in roots]
    if kind is not other_kind:
        a, b = ["pytree leaf" if k is None else str(k) for k in (kind, other_kind)]
        yield path, a, b, "their Python types differ"
        return
    if kind is None:
        return
    inner, outer = one.children(), other.children()
    if len(inner) != len(outer):
        if kind in (tuple, list):
            a, b = [f"{kind.__name__} of length {len(nodes)}" for nodes in (inner, outer)]
            yield path, a, b, "the lengths do not match"
        else:
            a, b = [f"{kind} with {_children(nodes)}" for nodes in (inner, outer)]
            described = f"{tree.describe(one)} and {tree.describe(other)}"
            yield path, a, b, f"the numbers of children do not match: {described}"
        return
    data, other_data = [root and root[1] for root in roots]
    if data != other_data:
        a, b = [f"{kind} with pytree metadata {d}" for d in (data, other_data)]
        yield path, a, b, "the pytree node metadata does not match"
        return
    for key, child, other_child in zip(keys_of_root(one), inner, outer, strict=True):
        yield from structure_differences(child, other_child, f"{path}{key}")


def _children(nodes: Sequence[Any]) -> str:
    return f"{len(nodes)} child" if len(nodes) == 1 else f"{len(nodes)} children"


# ---- branches: all return the same types


def joined_types(
    what: str, traced: Sequence[Traced], functions: Sequence[Callable[..., Any]], names: Sequence[str]
) -> list[ShapedArray]:
    """The results' types: equal in all branches but for weak types, which give way. TreeStructureError otherwise."""
    first = traced[0]
    for other, fun, name in zip(traced[1:], functions[1:], names[1:], strict=True):
        where = (
            f"  {names[0]} is {function_line(functions[0])}, {name} is {function_line(fun)}\n  Revise {names[0]} or "
            f"{name} so that both return the same"
        )
        if other.out_tree != first.out_tree:
            differences = [
                f"{names[0]} output{_at(path)} is a {one} but {name} output{_at(path)} is a {two}, so {why}"
                for path, one, two, why in structure_differences(first.out_tree, other.out_tree)
            ]
            raise TreeStructureError(
                f"{what} branch outputs must have the same pytree structure, but they differ:{_listed(differences)}"
                f"{where} structure."
            )
        differences = [
            f"the output of {names[0]}{_at(path)} has type {a.str_short()} but the corresponding output of {name} has "
            f"type {b.str_short()}, so {_mismatch(a, b)}"
            for path, a, b in zip(leaf_names(first.out_tree, ""), first.out_avals, other.out_avals, strict=True)
            if differ(a, b)
        ]
        if differences:
            raise TreeStructureError(
                f"{what} branches must have equal output types but they differ:{_listed(differences)}{where} types "
                "(astype, or hloom.numpy functions that promote)."
            )
    types = zip(*[t.out_avals for t in traced], strict=True)
    return [
        same[0].with_weak_type(all(a.weak_type for a in same)).with_vma(same[0].vma.union(*[a.vma for a in same]))
        for same in types
    ]
