"""einsum: opt_einsum reads the subscripts and finds an order of pairwise products; each becomes one dot."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any

from .. import lax
from ..autodiff.placed_results import computed_in
from ..hlo.sizes import is_symbolic
from ..hlo.support.records import dataclass
from ..hlo.support.source import add_internal_folders
from ..tracer.arrays.array import as_value
from ..tracer.core import Value
from ..tracer.errors import OperandError
from .array_manipulation import diagonal
from .promotion import broadcast_to_shape, check_arraylike, no_out, promote_dtypes


@cache
def _opt_einsum() -> Any:
    """Imported at the first call: `hloom.numpy` is imported by programs that have no einsum. Its lines are not the
    user's."""
    found = import_module("opt_einsum")
    add_internal_folders(os.path.dirname(os.path.abspath(str(found.__file__))))
    return found


@dataclass(frozen=True, slots=True)
class _Term:
    """A value and the label of each of its dimensions."""

    value: Value
    labels: str


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
    _dot_general: Callable[..., Value] = lax.dot_general,
    out_sharding: Any = None,
) -> Value:
    """Einstein's summation: ``einsum("bij,bjk->bik", x, y)``, or ``einsum(x, [0, 1], y, [1, 2], [0, 2])``.

    An index that the result lacks is summed over; ``...`` stands for further dimensions, which broadcast. Several
    operands are multiplied in an order that needs few operations (`einsum_path` shows it). Dtypes promote.

    `_dot_general` multiplies; libraries give a function of their own for other numbers.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.einsum("ij,j->i", x, jnp.array([1, 10]))
    Array([21, 43], dtype=int32)
    >>> jnp.einsum("ii", x)
    Array(5, dtype=int32)
    """
    if out_sharding is not None:
        given = {"out": out, "optimize": optimize, "precision": precision, "_dot_general": _dot_general}
        given["preferred_element_type"] = preferred_element_type
        arrays, spec = _arrays_and_spec(subscripts, operands)
        return computed_in(out_sharding, "einsum", lambda *values: einsum(*spec(list(values)), **given), *arrays)
    no_out("einsum", out)
    arrays, spec = _arrays_and_spec(subscripts, operands)
    values = promote_dtypes(*arrays, name="einsum")
    try:
        inputs, output, _ = _opt_einsum().parser.parse_einsum_input(spec([v.aval.shape for v in values]), shapes=True)
    except ValueError as error:
        why = f"{error} Give subscripts with one label for each dimension, as in 'ij,jk->ik'."
        raise OperandError(f"einsum: {why}", "einsum_subscripts") from None
    sizes = _sizes(inputs.split(","), values)
    terms = [_expanded(_Term(v, t), sizes) for v, t in zip(values, inputs.split(","), strict=True)]
    multiply = partial(_dot_general, precision=precision, preferred_element_type=preferred_element_type)
    for positions in _order(inputs, output, values, optimize):
        chosen = [terms[p] for p in positions]
        terms = [t for p, t in enumerate(terms) if p not in positions]
        needed = set(output).union(*[t.labels for t in terms])
        result = _summed(chosen[0], needed.union(*[t.labels for t in chosen[1:]]))
        for k, term in enumerate(chosen[1:], 2):
            later = needed.union(*[t.labels for t in chosen[k:]])
            result = _product(result, _summed(term, later | set(result.labels)), later, multiply)
        terms.append(result)
    (final,) = terms
    return lax.transpose(final.value, [final.labels.index(label) for label in output])


def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: Any = "auto"
) -> tuple[list[tuple[int, ...]], Any]:
    """The order in which `einsum` multiplies: pairs of positions in a list; the product of each pair goes to the end of
    the list. And opt_einsum's report on its cost, to print. The arrays are not computed with.

    >>> x, y, z = jnp.ones((2, 10)), jnp.ones((10, 50)), jnp.ones((50, 2))
    >>> path, report = jnp.einsum_path("ij,jk,kl->il", x, y, z)
    >>> path
    [(1, 2), (0, 1)]
    """
    arrays, spec = _arrays_and_spec(subscripts, operands)
    check_arraylike("einsum_path", *arrays)
    shapes = [as_value(a).aval.shape for a in arrays]
    try:
        inputs, output, _ = _opt_einsum().parser.parse_einsum_input(spec(shapes), shapes=True)
        path, report = _opt_einsum().contract_path(
            f"{inputs}->{output}", *shapes, shapes=True, optimize="auto" if optimize is True else optimize
        )
    except (ValueError, KeyError) as error:
        raise OperandError(f"einsum_path: {error}", "einsum_subscripts") from None
    return path, report


def _arrays_and_spec(subscripts: Any, operands: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """The arrays, and a function from their shapes to the arguments of opt_einsum's parser."""
    if isinstance(subscripts, str):
        return list(operands), lambda shapes: (subscripts, *shapes)
    mixed = [subscripts, *operands]
    output = mixed.pop() if len(mixed) % 2 else None
    arrays, lists = mixed[0::2], mixed[1::2]

    def interleaved(shapes: list[Any]) -> tuple[Any, ...]:
        pairs = [x for pair in zip(shapes, lists, strict=True) for x in pair]
        return (*pairs, output) if output is not None else tuple(pairs)

    return arrays, interleaved


def _sizes(labels: Sequence[str], values: Sequence[Value]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for term, v in zip(labels, values, strict=True):
        if len(term) != v.aval.ndim:
            why = f"{term!r} has {len(term)} labels, but must have one for each dimension of {v.aval.str_short()}"
            raise OperandError(f"einsum: {why}", "einsum_rank")
        for label, size in zip(term, v.aval.shape, strict=True):
            known = sizes.get(label, 1)
            if 1 not in (known, size) and known != size:
                why = f"{label!r} must have one size, but has {known} and {size}"
                raise OperandError(f"einsum: {why}", "einsum_sizes")
            sizes[label] = size if known == 1 else known
    return sizes


_SOME_SIZE = 8
"""Stands for a symbolic size where an order of products is chosen."""


def _order(inputs: str, output: str, values: Sequence[Value], optimize: Any) -> list[tuple[int, ...]]:
    """Which terms to multiply at each step; a result goes to the end of the list."""
    if len(values) <= 2:
        return [tuple(range(len(values)))]
    shapes = [tuple([_SOME_SIZE if is_symbolic(d) else d for d in v.aval.shape]) for v in values]
    path, _ = _opt_einsum().contract_path(
        f"{inputs}->{output}", *shapes, shapes=True, optimize="auto" if optimize is True else optimize
    )
    return [tuple(sorted(step)) for step in path]


def _expanded(term: _Term, sizes: dict[str, int]) -> _Term:
    """Dimensions of size 1 broadcast to their label's size, repeated labels reduced to their diagonal."""
    value, labels = broadcast_to_shape(term.value, tuple([sizes[label] for label in term.labels])), term.labels
    for label in sorted(set(labels)):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            value = diagonal(value, 0, first, second)
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    return _Term(value, labels)


def _summed(term: _Term, needed: set[str]) -> _Term:
    """The term summed over labels that nothing else needs."""
    axes = [d for d, label in enumerate(term.labels) if label not in needed]
    if not axes:
        return term
    total = lax.reduce_or if term.value.aval.dtype.kind == "b" else lax.reduce_sum
    return _Term(total(term.value, axes), "".join(label for label in term.labels if label in needed))


def _product(x: _Term, y: _Term, needed: set[str], multiply: Callable[..., Value]) -> _Term:
    """The product of two terms, summed over shared labels that are not needed any more."""
    shared = [label for label in x.labels if label in y.labels]
    batch = [label for label in shared if label in needed]
    contracted = [label for label in shared if label not in needed]
    free_x = [label for label in x.labels if label not in shared]
    free_y = [label for label in y.labels if label not in shared]
    labels = "".join([*batch, *free_x, *free_y])
    if not contracted:
        return _Term(_outer(x, y, labels), labels)

    def places(group: list[str]) -> tuple[list[int], list[int]]:
        return [x.labels.index(label) for label in group], [y.labels.index(label) for label in group]

    numbers = (places(contracted), places(batch))
    return _Term(multiply(x.value, y.value, numbers), labels)


def _outer(x: _Term, y: _Term, labels: str) -> Value:
    """An elementwise product of both, broadcast to `labels`."""
    sizes = {**dict(zip(x.labels, x.value.aval.shape)), **dict(zip(y.labels, y.value.aval.shape))}
    shape = [sizes[label] for label in labels]
    aligned = []
    for term in (x, y):
        order = sorted(range(len(term.labels)), key=lambda d, t=term: labels.index(t.labels[d]))  # type: ignore[misc]
        value = lax.transpose(term.value, order)
        aligned.append(lax.broadcast_in_dim(value, shape, sorted(labels.index(label) for label in term.labels)))
    return lax.mul(as_value(aligned[0]), as_value(aligned[1]))
