"""Errors name the function that the user called, and the types of its arguments, however deep inside they arise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.flatten_util
import hloom.numpy as jnp
import hloom.scipy.special
from hloom import lax, nn, random
from hloom.experimental import sparse
from hloom.scipy.interpolate import RegularGridInterpolator
from hloom.scipy.spatial.transform import Rotation

SHARDING = hloom.NamedSharding(hloom.make_mesh((1,), ("x",)), hloom.P("x"))
X, Y, M = jnp.ones(3), jnp.ones(4), jnp.ones((3, 3))


class Unknown:
    pass


CASES: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "an op of another name": (
        lambda: jnp.bitwise_and(X, 1),
        [
            "bitwise_and does not accept dtype float32: it accepts booleans and integers",
            "in bitwise_and(x1: float32 (3,), x2: 1)",
        ],
    ),
    "an operator": (lambda: X + Y, ["add: ", "in add(float32 (3,), other: float32 (4,))"]),
    "an operator, reflected": (lambda: np.ones(4, "f") * X, ["mul: ", "in mul(float32 (3,), other: float32 (4,))"]),
    "a method": (lambda: X.reshape(2, 2), ["reshape", "in reshape(float32 (3,), 2, 2)"]),
    "a function in the form of an object": (
        lambda: jnp.linalg.solve(M, Y),
        ["in solve(a: float32 (3, 3), b: float32 (4,))"],
    ),
    "a ufunc": (lambda: jnp.add(X, Y), ["add: Incompatible shapes", "in add(x1: float32 (3,), x2: float32 (4,))"]),
    "a list of arrays": (
        lambda: jnp.concatenate([M, X]),
        ["concatenate: all must have", "(ndim)", "list [float32 (3, 3), float32 (3,)]"],
    ),
    "an alias": (lambda: jnp.concat([M, X]), ["concat: all must have", "in concat("]),
    "no array": (lambda: jnp.linalg.norm([3.0, 4.0]), ["norm requires", "in norm(x: list [3.0, 4.0])"]),
    "no key": (lambda: random.normal((3, 3)), ["normal needs a random key", "in normal(key: tuple (3, 3))"]),
    "an integer is no key": (lambda: random.uniform(3), ["uniform: the data of", "keys", "in uniform(key: 3)"]),
    "an axis": (lambda: jnp.sum(X, axis=2), ["sum: axis 2 is out of bounds", "in sum(a: float32 (3,), axis: 2)"]),
    "an argument by name": (lambda: nn.one_hot(1, num_classes="a"), ["one_hot: ", "num_classes: 'a'"]),
    "lax": (lambda: lax.add(X, Y), ["add: Incompatible", "in add(x: float32 (3,), y: float32 (4,))"]),
    "NumPy data": (
        lambda: jnp.dot(np.ones(3, "f"), Y),
        ["dot: dot_general requires", "in dot(a: float32 (3,), b: float32 (4,))"],
    ),
    "scipy": (lambda: hloom.scipy.special.erf("a"), ["erf requires", "in erf(x: 'a')"]),
    "a function": (
        lambda: lax.scan(lambda c, x: (c + x, x), jnp.int32(0), X),
        ["scan", "in scan(f: <lambda>, init: int32 (), xs: float32 (3,))"],
    ),
    "an object": (lambda: jnp.asarray(Unknown()), ["Unknown", "in asarray(a: Unknown)"]),
    "a traced size": (
        lambda: hloom.jit(lambda n: jnp.zeros(n))(3),
        ["zeros: Shapes must be", "in zeros(shape: int32 ())", "it depends on the value of the argument n"],
    ),
    "an axis of a method": (lambda: X.sum(4), ["sum: axis 4", "in sum(float32 (3,), axis: 4)"]),
    "a class method": (lambda: Rotation.from_euler("xq", [1, 2]), ["in from_euler(seq: 'xq', angles: list [1, 2])"]),
    "an own len": (lambda: len(Rotation.from_quat(jnp.ones(4))), ["no len()", "in len(Rotation)"]),
    "a constructor": (lambda: sparse.BCOO((X, X), shape=(3,)), ["BCOO of data", "in BCOO(tuple [float32 (3,), "]),
    "a constructor of a base": (lambda: sparse.CSR((X, Y), shape=(3,)), ["in CSR(tuple [float32 (3,), float32 (4,)]"]),
    "an interpolator": (lambda: RegularGridInterpolator([M], X), ["RegularGridInterpolator: the points in dimension"]),
    "a sparse array": (lambda: np.asarray(sparse.BCOO.fromdense(M)), ["is sparse", "in array(float32 (3, 3))"]),
    "a reference": (lambda: hloom.new_ref(X).set(Y), ["Value shape: (4,)", "in set(float32 (3,), value: "]),
    "a part of a reference": (lambda: hloom.new_ref(M).at[0][1, 2], ["in getitem(", "tuple (1, 2)"]),
    "a sharding": (lambda: SHARDING.shard_shape(3), ["in shard_shape(NamedSharding, global_shape: 3)"]),
    "a vector to a tree": (lambda: hloom.flatten_util.ravel_pytree([X])[1](Y), ["expected shape (3,)"]),
    "a structure": (lambda: hloom.tree.structure([1, 2]).unflatten([1]), ["Too few leaves", "in unflatten("]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_call_is_named(name: str) -> None:
    call, words = CASES[name]
    with pytest.raises((TypeError, ValueError, IndexError)) as caught:
        call()
    message = str(caught.value)
    assert [w for w in words if w not in message] == []
    assert message.count("\n  in ") == (name != "a vector to a tree")
    assert f"at {__file__}:{call.__code__.co_firstlineno} (in <lambda>)" in message


def test_the_innermost_call_of_the_user_is_named() -> None:
    def body(c: Any, x: Any) -> Any:
        return jnp.dot(c, Y), x

    with pytest.raises(TypeError, match=r"in dot\(a: float32 \(3,\), b: float32 \(4,\)\)") as caught:
        hloom.jit(lambda x: lax.scan(body, x, x))(X)
    assert str(caught.value).count("\n  in ") == 1


def test_errors_of_users_stay_as_they_are() -> None:
    def body(c: Any, x: Any) -> Any:
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        lax.scan(body, X, X)
    with pytest.raises(ValueError, match=r"^mine$"):
        hloom.tree.map(lambda leaf: body(leaf, leaf), [X])


ARGUMENTS: dict[str, tuple[Callable[..., Any], str]] = {
    "one": (lambda n: range(n), "argument n\n"),
    "of a computed value": (lambda n, m: float(n * m + 1), "argument n and of the argument m\n"),
    "in containers": (lambda p: float(p["w"][1] * 2), "argument p['w'][1]\n"),
    "of a function around": (lambda n: hloom.jit(lambda k: float(k + n))(1.0), "argument k and of the argument n\n"),
    "one of several": (lambda a, n, b: (a * b, np.asarray(n)), "argument n\n"),
    "within vmap": (lambda n: hloom.vmap(lambda x: float(x * n))(X), "argument n\n"),
    "differentiated": (lambda n: hloom.grad(lambda x: float(x))(n), "argument n\n"),
    "of many": (lambda *args: float(sum(args)), "argument args[0] and of the argument args[1]"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_arguments_on_which_a_value_depends_are_named(name: str) -> None:
    f, words = ARGUMENTS[name]
    count = 6 if name == "of many" else f.__code__.co_argcount
    given = [{"w": (1.0, 2.0)}] if name == "in containers" else [float(k) for k in range(count)]
    if name == "one":
        given = [3]
    with pytest.raises(TypeError) as caught:
        hloom.jit(f)(*given)
    assert f"it depends on the value of the {words}" in str(caught.value)
    assert ("argument args[3] and of 2 more\n" in str(caught.value)) is (name == "of many")
