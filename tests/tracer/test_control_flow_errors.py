"""Errors of control flow functions: JAX's class, the leaf, the types, the user's line."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import pytest

import hloom
from hloom.errors import ConcretizationTypeError, TracerBoolConversionError, UnexpectedTracerError

Program = Callable[[Any, Any, Any], Any]


def traced_length(j: Any, lax: Any, xp: Any) -> Any:
    return j.jit(lambda n: lax.scan(lambda c, x: (c, None), 0, None, length=n))(3)


def traced_unroll(j: Any, lax: Any, xp: Any) -> Any:
    return j.jit(lambda n: lax.scan(lambda c, x: (c, None), 0, None, length=2, unroll=n))(3)


def unrolled_without_bounds(j: Any, lax: Any, xp: Any) -> Any:
    return j.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0, unroll=2))(4)


def other_structure_without_bounds(j: Any, lax: Any, xp: Any) -> Any:
    return j.jit(lambda n: lax.fori_loop(0, n, lambda i, state: {"a": state}, 0))(4)


def other_type_without_bounds(j: Any, lax: Any, xp: Any) -> Any:
    return j.jit(lambda n: lax.fori_loop(0, n, lambda i, s: (s[0], s[1] * 1.5), (0, xp.arange(2))))(4)


def python_if_in_a_body(j: Any, lax: Any, xp: Any) -> Any:
    return lax.scan(lambda c, x: (c + 1 if c > 1 else c, None), 0, xp.ones(3))


def python_if_in_a_branch(j: Any, lax: Any, xp: Any) -> Any:
    return lax.cond(True, lambda x: 1.0 if x > 0 else 2.0, lambda x: x, 3.0)


def platforms_that_differ(j: Any, lax: Any, xp: Any) -> Any:
    return j.jit(lambda x: lax.platform_dependent(x, cpu=lambda x: x, tpu=lambda x: (x, x)))(3.0)


ERRORS: dict[str, tuple[Program, str, list[str]]] = {
    "cond: no function": (lambda j, lax, xp: lax.cond(True, lambda: 1.0, None), "TypeError", ["false_fun", "NoneType"]),
    "cond: a value for a function": (lambda j, lax, xp: lax.cond(True, 3.0, lambda x: x), "TypeError", ["true_fun"]),
    "cond: None": (lambda j, lax, xp: lax.cond(None, lambda: 1.0, lambda: 2.0), "TypeError", ["predicate is None"]),
    "cond: a list": (lambda j, lax, xp: lax.cond([True], lambda: 1.0, lambda: 2.0), "TypeError", ["list"]),
    "cond: text": (lambda j, lax, xp: lax.cond("a", lambda: 1.0, lambda: 2.0), "TypeError", ["Pred type", "'a'"]),
    "cond: complex": (lambda j, lax, xp: lax.cond(1j, lambda: 1.0, lambda: 2.0), "TypeError", ["complex64"]),
    "cond: no scalar": (
        lambda j, lax, xp: lax.cond(xp.ones(3) > 0, lambda: 1.0, lambda: 2.0),
        "TypeError",
        ["scalar", "bool[3]", "where"],
    ),
    "cond: both kinds of operands": (
        lambda j, lax, xp: lax.cond(True, lambda x: x, lambda x: x, 1.0, operand=2.0),
        "TypeError",
        ["operand"],
    ),
    "cond: too many operands": (
        lambda j, lax, xp: lax.cond(True, lambda x: x, lambda x: x, 1.0, 2.0),
        "TypeError",
        ["positional"],
    ),
    "cond: too few operands": (lambda j, lax, xp: lax.cond(True, lambda x: x, lambda x: x), "TypeError", ["missing"]),
    "cond: structures": (
        lambda j, lax, xp: lax.cond(True, lambda x: {"a": (x, x)}, lambda x: {"a": (x, [x])}, 3.0),
        "TypeError",
        ["true_fun output at path ['a'][1] is a pytree leaf but", "path ['a'][1] is a <class 'list'>", "Revise"],
    ),
    "cond: types": (
        lambda j, lax, xp: lax.cond(
            True, lambda x: {"a": x, "c": 1, "d": x}, lambda x: {"a": x, "c": xp.ones(3), "d": 2}, 3.0
        ),
        "TypeError",
        ["['c'] has type int32[]", "float32[3]", "dtypes do not match, and the shapes", "['d'] has type float32[]"],
    ),
    "cond: no array": (lambda j, lax, xp: lax.cond(True, lambda x: x, lambda x: "a", 3.0), "TypeError", ["str"]),
    "cond: no operand": (lambda j, lax, xp: lax.cond(True, lambda x: x, lambda x: x, "a"), "TypeError", ["'a'"]),
    "switch: one function": (lambda j, lax, xp: lax.switch(0, lambda x: x, 3.0), "TypeError", ["iterable"]),
    "switch: no function": (
        lambda j, lax, xp: lax.switch(0, [lambda x: x, 3], 3.0),
        "TypeError",
        ["branches[1]", "int"],
    ),
    "switch: nothing": (lambda j, lax, xp: lax.switch(0, []), "ValueError", ["empty"]),
    "switch: a float": (
        lambda j, lax, xp: lax.switch(1.0, [lambda: 1, lambda: 2]),
        "TypeError",
        ["Index type must be an integer", "float32[]"],
    ),
    "switch: no number": (
        lambda j, lax, xp: lax.switch(print, [abs, abs], 1),
        "TypeError",
        ["Index type must be an integer, got <built-in function print>"],
    ),
    "switch: a bool": (lambda j, lax, xp: lax.switch(True, [lambda: 1, lambda: 2]), "TypeError", ["bool[]"]),
    "switch: no scalar": (
        lambda j, lax, xp: lax.switch(xp.arange(2), [lambda: 1, lambda: 2]),
        "TypeError",
        ["int32[2]"],
    ),
    "switch: types": (
        lambda j, lax, xp: lax.switch(0, [lambda x: x, lambda x: x, lambda x: 1], 3.0),
        "TypeError",
        ["branch 0 has type float32[]", "branch 2 has type int32[]"],
    ),
    "while: no condition": (lambda j, lax, xp: lax.while_loop(None, lambda c: c, 0), "TypeError", ["cond_fun"]),
    "while: no body": (lambda j, lax, xp: lax.while_loop(lambda c: True, 5, 0), "TypeError", ["body_fun", "5"]),
    "while: condition in a tuple": (
        lambda j, lax, xp: lax.while_loop(lambda c: (c < 3,), lambda c: c + 1, 0),
        "TypeError",
        ["boolean scalar"],
    ),
    "while: condition without value": (
        lambda j, lax, xp: lax.while_loop(lambda c: None, lambda c: c + 1, 0),
        "TypeError",
        ["boolean scalar, but got pytree PyTreeDef(None)"],
    ),
    "while: structure": (
        lambda j, lax, xp: lax.while_loop(lambda c: c["x"][0] < 3, lambda c: {"x": [c["x"][0], (1,)]}, {"x": [0, 1]}),
        "TypeError",
        ["The input carry component c['x'][1] is a pytree leaf", "is a <class 'tuple'>, so their Python", "Revise"],
    ),
    "while: keys": (
        lambda j, lax, xp: lax.while_loop(lambda c: c["x"] < 3, lambda c: {"x": 1, "y": 2}, {"x": 0}),
        "TypeError",
        ["{'x': *}", "{'x': *, 'y': *}"],
    ),
    "while: type": (
        lambda j, lax, xp: lax.while_loop(
            lambda state: state["x"] < 3, lambda state: {"x": state["x"] + 1.5}, {"x": xp.int32(0)}
        ),
        "TypeError",
        ["carry component state['x'] has type int32[]", "float32[]", "dtypes", "astype"],
    ),
    "while: text": (lambda j, lax, xp: lax.while_loop(lambda c: True, lambda c: c, "a"), "TypeError", ["str"]),
    "scan: no function": (
        lambda j, lax, xp: lax.scan(3, 0, xp.ones(3)),
        "TypeError",
        ["f argument should be callable"],
    ),
    "scan: no pair": (lambda j, lax, xp: lax.scan(lambda c, x: c, 0, xp.ones(3)), "TypeError", ["pair"]),
    "scan: three results": (
        lambda j, lax, xp: lax.scan(lambda c, x: (c, x, x), 0, xp.ones(3)),
        "TypeError",
        ["pair", "(*, *, *)"],
    ),
    "scan: arguments": (lambda j, lax, xp: lax.scan(lambda c: (c, c), 0, xp.ones(3)), "TypeError", ["positional"]),
    "scan: types": (
        lambda j, lax, xp: lax.scan(
            lambda c, x: ({"a": c["a"] > 0, "b": c["b"][:1], "k": c["k"]}, x),
            {"a": xp.ones(1), "b": xp.ones(2), "k": 0},
            xp.ones(3),
        ),
        "TypeError",
        ["c['a'] has type float32[1]", "bool[1]", "c['b'] has type float32[2]", "float32[1], so the shapes do"],
    ),
    "scan: lengths": (
        lambda j, lax, xp: lax.scan(lambda c, x: (c, x), 0, {"a": xp.ones(3), "b": [xp.ones((4, 2))]}),
        "ValueError",
        ["leading axis sizes", "xs['a'] has 3", "xs['b'][0] has 4"],
    ),
    "scan: length": (
        lambda j, lax, xp: lax.scan(lambda c, x: (c, x), 0, [xp.ones(3)], length=2),
        "ValueError",
        ["length", "2", "xs[0] has 3"],
    ),
    "scan: no axis": (
        lambda j, lax, xp: lax.scan(lambda c, x: (c, x), 0, {"a": xp.ones(3), "b": 1.0}),
        "ValueError",
        ["leading axis", "xs['b'] is float32[]"],
    ),
    "scan: no length": (lambda j, lax, xp: lax.scan(lambda c, x: (c, x), 0), "ValueError", ["length"]),
    "scan: traced length": (traced_length, "ConcretizationTypeError", ["length", "fori_loop"]),
    "scan: negative unroll": (
        lambda j, lax, xp: lax.scan(lambda c, x: (c, x), 0, None, length=2, unroll=-1),
        "ValueError",
        ["unroll", "-1"],
    ),
    "scan: traced unroll": (traced_unroll, "ConcretizationTypeError", ["unroll"]),
    "scan: no unroll": (
        lambda j, lax, xp: lax.scan(lambda c, x: (c, x), 0, None, length=2, unroll="a"),
        "TypeError",
        ["'a'"],
    ),
    "scan: if": (python_if_in_a_body, "TracerBoolConversionError", ["lax.cond"]),
    "cond: if": (python_if_in_a_branch, "TracerBoolConversionError", ["lax.cond"]),
    "fori_loop: no function": (lambda j, lax, xp: lax.fori_loop(0, 3, None, 0), "TypeError", ["body_fun"]),
    "fori_loop: bounds": (
        lambda j, lax, xp: lax.fori_loop(xp.int8(0), xp.int16(3), lambda i, c: c, 0),
        "TypeError",
        ["int8 and int16"],
    ),
    "fori_loop: float": (lambda j, lax, xp: lax.fori_loop(0, 3.5, lambda i, c: c, 0), "TypeError", ["float32"]),
    "fori_loop: no scalar": (
        lambda j, lax, xp: lax.fori_loop(xp.ones(2, int), 3, lambda i, c: c, 0),
        "TypeError",
        ["int32[2]"],
    ),
    "fori_loop: structure": (
        lambda j, lax, xp: lax.fori_loop(0, 3, lambda i, c: (c, c), 0.0),
        "TypeError",
        ["The input carry c is a pytree leaf", "of the carry output is a <class 'tuple'>"],
    ),
    "fori_loop: type": (
        lambda j, lax, xp: lax.fori_loop(0, 3, lambda i, state: xp.ones(2), 0.0),
        "TypeError",
        ["carry state has type float32[]", "float32[2]"],
    ),
    "fori_loop: unrolled": (unrolled_without_bounds, "ValueError", ["unroll", "bounds"]),
    "fori_loop: structure, traced": (
        other_structure_without_bounds,
        "TypeError",
        ["fori_loop", "is a pytree leaf", "of the carry output is a <class 'dict'>"],
    ),
    "fori_loop: type, traced": (
        other_type_without_bounds,
        "TypeError",
        ["fori_loop", "component s[1] has type int32[2]", "float32[2]"],
    ),
    "map: lengths": (
        lambda j, lax, xp: lax.map(lambda x: x, (xp.ones(3), xp.ones(4))),
        "ValueError",
        ["xs[0] has 3", "xs[1] has 4"],
    ),
    "map: nothing": (lambda j, lax, xp: lax.map(lambda x: x, {}), "ValueError", ["no values"]),
    "map: no function": (lambda j, lax, xp: lax.map(3, xp.ones(3)), "TypeError", ["int"]),
    "associative_scan: no function": (lambda j, lax, xp: lax.associative_scan(3, xp.ones(3)), "TypeError", ["fn"]),
    "associative_scan: axis": (
        lambda j, lax, xp: lax.associative_scan(xp.add, xp.ones(3), axis=1),
        "ValueError",
        ["axis 1", "1 dimensions"],
    ),
    "associative_scan: sizes": (
        lambda j, lax, xp: lax.associative_scan(lambda a, b: a, {"u": xp.ones(3), "v": xp.ones(4)}),
        "ValueError",
        ["elems['u'] has 3", "elems['v'] has 4"],
    ),
    "associative_scan: structure": (
        lambda j, lax, xp: lax.associative_scan(lambda a, b: (a, b), xp.arange(5)),
        "ValueError",
        ["structure", "(*, *)"],
    ),
    "associative_scan: dtype": (
        lambda j, lax, xp: lax.associative_scan(lambda a, b: a * 1.5, xp.arange(5)),
        "TypeError",
        ["int32[1]", "float32[1]"],
    ),
    "platform_dependent: gpu": (
        lambda j, lax, xp: lax.platform_dependent(1.0, gpu=lambda x: x),
        "ValueError",
        ["cuda"],
    ),
    "platform_dependent: no function": (lambda j, lax, xp: lax.platform_dependent(1.0, cpu=3), "TypeError", ["cpu"]),
    "platform_dependent: none": (
        lambda j, lax, xp: lax.platform_dependent(1.0, tpu=lambda x: x),
        "NotImplementedError",
        ["tpu", "default"],
    ),
    "platform_dependent: types": (
        platforms_that_differ,
        "TypeError",
        ["cpu output is a pytree leaf", "tpu output is a <class 'tuple'>"],
    ),
    "select: shapes": (
        lambda j, lax, xp: lax.select(xp.ones(2) > 0, xp.ones(3), xp.ones(3)),
        "TypeError",
        ["select"],
    ),
    "select_n: a boolean of three": (
        lambda j, lax, xp: lax.select_n(xp.ones(2) > 0, xp.ones(2), xp.ones(2), xp.ones(2)),
        "TypeError",
        ["2 cases"],
    ),
    "select_n: nothing": (lambda j, lax, xp: lax.select_n(xp.int32(0)), "ValueError", ["case"]),
    "cumsum: axis": (lambda j, lax, xp: lax.cumsum(xp.ones((2, 3)), axis=2), "ValueError", ["axis 2"]),
    "cumsum: booleans": (lambda j, lax, xp: lax.cumsum(xp.ones(2) > 0), "TypeError", ["bool[2]"]),
}
BY_PYTHON = ("positional", "missing", "iterable")
"""Words of errors that Python raises; their traceback names the line."""


@pytest.mark.parametrize("name", ERRORS)
def test_refused(name: str) -> None:
    program, expected, words = ERRORS[name]
    with pytest.raises((TypeError, ValueError, NotImplementedError)) as caught:
        program(hloom, hloom.lax, hloom.numpy)
    assert expected in [kind.__name__ for kind in type(caught.value).__mro__]
    for word in words:
        assert word in str(caught.value)
    named = re.search(r"test_control_flow_errors\.py:\d+", str(caught.value))
    assert named or words[0] in BY_PYTHON or expected == "NonArrayArgumentError" or "operand" in words, caught.value


@pytest.mark.parametrize("name", ERRORS)
def test_class_of_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    program, expected, _ = ERRORS[name]
    with pytest.raises((TypeError, ValueError, NotImplementedError)) as caught:
        program(jax, jax.lax, importlib.import_module("jax.numpy"))
    assert expected in [kind.__name__ for kind in type(caught.value).__mro__]


# ---- values that outlive their loop


def through_a_list(body_of: Callable[[list[Any]], Any]) -> Any:
    kept: list[Any] = []
    body_of(kept)
    return kept[0] + 1


LEAKS: dict[str, Callable[[list[Any]], Any]] = {
    "scan": lambda kept: hloom.lax.scan(lambda c, x: (kept.append(x), (c, x))[1], 0.0, hloom.numpy.ones(3)),
    "while_loop": lambda kept: hloom.lax.while_loop(lambda c: c < 2, lambda c: (kept.append(c), c + 1)[1], 0),
    "fori_loop": lambda kept: hloom.lax.fori_loop(0, 2, lambda i, c: (kept.append(i * 2), c + 1)[1], 0),
    "cond": lambda kept: hloom.lax.cond(True, lambda x: (kept.append(x + 1), x)[1], lambda x: x, 1.0),
    "map": lambda kept: hloom.lax.map(lambda x: (kept.append(x), x)[1], hloom.numpy.ones(3)),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_names_its_line(name: str) -> None:
    with pytest.raises(UnexpectedTracerError) as caught:
        through_a_list(LEAKS[name])
    assert "test_control_flow_errors.py" in str(caught.value)


def test_classes_are_those_of_jax() -> None:
    assert issubclass(TracerBoolConversionError, ConcretizationTypeError)
    assert issubclass(ConcretizationTypeError, TypeError)
