"""Code for other processors than this machine's: each operation on f16 and bf16 is rounded by itself on all of them.

Processors with arithmetic on halves (AVX512_FP16, Arm's fullfp16) have multiply-adds of halves too, which round once.
`test_machines.py` compares bit by bit the code that runs on this machine; these tests read the instructions of the
other code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np
import pytest
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.lowering import _Lowering
from hloom.numba_backend.runtime import dialect_conversion
from hloom.numba_backend.runtime.dialect import SCOPE
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.llvm_backend import optimise, widens_straight_lines

import hloom
import hloom.numpy as jnp
from hloom import lax
from support.runtime_kernels import python


class Processor(NamedTuple):
    triple: str
    cpu: str
    features: str
    has_halves: bool
    """Whether it adds halves."""


X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
PROCESSORS = {
    "AVX512_FP16": Processor(X86, "sapphirerapids", "", True),
    "AVX-512": Processor(X86, "sapphirerapids", "-avx512fp16", False),
    "AVX2 and FMA": Processor(X86, "x86-64-v3", "", False),
    "AVX2": Processor(X86, "x86-64-v3", "-fma", False),
    "AVX": Processor(X86, "x86-64-v3", "-fma,-avx2", False),
    "Arm with halves": Processor(ARM, "neoverse-v1", "", True),
    "Arm": Processor(ARM, "cortex-a72", "", False),
}
_FUSED = {
    X86: re.compile(r"\bvfn?m(?:add|sub|addsub|subadd)\w*(?:ph|sh)\b"),
    ARM: re.compile(r"\bfn?m(?:add|sub|la|ls)\b[^\n]*(?:\bh\d|\.[48]?h\b)"),
}
_SUM = {X86: re.compile(r"\bv(?:add|sub)(?:ph|sh)\b"), ARM: re.compile(r"\bf(?:add|sub)\b[^\n]*(?:\bh\d|\.[48]h\b)")}

Program = Callable[[Any, Any], Any]


def _recurrence(x: Any, y: Any) -> Any:
    """A loop on scalars, which is one kernel."""
    return lax.fori_loop(0, 100, lambda i, s: s * x[0, 0] + y[0, 0] - s * s, x[1, 1])


PROGRAMS: dict[str, Program] = {
    "chain": lambda x, y: (x * y + x) * y - x,
    "polynomial": lambda x, y: ((x * y + 3) * y - 5) * y + 7,
    "difference of products": lambda x, y: x * y - y * y,
    "quotient": lambda x, y: x / y - y * x,
    "negated": lambda x, y: -(x * y) + y,
    "a product in f32 beside": lambda x, y: (x * y).astype(jnp.float32) + y.astype(jnp.float32) * x.astype(jnp.float32),
    "sum of products": lambda x, y: jnp.sum(x * y + x, axis=1),
    "with a condition": lambda x, y: jnp.where(x > y, x * y, y) + x,
    "loop": _recurrence,
    "running": lambda x, y: lax.scan(lambda c, row: (c * row + row, c), x[0], y)[1],
    "stencil": lambda x, y: x[1:] * y[1:] - x[:-1] * y[:-1],
}


def kernels_of(program: Program, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> list[KernelSource]:
    """The kernels that are compiled for a program of two matrices."""
    found: dict[KernelSource, None] = {}
    source = _Lowering._source

    def record(self: _Lowering, kernel: Any) -> KernelSource:
        made = source(self, kernel)
        found[made] = None
        return made

    x = jnp.ones((24, 40), dtype)
    with monkeypatch.context() as patch:
        patch.setattr(_Lowering, "_source", record)
        NumbaCompiler().compile(hloom.make_hlo(program)(x, x))
    return list(found)


def assembly(kernel: KernelSource, processor: Processor) -> str:
    """The code of a kernel for a processor."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(processor.triple)
    machine = target.create_target_machine(
        cpu=processor.cpu, features=processor.features, opt=2, reloc="pic", codemodel="default"
    )
    text = to_llvm(kernel, SCOPE, "one pass", features=frozenset(), register=32)
    text = re.sub(r'target triple = ".*"', f'target triple = "{processor.triple}"', text)
    text = re.sub(r'target datalayout = ".*"', f'target datalayout = "{machine.target_data}"', text)
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        optimise(module, widens_straight_lines(text), machine)
        found: str = machine.emit_assembly(module)
        return found


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_products_and_sums_of_f16_are_not_fused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = kernels_of(PROGRAMS[name], np.float16, monkeypatch)
    assert kernels
    for title, processor in PROCESSORS.items():
        texts = [assembly(kernel, processor) for kernel in kernels]
        for text in texts:
            assert not _FUSED[processor.triple].search(text), f"{title}:\n{text}"
        if name == "chain":
            assert any(_SUM[processor.triple].search(text) for text in texts) == processor.has_halves, title


def test_the_pattern_finds_what_may_be_fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same kernels, with the sums and products that the dialect has made strict allowed to be contracted."""
    (kernel,) = kernels_of(PROGRAMS["chain"], np.float16, monkeypatch)
    monkeypatch.setattr(dialect_conversion, "uncontracted", lambda x: x)
    for title, processor in PROCESSORS.items():
        found = _FUSED[processor.triple].search(assembly(kernel, processor))
        assert bool(found) == processor.has_halves, title


def test_products_and_sums_of_f32_are_fused_where_there_is_an_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    (kernel,) = kernels_of(PROGRAMS["chain"], np.float32, monkeypatch)
    fused = {name for name, p in PROCESSORS.items() if re.search(r"\bv?fn?m(add|sub|la|ls)\w*", assembly(kernel, p))}
    assert fused == set(PROCESSORS) - {"AVX2", "AVX"}


ROWS_IN_LOCAL_ARRAYS = """def k(lo, hi, x, a, b, out):
    t = local_array(60, {dtype})
    u = local_array(60, {dtype})
    for i in range(60):
        t[i] = x[i]
    for i in range(60):
        u[i] = t[i]
    for s in range(lo, hi):
        t[s] = t[0]
        for i in range({rows}):
            for j in range({columns}):
                v = t[i * {columns} + j]
                u[i * {columns} + j] = v + b[j]
                t[i * {columns} + j] = v + a[j]
    for i in range(60):
        x[i] = t[i]
    for i in range(60):
        out[i] = u[i]
"""


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_rows_of_odd_lengths_in_local_arrays_have_code(dtype: str) -> None:
    """In a process of its own, because LLVM's code generator for Zen 4 aborts at such vectors of int32 and float32."""
    code = f"""
import llvmlite.binding as llvm
from hloom.numba_backend.runtime.dialect import SCOPE
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter
from hloom.numba_backend.runtime.llvm_backend import emit_object

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
machine = llvm.Target.from_triple({X86!r}).create_target_machine(cpu="znver4", opt=2, reloc="pic", codemodel="default")
for columns in (3, 5, 6):
    text = {ROWS_IN_LOCAL_ARRAYS!r}.format(dtype={dtype!r}, rows=60 // columns, columns=columns)
    parameters = (Parameter("pointer", "{dtype[0].replace("i", "s")}{dtype[-2:]}"),) * 4
    kernel = KernelSource("k", text, parameters)
    ir = to_llvm(kernel, SCOPE, "one pass", features=frozenset(), register=64)
    print(emit_object(ir, machine).startswith(b"\\x7fELF"))
"""
    assert python(code).split() == ["True"] * 3
