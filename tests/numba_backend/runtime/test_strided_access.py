"""Elements that are some distance apart are loaded and stored one by one, without gathers and scatters."""

from __future__ import annotations

import re
from typing import Any

import llvmlite.binding as llvm
import pytest
from hloom.numba_backend.runtime import llvm_backend
from hloom.numba_backend.runtime.dialect import SCOPE
from hloom.numba_backend.runtime.frontend import to_llvm
from hloom.numba_backend.runtime.kernel import KernelSource, Parameter

TRIPLE = "x86_64-unknown-linux-gnu"
COLUMN = """\
def column(lo, hi, x, out):
    for i in range(lo, hi):
        out[i] = sqrt(x[i * 17])
"""
UPDATE = """\
def update(lo, hi, x, out):
    for i in range(lo, hi):
        out[i * 2] = add(out[i * 2], x[i])
"""


def code(name: str, text: str, machine: Any) -> str:
    kernel = KernelSource(name, text, (Parameter("pointer", "f64"), Parameter("pointer", "f64")))
    ir = to_llvm(kernel, SCOPE, "one pass", features=frozenset(), register=64)
    ir = re.sub(r'target triple = ".*"', f'target triple = "{TRIPLE}"', ir)
    ir = re.sub(r'target datalayout = ".*"', f'target datalayout = "{machine.target_data}"', ir)
    with llvm.create_context() as context, llvm.parse_assembly(ir, context) as module:
        llvm_backend.optimise(module, llvm_backend.widens_straight_lines(ir), machine)
        found: str = machine.emit_assembly(module)
        return found


@pytest.mark.parametrize(("name", "text", "instruction"), [
    ("column", COLUMN, "vgatherqpd"), ("update", UPDATE, "vscatterqpd"),
])  # fmt: skip
def test_no_gather_and_no_scatter(name: str, text: str, instruction: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLE)
    plain, tuned = (
        target.create_target_machine(cpu="x86-64-v4", features=features, opt=2, reloc="pic", codemodel="default")
        for features in ("", llvm_backend.tuned(TRIPLE, ""))
    )
    assert instruction in code(name, text, plain)
    assert not re.search("gather|scatter", code(name, text, tuned))


def test_other_processors_keep_their_features() -> None:
    assert llvm_backend.tuned("aarch64-linux-gnu", "+neon") == "+neon"
    assert llvm_backend.tuned(TRIPLE, "+avx2") == "+avx2,+prefer-no-gather,+prefer-no-scatter"
