"""Compile LLVM IR text to optimised object code, and load object code at addresses. Needs llvmlite, not Numba.

Every object is optimised for this process's CPU; `target_description` describes that CPU and is part of every kernel's
key in the store.
"""

from __future__ import annotations

import ctypes
import functools
import re
import threading
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from llvmlite.binding import ffi

from ...hlo.support.forking import Order, fork_lock, kept_out_of_forks
from ...hlo.system import system
from .double_rounding import with_both_roundings
from .library import HALVES, INLINED, Operation, lacking, with_functions
from .masked_stores import without_masked_stores
from .math.slow_path import INLINED_LATE
from .short_extrema import with_short_extrema

_lock = fork_lock(Order.COMPILER)
_of_thread = threading.local()

_llvmlite_lock: Any = getattr(ffi.lib, "_lock", None)
_llvmlite_lock = getattr(_llvmlite_lock, "_lock", _llvmlite_lock)
if hasattr(_llvmlite_lock, "__enter__"):
    kept_out_of_forks(Order.LLVM, lambda: _llvmlite_lock)


def tuned(triple: str, features: str) -> str:
    """The features of a processor, and how LLVM is to use it: on x86 without gathers and scatters.

    They take an address for each element, and the processor does not see a stream that it could fetch ahead. Every
    third number of 6 MiB of f64 took 1.3 ms from memory and 0.2 ms from the cache, and takes 0.35 and 0.08 ms with a
    load for each; every second number of f32 increased in place 1.5 ms, and takes 0.3 ms (Zen 5, AVX-512). A small
    table in the cache that is read at indices takes up to 9 % longer.
    """
    if not triple.startswith(("x86_64", "i686")):
        return features
    return ",".join(filter(None, [features, "+prefer-no-gather", "+prefer-no-scatter"]))


@functools.cache
def _native_target() -> tuple[str, str, str]:
    """(triple, CPU name, feature string) of this process; initialises LLVM's native target."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _loaded_triple() -> str:
    """The triple of code for this process. On Windows it asks for ELF, as llvmlite does for the loader's machine."""
    triple = _native_target()[0]
    return triple if triple.endswith(system.object_format) else triple + system.object_format


def host_target() -> tuple[str, str, str]:
    """(triple, CPU name, feature string) of this process."""
    return _native_target()


@functools.cache
def host_features() -> frozenset[str]:
    """The names of the features that this process's CPU has."""
    return frozenset(name[1:] for name in _native_target()[2].split(",") if name.startswith("+"))


@functools.cache
def target_description() -> str:
    """The machine code depends on this besides its source: llvmlite's version, the triple, the CPU and its features."""
    return " ".join((f"llvmlite {llvmlite.__version__}", *_native_target()))


class _Machine:
    """A target machine, of one thread as long as that lives; making one takes a third of a millisecond."""

    def __init__(self) -> None:
        try:
            self.machine = _machines.pop()
        except IndexError:
            _, cpu, features = _native_target()
            target = llvm.Target.from_triple(_loaded_triple())
            self.machine = target.create_target_machine(
                cpu=cpu, features=tuned(target.triple, features), opt=2, reloc="pic", codemodel="default", jit=True
            )

    def __del__(self) -> None:
        _machines.append(self.machine)


_machines: list[Any] = []


def target_machine() -> Any:
    """This thread's LLVM target machine for this CPU; position-independent code, so that objects load anywhere."""
    mine = getattr(_of_thread, "machine", None)
    if mine is None:
        mine = _of_thread.machine = _Machine()
    return mine.machine


@functools.cache
def module_header() -> tuple[str, str]:
    """(triple, data layout) that a module must carry."""
    return _loaded_triple(), str(target_machine().target_data)


_NARROW = re.compile(r"(?<!getelementptr )\bi(8|16)\b(?!\*)")
"""In LLVM IR: integers of 8 or 16 bits (not pointers to them)."""
_DIVISION = re.compile(r"\b[su](div|rem) i\d+ [^,\n]+, -?\d")
"""In LLVM IR: divisions by literals, since LLVM narrows their operands to these types."""

_ARRAY = re.compile(r"= alloca \[(\d+) x ")
"""In LLVM IR: a local array; the group is its size."""
_LOOP = '@"hloom_native_loop_'
"""In LLVM IR: the name of a kernel that is a loop of the program (native_loops/emit.py)."""


def widens_straight_lines(text: str) -> bool:
    """True for a module that LLVM may vectorise outside of loops too (SLP).

    False if it has narrow integers: where two comparisons of them become one of `<2 x i8>`, and both results are used
    one by one, LLVM 20's code for AVX-512 reads an uninitialised mask register. (Numba never enables SLP.)

    False, too, for a loop of the program whose local arrays, its state, have three elements: LLVM computes two of them
    side by side and the third by itself, and the next step waits for what a step shuffles (Lorenz's system: 1.35
    times). Kernels whose iterations do not wait gain by it, as products of 3 x 3 matrices do.
    """
    if _has_narrow_integers(text):
        return False
    return _LOOP not in text or set(_ARRAY.findall(text)) != {"3"}


def _has_narrow_integers(text: str) -> bool:
    """Most texts have none of the words, which takes a hundredth of the time that a search takes."""
    if ("i8" in text or "i16" in text) and _NARROW.search(text) is not None:
        return True
    return ("div i" in text or "rem i" in text) and _DIVISION.search(text) is not None


def optimise(module: Any, straight_lines: bool, machine: Any = None) -> None:
    """Run LLVM's pipeline, once, on a parsed module. `straight_lines`: see `widens_straight_lines`. `machine`: another
    target machine than this thread's."""
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = True
    options.slp_vectorization = straight_lines
    builder = llvm.create_pass_builder(machine or target_machine(), options)
    _unlocked(ffi.lib.LLVMPY_RunNewModulePassManager)(builder.getModulePassManager(), module, builder)


_INLINED_LATE = re.compile(rf'^(attributes #\d+ = \{{[^\n]*)\bnoinline\b([^\n]*"{INLINED_LATE}"[^\n]*)$', re.MULTILINE)
"""In optimised LLVM IR: the attributes of the functions that `_with_tests_inlined` inlines."""


def _with_tests_inlined(text: str, context: Any, machine: Any) -> Any:
    """Optimised IR as a module in which the tests for rare arguments of elementary functions (math/slow_path.py) are
    written where they are called: a loop of scalars would wait for the call."""
    module = llvm.parse_assembly(_INLINED_LATE.sub(r"\1alwaysinline\2", text), context)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    passes.run(module, llvm.create_pass_builder(machine or target_machine(), options))
    return module


_ODD_LOAD = re.compile(r" = load (?=<(?!(?:2|4|8|16|32|64|128) x )\d+ x )")
"""In LLVM IR: what is before the type of a load, if that is a vector with a length that is no power of two."""


def for_code_generator(
    module: Any, context: Any, features: frozenset[str] = frozenset(), machine: Any = None
) -> Any:  # fmt: skip
    """An optimised module in which tests for rare arguments are inlined, and loads of vectors are volatile if the
    vector's length is no power of two, or if LLVM would make a masked store of what is done with them
    (masked_stores.py). What is rounded twice stays so (double_rounding.py). `features`: of the processor, for
    short_extrema.py. `machine`: another target machine than this thread's.

    Vectors of such a length come from loops over rows of 3, 5, 6 or 7. The code generator cuts their loads into parts.
    Where it knows that the memory goes on behind a part, as in an alloca, it may make that part wider again, and LLVM
    22 then may order the new load after itself and abort the process ("Node is not in map"). It leaves volatile parts
    as they are.
    """
    text = str(module)
    if INLINED_LATE in text:
        module = _with_tests_inlined(text, context, machine)
        text = str(module)
    marked = without_masked_stores(_ODD_LOAD.sub(" = load volatile ", text))
    marked = with_both_roundings(with_short_extrema(marked, features))
    return module if marked == text else llvm.parse_assembly(marked, context)


@functools.cache
def _halves() -> tuple[Operation, ...]:
    """The conversions of f16 that this process's CPU has no instructions for."""
    return lacking(target_machine(), HALVES)


def emit_object(text: str, machine: Any = None) -> bytes:
    """Optimise a module of LLVM IR and translate it to an object file. Raises RuntimeError for invalid IR. `machine`:
    another target machine than this thread's.

    Several threads may call this at the same time, each with its own LLVM context.
    """
    functions = _halves() if machine is None and "half" in text else ()
    text = with_functions(text, functions)
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        if functions:
            triple, layout = module_header()
            head = f'target triple = "{triple}"\ntarget datalayout = "{layout}"\n'
            module.link_in(llvm.parse_assembly(head + INLINED, context))
        optimise(module, widens_straight_lines(text), machine)
        features = host_features() if machine is None else frozenset[str]()
        with for_code_generator(module, context, features, machine) as module, ffi.OutputString() as error:
            emit = _unlocked(ffi.lib.LLVMPY_TargetMachineEmitToMemory)
            buffer = emit(machine or target_machine(), module, 1, error)
            if not buffer:
                raise RuntimeError(str(error))
        try:
            start, size = ffi.lib.LLVMPY_GetBufferStart(buffer), ffi.lib.LLVMPY_GetBufferSize(buffer)
            return ctypes.string_at(start, size)
        finally:
            ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def _unlocked(function: Any) -> Any:
    """A function of llvmlite's library without the lock that llvmlite holds around each call.

    The lock protects LLVM's global context. Modules in separate contexts do not need it, and the two calls that take
    long would otherwise wait for each other. (If llvmlite has another form of lock, the lock stays.)
    """
    return getattr(function, "_cfn", function)


def _engine() -> Any:
    """A new engine: LLVM can drop the code of a whole engine, but not the code of one object in it."""
    triple, cpu, features = _native_target()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, jit=True)
    backing = llvm.parse_assembly(f'target triple = "{triple}"\n')
    return llvm.create_mcjit_compiler(backing, machine)


def missing_functions(names: list[str]) -> list[str]:
    """Those of the names that LLVM would load as address 0."""
    return [name for name in names if llvm.address_of_symbol(name) is None]


def load_objects(objects: list[tuple[str, bytes]]) -> tuple[object, list[int]]:
    """Load object files [(symbol, code), ...] into this process; returns the owner of their code, and the symbols'
    addresses.

    The code stays loaded as long as that object lives. Raises RuntimeError for code that is not an object file, or does
    not define its symbol.
    """
    with _lock:
        engine = _engine()
        for _, code in objects:
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        addresses = [engine.get_function_address(symbol) for symbol, _ in objects]
    for (symbol, _), address in zip(objects, addresses):
        if not address:
            raise RuntimeError(f"the object file does not define {symbol}")
    return engine, addresses
