"""checkpoint: the same derivatives, with fewer values kept."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hloom.hlo import Opcode
from hloom.tracer.ops import sum_all

import hloom
import hloom.numpy as jnp
from hloom import checkpoint, checkpoint_policies, config, grad, jit, lax, linearize, make_hlo, value_and_grad, vjp
from hloom.ad_checkpoint import Offloadable, Recompute, Saveable, checkpoint_name, print_saved_residuals
from support.grad_check import check_derivatives, concrete

X = np.array([0.3, 0.7, 1.1])
Y = np.array([1.5, -0.4, 0.8])


@pytest.fixture(autouse=True)
def _evaluator() -> Iterator[None]:
    before = config.hloom_backend
    config.update("hloom_backend", "evaluator")
    yield
    config.update("hloom_backend", before)


def block(x: Any, y: Any) -> Any:
    return lax.sin(lax.exp(lax.mul(x, y))), lax.add(y, y)


def f64(value: Any) -> Any:
    return concrete(np.asarray(value, np.float64))


@pytest.mark.parametrize("how", [lambda f: f, jit])
def test_derivatives_are_the_same(how: Any) -> None:
    f = how(lambda x, y: checkpoint(block)(*checkpoint(block)(x, y)))
    check_derivatives(lambda xs: f(*xs), [X, Y])
    g = how(lambda x: sum_all(checkpoint(block)(x, f64(Y))[0]))
    np.testing.assert_allclose(grad(g)(f64(X)), grad(lambda x: sum_all(block(x, f64(Y))[0]))(f64(X)))
    np.testing.assert_allclose(linearize(g, f64(X))[1](f64(X)), grad(g)(f64(X)) @ X)


def test_only_arguments_are_kept() -> None:
    _, pull = vjp(lambda x: checkpoint(block)(x, f64(Y))[0], f64(X))
    kept = list(pull._program.residuals.values())
    assert [np.asarray(v).tolist() for v in kept] == [X.tolist(), Y.tolist()]


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_what_is_computed_again_stays_apart(prevent_cse: bool) -> None:
    f = checkpoint(block, prevent_cse=prevent_cse)
    module = make_hlo(value_and_grad(lambda x: sum_all(f(x, f64(Y))[0])))(f64(X))
    opcodes = [i.opcode for i in module.instructions()]
    assert opcodes.count(Opcode.EXP) == 2
    assert (Opcode.OPT_BARRIER in opcodes) is prevent_cse


def test_static_arguments_and_keywords() -> None:
    def f(function: Any, x: Any, *, scale: Any) -> Any:
        return lax.mul(function(x), scale)

    g = checkpoint(f, static_argnums=0)
    assert float(grad(lambda x: g(lax.sin, x, scale=f64(2)))(f64(0))) == 2.0


# --- policies


def layers(w: Any, x: Any) -> Any:
    x = checkpoint_name(lax.sin(lax.dot(w, x)), "first")
    x = checkpoint_name(lax.sin(lax.dot(w, x)), "second")
    return sum_all(lax.sin(lax.dot(w, x)))


W = np.arange(9.0).reshape(3, 3) / 9
P = checkpoint_policies
DOT, COS, FIRST, SECOND = "output of dot_general", "output of cos", "named 'first'", "named 'second'"
NAMED = {"names_which_can_be_saved": ["first"], "names_which_can_be_offloaded": ["second"]}
MEMORIES = {"offload_src": "device", "offload_dst": "pinned_host"}
POLICIES: list[tuple[str, Any, list[str]]] = [
    ("none", None, []),
    ("nothing", P.nothing_saveable, []),
    ("everything", P.everything_saveable, [COS, FIRST, COS, SECOND, COS]),
    ("dots", P.dots_saveable, [DOT, DOT, DOT]),
    ("checkpoint_dots", P.checkpoint_dots, [DOT, DOT, DOT]),
    ("dots without batch", P.dots_with_no_batch_dims_saveable, [DOT, DOT, DOT]),
    ("offloaded dots", P.offload_dot_with_no_batch_dims("device", "pinned_host"), [DOT, DOT, DOT]),
    ("these names", P.save_only_these_names("first"), [FIRST]),
    ("no such name", P.save_only_these_names("third"), []),
    ("any names but", P.save_any_names_but_these("first"), [SECOND]),
    ("anything but", P.save_anything_except_these_names("first", "second"), [COS, "output of sin"] * 2 + [COS]),
    ("both", P.save_from_both_policies(P.dots_saveable, P.save_only_these_names("first")), [DOT, FIRST, DOT, DOT]),
    ("offloaded names", P.save_and_offload_only_these_names(**NAMED, **MEMORIES), [FIRST, SECOND]),
    ("answers", lambda prim, *_, **__: Saveable if prim.name == "cos" else Recompute, [COS, COS, COS]),
    ("offloading", lambda prim, *_, **__: prim.name == "sin" and Offloadable("device", "host"), ["output of sin"] * 2),
    ("by type", lambda prim, *types, **_: len(types) == 2 and types[0].shape == (3, 3), [DOT, DOT, DOT]),
    ("by parameter", lambda prim, **p: p.get("name") == "second", [SECOND]),
]
"""The residuals beside the arguments, as `jax.ad_checkpoint.print_saved_residuals` lists it for the same function."""


@pytest.mark.parametrize(("policy", "kept"), [p[1:] for p in POLICIES if p[0] != "by parameter"], ids=lambda _: "")
def test_what_a_policy_keeps(policy: Any, kept: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    f = checkpoint(layers, policy=policy)
    print_saved_residuals(f, f64(W), f64(X))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["f64[3,3] from the argument w", "f64[3] from the argument x"]
    assert [line.removeprefix("f64[3] ").rpartition(" from ")[0] for line in lines[2:]] == kept
    assert all(__file__ in line for line in lines[2:])
    _, pull = vjp(f, f64(W), f64(X))
    assert len(pull._program.residuals) == 2 + len(kept)
    np.testing.assert_allclose(grad(f, argnums=1)(f64(W), f64(X)), grad(layers, argnums=1)(f64(W), f64(X)))


def test_only_what_is_not_kept_is_computed_again() -> None:
    def products(policy: Any) -> int:
        module = make_hlo(value_and_grad(checkpoint(layers, policy=policy), argnums=1))(f64(W), f64(X))
        return [i.opcode for i in module.instructions()].count(Opcode.DOT)

    backwards = 3
    assert products(None) == 3 + 3 + backwards
    assert products(P.dots_saveable) == 3 + backwards
    assert products(P.save_only_these_names("first")) == 3 + 3 + backwards  # the cosine of the first one is needed
    assert products(P.everything_saveable) == 3 + backwards


def test_second_derivatives_keep_as_little() -> None:
    """The backward pass is a checkpoint, too: of its values, none is kept for a further derivative."""
    f = checkpoint(layers)
    _, pull = vjp(lambda x: grad(f, argnums=1)(f64(W), x), f64(X))
    kept = [np.shape(v) for v in pull._program.residuals.values()]
    assert sorted(kept) == [(3,), (3, 3)] or sorted(kept) == [(), (3,), (3, 3)]


def test_a_policy_sees_the_operations_under_the_names_of_jax() -> None:
    seen = []

    def policy(prim: Any, *types: Any, **params: Any) -> bool:
        seen.append((prim.name, str(prim), [t.shape for t in types], params))
        return False

    grad(checkpoint(layers, policy=policy), argnums=1)(f64(W), f64(X))
    names = [name for name, *_ in seen]
    assert [names.count(n) for n in ("dot_general", "sin", "cos", "name")] == [3, 3, 3, 2]
    dot = next(s for s in seen if s[0] == "dot_general")
    assert dot[1:3] == ("dot_general", [(3, 3), (3,)])
    assert dot[3]["dimension_numbers"] == (((1,), (0,)), ((), ()))
    assert [s[3] for s in seen if s[0] == "name"] == [{"name": "first"}, {"name": "second"}]
    assert next(s for s in seen if s[0].startswith("reduce_"))[3]["axes"] == (0,)


def test_policies_that_are_made_anew_are_the_same_policy() -> None:
    assert P.save_only_these_names("a", "b") == P.save_only_these_names("b", "a") != P.save_only_these_names("a")
    f = jit(grad(lambda x: checkpoint(layers, policy=P.save_only_these_names("first"))(f64(W), x)))
    np.testing.assert_array_equal(f(f64(X)), f(f64(X)))


def test_a_name_is_the_identity() -> None:
    tree = checkpoint_name({"a": f64(X), "b": [2]}, "numbers")
    np.testing.assert_array_equal(tree["a"], X)
    assert int(tree["b"][0]) == 2
    check_derivatives(lambda xs: [checkpoint_name(lax.sin(xs[0]), "sine")], [X])
    text = jit(lambda x: checkpoint_name(x, "n") * 2).lower(f64(X)).as_text()
    assert 'composite.name="name"' in text
    np.testing.assert_array_equal(hloom.vmap(lambda x: checkpoint_name(x, "n"))(f64(X)), X)


def test_names_do_not_change_what_a_loop_keeps() -> None:
    """In a scan without a checkpoint, names are as if they were not there."""

    def loop(named: bool) -> Any:
        def step(c: Any, x: Any) -> Any:
            y = c * x
            return lax.sin(checkpoint_name(y, "product") if named else y), y

        return lambda c: sum_all(lax.scan(step, c, f64(np.ones((4, 3))))[0])

    named, plain = (make_hlo(grad(loop(n)))(f64(X)) for n in (True, False))
    assert [i.opcode for i in named.instructions()].count(Opcode.WHILE) == 2
    stacks = [sorted(str(i.shape) for i in m.instructions() if i.opcode is Opcode.WHILE) for m in (named, plain)]
    assert stacks[0] == stacks[1]


def test_random_bits_with_a_state_are_not_drawn_again() -> None:
    """An operation with an effect runs once: its value is kept under every policy."""
    from hloom.hlo import parse

    text = """HloModule m
ENTRY main {
  x = f32[3] parameter(0)
  lo = f32[] constant(0)
  hi = f32[] constant(1)
  r = f32[3] rng(lo, hi), distribution=rng_uniform
  p = f32[3] multiply(x, r)
  ROOT t = (f32[3]) tuple(p)
}"""
    from hloom.tracer.core import eval_computation

    entry = parse(text).entry
    f = checkpoint(lambda x: eval_computation(entry, [x])[0])
    x = concrete(np.ones(3, np.float32))
    value, pull = vjp(f, x)
    np.testing.assert_array_equal(pull(x)[0], value)


REFUSED: list[tuple[dict[str, Any], tuple[Any, ...], type[Exception], str]] = [
    ({"policy": 3}, (1.0,), TypeError, "must be a function"),
    ({"policy": lambda *_, **__: None}, (1.0,), TypeError, "(?s)returns a bool.*returned None.*operation sin"),
    ({"concrete": True}, (1.0,), NotImplementedError, "static_argnums"),
    ({"static_argnums": 2}, (1.0,), ValueError, r"but got \(2,\).*with 1 arguments"),
    ({"static_argnums": -2}, (1.0,), ValueError, r"but got \(-2,\)"),
]


@pytest.mark.parametrize(("options", "args", "error", "message"), REFUSED)
def test_what_is_refused(options: dict[str, Any], args: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        grad(checkpoint(lambda x: lax.sin(x), **options))(*args)


def test_a_value_that_python_needs_must_be_static() -> None:
    def f(x: Any, deep: Any) -> Any:
        return lax.sin(x) if deep else x

    with pytest.raises(hloom.errors.TracerBoolConversionError, match=r"f at .*for checkpoint"):
        checkpoint(f)(1.0, True)
    assert float(checkpoint(f, static_argnames="deep")(0.0, True)) == 0.0
    assert float(grad(checkpoint(f, static_argnames=("deep",)))(0.0, deep=False)) == 1.0


def test_offloading_and_saving_one_name_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"both saved and offloaded: .*first"):
        P.save_and_offload_only_these_names(
            names_which_can_be_saved=["first"], names_which_can_be_offloaded=["first"], **MEMORIES
        )


def test_saved_residuals_of_other_functions(capsys: pytest.CaptureFixture[str]) -> None:
    """Arguments by path, jitted functions, loops, captured arrays."""

    def f32(value: Any) -> Any:
        return concrete(np.asarray(value, np.float32))

    def f(p: Any, *, k: Any) -> Any:
        inner = jit(lambda y: lax.sin(y))(p["w"] * p["b"][0])
        return sum_all(lax.scan(lambda c, _: (lax.exp(c), None), inner * k * f32(Y), None, length=2)[0])

    print_saved_residuals(f, {"w": f32(X), "b": [f32(Y)]}, k=2.0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "f32[3] from a constant"
    assert lines[1:3] == ["f32[3] from the argument p['b'][0]", "f32[3] from the argument p['w']"]
    assert any("f32[3] output of jitted function '<lambda>' from" in line for line in lines)
    assert any(line.startswith("f32[2,3] output of scan from") for line in lines)
    with pytest.raises(TypeError, match="missing 1 required keyword"):
        print_saved_residuals(f, {"w": f32(X), "b": [f32(Y)]})


def test_saved_residuals_in_the_words_of_jax(capsys: pytest.CaptureFixture[str]) -> None:
    """Recorded with JAX 0.10.2: the example of its document on checkpoints, with the lines of this file."""

    def g(w: Any, x: Any) -> Any:
        return lax.sin(lax.dot(w, x))

    def f(w1: Any, w2: Any, x: Any) -> Any:
        return g(w2, g(w1, x))

    line = g.__code__.co_firstlineno + 1
    sine, dot = (f"from {__file__}:{line}:{column} ({g.__qualname__})" for column in (15, 23))
    arguments = [f"f64[3,3] from the argument {w}" for w in ("w1", "w2")] + ["f64[3] from the argument x"]
    computed = [f"f64[3] output of {name} {sine}" for name in ("sin", "cos", "cos")]
    dots = [f"f64[3] output of dot_general {dot}"] * 2
    grad(lambda x: sum_all(checkpoint(f, policy=P.dots_saveable)(f64(W), f64(W), x)))(f64(X))  # an earlier trace
    for function, kept in ((f, computed), (checkpoint(f, policy=P.dots_saveable), dots)):
        print_saved_residuals(function, f64(W), f64(W), f64(X))
        assert capsys.readouterr().out.splitlines() == arguments + kept


def test_a_function_is_traced_once_for_each_type() -> None:
    """As by jit; not if it uses traced values from outside, which the next call would not find."""
    traces: list[str] = []

    @partial(checkpoint, static_argnums=1)
    def f(x: Any, power: Any) -> Any:
        traces.append(hloom.typeof(x).str_short())
        return jnp.sin(x) ** power

    for _ in range(3):
        hloom.grad(f)(2.0, 2)
        f(3.0, 2)
    assert traces == ["float32[]"]
    assert f(3.0, 2).dtype == f(3.0, 2.0).dtype and len(traces) == 2  # 2 and 2.0 are equal, and not the same program
    f(jnp.ones(3), 2)
    assert traces[2:] == ["float32[3]"]
    with hloom.enable_x64(True):
        f(3.0, 2)
    assert traces[3:] == ["float64[]"]
    assert checkpoint(lambda x, n: x * len(n), static_argnums=1)(2.0, [3, 4]) == 4  # a list cannot be a key

    def closes(y: Any) -> Any:
        @checkpoint
        def inner(x: Any) -> Any:
            traces.append("inner")
            return x * y

        return inner(1.0) + inner(2.0)

    assert hloom.grad(closes)(3.0) == hloom.jit(hloom.grad(closes))(3.0) == 3
