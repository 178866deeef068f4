"""Compound library functions: one stored program outside traced code, the Python function inside it."""

from __future__ import annotations

import inspect
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo import ElementType
from hloom.hlo.builder import check_shape
from hloom.hlo.evaluator import evaluate_op
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops.indexing import GatherAttributes, ScatterAttributes
from hloom.hlo.ops.sort import TopKAttributes
from hloom.hlo.ops.window import ReduceWindowAttributes
from hloom.hlo.window import WindowDimension
from hloom.tracer import core
from hloom.tracer.compound import Compound, compound
from hloom.tracer.errors import OperandError
from hloom.tracer.ops import scalar_reducer

import hloom
import hloom.numpy as jnp
from hloom import config, lax, nn, random
from hloom.random.drawing import compound_draw

X = np.random.default_rng(0).normal(size=(6, 7)).astype(np.float32)
V = X[0]
N = np.array([5, -3, 0, 8, 2], np.int32)
KEY = random.PRNGKey(7)
TYPED = random.key(1)

CASES: list[tuple[str, Callable[[], Any]]] = [
    ("var", lambda: jnp.var(X, axis=0)),
    ("std", lambda: jnp.std(X, ddof=1, keepdims=True)),
    ("var bf16", lambda: jnp.var(jnp.asarray(X).astype("bfloat16"), 1)),
    ("var of integers", lambda: jnp.var(N)),
    ("mean", lambda: jnp.mean(X, axis=(0, 1))),
    ("argmax", lambda: jnp.argmax(X, axis=1)),
    ("argmin", lambda: jnp.argmin(X)),
    ("cumsum", lambda: jnp.cumsum(X, axis=1)),
    ("cumsum of integers", lambda: jnp.cumsum(N)),
    ("lax.cummax", lambda: lax.cummax(X, 1, reverse=True)),
    ("logsumexp", lambda: jnp.logaddexp(V, 2.0)),
    ("logsumexp of two", lambda: nn.logsumexp(X, axis=1, return_sign=True)),
    ("softmax", lambda: nn.softmax(X)),
    ("softmax where", lambda: nn.softmax(X, where=X > -1)),
    ("log_softmax", lambda: nn.log_softmax(X, axis=0)),
    ("one_hot", lambda: nn.one_hot(N, 4)),
    ("gelu", lambda: nn.gelu(X, approximate=False)),
    ("linspace", lambda: jnp.linspace(0, 1, 7)),
    ("linspace with step", lambda: jnp.linspace(0.5, V, 3, endpoint=False, retstep=True)),
    ("logspace", lambda: jnp.logspace(0, 2, 4)),
    ("mod", lambda: jnp.asarray(N) % 3),
    ("floor_divide", lambda: jnp.asarray(X) // 0.3),
    ("divmod", lambda: jnp.divmod(N, 3)),
    ("isclose", lambda: jnp.isclose(X, X + 1e-9, equal_nan=True)),
    ("select", lambda: jnp.select([X > 1, X > 0], [X, -X], 3.0)),
    ("polyval", lambda: jnp.polyval(V, 0.5)),
    ("norm", lambda: jnp.linalg.norm(X, axis=0)),
    ("matrix_power", lambda: jnp.linalg.matrix_power(X[:, :6], 3)),
    ("kron", lambda: jnp.kron(V, X)),
    ("diff", lambda: jnp.diff(X, 2, 1)),
    ("erf_inv", lambda: lax.erf_inv(np.linspace(-1, 1, 9, dtype=np.float32))),
    ("split", lambda: random.split(KEY, 3)),
    ("fold_in", lambda: random.fold_in(KEY, 4)),
    ("split into a shape", lambda: random.split(KEY, (2, 3))),
    ("split of a typed key into a shape", lambda: random.split(TYPED, num=(2, 3))),
    ("split of a typed key", lambda: random.split(TYPED)),
    ("fold_in of a typed key", lambda: random.fold_in(TYPED, 2**31 - 1)),
    ("normal of a typed key", lambda: random.normal(TYPED, (2, 3))),
    ("bits", lambda: random.bits(KEY, (3, 2), np.uint8)),
    ("uniform", lambda: random.uniform(KEY, (5,), minval=-1.0, maxval=V[0] + 4)),
    ("uniform of bounds", lambda: random.uniform(KEY, (7,), np.float32, V - 10, V)),
    ("normal", lambda: random.normal(KEY, (2, 3))),
    ("normal of one", lambda: random.normal(KEY)),
    ("normal f16", lambda: random.normal(KEY, (3,), np.float16)),
    ("randint", lambda: random.randint(KEY, (9,), 0, 10)),
    ("categorical", lambda: random.categorical(KEY, X, shape=(4, 6))),
    ("truncated_normal", lambda: random.truncated_normal(KEY, -1.0, 1.0, (5,))),
]


@pytest.fixture
def count_ops(monkeypatch: pytest.MonkeyPatch) -> list[Opcode]:
    """The opcodes that run one by one."""
    seen: list[Opcode] = []
    process = core.EvalTrace.process

    running = 0

    def counting(self: Any, opcode: Opcode, *rest: Any) -> Any:
        nonlocal running
        if not running:  # a layer that is on, since another test deferred operations, passes each one on
            seen.append(opcode)
        running += 1
        try:
            return process(self, opcode, *rest)
        finally:
            running -= 1

    monkeypatch.setattr(core.EvalTrace, "process", counting)
    return seen


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("f"), [f for _, f in CASES], ids=[name for name, _ in CASES])
def test_one_program_computes_what_the_ops_do(f: Callable[[], Any], count_ops: list[Opcode]) -> None:
    found, structure = hloom.tree.flatten(f())
    assert len(count_ops) <= 2, "it ran op by op"
    with hloom.disable_jit():
        expected, expected_structure = hloom.tree.flatten(f())
    assert structure == expected_structure
    for a, b in zip(found, expected, strict=True):
        assert a.aval is b.aval
        if a.aval.is_extended:
            assert (a == b).all()
            continue
        exact = a.dtype.kind in "iub"
        rtol = 0 if exact else 1e-5 if a.dtype == np.float32 else 1e-2
        wide = [np.asarray(v.astype(v.dtype if exact else np.float32)) for v in (a, b)]
        np.testing.assert_allclose(*wide, rtol=rtol, atol=0 if exact else 1e-6)


def test_the_program_is_made_once(count_ops: list[Opcode]) -> None:
    traced = []

    @compound(static=("axis",))
    def f(x: Any, axis: Any = None) -> Any:
        traced.append(axis)
        return jnp.sum(jnp.sin(x) * 2, axis)

    for _ in range(3):
        f(X)
        f(X, 0)
        f(X, axis=0)
        f(jnp.asarray(X), axis=1)
    assert traced == [None, 0, 0, 1], "by position and by keyword are two forms of call"
    assert not count_ops


def test_traced_programs_hold_the_operations() -> None:
    def softmax(x: Any) -> Any:
        return nn.softmax(x)

    text = hloom.make_hlo(softmax)(X).to_text()
    assert 'composite.name="jit"' not in text
    assert f"source_line={softmax.__code__.co_firstlineno + 1}" in text
    assert "tracer/compound.py" not in text


def test_under_a_derivative_it_is_one_call(count_ops: list[Opcode]) -> None:
    gradient = hloom.grad(lambda x: nn.logsumexp(x))
    for _ in range(2):
        found = gradient(jnp.asarray(V))
    assert len(count_ops) < 6
    np.testing.assert_allclose(found, nn.softmax(V), rtol=1e-5)


def test_disable_jit_and_the_evaluator_run_op_by_op(count_ops: list[Opcode]) -> None:
    with hloom.disable_jit(disable=True):
        jnp.var(X)
    assert len(count_ops) > 3
    count_ops.clear()
    config.update("hloom_backend", "evaluator")
    try:
        jnp.var(X)
    finally:
        config.update("hloom_backend", "numba")
    assert len(count_ops) > 3


def test_what_cannot_be_traced_runs_op_by_op() -> None:
    tries = []

    @compound()
    def f(x: Any) -> Any:
        tries.append(1)
        return x * 2 if x.sum() > 0 else x

    for _ in range(3):
        np.testing.assert_array_equal(f(np.ones(3, np.float32)), np.full(3, 2))
    assert len(tries) == 4, "traced once, in vain"


@pytest.mark.parametrize(
    ("f", "error", "text"),
    [
        (lambda: jnp.var([1.0, 2.0]), OperandError, "var requires ndarray or scalar arguments, got list"),
        (lambda: jnp.var(X, axis=5), ValueError, "axis 5"),
        (lambda: jnp.linspace(0, 1, X), TypeError, "."),
        (lambda: nn.softmax("a"), TypeError, "str"),
        (lambda: jnp.cumsum(X, axis=[0]), TypeError, "."),
        (lambda: random.normal(V, (3,)), OperandError, "key"),
        (lambda: random.normal(KEY, (-1,)), Exception, "."),
        (lambda: jnp.hypot(V, X[:, :3]), Exception, "."),
        (lambda: jnp.mod(jnp.asarray(N), 2**40), OverflowError, "."),
    ],
)
def test_errors_are_the_functions_own(f: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        f()
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    with hloom.disable_jit(), pytest.raises(error) as plain:
        f()
    assert str(caught.value) == str(plain.value)
    assert type(caught.value) is type(plain.value)


def test_it_looks_like_the_function() -> None:
    assert isinstance(jnp.var, Compound)
    assert repr(jnp.var) == "<function var>"
    assert jnp.var.__doc__
    assert list(inspect.signature(jnp.var).parameters)[:2] == ["a", "axis"]
    assert pickle.loads(pickle.dumps(jnp.var)) is jnp.var
    np.testing.assert_allclose(jnp.asarray(X).var(), np.var(X), rtol=1e-5)


def test_threads_and_contexts() -> None:
    found: list[Any] = []

    def work() -> None:
        with hloom.enable_x64():
            found.append(jnp.linspace(0, 1, 4).dtype)

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert (found[0], jnp.linspace(0, 1, 4).dtype) == (np.float64, np.float32)


# ---- draws


@pytest.mark.one_in(2)
@pytest.mark.parametrize("shape", [(), 3, (3,), (0,), (16,), (17,), (5, 5), (2, 0, 3), (200, 3), (20000,)])
@pytest.mark.parametrize("f", [random.normal, random.uniform, random.bits, random.exponential])
def test_draws_of_all_sizes_agree_with_jit(f: Any, shape: Any) -> None:
    found = f(KEY, shape)
    expected = hloom.jit(lambda key: f(key, shape))(KEY)
    assert found.aval is expected.aval
    np.testing.assert_array_equal(found, expected)


def test_small_draws_share_programs() -> None:
    traced = []

    @compound_draw(static=("shape", "dtype"))
    def draw(key: Any, shape: Any = (), dtype: Any = None, scale: Any = 1.0) -> Any:
        traced.append(shape)
        return random.uniform(key, shape, dtype) * scale

    for n in range(1, 60):
        draw(KEY, (n,))
        draw(KEY, (n, 2), scale=3.0)
    assert sorted(traced) == [(16,), (16,), (64,), (64,), (256,)], "for both forms of call"


# ---- ops and views


@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.parametrize("make", [hloom.jit(lambda x: x + 1), lambda x: x + 1, lambda x: (x.T + 1).T])
def test_a_small_slice_does_not_keep_a_large_array(make: Any, seen: bool) -> None:
    big = make(jnp.zeros((1000, 100)))
    if seen:
        np.asarray(big)
    for part in (big[3], big[2:5], lax.slice(big, (0, 0), (1, 5)), lax.dynamic_slice(big, (1, 2), (2, 3))):
        assert part._view.base is None or part._view.base.nbytes < 10000
    assert big[10:]._view.base is not None, "a large part is a view"


def test_ops_that_the_evaluator_does_slowly_are_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(core, "run_op", lambda opcode, *rest: seen.append(opcode) or run_op(opcode, *rest))
    with hloom.disable_jit():
        large = np.random.default_rng(0).normal(size=(40, 60)).astype(np.float32)
        np.testing.assert_allclose(jnp.cumsum(large, axis=1), np.cumsum(large, axis=1), rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(jnp.argmax(large, axis=0), np.argmax(large, axis=0))
        count = len(seen)
        assert count >= 1
        jnp.argmax(np.zeros((2, 3), np.float32), axis=0)
        assert len(seen) == count, "tiny ones are not"


run_op = core.run_op

_SUM = scalar_reducer(Opcode.ADD, ElementType.F32)
_WINDOW = (WindowDimension(), WindowDimension(size=3, stride=2, padding_low=1, padding_high=1))
SLOW_OPS: dict[str, tuple[Opcode, Any, tuple[str, ...], Any]] = {
    "gather": (Opcode.GATHER, GatherAttributes((1,), (0,), (0,), 1, (1, 60)), ("rows", "indices"), None),
    "scatter": (Opcode.SCATTER, ScatterAttributes((1,), (0,), (0,), 1, _SUM), ("rows", "indices", "rows"), None),
    "window": (Opcode.REDUCE_WINDOW, ReduceWindowAttributes(_WINDOW, _SUM), ("rows", "zero"), None),
    "top k": (Opcode.TOPK, TopKAttributes(3), ("rows",), None),
}


@pytest.mark.parametrize("name", SLOW_OPS)
def test_programs_of_slow_ops_compute_what_the_evaluator_does(name: str) -> None:
    opcode, attributes, wanted, shape = SLOW_OPS[name]
    rng = np.random.default_rng(0)
    given = {
        "rows": rng.normal(size=(40, 60)).astype(np.float32),
        "indices": rng.integers(0, 40, (40, 1)).astype(np.int32),
        "zero": np.zeros((), np.float32),
    }
    operands = [jnp.asarray(given[w]) for w in wanted]
    inferred = check_shape(opcode, [o.aval.hlo for o in operands], attributes, shape)
    expected = evaluate_op(opcode, [given[w] for w in wanted], attributes, inferred)
    if inferred.is_tuple:
        for found, part in zip(core.bind_multi(opcode, operands, attributes), expected, strict=True):
            np.testing.assert_array_equal(found, part)
    else:
        np.testing.assert_allclose(core.bind(opcode, operands, attributes), expected, rtol=1e-5, atol=1e-6)


def test_a_fault_of_the_library_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    @compound()
    def f(x: Any) -> Any:
        return jnp.sin(x) + jnp.cos(x)

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("the compiler failed")

    monkeypatch.setattr("hloom.tracer.jit.compile_module", fail)
    with pytest.raises(RuntimeError, match="the compiler failed"):
        f(jnp.asarray(X))


# ---- functions that become programs where they are called often


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that are decorated from now on become programs at the third call of the same types."""
    monkeypatch.setattr("hloom.tracer.compound.MANY_CALLS", 0)


@pytest.mark.usefixtures("often")
def test_a_frequent_function_becomes_a_program(count_ops: list[Opcode]) -> None:
    traced = []

    @compound(static=("axis",), frequent=True)
    def f(x: Any, axis: Any) -> Any:
        traced.append(isinstance(x, core.Tracer))
        return jnp.flip(lax.neg(x), axis)

    x = jnp.asarray(X)
    ran = []
    for axis in (0, 0, 0, 0, 1):
        f(x, axis)
        ran.append(len(count_ops))
        count_ops.clear()
    assert ran == [2, 2, 0, 0, 2], "each combination of types and static arguments is counted"
    assert traced == [False, False, True, False]
    np.testing.assert_array_equal(f(x, 0), -X[::-1])


def test_calls_of_all_types_come_first(monkeypatch: pytest.MonkeyPatch, count_ops: list[Opcode]) -> None:
    monkeypatch.setattr("hloom.tracer.compound.MANY_CALLS", 4)
    f = compound(frequent=True)(lambda x: lax.neg(x))
    ran = 0
    while not ran or count_ops:
        count_ops.clear()
        f(jnp.asarray(V))
        ran += 1
    assert ran == 4 + 1 + 5 + 1, "of any types, the first one to be counted, those of its types, the program"


@pytest.mark.usefixtures("often")
def test_static_arguments_of_a_frequent_function_may_be_lists(count_ops: list[Opcode]) -> None:
    @compound(static=("widths",), frequent=True)
    def f(x: Any, widths: Any) -> Any:
        return lax.pad(x, np.float32(0), [(low, high, 0) for low, high in widths])

    for given in ([(1, 2)], ((1, 2),), [[1, 2]]):
        for _ in range(4):
            count_ops.clear()
            np.testing.assert_array_equal(f(jnp.asarray(V), given), np.pad(V, (1, 2)))
        assert not count_ops, given


@pytest.mark.usefixtures("often")
def test_a_frequent_function_that_needs_values_stays_as_it_is() -> None:
    traced = []

    @compound(frequent=True)
    def f(x: Any) -> Any:
        traced.append(isinstance(x, core.Tracer))
        return x * 2 if x.sum() > 0 else x

    for _ in range(6):
        f(jnp.ones(3))
    assert sum(traced) == 1, "traced once, in vain"


@pytest.mark.usefixtures("often")
def test_a_number_beside_narrow_floats_is_rounded_once() -> None:
    f = compound(frequent=True)(lambda x, y: jnp.add(x, y))
    x, number = jnp.zeros(3, jnp.float16), 1 + 2**-11 + 2**-30
    for _ in range(6):  # a program would round it to float32 first, and then to 1
        np.testing.assert_array_equal(f(x, number), np.full(3, 1 + 2**-10, x.dtype))


FREQUENT: list[tuple[str, Callable[[Any, Any, Any], Any]]] = [
    ("where", lambda p, x, y: jnp.where(p, x, y)),
    ("where of a number", lambda p, x, y: jnp.where(p, x, 0)),
    ("where of numbers", lambda p, x, y: jnp.where(p, 1, 2.5)),
    ("all", lambda p, x, y: jnp.all(p, axis=0)),
    ("any", lambda p, x, y: x.any(keepdims=True)),
    ("stack", lambda p, x, y: jnp.stack([x, y], axis=1)),
    ("vstack", lambda p, x, y: jnp.vstack([x, p])),
    ("hstack", lambda p, x, y: jnp.hstack([x, y])),
    ("dstack", lambda p, x, y: jnp.dstack([x, y])),
    ("column_stack", lambda p, x, y: jnp.column_stack([x[0], y[0]])),
    ("append", lambda p, x, y: jnp.append(x, y, axis=0)),
    ("roll", lambda p, x, y: jnp.roll(x, 2)),
    ("roll of axes", lambda p, x, y: jnp.roll(x, (1, -2), axis=(0, 1))),
    ("tile", lambda p, x, y: jnp.tile(x, [2, 1])),
    ("pad", lambda p, x, y: jnp.pad(x, ((1, 0), (2, 1)))),
    ("pad with a value", lambda p, x, y: jnp.pad(x, 1, constant_values=-1)),
    ("repeat", lambda p, x, y: jnp.repeat(x, 2, axis=1)),
    ("diag", lambda p, x, y: jnp.diag(x[0], k=1)),
    ("eye", lambda p, x, y: jnp.eye(3, 4, k=-1, dtype=x.dtype)),
    ("tri", lambda p, x, y: jnp.tri(3, 4)),
    ("indices", lambda p, x, y: jnp.indices((2, 3))),
    ("isinf", lambda p, x, y: jnp.isinf(x)),
    ("trunc", lambda p, x, y: jnp.trunc(x)),
    ("sign", lambda p, x, y: jnp.sign(x)),
    ("deg2rad", lambda p, x, y: jnp.deg2rad(x)),
    ("rad2deg", lambda p, x, y: jnp.rad2deg(x)),
    ("angle", lambda p, x, y: jnp.angle(x)),
    ("diagonal", lambda p, x, y: x.diagonal(1)),
    ("count_nonzero", lambda p, x, y: jnp.count_nonzero(x, axis=0)),
    ("signbit", lambda p, x, y: jnp.signbit(x)),
    ("relu", lambda p, x, y: nn.relu(x)),
    ("relu6", lambda p, x, y: nn.relu6(x)),
    ("hard_tanh", lambda p, x, y: nn.hard_tanh(x)),
    ("hard_sigmoid", lambda p, x, y: nn.hard_sigmoid(x)),
    ("hard_silu", lambda p, x, y: nn.hard_silu(x)),
    ("soft_sign", lambda p, x, y: nn.soft_sign(x)),
    ("silu", lambda p, x, y: nn.silu(x)),
]
_OF_NUMBERS = ("hard_tanh", "hard_sigmoid", "hard_silu", "relu", "relu6")
NOT_FOR = {
    "complex64": ("signbit", "trunc", "deg2rad", "rad2deg", "silu", "soft_sign", *_OF_NUMBERS),
    "bool": ("sign", "soft_sign", *_OF_NUMBERS),
    "bfloat16": ("hard_sigmoid", "hard_silu", "silu", "soft_sign"),  # a program rounds once, so that they never are one
}
EDGES = np.array([[0.0, -0.0, np.nan, np.inf], [-np.inf, 1.5, -2.5, 3e38], [1e-45, -1.0, 7.0, 0.5]])


@pytest.mark.one_in(4)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "uint32", "bool", "complex64"])
@pytest.mark.parametrize("f", [f for _, f in FREQUENT], ids=[name for name, _ in FREQUENT])
def test_frequent_functions_have_the_same_bits_as_programs(f: Any, dtype: str) -> None:
    name = next(name for name, g in FREQUENT if g is f)
    if name in NOT_FOR.get(dtype, ()):
        pytest.skip("it has no such operands")
    p = jnp.asarray(np.arange(12).reshape(3, 4) % 3 == 1)
    x = jnp.asarray(EDGES).astype(dtype)
    operands = p, x, x[::-1]
    found, program = f(*operands), hloom.jit(f)(*operands)
    assert found.aval is program.aval
    assert np.asarray(found).tobytes() == np.asarray(program).tobytes()
