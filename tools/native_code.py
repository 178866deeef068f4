#!/usr/bin/env python3
"""The machine code in the package, which no process compiles again: `numba_backend/runtime/native_code/`.

    python tools/native_code.py                      # says what the files lack, or have in another form
    python tools/native_code.py --write              # writes them; on Linux on x86-64, for all processors
    python tools/native_code.py --quick              # compiles no elementary function whose LLVM IR is known
    python tools/native_code.py --quick --write      # writes all files, and keeps the code of these functions
    python tools/native_code.py --assembly execute   # prints a function as LLVM translates it; also --machine aarch64

`elementary.txt` has a digest of the LLVM IR of each elementary function: with the same version of LLVM and the same IR
the code is the same. The digest does not know LLVM's settings (`runtime/llvm_backend.py`): after a change there, run
without `--quick`. A quick run says how many functions it did not compile.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT)]

import llvmlite  # noqa: E402
import llvmlite.binding as llvm  # noqa: E402
from hloom.hlo.buffers.assignment import assign_buffers  # noqa: E402
from hloom.hlo.builder import make_computation, make_instruction, make_module, make_parameter, make_tuple  # noqa: E402
from hloom.hlo.element_type import ElementType  # noqa: E402
from hloom.hlo.elementary import FUNCTIONS as OPS  # noqa: E402
from hloom.hlo.elementary import is_function  # noqa: E402
from hloom.hlo.errors import HloError  # noqa: E402
from hloom.hlo.ir import HloInstruction, HloModule  # noqa: E402
from hloom.hlo.opcode import Opcode  # noqa: E402
from hloom.hlo.ops import spec_of  # noqa: E402
from hloom.hlo.ops.dot import DotAttributes  # noqa: E402
from hloom.hlo.ops.movement import BroadcastAttributes  # noqa: E402
from hloom.hlo.shape import Shape  # noqa: E402
from hloom.hlo.targets import target_named  # noqa: E402
from hloom.numba_backend import elementary  # noqa: E402
from hloom.numba_backend.choices import schedules_of  # noqa: E402
from hloom.numba_backend.fused_computations import FusedComputations  # noqa: E402
from hloom.numba_backend.lowering import lower_into, source_of  # noqa: E402
from hloom.numba_backend.machine import ANY_TARGET, Machine, compiling_for  # noqa: E402
from hloom.numba_backend.pipeline import pipeline  # noqa: E402
from hloom.numba_backend.policy.products import is_kernel, suits_tiles, tiles  # noqa: E402
from hloom.numba_backend.runtime import dialect, llvm_backend, machine, native_code  # noqa: E402
from hloom.numba_backend.runtime.array_calls_code import CALL_FUNCTIONS  # noqa: E402
from hloom.numba_backend.runtime.blas import GEMM_ITEMS, GEMV_ITEMS, RUN_GEMM  # noqa: E402
from hloom.numba_backend.runtime.call import CALLER  # noqa: E402
from hloom.numba_backend.runtime.callbacks import CALL_PYTHON, LOOK  # noqa: E402
from hloom.numba_backend.runtime.chain import CHAIN_ITEMS  # noqa: E402
from hloom.numba_backend.runtime.executor import EXECUTOR  # noqa: E402
from hloom.numba_backend.runtime.ffi import FFI_FUNCTIONS  # noqa: E402
from hloom.numba_backend.runtime.frontend import to_llvm  # noqa: E402
from hloom.numba_backend.runtime.kernel import KernelSource, digest  # noqa: E402
from hloom.numba_backend.runtime.lapack import LAPACK_FUNCTIONS  # noqa: E402
from hloom.numba_backend.runtime.llvm_backend import emit_object, host_target, optimise, tuned  # noqa: E402
from hloom.numba_backend.runtime.loader import Image, link  # noqa: E402
from hloom.numba_backend.runtime.long_kernels import LONG_PIECE, RUN_LONG  # noqa: E402
from hloom.numba_backend.runtime.native_code import KERNEL_NAMES, KERNELS, LEVELS, PATHS, made_by, read, write  # noqa: E402
from hloom.numba_backend.runtime.program import ProgramBuilder  # noqa: E402
from hloom.numba_backend.runtime.recorder import RECORDER_FUNCTIONS  # noqa: E402
from hloom.numba_backend.runtime.relocations import PROCESSORS as LINKED  # noqa: E402
from hloom.numba_backend.runtime.threads import POOL_FUNCTIONS  # noqa: E402

import hloom.numpy  # noqa: E402

FUNCTIONS: tuple[KernelSource, ...] = (
    EXECUTOR, CALLER, CALL_PYTHON, LOOK, *POOL_FUNCTIONS, RUN_GEMM, GEMM_ITEMS, GEMV_ITEMS, CHAIN_ITEMS,
    *RECORDER_FUNCTIONS, *LAPACK_FUNCTIONS, RUN_LONG, LONG_PIECE, *FFI_FUNCTIONS, *CALL_FUNCTIONS,
)  # fmt: skip
"""All functions of the runtime with a constant text."""


class Processor(NamedTuple):
    """A kind of processor that functions are compiled for."""

    machine: str
    """Linux' name for it."""
    cpu: str
    """LLVM's name for the oldest one of the kind."""
    register: int = 0
    """The bytes of a vector register; 0 for the runtime's functions, which have none."""


PROCESSORS = {
    "x86_64": Processor("x86_64", "x86-64"), "aarch64": Processor("aarch64", "generic"),
    "x86_64_v3": Processor("x86_64", "x86-64-v3", 32), "x86_64_v4": Processor("x86_64", "x86-64-v4", 64),
    "aarch64_neon": Processor("aarch64", "generic", 16),
}  # fmt: skip
"""By the beginnings of the files' names."""


@cache
def target(name: str) -> Any:
    """The target machine of a file's functions."""
    host_target()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    processor = PROCESSORS[name]
    triple = f"{processor.machine}-unknown-linux-gnu"
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=processor.cpu, features=tuned(triple, ""), opt=2, reloc="pic", codemodel="default", jit=True
    )


def text_of(function: KernelSource, name: str) -> str:
    """A function as LLVM IR for a processor."""
    made_for, scope = target(name), machine.SCOPE if function.convention == "native" else dialect.SCOPE
    with mock.patch.object(llvm_backend, "module_header", lambda: (made_for.triple, str(made_for.target_data))):
        return to_llvm(function, scope, features=frozenset(), register=PROCESSORS[name].register)


def image_of(function: KernelSource, name: str) -> Image:
    """The function, compiled here for a processor."""
    image = link(function.symbol, emit_object(text_of(function, name), target(name)), LINKED[PROCESSORS[name].machine])
    if image is None:
        raise SystemExit(f"{function.name} has no image for {name}: this is not Linux, or libc lacks what it calls")
    return image


# ---- elementary functions


class _Recorder(ProgramBuilder):
    """Keeps the calls of `kernel`."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[KernelSource, Sequence[Any], int, int, float]] = []

    def kernel(
        self, kernel: KernelSource, arguments: Any, extent: int, grain: int = 0, nanoseconds: Any = None
    ) -> None:
        self.calls.append((kernel, arguments, extent, grain, nanoseconds))
        super().kernel(kernel, arguments, extent, grain, nanoseconds)


def module_of(opcode: Opcode, operands: Sequence[Shape]) -> HloModule:
    """The op on parameters of these shapes, as the tracer makes it outside of jit (`tracer/functions.py`)."""
    parameters = [make_parameter(k, shape) for k, shape in enumerate(operands)]
    dimensions = max((shape.dimensions for shape in operands), key=len)
    op = make_instruction(opcode, [_broadcast(p, dimensions) for p in parameters])
    return make_module(opcode.value, make_computation("main", make_tuple([op]), parameters))


def _broadcast(operand: HloInstruction, dimensions: tuple[int, ...]) -> HloInstruction:
    if operand.shape.dimensions == dimensions:
        return operand
    full = Shape.array(operand.shape.element, dimensions)
    return make_instruction(Opcode.BROADCAST, (operand,), BroadcastAttributes(()), shape=full)


def lowered(module: HloModule) -> _Recorder:
    """A module after the passes, buffer assignment and lowering."""
    bodies, cpu, builder = FusedComputations(), target_named("cpu"), _Recorder()
    optimized, _ = pipeline(cpu, bodies, schedules_of(module)).run(module)
    lower_into(builder, assign_buffers(optimized, bodies.can_share, fast_memory=cpu.fast_memory), bodies)
    return builder


def made(module: HloModule) -> elementary.Function:
    """The function that the stages make of such a module. ValueError if it is no single kernel over the elements."""
    with compiling_for(ANY_TARGET):  # the file is the same on all machines
        builder = lowered(module)
    (op,), shapes = module.entry.root.operands, [p.shape for p in module.entry.parameters]
    key = elementary.key_of(op.opcode, shapes, op.shape)
    if len(builder.calls) != 1 or len(builder._rows) != 1:
        raise ValueError(f"{key} is no single kernel")
    ((kernel, arguments, extent, grain, nanoseconds),) = builder.calls
    expected = [(k, 0) for k in range(len(shapes) + 1)]
    if extent != op.shape.num_elements or [(a.base, a.word) for a in arguments] != expected:
        raise ValueError(f"{key} is a kernel over something else than elements")
    ir = digest([text_of(kernel, name) for name in LEVELS])[:16]
    return elementary.Function(key, kernel, grain, nanoseconds / extent, ir)


def signatures() -> Iterator[tuple[Opcode, ElementType, str]]:
    """All functions: the op, the type, and of each operand "n" for an array or "1" for a scalar."""
    types = [t for t in ElementType if t.is_complex or (t.is_floating and not t.is_small)]
    for opcode in sorted(OPS, key=lambda op: op.value):
        arity = spec_of(opcode).arity
        for element in types:
            if is_function(opcode, element.dtype):
                for form in ("1", "n") if arity == 1 else ("11", "nn", "n1", "1n"):
                    yield opcode, element, form


def shapes_of(element: ElementType, form: str, count: int = 1000) -> list[Shape]:
    return [Shape.array(element, (count,) if extent == "n" else ()) for extent in form]


@cache
def elementary_functions() -> tuple[elementary.Function, ...]:
    """Those that there are: not each op is one of complex numbers."""
    found = []
    for opcode, element, form in signatures():
        try:
            module = module_of(opcode, shapes_of(element, form))
        except HloError:
            continue
        found.append(made(module))
    return tuple(found)


# ---- products of matrices, convolutions, transposes


def machine_of(name: str) -> Machine:
    """The machine that the kernels of a file are made for."""
    return replace(ANY_TARGET, registers=16 if name == "x86_64_v3" else 32, register_bytes=PROCESSORS[name].register)


@cache
def kernels(name: str) -> tuple[KernelSource, ...]:
    """The kernels of products, convolutions and transposes of floats, on the processors of a file."""
    machine = machine_of(name)
    with compiling_for(machine):
        dots = [dot for dot in products() if suits_tiles(dot) or is_kernel(dot, machine)]
        made = [source_of(tiles(dot)) for dot in dots]
        for module in (*convolutions(), *transposes()):
            made += [kernel for kernel, *_ in lowered(module).calls if kernel.name in KERNEL_NAMES]
    return tuple({kernel.identity: kernel for kernel in made}.values())


def products() -> Iterator[HloInstruction]:
    """Products with up to two dimensions of a batch: results with fewer rows or columns than a tile and with more,
    short sums and long ones."""
    for element, batch in itertools.product((ElementType.F32, ElementType.F64), ((), (2,), (2, 2))):
        for m, n, k in itertools.product((2, 32, 96), (2, 12, 16, 28, 32), (32, 512)):
            yield _dot(element, batch, m, n, k)


@cache
def convolutions() -> tuple[HloModule, ...]:
    """Convolutions of few and many images, small and large, with few channels and many, in both layouts, and their
    derivatives."""
    found = []
    channels = ((1, 8), (1, 16), (3, 16), (3, 64), (8, 16), (12, 10), (64, 64))
    for layout, (images, size), (given, made), (window, stride) in itertools.product(
        ("NCHW", "NHWC"), ((32, 7), (32, 56), (4, 24)), channels, ((3, 1), (5, 2))
    ):  # fmt: skip
        dimensions = (layout, "OIHW" if layout == "NCHW" else "HWIO", layout)
        options = {"window_strides": (stride, stride), "padding": "SAME", "dimension_numbers": dimensions}
        convolve = partial(hloom.lax.conv_general_dilated, **options)
        lengths = {"N": images, "C": given, "O": made, "I": given}
        shapes = [tuple(lengths.get(d, size) for d in layout), tuple(lengths.get(d, window) for d in dimensions[1])]
        arguments = [hloom.ShapeDtypeStruct(shape, "float32") for shape in shapes]
        found.append(hloom.make_hlo(partial(_with_derivatives, convolve))(*arguments))
    return tuple(found)


TRANSPOSES = {
    (1, 0): ((201, 201), (208, 208), (16, 200), (12, 200)),
    (0, 2, 1): (
        *((20, rows, columns) for rows, columns in itertools.product((20, 16), repeat=2)),
        *((3, few, 2000) for few in (4, 5, 8, 12, 16)), *((3, 2000, few) for few in (4, 5, 8, 12, 16)),
        (20, 8, 8), (20, 12, 8),
    ),
    (2, 1, 0): (
        (3, 3, 200), (3, 8, 200), (8, 8, 20), (20, 3, 20), (200, 3, 3), (200, 3, 200), (4, 12, 24), (5, 12, 24),
        (9, 8, 24), (16, 4, 24), (200, 200, 200),
    ),
}
"""Orders of dimensions, and sizes: each is cut in another way."""


@cache
def transposes() -> tuple[HloModule, ...]:
    """Transposes of arrays with few and many rows and columns."""
    with hloom.enable_x64():
        return tuple(
            hloom.make_hlo(partial(hloom.numpy.transpose, axes=order))(hloom.ShapeDtypeStruct(sizes, element))
            for element, (order, some) in itertools.product(("float32", "float64"), TRANSPOSES.items())
            for sizes in some
        )


def _with_derivatives(convolve: Callable[..., Any], x: Any, w: Any) -> Any:
    result, backward = hloom.vjp(convolve, x, w)
    return result, backward(result)


def _dot(element: ElementType, batch: tuple[int, ...], m: int, n: int, k: int) -> HloInstruction:
    dimensions, last = tuple(range(len(batch))), len(batch)
    operands = [
        make_parameter(number, Shape.array(element, (*batch, *sides))) for number, sides in enumerate(((m, k), (k, n)))
    ]
    return make_instruction(Opcode.DOT, operands, DotAttributes(dimensions, dimensions, (last + 1,), (last,)))


def assembly(function_name: str, name: str) -> str:
    """A function in the assembly language of a processor."""
    (function,) = (f for f in FUNCTIONS if f.name == function_name)
    module = llvm.parse_assembly(text_of(function, name))
    optimise(module, True, target(name))
    text: str = target(name).emit_assembly(module)
    return text


def compiler() -> str:
    """The version that decides the bytes."""
    return f"llvmlite {llvmlite.__version__}"


def known_code(path: str) -> dict[str, Image]:
    """The code in a file of elementary functions, by identity, of those whose LLVM IR has not changed since; nothing if
    another compiler made the file."""
    text, functions = Path(path).read_text(), Path(elementary.PATH).read_text()
    if made_by(text) != compiler():
        return {}
    before = {f.key: elementary.find(functions, f.key) for f in elementary_functions()}
    same = {f.kernel.identity for f in elementary_functions() if (old := before[f.key]) and old.ir == f.ir}
    return {identity: image for _, identity, image in read(text) if identity in same}


def differences(quick: bool = False) -> tuple[list[str], int]:
    """Messages about outdated files, and how many functions were not compiled. `quick`: elementary functions whose LLVM
    IR is known are not, and most kernels."""
    wrong = [f"{name}: {line}" for name, path in PATHS.items() for line in _differences(path, FUNCTIONS, name)]
    functions = elementary_functions()
    if Path(elementary.PATH).read_text() != elementary.write(functions):
        wrong.append("elementary.txt: other kernels")
    sources, left = [function.kernel for function in functions], 0
    for name, path in LEVELS.items():
        known: Collection[str] = known_code(path).keys() if quick else ()
        left += len(known)
        wrong += [f"{name}: {line}" for line in _differences(path, sources, name, known)]
    for name, path in KERNELS.items():  # the IR of all follows the same rules
        known = [kernel.identity for kernel in kernels(name)] if quick and name != "x86_64_v3" else ()
        left += len(known)
        wrong += [f"{name}: {line}" for line in _differences(path, kernels(name), name, known)]
    return wrong, left


def _differences(
    path: str, functions: Sequence[KernelSource], name: str, uncompiled: Collection[str] = ()
) -> list[str]:
    """Of a file. `uncompiled`: the identities of functions whose code is not compared."""
    text = Path(path).read_text()
    stored = {identity: image for _, identity, image in read(text)}
    wrong = [f"{f.name}: the text has changed" for f in functions if f.identity not in stored]
    known = {f.identity for f in functions}
    wrong += [f"{name}: no function has this text" for name, identity, _ in read(text) if identity not in known]
    if made_by(text) == compiler():
        both = [f for f in functions if f.identity in stored and f.identity not in uncompiled]
        wrong += [f"{f.name}: other machine code" for f in both if stored[f.identity] != image_of(f, name)]
    return wrong


def write_files(quick: bool = False) -> int:
    """Write all files; gives the number of functions that were not compiled. `quick`: elementary functions whose LLVM
    IR is known keep their code."""
    for name, path in PATHS.items():
        Path(path).write_text(write(compiler(), [(f, image_of(f, name)) for f in FUNCTIONS]))
    for name, path in KERNELS.items():
        Path(path).write_text(write(compiler(), [(kernel, image_of(kernel, name)) for kernel in kernels(name)]))
    return write_elementary(quick)


def write_elementary(quick: bool) -> int:
    """Write the files of elementary functions, as `write_files`."""
    left = 0
    for name, path in LEVELS.items():
        known = known_code(path) if quick else {}
        sources = [f.kernel for f in elementary_functions()]
        images = [(kernel, known.get(kernel.identity) or image_of(kernel, name)) for kernel in sources]
        left += sum(kernel.identity in known for kernel in sources)
        Path(path).write_text(write(compiler(), images))
    # Last: `known_code` compares with what the other files were made of.
    Path(elementary.PATH).write_text(elementary.write(elementary_functions()))
    native_code.data.cache_clear()
    return left


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--assembly", metavar="FUNCTION")
    parser.add_argument("--machine", choices=PATHS, default="x86_64", help="of the assembly language")
    options = parser.parse_args()
    if options.assembly:
        print(assembly(options.assembly, options.machine))
        return 0
    wrong, left = ([], write_files(options.quick)) if options.write else differences(options.quick)
    count = len(PATHS) * len(FUNCTIONS) + len(LEVELS) * len(elementary_functions())
    count += sum(len(kernels(name)) for name in KERNELS)
    not_compiled = f"; --quick did not compile {left} of them, whose text is known" if left else ""
    print("\n".join(wrong) or f"{count} functions, {'written' if options.write else 'up to date'}{not_compiled}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
