"""`sparsify`, and derivatives by sparse arrays. Names and semantics follow jax.experimental.sparse.

`sparsify` traces the function with dense types, and evaluates its jaxpr: an operation with a sparse operand by its rule
here, any other as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ... import lax, tree
from ... import numpy as jnp
from ...autodiff import api
from ...autodiff import jacobian as of_vectors
from ...hlo.errors import UnsupportedError
from ...jaxpr.view import make_jaxpr
from ...tracer.arguments import ShapeDtypeStruct
from ...tracer.errors import TreeStructureError
from ...tracer.tracer import Tracer
from . import operators as rules
from .arrays import BCOO, BCSR, JAXSparse
from .convolution import bcoo_conv_general_dilated
from .layout import with_data

Function = Callable[..., Any]


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def sparsify(f: Function, use_tracer: bool = False) -> Function:
    """The function for sparse arguments: where an operation of `f` meets a sparse array, it is the sparse operation.

    There are rules for products, element-wise products, sums and quotients, reductions by sum, functions that keep 0,
    movement of dimensions, branches and loops. An operation without a rule raises UnsupportedError. A sparse array in
    the state of a loop keeps its number of specified elements; it is not mapped over by scan. `use_tracer` is ignored.

    >>> m = sparse.bcoo_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> f = sparse.sparsify(lambda m, x: jnp.sum((2.0 * m) @ x))
    >>> f(m, jnp.array([1.0, 10.0]))
    Array(46., dtype=float32)
    """

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs), is_leaf=_is_sparse)
        arrays = [k for k, leaf in enumerate(leaves) if _is_sparse(leaf) or hasattr(leaf, "dtype")]
        outputs: Any = None

        def flat(*values: Any) -> list[Any]:
            nonlocal outputs
            full = list(leaves)
            for k, v in zip(arrays, values, strict=True):
                full[k] = v
            given, named = tree.unflatten(structure, full)
            found, outputs = tree.flatten(f(*given, **named))
            return found

        jaxpr = make_jaxpr(flat)(*[ShapeDtypeStruct(leaves[k].shape, leaves[k].dtype) for k in arrays])
        found = _evaluate(jaxpr.jaxpr, jaxpr.consts, [leaves[k] for k in arrays])
        return tree.unflatten(outputs, found)

    return wrapped


def _evaluate(jaxpr: Any, consts: Any, args: Any) -> list[Any]:
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

    def read(atom: Any) -> Any:
        return atom.val if hasattr(atom, "val") else known[atom]

    for eqn in jaxpr.eqns:
        operands = [read(a) for a in eqn.invars]
        inner = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
        if not any(_is_sparse(x) for x in operands):
            found = eqn.primitive.bind(*operands, **eqn.params)
        elif eqn.primitive.name in _RULES:
            found = _RULES[eqn.primitive.name](*operands, **eqn.params)
        elif inner is not None and eqn.primitive.name in _CALLS:
            found = _evaluate(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), operands)
        else:
            why = " because it would result in dense output" if eqn.primitive.name in _DENSE else ""
            raise UnsupportedError(
                f"sparse rule for {eqn.primitive.name} is not implemented{why}. It is applied to "
                f"{[x for x in operands if _is_sparse(x)]}\n  todense() makes an array dense."
            )
        results = list(found) if isinstance(found, list | tuple) else [found]
        known.update(zip(eqn.outvars, results, strict=True))
    return [read(a) for a in jaxpr.outvars]


_CALLS = ("jit", "closed_call", "custom_jvp_call", "custom_vjp_call", "remat", "remat2", "checkpoint")
_ZERO_KEEPING = (
    *("abs", "asin", "asinh", "atanh", "cbrt", "ceil", "expm1", "floor", "log1p", "round", "sign", "sin", "sinh"),
    *("sqrt", "square", "tan", "tanh"),
)


def _elementwise(function: Function) -> Function:
    def rule(x: Any, **params: Any) -> Any:
        found = rules.unique(x)
        return with_data(found, function(found.data))

    return rule


def _arctangent(x: Any, y: Any, **_: Any) -> Any:
    """atan(x) is atan2(x, 1): it keeps 0 where the second number is positive."""
    if not _is_sparse(x) or isinstance(y, Tracer) or _is_sparse(y) or jnp.ndim(y) or not y > 0:
        raise UnsupportedError(f"sparsify: atan2 of {x!r} and {y!r} is not sparse")
    found = rules.unique(x)
    return with_data(found, jnp.arctan2(found.data, y))


def _complex(x: Any, y: Any, **_: Any) -> Any:
    if not (_is_sparse(x) and _is_sparse(y)):
        raise UnsupportedError("sparsify: complex of sparse and dense arrays")
    if _same_places(x, y):  # the parts of one array
        return with_data(x, lax.complex(x.data, y.data))
    return rules.add(*(with_data(part, part.data * unit) for part, unit in ((x, 1 + 0j), (y, 1j))))


def _dynamic_slice(x: Any, *starts: Any, slice_sizes: Any, **_: Any) -> Any:
    return _in_coordinates(lambda m: rules.bcoo_dynamic_slice(m, starts, slice_sizes), x)


def _dot(x: Any, y: Any, *, dimension_numbers: Any, preferred_element_type: Any = None, **_: Any) -> Any:
    found = rules.bcoo_dot_general(x, y, dimension_numbers=dimension_numbers)
    return found if _is_sparse(found) or preferred_element_type is None else found.astype(preferred_element_type)


def _multiply(x: Any, y: Any, **_: Any) -> Any:
    if _is_sparse(x) and _is_sparse(y) and x.unique_indices and _same_places(x, y):  # as in powers
        return with_data(x, x.data * y.data)
    return rules.multiply(x, y) if _is_sparse(x) else rules.multiply(y, x)


def _same_places(x: Any, y: Any) -> bool:
    return x.indices is y.indices and (not isinstance(x, BCSR) or x.indptr is y.indptr)


def _divide(x: Any, y: Any, **_: Any) -> Any:
    if not _is_sparse(x):
        raise UnsupportedError(f"sparsify: division by {y!r}")
    return rules.divide(x, y)


def _add(x: Any, y: Any, **_: Any) -> Any:
    return rules.add(x, y) if _is_sparse(x) else rules.add(y, x)


def _sub(x: Any, y: Any, **_: Any) -> Any:
    return rules.add(x, -y) if _is_sparse(x) else rules.add(-y, x)


def _sum(x: Any, *, axes: Any, **_: Any) -> Any:
    found = _in_coordinates(lambda m: rules.bcoo_reduce_sum(m, axes=axes), x)
    return found if found.ndim else rules.todense(found)


def _in_coordinates(rule: Function, x: Any) -> Any:
    found = rule(rules.as_coordinates(x))
    return BCSR.from_bcoo(found) if isinstance(x, BCSR) and found.n_sparse == 2 else found


def _broadcast(x: Any, *, shape: Any, broadcast_dimensions: Any, **_: Any) -> Any:
    def rule(m: BCOO) -> BCOO:
        return rules.bcoo_broadcast_in_dim(m, shape=shape, broadcast_dimensions=broadcast_dimensions)

    return _in_coordinates(rule, x)


def _slice(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any = None, **_: Any) -> Any:
    def rule(m: BCOO) -> BCOO:
        return rules.bcoo_slice(m, start_indices=start_indices, limit_indices=limit_indices, strides=strides)

    return _in_coordinates(rule, x)


def _concatenate(*xs: Any, dimension: int, **_: Any) -> Any:
    if not all(_is_sparse(x) for x in xs):
        raise UnsupportedError("sparsify: concatenate of sparse and dense arrays")
    return rules.bcoo_concatenate([rules.as_coordinates(x) for x in xs], dimension=dimension)


# ---- branches and loops: sparse arrays go through them as their parts


def _called(closed: Any, *operands: Any) -> list[Any]:
    """The results of a jaxpr, with one type for sparse arrays, for any properties of their indices."""
    return [_forgetful(x) for x in _evaluate(closed.jaxpr, closed.consts, operands)]


def _forgetful(x: Any) -> Any:
    """A sparse array without information on whether its indices are sorted or unique."""
    if not _is_sparse(x):
        return x
    parts = (x.data, x.indices) if isinstance(x, BCOO) else (x.data, x.indices, x.indptr)
    return type(x)(parts, shape=x.shape)


def _cond(index: Any, *operands: Any, branches: Any, **_: Any) -> Any:
    try:
        return lax.switch(index, [functools.partial(_called, branch) for branch in branches], *operands)
    except TreeStructureError as error:
        raise TreeStructureError(
            f"sparsified true_fun output must have same type structure as sparsified false_fun output: {error}"
        ) from None


def _while(
    *operands: Any, cond_jaxpr: Any, cond_nconsts: int, body_jaxpr: Any, body_nconsts: int, **_: Any
) -> Any:
    first = cond_nconsts + body_nconsts
    of_cond, of_body, init = operands[:cond_nconsts], operands[cond_nconsts:first], operands[first:]
    return lax.while_loop(
        lambda state: _called(cond_jaxpr, *of_cond, *state)[0],
        lambda state: _called(body_jaxpr, *of_body, *state),
        [_forgetful(x) for x in init],
    )


def _scan(*operands: Any, jaxpr: Any, num_consts: int, num_carry: int, **params: Any) -> Any:
    first = num_consts + num_carry
    consts, init, xs = operands[:num_consts], operands[num_consts:first], operands[first:]

    def body(state: Any, x: Any) -> tuple[Any, Any]:
        found = _called(jaxpr, *consts, *state, *x)
        _no_sparse(found[num_carry:], "returned by each turn of")
        return found[:num_carry], found[num_carry:]

    _no_sparse(xs, "mapped over by")
    order = {name: params[name] for name in ("length", "reverse", "unroll")}
    last, ys = lax.scan(body, [_forgetful(x) for x in init], list(xs), **order)
    return [*last, *ys]


def _no_sparse(values: Any, what: str) -> None:
    if sparse := [x for x in values if _is_sparse(x)]:
        raise UnsupportedError(f"sparsify: sparse arrays cannot be {what} scan: {sparse}")


_DENSE = frozenset(
    ("acos", "acosh", "and", "bessel_i0e", "cos", "cosh", "digamma", "eq", "erfc", "exp", "ge", "gt", "le", "lgamma")
    + ("log", "logistic", "lt", "max", "min", "ne", "not", "or", "pow", "rsqrt", "xor")
)
"""Operations with results that are not 0 where a sparse operand is."""
_RULES: dict[str, Function] = {
    **{name: _elementwise(getattr(jnp, name)) for name in _ZERO_KEEPING},
    "add": _add,
    "add_any": _add,
    "atan2": _arctangent,
    "bessel_i1e": _elementwise(lax.bessel_i1e),
    "broadcast_in_dim": _broadcast,
    "complex": _complex,
    "concatenate": _concatenate,
    "cond": _cond,
    "conv_general_dilated": lambda x, y, *, out_sharding=None, **params: bcoo_conv_general_dilated(x, y, **params),
    "convert_element_type": lambda x, *, new_dtype, **_: x.astype(new_dtype),
    "copy": lambda x, **_: x,
    "div": _divide,
    "dot_general": _dot,
    "dynamic_slice": _dynamic_slice,
    "imag": lambda x, **_: with_data(x, jnp.imag(x.data)),
    "integer_pow": lambda x, *, y, **_: rules.power(x, y),
    "mul": _multiply,
    "neg": lambda x, **_: -x,
    "real": lambda x, **_: with_data(x, jnp.real(x.data)),
    "reduce_sum": _sum,
    "reshape": lambda x, *, new_sizes, **_: _in_coordinates(lambda m: rules.reshape(m, new_sizes), x),
    "rev": lambda x, *, dimensions, **_: _in_coordinates(lambda m: rules.bcoo_rev(m, dimensions), x),
    "scan": _scan,
    "slice": _slice,
    "squeeze": lambda x, *, dimensions, **_: _in_coordinates(lambda m: rules.bcoo_squeeze(m, dimensions=dimensions), x),
    "sub": _sub,
    "todense": rules.todense,
    "transpose": lambda x, *, permutation, **_: rules.transpose(x, permutation),
    "while": _while,
}


# ---- derivatives


def _by_data(transformation: Function, fun: Function, argnums: Any, rewrap: Function, **options: Any) -> Function:
    """The transformation of a function of the numbers of sparse arguments; their places stay."""

    def transformed(*args: Any, **kwargs: Any) -> Any:
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        places = {n % len(args): args[n] for n in numbers}

        def of_data(*values: Any, **named: Any) -> Any:
            full = list(values)
            for n, original in places.items():
                full[n] = tree.map(
                    lambda o, v: with_data(o, v) if _is_sparse(o) else v, original, full[n], is_leaf=_is_sparse
                )
            return fun(*full, **named)

        given = list(args)
        for n, original in places.items():
            given[n] = tree.map(lambda o: o.data if _is_sparse(o) else o, original, is_leaf=_is_sparse)
        found = transformation(of_data, argnums=argnums, **options)(*given, **kwargs)
        return rewrap(found, [args[n] for n in numbers], isinstance(argnums, int))

    return functools.wraps(fun)(transformed)


def _like_arguments(found: Any, arguments: list[Any], is_one: bool) -> Any:
    """Derivatives, with the places of the sparse arguments."""
    parts = [found] if is_one else list(found)
    wrapped = [
        tree.map(lambda o, g: with_data(o, g) if _is_sparse(o) else g, a, p, is_leaf=_is_sparse)
        for a, p in zip(arguments, parts, strict=True)
    ]
    return wrapped[0] if is_one else tuple(wrapped)


def grad(fun: Function, argnums: int | Any = 0, has_aux: bool = False, **kwargs: Any) -> Function:
    """`hloom.grad` by dense and sparse arguments. The derivative by a sparse argument is sparse, at its places.

    >>> m = sparse.bcoo_fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> sparse.grad(lambda m: (m @ jnp.array([1.0, 10.0])).sum())(m).data
    Array([10.,  1.], dtype=float32)
    """

    def rewrap(found: Any, arguments: list[Any], is_one: bool) -> Any:
        if has_aux:
            return _like_arguments(found[0], arguments, is_one), found[1]
        return _like_arguments(found, arguments, is_one)

    return _by_data(api.grad, fun, argnums, rewrap, has_aux=has_aux, **kwargs)


def value_and_grad(fun: Function, argnums: int | Any = 0, has_aux: bool = False, **kwargs: Any) -> Function:
    """`hloom.value_and_grad` by dense and sparse arguments.

    >>> m = sparse.bcoo_fromdense(jnp.array([0.0, 2.0]))
    >>> value, slope = sparse.value_and_grad(lambda m: (m.todense() ** 2).sum())(m)
    >>> value, slope.data
    (Array(4., dtype=float32), Array([4.], dtype=float32))
    """

    def rewrap(found: Any, arguments: list[Any], is_one: bool) -> Any:
        return found[0], _like_arguments(found[1], arguments, is_one)

    return _by_data(api.value_and_grad, fun, argnums, rewrap, has_aux=has_aux, **kwargs)


def _jacobian(transformation: Function, fun: Function, argnums: Any, has_aux: bool, **kwargs: Any) -> Function:
    def one(derivative: Any, argument: Any) -> Any:
        if not _is_sparse(argument):
            return derivative
        x = rules.as_coordinates(argument)
        lead = derivative.ndim - x.data.ndim
        if isinstance(argument, BCSR) or x.n_batch:
            raise UnsupportedError(f"the Jacobian by {argument!r}: BCOO without batches has one")
        shape = (*derivative.shape[:lead], *x.shape)
        indices = jnp.broadcast_to(x.indices, (*derivative.shape[:lead], *x.indices.shape))
        form = {"indices_sorted": x.indices_sorted, "unique_indices": x.unique_indices}
        return BCOO((derivative, indices), shape=shape, **form)

    def rewrap(found: Any, arguments: list[Any], is_one: bool) -> Any:
        derivatives, aux = found if has_aux else (found, None)
        parts = [derivatives] if is_one else list(derivatives)
        wrapped = [one(p, a) for p, a in zip(parts, arguments, strict=True)]
        result = wrapped[0] if is_one else tuple(wrapped)
        return (result, aux) if has_aux else result

    return _by_data(transformation, fun, argnums, rewrap, has_aux=has_aux, **kwargs)


def jacfwd(fun: Function, argnums: int | Any = 0, has_aux: bool = False, **kwargs: Any) -> Function:
    """`hloom.jacfwd` by dense and sparse arguments, of a function that returns one array. The Jacobian by a sparse
    argument has the result's dimensions as batch dimensions.

    >>> m = sparse.bcoo_fromdense(jnp.array([0.0, 2.0]))
    >>> sparse.jacfwd(lambda m: m.todense() * 3.0)(m).shape
    (2, 2)
    """
    return _jacobian(of_vectors.jacfwd, fun, argnums, has_aux, **kwargs)


def jacrev(fun: Function, argnums: int | Any = 0, has_aux: bool = False, **kwargs: Any) -> Function:
    """`hloom.jacrev` by dense and sparse arguments, as `jacfwd`.

    >>> m = sparse.bcoo_fromdense(jnp.array([0.0, 2.0]))
    >>> sparse.jacrev(lambda m: m.todense() * 3.0)(m).todense()
    Array([[0., 0.],
           [0., 3.]], dtype=float32)
    """
    return _jacobian(of_vectors.jacrev, fun, argnums, has_aux, **kwargs)


jacobian = jacrev
