"""jit_scope and hloom_jit_level: deferred operations outside of jit give the same results as immediate ones."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.tracer.arrays.array import is_absent
from hloom.tracer.deferred import steps

import hloom
import hloom.numpy as jnp
from hloom import lax

X = jnp.asarray(np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4))


def is_pending(x: Any) -> bool:
    return is_absent(x) and x._absence.batch is not None


def mlp(x: Any) -> Any:
    hidden = jnp.tanh(x @ jnp.ones((4, 5)) + 0.5)
    return hloom.nn.softmax(hidden.sum(axis=1) * jnp.arange(3))


def ragged(x: Any) -> list[Any]:
    return [x[i, i:] * 2 for i in range(3)]


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: jnp.sin(x) * 2 - x / 3 + x**2 - abs(x) ** -1.5,
    "compare": lambda x: (x > 0, jnp.where(x > 0, x, -1), jnp.clip(x, -1, 1), x.astype(int) // 2, x.astype(int) % 3),
    "reduce": lambda x: (x.sum(), x.max(axis=0), x.mean(1), jnp.var(x), jnp.argmax(x), jnp.cumsum(x, 1), x.any()),
    "movement": lambda x: (x.T, x.reshape(2, 6), x[::-1], x[1:, ::2], x[:, None], jnp.pad(x, 1), jnp.roll(x, 1)),
    "index": lambda x: (x[1], x[-1, 2], x[..., 1], x[jnp.array([2, 0])], x.at[1].set(0), x.at[0, 1].add(5)),
    "join": lambda x: (jnp.concatenate([x, x]), jnp.stack([x, x]), jnp.split(x, 2, axis=1), list(x)),
    "linear algebra": lambda x: (x @ x.T, jnp.linalg.solve(x @ x.T + 9 * jnp.eye(3), x), jnp.einsum("ij,kj->ik", x, x)),
    "sort": lambda x: (jnp.sort(x), jnp.argsort(x, axis=0), lax.top_k(x, 2), jnp.unique(x.astype(int), size=4)),
    "types": lambda x: (x.astype(jnp.bfloat16) + 1, x.astype(jnp.int8) * 2, x + 1j, jnp.float16(2) * jnp.int32(3)),
    "weak": lambda x: (jnp.asarray(2) * 3, jnp.asarray(2.5) + jnp.asarray(1), jnp.asarray(2) + x.astype(jnp.int16)),
    "network": mlp,
    "ragged": ragged,
    "grad": hloom.grad(lambda x: (jnp.tanh(x) ** 2).sum()),
    "value_and_grad": hloom.value_and_grad(lambda x: mlp(x)[0]),
    "hessian": lambda x: hloom.hessian(lambda v: (v**3).sum())(x[0]),
    "vmap": hloom.vmap(lambda row: row * row.sum()),
    "jit": hloom.jit(lambda x: jnp.exp(x).sum(axis=0)),
    "scan": lambda x: lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(4), x),
    "while": lambda x: lax.while_loop(lambda v: v.sum() < 100, lambda v: v * 1.5 + 1, x),
    "cond": lambda x: lax.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, x),
    "random": lambda x: hloom.random.normal(hloom.random.split(hloom.random.key(3))[1], x.shape) + x,
    "keys": lambda x: hloom.random.key_data(hloom.random.split(hloom.random.key(7), 3)),
    "python": lambda x: [float(v) for v in x[0]] + [bool(x.sum() > 0), int(x.size)],
    "nothing": lambda x: x,
    "scalars": lambda x: x * x.sum() + x[0, 0] - jnp.pi,
    "empty": lambda x: (x[:0].sum(), jnp.zeros((0, 3)) + 1, x[3:] * 2),
}


def leaves(tree: Any) -> list[Any]:
    return hloom.tree.leaves(tree)


def same(found: Any, expected: Any, rtol: float = 2e-5) -> None:
    for a, b in zip(leaves(found), leaves(expected), strict=True):
        if isinstance(b, hloom.Array):
            assert isinstance(a, hloom.Array)
            assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)
            wide = np.complex128 if b.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(np.asarray(a).astype(wide), np.asarray(b).astype(wide), rtol=rtol, atol=1e-5)
        else:
            assert a == pytest.approx(b, rel=rtol)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_types_are_those_of_eager_operations(name: str) -> None:
    expected = FUNCTIONS[name](X)
    with hloom.jit_scope():
        first = FUNCTIONS[name](X)
        again = FUNCTIONS[name](X + 0)
    same(first, expected)
    same(again, expected)


def test_operations_are_put_off_and_run_when_a_value_is_needed() -> None:
    with hloom.jit_scope() as scope:
        y = jnp.sin(X) + 1
        z = y * 2
        assert is_pending(y) and is_pending(z)
        assert (z.shape, z.dtype, z.ndim, len(z), z.sharding) == ((3, 4), np.float32, 2, 3, X.sharding)
        assert isinstance(z, hloom.Array) and not scope.programs()
        value = float(z[0, 0])
        (program,) = scope.programs()
    assert value == pytest.approx(2 * (np.sin(-2) + 1))
    assert not is_pending(y) and not is_pending(z)  # both were held, so both are results
    assert program.operations >= 4
    assert z.is_ready() and (X + 1).is_ready()


FORCING: dict[str, Callable[[Any], Any]] = {
    "float": lambda x: float(x[0, 0]), "int": lambda x: int(x[0, 0]), "bool": lambda x: bool(x[0, 0] > 0),
    "complex": lambda x: complex(x[0, 0]), "index": lambda x: [0, 1, 2, 3][x.astype(int)[2, 3] * 0 + 1],
    "print": str, "repr": repr, "format": lambda x: f"{x[0, 0]:.2f}", "item": lambda x: x[0, 0].item(),
    "tolist": lambda x: x.tolist(), "numpy": np.asarray, "numpy function": np.linalg.norm,
    "dlpack": np.from_dlpack, "pickle": lambda x: np.asarray(pickle.loads(pickle.dumps(x))),
    "bytes": lambda x: x.tobytes(),
    "copy": lambda x: np.asarray(copy.copy(x)), "deepcopy": lambda x: np.asarray(copy.deepcopy(x)),
    "ready": lambda x: x.is_ready(), "block": lambda x: np.asarray(x.block_until_ready()),
    "device_get": hloom.device_get,
    "jit": lambda x: np.asarray(hloom.jit(lambda v: v + 1)(x)), "in": lambda x: 0.0 in x[0],
    "pointer": lambda x: x.unsafe_buffer_pointer() > 0, "array": lambda x: np.asarray(jnp.array(x)),
    "device_put": lambda x: np.asarray(hloom.device_put(x, hloom.devices()[0])),
}  # fmt: skip


@pytest.mark.parametrize("name", FORCING)
def test_whoever_asks_gets_the_value(name: str) -> None:
    expected = FORCING[name](X * 2 + 1)
    with hloom.jit_scope():
        found = FORCING[name](X * 2 + 1)
    if isinstance(expected, np.ndarray):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    else:
        assert found == expected


def test_block_until_ready_of_a_tree() -> None:
    with hloom.jit_scope():
        tree = hloom.block_until_ready({"a": X + 1, "b": [X * 2], "c": 3})
        assert not is_pending(tree["a"]) and not is_pending(tree["b"][0])


def test_hash_is_refused_as_ever() -> None:
    with hloom.jit_scope(), pytest.raises(TypeError, match="unhashable"):
        hash(X + 1)


# ---- what is compiled


def step(x: Any, v: Any, dt: float) -> tuple[Any, Any]:
    a = -jnp.sin(x) - 0.1 * v
    v = v + dt * a
    return x + dt * v, v


def test_a_loop_compiles_its_step_once_and_another_constant_none() -> None:
    x = v = jnp.ones(7)
    with hloom.jit_scope() as scope:
        for k in range(50):
            x, v = step(x, v, 0.01 * (k + 1))
            assert np.isfinite(float(x[0]))
    assert len(scope.programs()) <= 2
    assert sum(p.runs for p in scope.programs()) == 50
    with hloom.jit_scope() as later:
        for _ in range(5):
            x, v = step(x, v, 0.25)
            float(x[0])
    assert "0 compiled here" in later.report()


def test_a_loop_that_asks_for_nothing_is_cut_where_it_repeats() -> None:
    x = v = jnp.ones(7)
    expected = (x, v)
    for _ in range(200):
        expected = step(*expected, 0.01)
    with hloom.jit_scope() as scope:
        most = 0
        for _ in range(200):
            x, v = step(x, v, 0.01)
            most = max(most, len(hloom.tracer.deferred.deferral.recorder().batch.entries))
    assert len(scope.programs()) <= 4
    assert most < 2 * steps.MAX_OPERATIONS
    same((x, v), expected)


def test_loops_in_functions_and_in_loops_settle_on_few_programs() -> None:
    def derivative(y: Any) -> Any:
        return jnp.cos(y) - 0.3 * y + 0.1

    def rk4(y: Any) -> Any:
        a = derivative(y)
        b = derivative(y + 0.05 * a)
        c = derivative(y + 0.05 * b)
        d = derivative(y + 0.1 * c)
        return y + 0.1 / 6 * (a + 2 * b + 2 * c + d)

    def smooth(y: Any) -> Any:
        for _ in range(3):
            y = 0.5 * y + 0.25 * (jnp.roll(y, 1) + jnp.roll(y, -1))
        return y

    y = jnp.arange(8.0)
    with hloom.jit_scope() as scope:
        for _ in range(60):
            y = smooth(rk4(y))
    assert len(scope.programs()) <= 6
    expected = jnp.arange(8.0)
    for _ in range(60):
        expected = smooth(rk4(expected))
    same(y, expected, rtol=1e-4)


def test_what_nobody_holds_is_no_result_and_is_not_computed() -> None:
    with hloom.jit_scope() as scope:
        y = jnp.sin(X)
        _ = jnp.cos(X).sum()
        del _
        y = y + 1
    (program,) = scope.programs()
    text = program.as_text()
    assert "cosine" not in text and text.count("ROOT") >= 1
    assert len(program.module.entry.root.operands) == 1


def test_results_that_the_garbage_collector_has_not_found_cost_no_program() -> None:
    def cycle(y: Any) -> None:
        loop: list[Any] = [y]
        loop.append(loop)

    gc.collect()
    with hloom.jit_scope() as scope:
        for k in range(8):
            y = X * 2
            z = y + 1
            if k == 0:
                cycle(y)
            del y
            float(z[0, 0])
            gc.collect() if k == 0 else None
    assert len(scope.programs()) <= 2


def test_equal_scalars_in_power_are_constants_and_others_arguments() -> None:
    with hloom.jit_scope() as scope:
        for k in range(30):
            y = abs(X) ** (0.5 + k) + 1
            same(y, np.abs(np.asarray(X)) ** np.float32(0.5 + k) + 1, rtol=1e-4) if k % 10 == 0 else float(y[0, 0])
    assert len(scope.programs()) <= 2 * steps.MANY_CONSTANTS + 2


def test_many_constant_slices_become_one_program() -> None:
    data = jnp.arange(5000.0)
    with hloom.jit_scope() as scope:
        for k in range(60):
            y = (data[k : k + 100] * 2).sum()
            assert float(y) == pytest.approx(2 * sum(range(k, k + 100)))
    assert len(scope.programs()) <= steps.MANY_CONSTANTS + 2


def test_arrays_from_outside_are_not_kept_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_BYTES", 1 << 20)
    hloom.clear_caches()
    total = jnp.zeros(())
    with hloom.jit_scope():
        for k in range(40):
            total = total + jnp.asarray(np.full(1 << 16, k, np.float32)).sum()
            kept = sum(a.nbytes for a in kept_arrays())
            assert kept <= 8 << 20
    assert float(total) == sum(range(40)) * (1 << 16)
    hloom.clear_caches()


def kept_arrays() -> Iterator[Any]:
    batch = hloom.tracer.deferred.deferral.recorder().batch
    return (leaf for _, leaf in batch.entries if isinstance(leaf, hloom.Array))


def test_programs_show_what_they_are() -> None:
    with hloom.jit_scope() as scope:
        y = jnp.tanh(X) * 3
        z = y.sum()
    (program,) = scope.programs()
    assert re.search(r"tanh\(", program.as_text())
    assert "test_deferred_execution.py" in program.as_text(metadata=True)
    assert "fusion" in program.as_text(optimized=True)
    assert program.kernels() and program.runs == 1 and "operations" in repr(program)
    assert float(z) == pytest.approx(float(np.sum(3 * np.tanh(np.asarray(X)))), rel=1e-5)


def test_the_report_says_what_ran_and_why() -> None:
    with hloom.jit_scope() as scope:
        y = jnp.sin(X) + X
        if y.sum() > 1e9:
            y = y + 1
        y = lax.while_loop(lambda v: v.sum() < 0, lambda v: v + 1, y)
    report = scope.report()
    assert "clusters" in report and "a value" in report and "test_deferred_execution.py" in report
    assert re.search(r"while +1 +a loop is a program of its own", report)


def test_the_report_has_the_names_of_files_alone() -> None:
    run: dict[str, Any] = {"jnp": jnp}
    for function, name in (("cosh", "/home/me/a.py"), ("sinh", "C:\\Users\\me\\a.py")):  # equal programs are one
        exec(compile(f"def f(x):\n    return float((jnp.tan(x) - jnp.{function}(x))[0, 0])\n", name, "exec"), run)
        with hloom.jit_scope() as scope:
            run["f"](X)
        assert re.search(r" a\.py:2$", scope.report(), re.MULTILINE)


def test_a_single_operation_runs_by_itself() -> None:
    with hloom.jit_scope() as scope:
        y = jnp.sin(X)
    assert not scope.programs() and re.search(r"sine +1 +a single operation", scope.report())
    same(y, jnp.sin(X))


# ---- errors


def test_a_shape_error_is_raised_at_once_at_the_users_line() -> None:
    with hloom.jit_scope():
        y = X + 1
        with pytest.raises((TypeError, ValueError), match=r"test_deferred_execution\.py"):
            y @ y
        assert is_pending(y)


def test_debug_nans_names_the_line_of_the_operation() -> None:
    with hloom.jit_scope() as scope, hloom.debug_nans(True), pytest.raises(FloatingPointError, match="log"):
        jnp.log(X * 0 - 1) + 1
    assert "results are checked" in scope.report()


def test_an_exception_leaves_values_that_can_be_asked_for() -> None:
    with pytest.raises(KeyError), hloom.jit_scope() as scope:
        y = jnp.sin(X) * 2
        raise KeyError("x")
    assert is_pending(y) and not scope.programs()
    same(y, jnp.sin(X) * 2)
    assert not is_pending(y) and not is_pending(X + 1)


def test_shapes_that_never_come_again_are_compiled_no_more_after_some() -> None:
    with hloom.jit_scope() as scope:
        for k in range(1, 41):
            assert float((jnp.ones(k + 100) * 2 + 1).sum()) == 3 * (k + 100)
    assert len(scope.programs()) <= 20
    assert "its structure was not seen often enough" in scope.report()


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="compile_ops"):
        hloom.jit_scope(compile_ops=1)  # type: ignore[arg-type]
    for value, error in ((3, ValueError), (True, TypeError), ("1", TypeError)):
        with pytest.raises(error, match="hloom_jit_level"):
            hloom.config.update("hloom_jit_level", value)


# ---- scopes


def test_scopes_nest_and_compile_ops_false_turns_it_off() -> None:
    with hloom.jit_scope() as outer:
        a = X + 1
        with hloom.jit_scope() as inner:
            b = a * 2
            assert is_pending(b)
        assert not is_pending(b) and not is_pending(a)
        with hloom.jit_scope(compile_ops=False):
            c = b + 1
            assert not is_pending(c)
        d = c * 2 + 1
        assert is_pending(d)
    assert len(inner.programs()) == 1 and len(outer.programs()) == 2
    assert not is_pending(X + 1)
    same(d, ((np.asarray(X) + 1) * 2 + 1) * 2 + 1)


def test_a_decorated_function_and_a_scope_used_twice() -> None:
    @hloom.jit_scope()
    def f(x: Any) -> Any:
        y = x * 2 + 1
        assert is_pending(y)
        return y

    assert not is_pending(f(X))
    scope = hloom.jit_scope()
    for _ in range(2):
        with scope:
            y = X * 2 + 1
    assert sum(p.runs for p in scope.programs()) == 2
    same(y, f(X))


def test_a_generator_may_hold_a_scope_open() -> None:
    def values() -> Iterator[Any]:
        with hloom.jit_scope():
            yield X * 2 + 1

    source = values()
    y = next(source)
    z = y - 1
    assert is_pending(z)
    source.close()
    same(z, np.asarray(X) * 2)
    assert not is_pending(X + 1)


def test_a_scope_is_of_its_thread_and_its_arrays_of_all() -> None:
    found: dict[str, Any] = {}
    with hloom.jit_scope():
        y = X * 2 + 1
        before = y + 1

        def other() -> None:
            found["pending"] = is_pending(X + 1)
            found["value"] = np.asarray(y)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        z = y + before
        assert is_pending(z)
    assert found["pending"] is False
    np.testing.assert_allclose(found["value"], np.asarray(X) * 2 + 1)
    same(z, np.asarray(X) * 4 + 3)


def test_threads_record_side_by_side() -> None:
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            with hloom.jit_scope():
                y = X + seed
                for _ in range(30):
                    y = jnp.sin(y) + 0.1 * y
            expected = np.asarray(X) + seed
            for _ in range(30):
                expected = np.sin(expected) + np.float32(0.1) * expected
            np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-3, atol=1e-5)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_process_has_what_was_pending() -> None:
    with hloom.jit_scope():
        y = X * 2 + 1
        child = os.fork()
        if child == 0:
            os._exit(0 if np.allclose(np.asarray(y), np.asarray(X) * 2 + 1) else 1)
        assert os.waitpid(child, 0)[1] == 0
    same(y, np.asarray(X) * 2 + 1)


# ---- memory, effects, transformations


def test_memory_that_is_given_away_or_deleted() -> None:
    add = hloom.jit(lambda v: v + 1, donate_argnums=0)
    with hloom.jit_scope():
        x = jnp.asarray(np.arange(4.0, dtype=np.float32)) * 1
        y = x * 3 + 1
        z = add(x)
        assert x.is_deleted()
        w = y * 2 + 1
        y.delete()
        assert y.is_deleted()
        with pytest.raises(RuntimeError, match="deleted"):
            np.asarray(y)
        leaf = jnp.asarray(np.ones(4, np.float32))
        kept = leaf * 5 + 1
        leaf.delete()
    same(z, np.arange(4.0) + 1)
    same(w, (np.arange(4.0) * 3 + 1) * 2 + 1)
    same(kept, np.full(4, 6.0))


def test_numpy_memory_may_change_after_the_operation() -> None:
    data = np.arange(6, dtype=np.float32)
    with hloom.jit_scope():
        sums = [jnp.add(data, 1), hloom.nn.softmax(data), jnp.var(data), jnp.sort(data[::-1])]
        data[:] = 0
    data[:] = np.arange(6)
    same(sums, [jnp.add(data, 1), hloom.nn.softmax(data), jnp.var(data), jnp.sort(data)])


def test_effects_happen_at_once_and_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[float] = []
    with hloom.jit_scope():
        y = X.sum() * 2
        hloom.debug.print("first {}", y)
        hloom.debug.callback(lambda v: seen.append(float(v)), y + 1)
        z = y + 2
        hloom.debug.print("second {}", z)
        assert len(seen) == 1
        ref = hloom.new_ref(jnp.zeros(3))
        ref[0] = y
        ref[...] += 1
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["first", "second"]
    same_array(ref[...], [np.asarray(X).sum() * 2 + 1, 1, 1])


def same_array(a: Any, b: Any) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5)


def test_traced_values_are_never_put_off() -> None:
    kinds: list[bool] = []

    @hloom.jit
    def f(x: Any) -> Any:
        kinds.append(isinstance(x + 1, hloom.core.Tracer))
        with hloom.jit_scope():
            y = x * 2
            kinds.append(isinstance(y, hloom.core.Tracer))
        return y.sum()

    with hloom.jit_scope():
        same_array(f(X * 2), np.asarray(X).sum() * 4)
        same_array(hloom.grad(lambda x: f(x) * 3)(X), np.full((3, 4), 6))
        same_array(hloom.vmap(f)(X), np.asarray(X).sum(1) * 2)
    assert kinds and all(kinds)


def test_training_steps_compile_once() -> None:
    rng = np.random.default_rng(0)
    data, target = jnp.asarray(rng.random((16, 4), np.float32)), jnp.asarray(rng.random(16, np.float32))

    def loss(w: Any) -> Any:
        return ((jnp.tanh(data @ w["a"]) @ w["b"] - target) ** 2).mean()

    def train(count: int) -> Any:
        w = {"a": jnp.ones((4, 3)) * 0.1, "b": jnp.ones(3) * 0.1}
        for _ in range(count):
            value, g = hloom.value_and_grad(loss)(w)
            w = hloom.tree.map(lambda p, d: p - 0.1 * d, w, g)
        return w, value

    expected = train(20)
    with hloom.jit_scope() as scope:
        found = train(20)
    assert len(scope.programs()) <= 5
    same(found, expected, rtol=1e-3)


# ---- the whole session


@pytest.fixture
def level() -> Iterator[Callable[[int], None]]:
    before = hloom.config.hloom_jit_level
    yield lambda value: hloom.config.update("hloom_jit_level", value)
    hloom.config.update("hloom_jit_level", before)


def test_level_1_compiles_what_comes_again(level: Callable[[int], None]) -> None:
    level(1)
    assert hloom.config.hloom_jit_level == hloom.config.values["hloom_jit_level"] == 1
    x = v = jnp.arange(11.0)
    for _ in range(10):
        x, v = step(x, v, 0.125)
        assert is_pending(x)
        float(x[1])
    assert "clusters" in hloom.jit_scope_report()
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(is_pending(X + 1)))
    thread.start()
    thread.join()
    assert found == [True]
    with hloom.jit_scope(compile_ops=False):
        assert not is_pending(X + 1)
    assert is_pending(X + 1)
    y = X * 2 + 1
    level(0)
    assert is_pending(y) and not is_pending(y + 1)
    same(y, np.asarray(X) * 2 + 1)


def test_threads_that_run_follow_the_level(level: Callable[[int], None]) -> None:
    go, done = threading.Event(), threading.Event()
    found: list[bool] = []

    def work() -> None:
        found.append(is_pending(X + 1))
        done.set()
        go.wait(120)
        found.append(is_pending(X + 1))

    level(2)
    thread = threading.Thread(target=work)
    thread.start()
    assert done.wait(120)
    level(0)
    go.set()
    thread.join()
    assert found == [True, False]


def test_the_environment_sets_the_level() -> None:
    code = (
        "import hloom, hloom.numpy as jnp; from hloom.tracer.arrays.array import is_absent\n"
        "print(is_absent(jnp.ones(2) + 1), hloom.config.hloom_jit_level)"
    )
    command, said = [sys.executable, "-c", code], {}
    for value in ("1", "7"):
        done = subprocess.run(command, env={**os.environ, "HLOOM_JIT_LEVEL": value}, capture_output=True, text=True)
        said[value] = done.stdout + done.stderr
    assert said["1"].strip() == "True 1"
    assert "hloom_jit_level must be one of 0, 1, 2, not 7" in said["7"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "names"), [("1", ("array_protocol", "donation")), ("2", ("donation", "references"))], ids=["1", "2"]
)
def test_a_sample_of_the_suite_passes_while_operations_are_put_off(value: str, names: tuple[str, ...]) -> None:
    files = [f"tests/tracer/test_{n}.py" for n in names]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "HLOOM_JIT_LEVEL": value},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
