"""Derivatives and batches of functions of values of own types (`tracer/own_values.py`).

`jvp`, `linearize`, `vjp` and `value_and_grad` take such values apart. Of an argument its carrier moves, or its arrays
do if their tangents are its tangents. Tangents and cotangents are values of the type that the own type says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..tracer.own_values import (
    Opened,
    OwnValue,
    all_entered,
    batch_axes,
    element_axes,
    entered,
    is_like_its_tangent,
    left,
    lowers,
    opened,
    parts_of_tangent,
    required,
    tangent_from,
    zero_of,
)
from ..tracer.trees import tree
from .vmappable import SPEC_TYPES, VMAPPABLES, Vmappable

# --- derivatives


class _Moving:
    """Arguments with values of own types, as those arrays that move."""

    def __init__(self, args: Any) -> None:
        self._given = opened(all_entered(args))
        self.parts: list[Any] = []
        """In the place of each value what moves of it; other leaves as they are."""
        for part, aval in zip(self._given.parts, self._given.avals, strict=True):
            if aval is None:
                self.parts.append(part)
                continue
            arrays, carrier = part
            tangent_from(aval, arrays, carrier)  # the error where there is none
            self.parts.append(arrays if carrier is None else carrier)

    def filled(self, parts: Sequence[Any]) -> Any:
        """The arguments with other moving arrays."""
        full = []
        for part, (given, aval) in zip(parts, zip(self._given.parts, self._given.avals, strict=True), strict=True):
            moves_arrays = aval is not None and given[1] is None
            full.append(part if aval is None else (part, None) if moves_arrays else (given[0], part))
        leaves, structure = self._given.closed_leaves(full)
        return tree.unflatten(structure, leaves)

    def tangents(self, parts: Sequence[Any]) -> Any:
        """The tree of tangents of the arguments, by those of `parts`."""
        leaves = [
            part if aval is None else _left(tangent_from(aval, part, None) if is_like_its_tangent(aval) else part)
            for part, aval in zip(parts, self._given.avals, strict=True)
        ]
        return tree.unflatten(self._given.structure, leaves)

    def parts_of(self, tangents: Any) -> list[Any]:
        """The tangents of `parts`, by a tree of tangents of the arguments."""
        leaves = tree.flatten_up_to(self._given.structure, tangents)
        found = []
        for leaf, aval in zip(leaves, self._given.avals, strict=True):
            if aval is None:
                found.append(leaf)
                continue
            arrays, carrier = parts_of_tangent(aval, leaf, zero_of)
            found.append(arrays if carrier is None else carrier)
        return found


class _Results:
    """A function that returns its values of own types taken apart."""

    def __init__(self, fun: Callable[..., Any], moving: _Moving, has_aux: bool) -> None:
        self._fun, self._moving, self._has_aux = fun, moving, has_aux
        self._made: Opened | None = None
        self.__name__ = getattr(fun, "__name__", "function")

    def __call__(self, *parts: Any) -> Any:
        result = self._fun(*self._moving.filled(parts))
        aux: Any = None
        if self._has_aux:
            result, aux = result
        self._made = opened(result)
        return (self._made.parts, aux) if self._has_aux else self._made.parts

    @property
    def made(self) -> Opened:
        """The structure of the result, once it was called."""
        assert self._made is not None, f"{self.__name__} was not called"
        return self._made

    def value(self, parts: Any) -> Any:
        """The result."""
        return self.made.closed(parts)

    def tangent(self, parts: Any) -> Any:
        """The tangent of the result, by the tangents of its parts."""
        leaves = [
            part if aval is None else _left(tangent_from(aval, *part))
            for part, aval in zip(parts, self.made.avals, strict=True)
        ]
        return tree.unflatten(self.made.structure, leaves)

    def parts_of(self, tangent: Any) -> list[Any]:
        """The tangents of the parts, by the tangent of the result."""
        leaves = tree.flatten_up_to(self.made.structure, tangent)
        return [
            leaf if aval is None else parts_of_tangent(aval, leaf, zero_of)
            for leaf, aval in zip(leaves, self.made.avals, strict=True)
        ]


def _left(value: Any) -> Any:
    return left(value) if isinstance(value, OwnValue) else value


def jvp_own(jvp: Callable[..., Any], fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool) -> Any:
    """`jvp` of a function of values of own types, by the `jvp` of one of arrays."""
    moving = _Moving(tuple(primals))
    inner = _Results(fun, moving, has_aux)
    out, moved, *aux = jvp(inner, tuple(moving.parts), tuple(moving.parts_of(tuple(tangents))), has_aux)
    return inner.value(out), inner.tangent(moved), *aux


def linearize_own(linearize: Callable[..., Any], fun: Callable[..., Any], primals: Any, has_aux: bool) -> Any:
    """The same for `linearize`."""
    moving = _Moving(primals)
    inner = _Results(fun, moving, has_aux)
    out, push, *aux = linearize(inner, *moving.parts, has_aux=has_aux)
    return inner.value(out), lambda *tangents: inner.tangent(push(*moving.parts_of(tangents))), *aux


def vjp_own(vjp: Callable[..., Any], fun: Callable[..., Any], primals: Any, has_aux: bool) -> Any:
    """The same for `vjp`."""
    moving = _Moving(primals)
    inner = _Results(fun, moving, has_aux)
    out, pull, *aux = vjp(inner, *moving.parts, has_aux=has_aux)
    return inner.value(out), lambda cotangent: moving.tangents(pull(inner.parts_of(cotangent))), *aux


def value_and_grad_own(
    value_and_grad: Callable[..., Any], fun: Callable[..., Any], args: tuple[Any, ...], chosen: Sequence[int]
) -> tuple[Any, tuple[Any, ...]]:
    """(value, the gradients by the chosen arguments), by `value_and_grad(function of the parts, argnums)`."""
    moving = _Moving(tuple([args[k] for k in chosen]))

    def inner(*parts: Any) -> Any:
        filled = list(args)
        for k, value in zip(chosen, moving.filled(parts), strict=True):
            filled[k] = value
        return fun(*filled)

    inner.__name__ = getattr(fun, "__name__", "function")
    value, gradients = value_and_grad(inner, tuple(range(len(moving.parts))))(*moving.parts)
    return value, moving.tangents(gradients)


# --- batches


def register_mapped(kind: type) -> None:
    """Let `vmap` map objects of a class with own types, along a spec."""
    VMAPPABLES[kind] = VMAPPABLES[OwnValue] = _RULES


def register_spec(kind: type) -> None:
    """Let objects of a class be entries of `in_axes` and `out_axes`."""
    SPEC_TYPES.add(kind)


def _element(cont: Callable[..., Any], index: Callable[[], Any], value: Any, spec: Any) -> Any:
    """One element of a batch of values of an own type."""
    own = entered(value)
    if spec is None:
        return own
    _check_spec(own, spec, "in_axes")
    size = cont.args[0].axis.size  # type: ignore[attr-defined]
    element = required(own.aval, "dec_rank", "vmap")(size, spec)
    arrays, moved = element_axes(own.aval, element, size, spec)
    leaves, structure = tree.flatten(own._carrier)
    carrier = tree.unflatten(structure, [cont(x, a) for x, a in zip(leaves, moved, strict=True)])
    if isinstance(carrier, OwnValue):
        carrier.aval = element.to_tangent_aval()
    return OwnValue(element, tuple([cont(x, a) for x, a in zip(own._arrays, arrays, strict=True)]), carrier)


def _collected(cont: Callable[..., Any], size: int, value: Any, spec: Any) -> Any:
    """All elements, as one value of an own type."""
    own = entered(value)
    if spec is None:
        return own
    _check_spec(own, spec, "out_axes")
    whole = required(own.aval, "inc_rank", "vmap")(size, spec)
    arrays, moved = batch_axes(own.aval, size, spec)
    leaves, structure = tree.flatten(own._carrier)
    carrier = tree.unflatten(structure, [cont(size, x, a) for x, a in zip(leaves, moved, strict=True)])
    if isinstance(carrier, OwnValue):
        carrier.aval = whole.to_tangent_aval()
    made = OwnValue(whole, tuple([cont(size, x, a) for x, a in zip(own._arrays, arrays, strict=True)]), carrier)
    return left(made)


def _check_spec(own: OwnValue, spec: Any, what: str) -> None:
    if isinstance(spec, int):
        raise ValueError(
            f"vmap {what} has the integer {spec} for a value of the non-array type {own.aval}: give a MappingSpec of "
            "its library"
        )
    if not lowers(own.aval):
        required(own.aval, "dec_rank", "vmap")
        required(own.aval, "lo_ty", "vmap")


_RULES = Vmappable(_element, _collected)
