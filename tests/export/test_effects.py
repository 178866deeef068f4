"""Effects of exported functions: their objects, their names in files, and their tokens in programs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hloom.hlo.errors import UnsupportedError
from hloom.hlo.stablehlo.text import write

import hloom
import hloom.numpy as jnp
from hloom import export, lax
from hloom.core import ShapedArray
from hloom.extend import effects
from hloom.extend.core import Effect, Primitive
from hloom.extend.mlir.dialects import stablehlo
from hloom.interpreters import mlir

X = np.arange(3, dtype=np.float32)


def effect_class(base: type, name: str) -> type:
    """A class of equal effects, whose text is the same in hloom and in JAX."""
    own = {
        "__module__": "example",
        "__eq__": lambda self, other: type(self) is type(other),
        "__hash__": lambda self: hash(name),
        "__repr__": lambda self: f"{name}()",
    }
    return type(name, (base,), own)


FIRST, SECOND, LOOSE = (effect_class(Effect, name)() for name in ("First", "Second", "Loose"))
for each in (FIRST, SECOND, LOOSE):
    mlir.lowerable_effects.add_type(type(each))
for each in (FIRST, SECOND):
    effects.ordered_effects.add_type(type(each))


def doubling(effect: Any) -> Primitive:
    """A primitive with an effect, in JAX's form."""
    p = Primitive("doubling")

    def rule(context: Any, x: Any) -> list[Any]:
        ordered = context.tokens_in.effects()
        context.set_tokens_out(mlir.TokenSet({e: context.tokens_in.get(e) for e in ordered}))
        return [stablehlo.add(x, x)]

    p.def_effectful_abstract_eval(lambda x: (ShapedArray(x.shape, x.dtype), {effect}))
    mlir.register_lowering(p, rule)
    return p


first, second, loose = (doubling(effect).bind for effect in (FIRST, SECOND, LOOSE))


def exported(f: Any, *arguments: Any, **options: Any) -> Any:
    return export.deserialize(export.export(hloom.jit(f), **options)(*arguments).serialize())


def text_of(made: Any) -> str:
    """The program without the lines of this file."""
    return write(made.mlir_module(serialized=False))


def inner(x: Any) -> Any:
    return second(x) + loose(x)


def function(x: Any) -> Any:
    return 10 + hloom.jit(inner)(x) + first(x) + second(x)


def test_functions_with_ordered_effects_take_tokens_first() -> None:
    made = exported(function, X)
    assert made.ordered_effects == (FIRST, SECOND) and made.unordered_effects == (LOOSE,)
    text = text_of(made)
    token = r"!stablehlo\.token \{jax\.token = true\}"
    two = rf"\(%arg0: {token}, %arg1: {token}, %arg2: tensor<3xf32>.*-> \({token}, {token}, tensor<3xf32>"
    for name in ("main", "_wrapped_jax_export_main"):
        assert re.search(rf"@{name}{two}", text), name
    assert re.search(rf"private @inner\(%arg0: {token}, %arg1: tensor<3xf32>\) -> \({token}, tensor<3xf32>\)", text)
    np.testing.assert_array_equal(made.call(X), 10 + 8 * X)
    jitted = hloom.jit(lambda x: first(x) + made.call(x))
    np.testing.assert_array_equal(jitted(X), 10 + 10 * X)
    outer = exported(lambda x: loose(x) + made.call(x), X)
    assert outer.ordered_effects == (FIRST, SECOND) and outer.unordered_effects == (LOOSE,)
    np.testing.assert_array_equal(outer.call(X), 10 + 10 * X)
    with pytest.raises(ValueError, match="No VJP"):
        hloom.grad(lambda x: made.call(x).sum())(X)


def test_a_use_waits_for_the_use_before_it() -> None:
    text = text_of(export.export(hloom.jit(lambda x: (first(x), first(x))))(X))
    body = text.partition("private @_wrapped_jax_export_main")[2].partition("return")[0]
    lines = re.findall(r"^ +(%.* = (?:\S*barrier|\S*composite) .*?)(?: \{| :)", body, re.MULTILINE)
    assert lines == [
        "%0:2 = stablehlo.optimization_barrier %arg1, %arg0",
        '%1 = stablehlo.composite "hloom.doubling" %0#0',
        "%2:2 = stablehlo.optimization_barrier %1, %0#1",
        "%3:2 = stablehlo.optimization_barrier %arg1, %2#1",
        '%4 = stablehlo.composite "hloom.doubling" %3#0',
        "%5:2 = stablehlo.optimization_barrier %4, %3#1",
    ]


def test_a_parameter_may_be_named_effects() -> None:
    p = Primitive("with_effects")
    p.def_effectful_abstract_eval(lambda x, effects: (ShapedArray(x.shape, x.dtype), {FIRST}))
    mlir.register_lowering(p, lambda context, x, effects: [stablehlo.add(x, x)])
    text = text_of(export.export(hloom.jit(lambda x: p.bind(x, effects=3)))(X))
    assert '{effects = 3 : i64, hloom.effects = "First()"}' in text


def test_effects_that_have_one_text_are_refused() -> None:
    others = [effect_class(Effect, "Same")() for _ in range(2)]
    for each in others:
        mlir.lowerable_effects.add_type(type(each))
        effects.ordered_effects.add_type(type(each))
    one, other = (doubling(effect).bind for effect in others)
    with pytest.raises(UnsupportedError, match="ordered effects with one text"):
        export.export(hloom.jit(lambda x: one(x) + other(x)))(X)


def test_effects_in_regions_sizes_and_platforms() -> None:
    def f(x: Any) -> Any:
        branches = {"cpu": lambda x: first(x), "default": lambda x: second(x) + 1}
        chosen = lax.platform_dependent(x, cpu=branches["cpu"], default=branches["default"])
        return lax.fori_loop(0, 2, lambda _, c: first(c), chosen)

    b, n = export.symbolic_shape("b, n")
    made = exported(f, hloom.ShapeDtypeStruct((n, b), np.float32), platforms=("tpu", "cpu"))
    assert made.ordered_effects == (FIRST, SECOND)
    start = text_of(made).partition("private @_wrapped_jax_export_main(")[2].partition(") ->")[0]
    names = re.findall(r"jax\.(global_constant|token) = (\S+?)}", start)
    assert [v for _, v in names] == ['"_platform_index"', '"b"', '"n"', "true", "true"]
    x = np.ones((2, 5), np.float32)
    np.testing.assert_array_equal(made.call(x), 8 * x)
    again = exported(lambda x: made.call(x) + 1, hloom.ShapeDtypeStruct((n, b), np.float32), platforms=("cpu", "tpu"))
    assert again.ordered_effects == (FIRST, SECOND)
    np.testing.assert_array_equal(again.call(x), 8 * x + 1)


def test_donated_memory_belongs_to_the_result_after_the_tokens() -> None:
    text = text_of(export.export(hloom.jit(first, donate_argnums=0))(X))
    assert len(re.findall(r"tf\.aliasing_output = 1 ", text)) == 2


def test_calls_of_native_code_have_the_effect_of_jax() -> None:
    call = hloom.ffi.ffi_call("example.acts", hloom.ShapeDtypeStruct(X.shape, X.dtype), has_side_effect=True)
    allowed = [export.DisabledSafetyCheck.custom_call("example.acts")]
    made = export.export(hloom.jit(call), disabled_checks=allowed)(X)
    assert made.ordered_effects == () and made.unordered_effects == (effects.FFI,)
    blob = bytes(made.serialize())
    assert b"<class 'jax._src.ffi.FfiEffect'>" in blob
    assert export.deserialize(blob).unordered_effects == (effects.FFI,)


class Numbered(Effect):
    """Its objects differ."""

    def __init__(self, number: int) -> None:
        self.number = number


class Unequal(Effect):
    """No object equals another one."""


mlir.lowerable_effects.add_type(Numbered)
mlir.lowerable_effects.add_type(Unequal)


@pytest.mark.parametrize(
    ("effect", "message"),
    [
        (Numbered(1), "must have a nullary constructor to be serializable"),
        (Unequal(), "must have a nullary class constructor that produces an equal effect object"),
    ],
)
def test_effects_that_files_cannot_name(effect: Any, message: str) -> None:
    made = export.export(hloom.jit(doubling(effect).bind))(X)
    assert made.unordered_effects == (effect,)
    with pytest.raises(NotImplementedError, match=message):
        made.serialize()


def test_classes_that_are_not_registered() -> None:
    unknown = effect_class(Effect, "Unknown")()
    f = hloom.jit(doubling(unknown).bind)
    with pytest.raises(ValueError, match=r"Cannot lower jaxpr with effects: \[Unknown\(\)\]"):
        f(X)
    blob = bytes(exported(loose, X).serialize()).replace(b"example.Loose", b"example.Lost_")
    with pytest.raises(NotImplementedError, match=r"cannot deserialize effect type <class 'example\.Lost_'>"):
        export.deserialize(blob)


def test_jaxprs_show_effects() -> None:
    jaxpr = hloom.make_jaxpr(lambda x: jnp.sin(first(x)))(X)
    assert jaxpr.effects == {FIRST} and jaxpr.jaxpr.eqns[0].effects == {FIRST}


# ---- with JAX


def _in_jax() -> tuple[Any, Any]:
    """JAX, and the uses of the same primitives there."""
    jax = pytest.importorskip("jax")
    pytest.importorskip("flatbuffers", reason="JAX reads files with the package flatbuffers")
    from jax._src import effects as theirs
    from jax.extend.core import Primitive as JaxPrimitive
    from jax.extend.mlir.dialects import stablehlo as operations
    from jax.interpreters import mlir as lowering

    def use(effect: Any) -> Any:
        kind = effect_class(theirs.Effect, type(effect).__name__)
        theirs.lowerable_effects.add_type(kind)
        if effect is not LOOSE:
            theirs.ordered_effects.add_type(kind)
        p = JaxPrimitive("doubling")

        def rule(context: Any, x: Any) -> list[Any]:
            tokens = {e: context.tokens_in.get(e) for e in context.tokens_in.effects()}
            context.set_tokens_out(lowering.TokenSet(tokens))
            return [operations.add(x, x)]

        p.def_effectful_abstract_eval(lambda x: (x, {kind()}))
        lowering.register_lowering(p, rule)
        return p.bind

    return jax, [use(effect) for effect in (FIRST, SECOND, LOOSE)]


def test_files_between_jax_and_hloom() -> None:
    jax, (one, two, free) = _in_jax()
    ours = jax.export.deserialize(export.export(hloom.jit(function))(X).serialize())
    assert list(map(str, ours.ordered_effects)) == ["First()", "Second()"]
    np.testing.assert_array_equal(ours.call(X), 10 + 8 * X)

    def same_function(x: Any) -> Any:
        return 10 + jax.jit(lambda x: two(x) + free(x))(x) + one(x) + two(x)

    theirs = export.deserialize(bytes(jax.export.export(jax.jit(same_function))(X).serialize()))
    assert sorted(map(str, theirs.ordered_effects)) == ["First()", "Second()"]
    assert theirs.unordered_effects == (LOOSE,)
    np.testing.assert_array_equal(theirs.call(X), 10 + 8 * X)
    (b,) = export.symbolic_shape("b")
    for_all = export.export(hloom.jit(function))(hloom.ShapeDtypeStruct((b,), np.float32)).serialize()
    np.testing.assert_array_equal(jax.export.deserialize(for_all).call(X), 10 + 8 * X)
