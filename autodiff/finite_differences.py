"""Derivatives compared with finite differences: `check_grads`, `check_jvp`, `check_vjp` of `hloom.test_util`.

One random direction is tested, so a check costs a few evaluations, for arguments of any size. A rule that is wrong in
one element only is found too: the direction has no zero component.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.errors import DerivativeMismatchError
from ..tracer.ops import is_inexact
from ..tracer.trees import tree
from .api import jvp, linearize, vjp
from .tangents import float0

Function: TypeAlias = Callable[..., Any]
Tolerance: TypeAlias = float | Mapping[Any, float] | None

_MODES = {"fwd": "JVP", "rev": "VJP", "lin": "linearize"}
_DEFAULT_TOLERANCES = {
    **dict.fromkeys(("float32", "complex64"), 0.002),
    **dict.fromkeys(("float64", "complex128"), 1e-05),
    "float16": 1e-2,
    "bfloat16": 1e-1,
}
"""Of derivatives, by dtype: relative, and absolute for values near 1. Narrower floats have 1."""


def check_grads(
    f: Function, args: Sequence[Any], order: int, modes: Sequence[str] = ("fwd", "rev"),
    atol: Tolerance = None, rtol: Tolerance = None, eps: float | None = None,
) -> None:  # fmt: skip
    """Compare the derivatives of `f` at `args`, up to `order`, with finite differences in a random direction.

    Args:
      modes: "fwd" tests jvp, "rev" vjp, "lin" linearize; each is tested on the derivatives of the others.
      atol, rtol: tolerances: a number, or a mapping from dtypes to numbers.
      eps: the step of the differences. By default the cube root of the precision of the least precise argument and,
        if the derivative differs from that, 1e-4.

    Raises:
      DerivativeMismatchError: a derivative differs; an AssertionError.

    >>> check_grads(jnp.sin, (1.0,), order=2)
    >>> wrong = hloom.custom_gradient(lambda x: (jnp.sin(x), lambda ct: (ct * jnp.sin(x),)))
    >>> check_grads(wrong, (1.0,), order=1, modes=["rev"])
    Traceback (most recent call last):
        ...
    hloom.errors.DerivativeMismatchError: VJP: the product with a cotangent differs from finite ...
    """
    unknown = [m for m in modes if m not in _MODES]
    if unknown or isinstance(modes, str):
        raise ValueError(f"check_grads: modes are some of {tuple(_MODES)}, got {modes!r}")
    if order < 1:
        raise ValueError(f"check_grads: order is at least 1, got {order}")
    _check_order(f, _arrays(tuple(args)), order, modes, "", {"atol": atol, "rtol": rtol, "eps": eps})


def _check_order(
    f: Function, args: tuple[Any, ...], order: int, modes: Sequence[str], name: str, options: dict[str, Any]
) -> None:
    inner, points = _of_floats(f, args)
    for mode in modes:
        what = f"{_MODES[mode]} of {name}" if name else _MODES[mode]
        push = _by_linearize if mode == "lin" else jvp
        if mode == "rev":
            check_vjp(f, partial(vjp, f), args, **options, err_msg=what)
            if order > 1:
                _check_order(partial(_pulled_back, inner), points, order - 1, modes, what, options)
        else:
            check_jvp(f, partial(push, f), args, **options, err_msg=what)
            if order > 1:
                _check_order(partial(push, inner), (points, points), order - 1, modes, what, options)


def _of_floats(f: Function, args: tuple[Any, ...]) -> tuple[Function, tuple[Any, ...]]:
    """`f` as a function from floats to floats, and its arguments: integers have no derivatives of second order."""
    leaves, structure = tree.flatten(args)
    places = [k for k, leaf in enumerate(leaves) if is_inexact(_dtype(leaf))]

    def inner(*floats: Any) -> list[Any]:
        given = list(leaves)
        for place, value in zip(places, floats, strict=True):
            given[place] = value
        return [leaf for leaf in tree.leaves(f(*tree.unflatten(structure, given))) if is_inexact(_dtype(leaf))]

    return inner, tuple([leaves[k] for k in places])


def _by_linearize(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    result, linear = linearize(f, *primals)
    return result, linear(*tangents)


def _pulled_back(f: Function, *args: Any) -> Any:
    """The VJP as a function of the arguments: the result itself is the cotangent."""
    result, pull = vjp(f, *args)
    return pull(result)


def check_jvp(
    f: Function, f_jvp: Function, args: Sequence[Any],
    atol: Tolerance = None, rtol: Tolerance = None, eps: float | None = None, err_msg: str = "",
) -> None:  # fmt: skip
    """Compare `f_jvp(args, tangents)`, such as `partial(jvp, f)`, with a finite difference of `f` at `args`.

    Raises:
      DerivativeMismatchError: a result or its tangent differs; an AssertionError.

    >>> import hloom, hloom.numpy as jnp
    >>> from functools import partial
    >>> hloom.test_util.check_jvp(jnp.sin, partial(hloom.jvp, jnp.sin), (1.0,))
    """
    args, prefix = _arrays(tuple(args)), err_msg and f"{err_msg}: "
    tangents = _random_like(args, np.random.default_rng(0))
    result, tangent = f_jvp(args, tangents)
    _compare(result, f(*args), atol, rtol, f"{prefix}the result")
    _with_either_step(
        eps, lambda step: _compare(tangent, _difference(f, args, tangents, step), atol, rtol, f"{prefix}the tangent")
    )


def check_vjp(
    f: Function, f_vjp: Function, args: Sequence[Any],
    atol: Tolerance = None, rtol: Tolerance = None, eps: float | None = None, err_msg: str = "",
) -> None:  # fmt: skip
    """Compare `f_vjp(*args)`, such as `partial(vjp, f)`, with a finite difference of `f` at `args`.

    The product of a random cotangent with the difference must equal the product of the pulled-back cotangent with the
    direction.

    Raises:
      DerivativeMismatchError: the result or the product differs; an AssertionError.

    >>> import hloom, hloom.numpy as jnp
    >>> from functools import partial
    >>> hloom.test_util.check_vjp(jnp.sin, partial(hloom.vjp, jnp.sin), (1.0,))
    """
    args, prefix = _arrays(tuple(args)), err_msg and f"{err_msg}: "
    generator = np.random.default_rng(0)
    result, pull = f_vjp(*args)
    _compare(result, f(*args), atol, rtol, f"{prefix}the result")
    tangents = _random_like(args, generator)
    cotangents = _random_like(result, generator)
    pulled = pull(cotangents)
    found = _product(tangents, pulled)
    least = max(
        _inexact_dtypes((args, result)), key=lambda dtype: float(dtypes.finfo(dtype).eps), default=np.dtype(np.float64)
    )
    real = np.zeros((), least).real.dtype


    def compare(step: float | None) -> None:
        expected = _product(_difference(f, args, tangents, step), cotangents)
        _compare(np.asarray(found, real), expected, atol, rtol, f"{prefix}the product with a cotangent")

    _with_either_step(eps, compare)


_SMALL_STEP = 1e-4
"""JAX's step, for functions that bend much within the other one, as log(x) does near 0."""


def _with_either_step(eps: float | None, compare: Callable[[float | None], None]) -> None:
    """Without a step of the user: a derivative is right if the difference with one of two steps says so."""
    try:
        compare(eps)
    except DerivativeMismatchError:
        if eps is not None:
            raise
        try:
            compare(_SMALL_STEP)
        except DerivativeMismatchError:
            pass
        else:
            return
        raise


# ---- arithmetic on trees, in NumPy: it must not depend on the tested code


def _arrays(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with arrays in place of NumPy's: `f` gets arrays, as it does where it is differentiated."""

    def array(leaf: Any) -> Any:
        is_numpy = isinstance(leaf, np.ndarray | np.generic) and leaf.dtype != float0
        return as_value(leaf) if is_numpy else leaf

    return tuple(tree.map(array, args))


def _dtype(leaf: Any) -> np.dtype[Any]:
    """A leaf's dtype as the functions of the library take it: Python's numbers have the defaults'."""
    dtype = getattr(leaf, "dtype", None)
    return np.dtype(dtype) if dtype == float0 else np.dtype(as_value(leaf).aval.dtype)


def _random_like(values: Any, generator: np.random.Generator) -> Any:
    """Tangents (or cotangents) for all leaves, each component between 1/2 and 3/2 or the negative of such a number."""

    def draw(shape: tuple[int, ...]) -> Any:
        return generator.uniform(0.5, 1.5, shape) * generator.choice([-1.0, 1.0], shape)

    def like(leaf: Any) -> Any:
        shape, dtype = np.shape(leaf), _dtype(leaf)
        if not is_inexact(dtype):
            return np.zeros(shape, float0)
        drawn = draw(shape) + 1j * draw(shape) if dtype.kind == "c" else draw(shape)
        return np.asarray(drawn).astype(dtype)[()]

    return tree.map(like, values)


def _wide(leaf: Any) -> Any:
    """A leaf in double precision."""
    array = np.asarray(leaf)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _difference(f: Function, args: tuple[Any, ...], tangents: Any, eps: float | None) -> Any:
    """The central difference of `f` in the direction of `tangents`."""
    step = _default_step(args) if eps is None else eps

    def moved(sign: float) -> Any:
        def move(leaf: Any, tangent: Any) -> Any:
            if tangent.dtype == float0:
                return leaf
            there = _wide(leaf) + sign * step * _wide(tangent)
            return there.item() if isinstance(leaf, (float, complex)) else as_value(there.astype(_dtype(leaf)))

        return f(*tree.map(move, args, tangents))

    def quotient(ahead: Any, behind: Any) -> Any:
        if not is_inexact(_dtype(ahead)):
            return np.zeros(np.shape(ahead), float0)
        ahead, behind = _wide(ahead), _wide(behind)
        with np.errstate(invalid="ignore"):  # an infinity that does not move has the derivative 0
            return np.where(ahead == behind, 0.0, (ahead - behind) / (2 * step))

    return tree.map(quotient, moved(1.0), moved(-1.0))


def _default_step(args: Any) -> float:
    """The cube root of the precision: it balances the rounding error and the error of the difference."""
    precisions = [float(dtypes.finfo(dtype).eps) for dtype in _inexact_dtypes(args)]
    return float(max(precisions, default=1e-16) ** (1 / 3))


def _inexact_dtypes(values: Any) -> list[np.dtype[Any]]:
    return [dtype for dtype in map(_dtype, tree.leaves(values)) if is_inexact(dtype)]


def _product(left: Any, right: Any) -> float:
    """The real part of the sum of products: derivatives of complex functions transpose without conjugation."""

    def one(a: Any, b: Any) -> float:
        if np.asarray(a).dtype == float0 or np.asarray(b).dtype == float0:
            return 0.0
        return float(np.sum(_wide(a) * _wide(b)).real)

    return float(sum(tree.leaves(tree.map(one, left, right))))


def _compare(found: Any, expected: Any, atol: Tolerance, rtol: Tolerance, what: str) -> None:
    def one(path: Any, a: Any, b: Any) -> None:
        where = what + tree.keystr(path)
        if np.shape(a) != np.shape(b):
            raise DerivativeMismatchError(f"{where} has the shape {np.shape(a)}, expected {np.shape(b)}")
        dtype = np.asarray(a).dtype
        if dtype == float0:
            return
        size = max(np.size(a), 1)  # errors of a product with a random direction grow with it
        absolute, relative = _tolerance(atol, dtype) * size, _tolerance(rtol, dtype) * size
        left, right = _wide(a), _wide(b)
        if not np.allclose(left, right, rtol=relative, atol=absolute, equal_nan=True):
            with np.errstate(invalid="ignore"):
                worst = np.nanargmax(np.abs(left - right)) if np.isfinite(left - right).any() else 0
            raise DerivativeMismatchError(
                f"{where} differs from finite differences: {left.flat[worst]} and {right.flat[worst]} at flat index "
                f"{worst} of {dtype.name}{list(np.shape(a))}; tolerances: absolute {absolute}, relative {relative}"
            )

    tree.map_with_path(one, found, expected)


def _tolerance(given: Tolerance, dtype: np.dtype[Any]) -> float:
    if given is not None and not isinstance(given, Mapping):
        return given
    default = _DEFAULT_TOLERANCES.get(dtype.name, 1.0 if is_inexact(dtype) else 0.0)
    own: dict[np.dtype[Any], float] = {np.dtype(key): value for key, value in (given or {}).items()}
    return own.get(dtype, default)
