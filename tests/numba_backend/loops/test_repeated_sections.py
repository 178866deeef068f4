"""Sections that say the same are one function of a kernel's module, if they may be; a batch's size is in no text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hloom.numba_backend.loops.expressions import Binary, Call, Expr, Load, Name, Number
from hloom.numba_backend.loops.printer import lines_of
from hloom.numba_backend.loops.rewrite import Substitution
from hloom.numba_backend.loops.split import without_single_iterations
from hloom.numba_backend.loops.statements import Assign, Block, Comment, For, If, LocalArray, LoopProgram, Return, Store
from hloom.numba_backend.runtime import frontend, one_pass
from hloom.numba_backend.runtime import program as program_of_words
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.repeated_sections import LEAST_SPARED, repeated_sections
from hloom.numba_backend.runtime.store import KernelStore

import hloom
import hloom.numpy as jnp
from hloom import lax
from support.native_loops import compiled

COUNT = 8
"""Copies of a section of four statements: enough to be worth a function."""
assert 4 * (COUNT - 1) >= LEAST_SPARED

COUNTER, N, ACC = Name("i"), Name("n"), Name("acc", "float32")


def pointer(name: str) -> Name:
    return Name(name, "float32*")


def value(number: int) -> Name:
    return Name(f"v{number}", "float32")


def section(number: int, stop: Expr = N, target: Name | None = None) -> Block:
    """``for i in range(n): v = x[i]; a[i] = v + v``"""
    v = value(number)
    body: Block = [
        Assign((v,), (Load(pointer("x"), COUNTER),)),
        Store(target or pointer(f"a{number}"), COUNTER, Binary("+", v, v)),
    ]
    return [Comment("kernel"), For(COUNTER, None, stop, 1, body)]


def added(source: Name) -> Assign:
    """``acc = acc + source[i]``"""
    return Assign((ACC,), (Binary("+", ACC, Load(source, COUNTER)),))


def program(*blocks: Block) -> LoopProgram:
    parameters = ("lo", "hi", "x", *(f"a{k}" for k in range(COUNT)), "n")
    return LoopProgram("k", parameters, [statement for block in blocks for statement in block])


def sections_in(*blocks: Block) -> int:
    return len(repeated_sections(program(*blocks)))


def test_equal_sections_are_found() -> None:
    assert sections_in(*(section(k) for k in range(COUNT))) == COUNT
    found = repeated_sections(program(*(section(k) for k in range(COUNT))))
    assert len({s.key for s in found.values()}) == 1
    assert {tuple(name.name for name in s.free) for s in found.values()} == {
        ("n", "x", f"a{k}") for k in range(COUNT)
    }  # fmt: skip


NEAR_MISSES: dict[str, list[Block]] = {
    "few": [section(k) for k in range(3)],
    "numbers as ends": [section(k, Number(8)) for k in range(COUNT)],
    "no loop": [[Comment("kernel"), Store(pointer(f"a{k}"), Number(0), Number(1.0))] * 8 for k in range(COUNT)],
    "a value that is read afterwards": [
        *(section(k) for k in range(COUNT)),
        [Comment("end"), *(Store(pointer("a0"), Number(k), value(k)) for k in range(COUNT))],
    ],
    "a value that is carried on": [
        [Comment("kernel"), For(COUNTER, None, N, 1, [added(pointer(f"a{k}"))] * 4)] for k in range(COUNT)
    ],
    "local arrays": [
        [LocalArray(pointer(f"local{k}"), 8, "float32") for k in range(COUNT)],
        *(section(k, target=pointer(f"local{k}")) for k in range(COUNT)),
    ],
    "a way out": [
        [*section(k), If([(Binary("<", N, Number(k)), [Return()])]), *section(k)[1:]] for k in range(COUNT)
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_what_stays_where_it_is(name: str) -> None:
    """Sections that do not occur again, or that may not be moved."""
    assert sections_in(*NEAR_MISSES[name]) == 0


def test_a_different_constant_is_a_different_section() -> None:
    blocks = [section(k, Binary("-", N, Number(k % 2))) for k in range(2 * COUNT)]
    body = [statement for block in blocks for statement in block]
    found = repeated_sections(LoopProgram("k", ("x", *(f"a{k}" for k in range(2 * COUNT)), "n"), body))
    assert len({s.key for s in found.values()}) == 2


def _integrator(size: int) -> tuple[Any, np.ndarray]:
    """Eight stages of a loop, each with a sine and neighbours from both sides."""

    def slope(x: Any) -> Any:
        return jnp.sin(x) + 0.3 * (jnp.roll(x, 1) - x) - 0.2 * jnp.roll(x, -1)

    def step(x: Any, _: Any) -> Any:
        for k in range(8):
            x = x + 0.01 * (k + 1) * slope(x)
        return x, x[0]

    x = np.random.default_rng(1).standard_normal(size).astype(np.float32)
    return (lambda x: lax.scan(step, x, None, length=7)), x


def _run(size: int, monkeypatch: pytest.MonkeyPatch, *, shared: bool) -> tuple[list[np.ndarray], str]:
    """The results of the loop, compiled with nothing stored, and the LLVM IR of its kernel."""
    function, x = _integrator(size)
    texts: list[str] = []

    def recorded(kernel: Any, *arguments: Any) -> str:
        texts.append(to_llvm(kernel, *arguments))
        return texts[-1]

    store = KernelStore(None)
    with monkeypatch.context() as patched:
        patched.setattr(frontend, "to_llvm", recorded)
        patched.setattr(program_of_words, "default_store", lambda: store)
        if not shared:
            patched.setattr(one_pass, "repeated_sections", lambda program: {})
        results = compiled(function, [x], "native")()
    (ir,) = [text for text in texts if "native_loop" in text]
    return results, ir


@pytest.mark.parametrize("size", [17, 65, 1030])
def test_a_loop_of_stages(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits as with each section compiled on its own, from much less IR."""
    results, ir = _run(size, monkeypatch, shared=True)
    assert "define internal void @\"section_" in ir and len(re.findall(r"call void @\"section_", ir)) >= 6
    alone, longer = _run(size, monkeypatch, shared=False)
    assert "section_" not in longer and len(ir) < 0.6 * len(longer)
    for got, want in zip(results, alone, strict=True):
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))
    function, x = _integrator(size)
    for got, want in zip(results, compiled(function, [x], "evaluator")(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_bounds_are_computed_when_they_are_known() -> None:
    """The parts of a split loop, once sizes are numbers: a loop that runs once, and a loop that never runs."""
    n = Name("n")
    split = [
        For(COUNTER, None, Call("minimum", (Number(1), n)), 1, [Store(pointer("out"), COUNTER, Number(1.0))]),
        For(COUNTER, Call("maximum", (Number(1), Number(0))), n, 1, [Store(pointer("out"), COUNTER, Number(2.0))]),
        For(COUNTER, Call("maximum", (n, Number(1))), Number(2), 1, [Store(pointer("out"), COUNTER, Number(3.0))]),
        If([(n.eq(3), [Store(pointer("out"), n // 1, Number(4.0))])], [Store(pointer("out"), n % 1, Number(5.0))]),
    ]
    written = Substitution({"n": Number(2)}, {}, lambda name: name).block(split)
    assert lines_of(without_single_iterations(written)) == ["out[0] = 1.0", "out[1] = 2.0", "out[0] = 5.0"]
    assert [len(lines_of([one])) for one in without_single_iterations(split)] == [2, 2, 2, 4]  # n is not known here


def test_a_difference_from_zero() -> None:
    n = Name("n")
    assert (Number(0) - (Number(0) - n)).text == "n" and (COUNTER + (Number(0) - n)).text == "i - n"


FUNCTIONS = {
    "a layer's gradient": (lambda x, w: hloom.grad(lambda w: jnp.tanh(x * w).sum())(w), (), (100,)),
    "sums of columns": (lambda x, w: x.sum(0) * w, (), (100,)),
    "the sum of all": (lambda x, w: (x * w).sum(), (), (100,)),
    "a sum along the middle": (lambda x, w: (x[None] * w).sum(1), (), (7, 1, 100)),
    "a batch inside": (lambda x, w: jnp.exp(x + w), (33,), (100,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_small_batch_is_in_no_text(name: str) -> None:
    """Loops around longer ones: 5, 12 and 16 are the same kernel, and each gives what the evaluator gives."""
    function, before, shape = FUNCTIONS[name]
    texts = set()
    for batch in (5, 8, 12, 16, 17):
        x = np.random.default_rng(batch).standard_normal((*before, batch, 100)).astype(np.float32)
        w = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        program = hloom.jit(function).lower(x, w).compile()
        texts.add("".join(re.sub(r"(?m)^#.*$", "", text) for text in program.kernels().values()))
        (expected,) = compiled(function, [x, w], "evaluator")()
        np.testing.assert_allclose(np.asarray(program(x, w)), expected, rtol=2e-4, atol=2e-4)
    assert len(texts) == 1, "\n".join(texts)


def test_an_inner_size_is_in_the_text() -> None:
    """Short rows are unrolled: their sizes stay numbers, and so do the sizes of loops around them."""
    x = np.ones((50, 3, 4), np.float32)
    (text,) = hloom.jit(lambda x: jnp.exp(x).sum((1, 2))).lower(x).compile().kernels().values()
    assert "range(12)" in text or ("range(3)" in text and "range(4)" in text)


def test_operands_in_another_order_are_the_same_kernel() -> None:
    """Two layers; the program meets their operands in different orders."""

    def f(a: Any, b: Any, c: Any) -> Any:
        def update(x: Any, y: Any, z: Any) -> Any:
            return 0.9 * x - 0.1 * y.sum(0) + z

        d, e = jnp.sin(b).reshape(7, 33), jnp.cos(b).reshape(7, 33)
        return update(a, d, c), update(c, e, a)

    a, c = np.ones((2, 33), np.float32)
    kernels = hloom.jit(f).lower(a, np.ones(231, np.float32), c).compile().kernels()
    for text in kernels.values():
        names = re.findall(r"\b(?:x|io)(\d+)\[", text)
        assert list(dict.fromkeys(names)) == sorted(dict.fromkeys(names), key=int), text
