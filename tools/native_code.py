#!/usr/bin/env python3
"""The machine code of the runtime's functions that comes with the package: `numba_backend/runtime/native_code/`.

    python tools/native_code.py                      # says which functions the file lacks, or has in another form
    python tools/native_code.py --write              # writes it; on Linux on x86-64
    python tools/native_code.py --assembly execute   # prints a function as LLVM translates it
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT)]

import llvmlite  # noqa: E402
import llvmlite.binding as llvm  # noqa: E402
from hloom.numba_backend.runtime import machine  # noqa: E402
from hloom.numba_backend.runtime.blas import GEMM_ITEMS, GEMV_ITEMS, RUN_GEMM  # noqa: E402
from hloom.numba_backend.runtime.call import CALLER  # noqa: E402
from hloom.numba_backend.runtime.callbacks import CALL_PYTHON, LOOK  # noqa: E402
from hloom.numba_backend.runtime.executor import EXECUTOR  # noqa: E402
from hloom.numba_backend.runtime.frontend import to_llvm  # noqa: E402
from hloom.numba_backend.runtime.kernel import KernelSource  # noqa: E402
from hloom.numba_backend.runtime.lapack import LAPACK_FUNCTIONS  # noqa: E402
from hloom.numba_backend.runtime.llvm_backend import emit_object, host_target, optimise  # noqa: E402
from hloom.numba_backend.runtime.loader import Image, link  # noqa: E402
from hloom.numba_backend.runtime.long_kernels import LONG_PIECE, RUN_LONG  # noqa: E402
from hloom.numba_backend.runtime.native_code import PATH, made_by, read, write  # noqa: E402
from hloom.numba_backend.runtime.recorder import RECORDER_FUNCTIONS  # noqa: E402
from hloom.numba_backend.runtime.threads import POOL_FUNCTIONS  # noqa: E402

FUNCTIONS: tuple[KernelSource, ...] = (
    EXECUTOR, CALLER, CALL_PYTHON, LOOK, *POOL_FUNCTIONS, RUN_GEMM, GEMM_ITEMS, GEMV_ITEMS, *RECORDER_FUNCTIONS,
    *LAPACK_FUNCTIONS, RUN_LONG, LONG_PIECE,
)  # fmt: skip
"""All functions of the runtime whose text is always the same."""


def target() -> Any:
    """The machine for which they are compiled: any x86-64."""
    triple, _, _ = host_target()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu="x86-64", features="", opt=2, reloc="pic", codemodel="default", jit=True
    )


def image_of(function: KernelSource) -> Image:
    """The function, compiled here."""
    image = link(function.symbol, emit_object(to_llvm(function, machine.SCOPE), target()))
    if image is None:
        raise SystemExit(f"{function.name} has no image: this is not Linux on x86-64, or libc lacks what it calls")
    return image


def assembly(name: str) -> str:
    """A function in assembly language."""
    (function,) = (f for f in FUNCTIONS if f.name == name)
    module = llvm.parse_assembly(to_llvm(function, machine.SCOPE))
    optimise(module, True, target())
    text: str = target().emit_assembly(module)
    return text


def compiler() -> str:
    """The version that decides the bytes."""
    return f"llvmlite {llvmlite.__version__}"


def differences() -> list[str]:
    """What is not as it should be in the file, for people."""
    text = PATH.read_text()
    stored = {identity: image for _, identity, image in read(text)}
    wrong = [f"{f.name}: the text has changed" for f in FUNCTIONS if f.identity not in stored]
    known = {f.identity for f in FUNCTIONS}
    wrong += [f"{name}: no function has this text" for name, identity, _ in read(text) if identity not in known]
    if made_by(text) == compiler():
        both = [f for f in FUNCTIONS if f.identity in stored]
        wrong += [f"{f.name}: other machine code" for f in both if stored[f.identity] != image_of(f)]
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--assembly", metavar="FUNCTION")
    options = parser.parse_args()
    if options.assembly:
        print(assembly(options.assembly))
        return 0
    if options.write:
        PATH.parent.mkdir(exist_ok=True)
        PATH.write_text(write(compiler(), [(f, image_of(f)) for f in FUNCTIONS]))
    wrong = differences()
    print("\n".join(wrong) or f"{PATH.relative_to(ROOT)}: {len(FUNCTIONS)} functions, up to date")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
