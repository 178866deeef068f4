"""How jaxprs are printed: as JAX prints them, where HLO has what JAX has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hloom
import hloom.lax
import hloom.numpy as jnp
from hloom.extend.core import jaxpr_as_fun
from support import jaxpr_programs
from support.jaxpr_programs import arguments, named, recorded

PROGRAMS = named(hloom)
X = np.ones(3, np.float32)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_jaxpr_reads_as_jax_prints_it(name: str) -> None:
    fun = PROGRAMS[name]
    assert str(hloom.make_jaxpr(fun)(*arguments(fun, "hloom"))) == recorded()[name]


def test_the_recorded_texts_are_those_of_jax() -> None:
    jax = pytest.importorskip("jax")
    if jax.__version__ != "0.10.2":
        pytest.skip("another version of JAX")
    assert jaxpr_programs.texts("jax") == recorded()


DIFFERENT = {
    "a square is a product": (
        lambda x: x**2,
        "{ lambda ; a:f32[3]. let b:f32[3] = mul a a in (b,) }",
    ),
    "a filled array is a scalar": (
        lambda x: jnp.ones(3) + x,
        "{ lambda ; a:f32[3]. let b:f32[3] = add 1.0:f32[] a in (b,) }",
    ),
    "where is no nested function": (
        lambda x: jnp.where(x > 0, x, 0.0),
        "{ lambda ; a:f32[3]. let\n    b:bool[3] = gt a 0.0:f32[]\n    c:f32[3] = broadcast_in_dim 0.0:f32[]\n"
        "    d:f32[3] = select_n b c a\n  in (d,) }",
    ),
    "nothing dead": (
        lambda x: (jnp.sin(x), x)[1],
        "{ lambda ; a:f32[3]. let  in (a,) }",
    ),
}
"""Where the text differs from JAX's: docs/differences.md says why."""


@pytest.mark.parametrize("name", DIFFERENT)
def test_where_the_text_is_not_that_of_jax(name: str) -> None:
    fun, text = DIFFERENT[name]
    assert str(hloom.make_jaxpr(fun)(X)) == text


def _long(x: hloom.Array) -> hloom.Array:
    for _ in range(11):
        x = jnp.sin(x)
    return x


def test_a_long_nested_jaxpr_comes_first() -> None:
    text = str(hloom.make_jaxpr(hloom.jit(_long))(X))
    assert text.startswith("let _long = { lambda ; a:f32[3]. let\n") and "jit[name=_long jaxpr=_long]" in text


def test_options_of_pretty_print() -> None:
    closed = hloom.make_jaxpr(lambda x: jnp.sin(x) * 2)(X)
    line = closed.eqns[0].source_info.line
    assert closed.pretty_print(print_shapes=False) == "{ lambda ; a. let b = sin a; c = mul b 2.0:f32[] in (c,) }"
    noted = closed.pretty_print(source_info=True).splitlines()
    column = noted[0].index("#")
    assert noted[0].endswith(f"# {__file__}:{line}") and noted[1] == " " * column + noted[0][column:]
    assert "sin[accuracy=None] a" in closed.pretty_print(custom_pp_eqn_rules=False)
    assert closed.pretty_print(print_effects=True).endswith("in (c,) : {  } }")
    assert closed.pretty_print(width=30).count("\n") == 3


def test_scopes_are_shown() -> None:
    def fun(x: hloom.Array) -> hloom.Array:
        with hloom.named_scope("outer"):
            y = hloom.named_call(jnp.sin, name="inner")(x)
        return y + 1

    stacks = [e.source_info.name_stack for e in hloom.make_jaxpr(fun)(X).eqns]
    assert stacks == ["outer/inner", ""]
    text = hloom.jit(fun).lower(X).as_text(metadata=True)
    assert 'op_name="fun/outer/inner/sine"' in text and 'op_name="fun/add"' in text


def _scaled(x: hloom.Array) -> hloom.Array:
    with hloom.named_scope("foo"), hloom.named_scope("bar"):
        return (2 * jnp.sin(x)).sum()


@pytest.mark.parametrize(
    ("fun", "stacks"),
    [
        (lambda: hloom.vmap(_scaled), {"vmap(foo)/bar"}),
        (lambda: hloom.named_scope("a")(hloom.vmap(_scaled)), {"a/vmap(foo)/bar"}),
        (lambda: hloom.value_and_grad(_scaled), {"jvp(foo)/bar", "transpose(jvp(foo))/bar"}),
        (lambda: lambda x: hloom.jvp(hloom.vmap(_scaled), (x,), (x,)), {"jvp(vmap(foo))/bar"}),
        (lambda: hloom.vmap(hloom.value_and_grad(_scaled)), {"vmap(jvp(foo))/bar", "vmap(transpose(jvp(foo)))/bar"}),
        (
            lambda: lambda x: hloom.grad(lambda y: hloom.grad(_scaled)(y).sum())(x),
            {
                *("jvp(jvp(foo))/bar", "jvp(transpose(jvp(foo)))/bar", "transpose(jvp(jvp(foo)))/bar"),
                "transpose(jvp(transpose(jvp(foo))))/bar",
            },
        ),
    ],
)
def test_transformations_are_in_the_names_of_scopes(fun: Any, stacks: set[str]) -> None:
    closed = hloom.make_jaxpr(fun())(jnp.ones((2, 3)))
    assert {e.source_info.name_stack for e in closed.eqns} == stacks


def test_a_scope_as_a_decorator_and_what_is_traced_once() -> None:
    @hloom.named_scope("whole")
    def fun(x: hloom.Array) -> hloom.Array:
        return jnp.exp(x)

    inner = hloom.jit(fun)

    def outer(x: hloom.Array) -> hloom.Array:
        with hloom.named_scope("around"):
            return inner(x)

    closed = hloom.make_jaxpr(outer)(X)
    assert closed.eqns[0].source_info.name_stack == "around"
    (exp,) = closed.eqns[0].params["jaxpr"].eqns
    assert exp.source_info.name_stack == "whole"
    again = hloom.make_jaxpr(jaxpr_as_fun(closed.eqns[0].params["jaxpr"]))(X)
    assert again.eqns[0].source_info.name_stack == "whole"
    with pytest.raises(TypeError, match="must be a string"):
        hloom.named_scope(3)  # type: ignore[arg-type]


def test_strings_of_parts() -> None:
    closed = hloom.make_jaxpr(lambda x: x + 2)(X)
    (equation,) = closed.eqns
    assert str(equation) == "a:f32[3] = add b 2.0:f32[]" and str(equation.primitive) == "add"
    assert str(equation.invars[1]) == "Literal(2.0)" and str(equation.invars[0]).endswith(":float32[3]")
