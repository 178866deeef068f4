"""Jacobians and Hessians: a linear function, from linearize or vjp, is applied to a batch of all basis vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from ..hlo.opcode import Opcode
from ..hlo.ops.movement import IotaAttributes
from ..hlo.support.tracebacks import boundary
from ..tracer.arguments import check_function
from ..tracer.arrays.array import as_value
from ..tracer.aval import ShapedArray
from ..tracer.core import Value, bind
from ..tracer.ops import array_shape, compare, convert, is_inexact, reshape, shift, slice_along, transpose
from ..tracer.trees import tree
from ..tracer.wrapping import wraps
from .api import linearize, vjp
from .batches import Axis
from .batching import batch_flat
from .grad_checks import check_output, check_real_inputs, checked_argnums, grad_inputs, of_chosen, resolve_argnums
from .tangents import float0_zeros

Function = Callable[..., Any]
P = ParamSpec("P")
Aux = TypeVar("Aux")


@overload
def jacfwd(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacfwd(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
def jacfwd(
    fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """The function that computes the Jacobian of `fun`, column by column, by forward mode. JAX's `jacfwd`.

    The result has the structure of `fun`'s result; each array is replaced by a tree with the structure of the argument,
    with arrays of shape (shape of the result's array, shape of the argument's array).

    Raises:
      TypeError: (when called) an argument is not real, or not complex where `holomorphic`.

    >>> hloom.jacfwd(lambda x: jnp.array([x[0] * x[1], x[0] ** 2, x[1]]))(jnp.array([2.0, 3.0]))
    Array([[3., 2.],
           [4., 0.],
           [0., 1.]], dtype=float32)
    """
    return _jacobian("jacfwd", fun, argnums, has_aux, holomorphic)


@overload
def jacrev(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]: ...
def jacrev(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Function:
    """As `jacfwd`, row by row, by reverse mode. JAX's `jacrev`.

    Complex inputs are accepted where the outputs are real. `allow_int`: also accept integers and booleans; their part
    of the Jacobian is `float0` zeros.
    `jacobian` is the same.

    >>> hloom.jacrev(lambda x: jnp.array([x[0] * x[1]]))(jnp.array([2.0, 3.0]))
    Array([[3., 2.]], dtype=float32)
    """
    return _jacobian("jacrev", fun, argnums, has_aux, holomorphic, allow_int)


jacobian = jacrev


@overload
def hessian(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def hessian(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
def hessian(
    fun: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Function:
    """The function that computes the second derivatives of `fun`: `jacfwd` of `jacrev`. JAX's `hessian`.

    For an argument of shape s and a scalar result it is an array of shape (s, s). Other arguments: see `jacfwd`.

    >>> hloom.hessian(lambda x: x[0] ** 2 * x[1])(jnp.array([2.0, 3.0]))
    Array([[6., 4.],
           [4., 0.]], dtype=float32)
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def _jacobian(
    name: str,
    fun: Function,
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool = False,
) -> Function:
    check_function(fun, name)
    compute = _by_columns if name == "jacfwd" else _by_rows
    positions = checked_argnums(argnums)

    @wraps(fun)
    @boundary
    def jacobian_f(*args: Any, **kwargs: Any) -> Any:
        chosen = resolve_argnums(positions, len(args), argnums, fun)
        moving = tuple(args[i] for i in chosen)
        if name == "jacrev":
            grad_inputs(name, fun, args, chosen, holomorphic, allow_int)
        else:
            check_real_inputs(name, fun, args, chosen, holomorphic)
        result, found, *aux = compute(of_chosen(fun, args, kwargs, chosen), moving, has_aux)
        if holomorphic or name == "jacrev":
            for leaf in tree.leaves(result):
                check_output(name, leaf, fun, holomorphic)
        in_tree = tree.structure(moving if isinstance(argnums, Sequence) else moving[0])
        rows = [tree.unflatten(in_tree, row) for row in found]
        answer = tree.unflatten(tree.structure(result), rows)
        return (answer, *aux) if has_aux else answer

    return jacobian_f


def _by_columns(fun: Function, moving: tuple[Any, ...], has_aux: bool) -> tuple[Any, ...]:
    """(result, [for each leaf of the result: one block for each leaf of the arguments], aux...)"""
    result, push, *aux = linearize(fun, *moving, has_aux=has_aux)
    leaves, structure = tree.flatten(moving)
    avals = [as_value(leaf).aval for leaf in leaves]
    outputs = [leaf.aval for leaf in tree.leaves(result)]
    columns = _for_each_direction(lambda ts: tree.leaves(push(*tree.unflatten(structure, ts))), avals)
    blocks = []
    for found, output in zip(columns, outputs, strict=True):
        last = transpose(found, (*range(1, found.aval.ndim), 0))
        parts = _parts(last, avals, output.ndim)
        found_blocks = [reshape(p, (*output.shape, *a.shape)) for p, a in zip(parts, avals, strict=True)]
        blocks.append([_weak_as(block, output) for block in found_blocks])
    return result, blocks, *aux


def _by_rows(fun: Function, moving: tuple[Any, ...], has_aux: bool) -> tuple[Any, ...]:
    """As `_by_columns`."""
    result, pull, *aux = vjp(fun, *moving, has_aux=has_aux)
    leaves, structure = tree.flatten(result)
    avals = [as_value(leaf).aval for leaf in tree.leaves(moving)]
    outputs = [leaf.aval for leaf in leaves]

    def pulled(cts: list[Value]) -> list[Value]:
        found = tree.leaves(pull(tree.unflatten(structure, cts)))
        return [f for f, a in zip(found, avals, strict=True) if is_inexact(a.dtype)]

    rows = _for_each_direction(pulled, outputs)
    parts = [_parts(row, outputs, 0) for row in rows]
    blocks = []
    for k, output in enumerate(outputs):
        blocks_of_leaves = iter([of_leaf[k] for of_leaf in parts])
        shapes = [ShapedArray((*output.shape, *a.shape), a.dtype, a.weak_type) for a in avals]
        blocks.append(
            [
                _weak_as(reshape(next(blocks_of_leaves), s.shape), s) if is_inexact(s.dtype) else float0_zeros(s)
                for s in shapes
            ]
        )
    return result, blocks, *aux


def _weak_as(block: Value, like: ShapedArray) -> Value:
    """A part of a Jacobian, weakly typed if the value is from which its type comes."""
    return convert(block, block.aval.dtype, True) if like.weak_type else block


def _for_each_direction(linear: Callable[[list[Value]], list[Value]], avals: Sequence[ShapedArray]) -> list[Value]:
    """The results of a linear function for each vector of the standard basis of its arguments, along dimension 0."""
    total = sum([a.size for a in avals])
    basis, offset = [], 0
    for aval in avals:
        basis.append(_basis(total, offset, aval))
        offset += aval.size
    return batch_flat(linear, Axis(None, total), basis, [True] * len(basis), True)[0]


def _basis(total: int, offset: int, aval: ShapedArray) -> Value:
    """For each of `total` directions an array of type `aval`: direction `offset` + k has a one at its k-th element."""
    shape = array_shape(np.dtype(np.int32), (total, aval.size))
    row, column = (bind(Opcode.IOTA, (), IotaAttributes(d), shape=shape) for d in (0, 1))
    ones = convert(compare(row, "EQ", shift(column, offset)), aval.dtype)
    return reshape(ones, (total, *aval.shape))


def _parts(x: Value, avals: Sequence[ShapedArray], dimension: int) -> list[Value]:
    """`x` divided along a dimension that counts the elements of all `avals`."""
    found, offset = [], 0
    for aval in avals:
        found.append(slice_along(x, dimension, offset, offset + aval.size))
        offset += aval.size
    return found
