"""A standalone program as object code, for any target of LLVM.

Each kernel is lowered and optimised as in this process, for another machine. Then all are linked with a function that
runs the rows, and optimised once more, so that small kernels are inlined.
"""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as llir

from ...hlo.buffers.assignment import ALIGNMENT
from ...hlo.support.records import dataclass
from ..runtime.dialect import SCOPE
from ..runtime.dialect_define import DialectFunction, Kind, Resolved
from ..runtime.frontend import to_llvm
from ..runtime.kernel import ELEMENT_BYTES
from ..runtime.library import INLINED, OF_LIBRARY, OF_PROCESSOR, Operation, lacking, with_functions
from ..runtime.llvm_backend import for_code_generator, optimise, widens_straight_lines
from ..runtime.program import Argument
from .arm import with_float_arguments
from .blas import ROW_MAJOR, TRANSPOSES, batch_strides
from .standalone import (
    BAD_TEMPORARY,
    CONSTANTS,
    NO_BUFFER,
    WATCH,
    CallBlas,
    CallKernel,
    Copy,
    Jump,
    JumpIfFalse,
    StandaloneProgram,
    Switch,
    Zero,
)
from .targets import TargetMachine

_I1, _I8, _I32, _I64 = (llir.IntType(bits) for bits in (1, 8, 32, 64))
_POINTER = _I8.as_pointer()
_TASK = llir.FunctionType(llir.VoidType(), [_POINTER, _I64, _I64])
_RUN = llir.FunctionType(llir.VoidType(), [_POINTER, _I64, _I64, _TASK.as_pointer(), _POINTER])
_PARALLEL = llir.LiteralStructType([_POINTER, _RUN.as_pointer()])
_KERNEL = llir.FunctionType(llir.VoidType(), [_I64, _I64, _I64.as_pointer()])


def _never_interrupted() -> DialectFunction:
    def resolve(*given: Kind) -> Resolved:
        return Resolved(given, "bool", lambda builder, raw: llir.Constant(_I1, 0))

    return DialectFunction("interrupted", 1, resolve)


_SCOPE = {**SCOPE, "interrupted": _never_interrupted()}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """LLVM IR that a program is compiled with, for a target without libraries."""

    caller: str
    """Definitions that use `SYMBOL_run`, which then is internal."""
    called: str
    """Definitions that LLVM's code generator calls; they are weak."""


def program_object(
    program: StandaloneProgram, symbol: str, machine: TargetMachine, surroundings: Surroundings | None = None
) -> bytes:
    """An object file for a (resolved) machine that defines `SYMBOL_run`; c_program.py shows its declaration."""
    target = machine.llvm()
    operations = _lacking(machine, surroundings is None)
    header = f'target triple = "{machine.triple}"\ntarget datalayout = "{target.target_data}"\n'
    with llvm.create_context() as context:
        whole = llvm.parse_assembly(_for_target(str(_Run(program, symbol).module), header), context)
        for kernel in program.kernels:
            # Numba never compiles these kernels: its code is for this process's processor
            plain = to_llvm(kernel, _SCOPE, "one pass", features=frozenset(), register=0)
            text = with_functions(_for_target(plain, header), operations)
            part = llvm.parse_assembly(text, context)
            if operations:
                part.link_in(llvm.parse_assembly(header + INLINED, context))
            optimise(part, widens_straight_lines(text), target)
            whole.link_in(part)
            whole.get_function(kernel.symbol).linkage = "internal"
        if surroundings:
            whole.link_in(llvm.parse_assembly(header + surroundings.caller, context))
            whole.get_function(f"{symbol}_run").linkage = "internal"
        optimise(whole, False, target)
        if surroundings:
            whole.link_in(llvm.parse_assembly(header + surroundings.called, context))
        with whole, for_code_generator(whole, context) as final:
            code: bytes = target.emit_object(final)
    return with_float_arguments(code) if "eabihf" in machine.triple else code


@functools.cache
def _lacking(machine: TargetMachine, has_library: bool) -> tuple[Operation, ...]:
    """The operations that kernels for a machine get from `runtime/library.py`."""
    return lacking(machine.llvm(), OF_PROCESSOR if has_library else (*OF_PROCESSOR, *OF_LIBRARY))


_HEADER = re.compile(r"^target (triple|datalayout) = .*\n", re.MULTILINE)


_CANONICAL = re.compile(r'call (?:contract )?float @"?llvm\.canonicalize\.f32"?\(float ([^)]*)\)')


def _for_target(text: str, header: str) -> str:
    """The text for a target. Not every target has the operation that keeps roundings apart (`kept_apart`), so only x86
    gets it. Others get x + -0, which is x."""
    text = _HEADER.sub("", text)
    return header + (text if "x86" in header else _CANONICAL.sub(r"fadd float \1, 0x8000000000000000", text))


class _Run:
    """The function that runs the rows, as LLVM IR. Rows are blocks; a kernel is called by a task of its own, which
    threads can share, with the table of its arguments on the stack."""

    def __init__(self, program: StandaloneProgram, symbol: str) -> None:
        self._program = program
        self.module = llir.Module(symbol)
        self._kernels = [llir.Function(self.module, _KERNEL, kernel.symbol) for kernel in program.kernels]
        self._constants = self._data()
        self._never = self._zeros()
        self._define(symbol)

    def _data(self) -> Any:
        data = self._program.constants
        if not data:
            return None
        return self._global("constants", llir.Constant(llir.ArrayType(_I8, len(data)), bytearray(data)), True)

    def _zeros(self) -> Any:
        return self._global("never", llir.Constant(llir.ArrayType(_I64, 8), None), True)

    def _global(self, name: str, value: Any, is_constant: bool) -> Any:
        variable = llir.GlobalVariable(self.module, value.type, name)
        variable.linkage = "internal"
        variable.global_constant = is_constant
        variable.initializer = value
        variable.align = ALIGNMENT
        return variable

    def _define(self, symbol: str) -> None:
        program = self._program
        kind = llir.FunctionType(
            _I32, [_POINTER.as_pointer(), _POINTER.as_pointer(), _POINTER, _PARALLEL.as_pointer()]
        )
        function = llir.Function(self.module, kind, f"{symbol}_run")
        arguments, results, temporary, self._parallel = function.args
        self._builder = builder = llir.IRBuilder(function.append_basic_block("entry"))
        if program.static_arena and program.temporary_bytes:
            whole = llir.ArrayType(_I8, program.temporary_bytes)
            arena = self._global("arena", llir.Constant(whole, None), False)
            missing = builder.icmp_unsigned("==", temporary, llir.Constant(_POINTER, None))
            temporary = builder.select(missing, builder.bitcast(arena, _POINTER), temporary)
        count = len(program.arguments) + len(program.results) + 1
        self._bases = builder.bitcast(builder.alloca(llir.ArrayType(_POINTER, count)), _POINTER.as_pointer())
        places = [(arguments, k) for k in range(len(program.arguments))]
        places += [(results, k) for k in range(len(program.results))]
        for number, (table, k) in enumerate(places):
            builder.store(builder.load(_at(builder, table, k)), _at(builder, self._bases, number))
        builder.store(temporary, _at(builder, self._bases, count - 1))
        blocks = [function.append_basic_block(f"row{k}") for k in range(len(program.rows) + 1)]
        self._check(temporary)
        builder.branch(blocks[0])
        for number, row in enumerate(program.rows):
            builder.position_at_end(blocks[number])
            self._row(number, row, blocks)
        builder.position_at_end(blocks[-1])
        builder.ret(llir.Constant(_I32, 0))

    def _check(self, temporary: Any) -> None:
        builder = self._builder
        for k in self._program.needed:
            base = builder.load(_at(builder, self._bases, k))
            with builder.if_then(builder.icmp_unsigned("==", base, llir.Constant(_POINTER, None)), likely=False):
                builder.ret(llir.Constant(_I32, NO_BUFFER))
        if self._program.temporary_bytes:
            word = builder.ptrtoint(temporary, _I64)
            rest = builder.and_(word, llir.Constant(_I64, ALIGNMENT - 1))
            none = builder.icmp_unsigned("==", word, llir.Constant(_I64, 0))
            odd = builder.icmp_unsigned("!=", rest, llir.Constant(_I64, 0))
            with builder.if_then(builder.or_(none, odd), likely=False):
                builder.ret(llir.Constant(_I32, BAD_TEMPORARY))

    def _row(self, number: int, row: Any, blocks: list[Any]) -> None:
        builder, following = self._builder, blocks[number + 1]
        match row:
            case CallKernel():
                self._call(self._task(number, row), row)
                builder.branch(following)
            case CallBlas():
                self._product(row)
                self._builder.branch(following)
            case Copy(destination=destination, source=source, nbytes=nbytes):
                places = self._place(builder, destination), self._place(builder, source)
                self._bytes("llvm.memmove.p0.p0.i64", *places, nbytes)
                builder.branch(following)
            case Zero(destination=destination, nbytes=nbytes):
                self._bytes("llvm.memset.p0.i64", self._place(builder, destination), llir.Constant(_I8, 0), nbytes)
                builder.branch(following)
            case Jump(target=target):
                builder.branch(blocks[target])
            case JumpIfFalse(pred=pred, target=target):
                value = builder.load(self._place(builder, pred))
                builder.cbranch(builder.icmp_unsigned("!=", value, llir.Constant(_I8, 0)), following, blocks[target])
            case Switch(index=index, targets=targets):
                place = builder.bitcast(self._place(builder, index), _I32.as_pointer())
                switch = builder.switch(builder.load(place), blocks[targets[-1]])
                for value, target in enumerate(targets[:-1]):
                    switch.add_case(llir.Constant(_I32, value), blocks[target])

    def _task(self, number: int, row: CallKernel) -> Any:
        task = llir.Function(self.module, _TASK, f"task{number}")
        task.linkage = "internal"
        builder = llir.IRBuilder(task.append_basic_block("entry"))
        data, lo, hi = task.args
        bases = builder.bitcast(data, _POINTER.as_pointer())
        table = builder.alloca(llir.ArrayType(_I64, max(1, len(row.arguments))))
        words = builder.bitcast(table, _I64.as_pointer())
        for k, argument in enumerate(row.arguments):
            if argument.kind == "pointer":
                word = builder.ptrtoint(self._place(builder, argument, bases), _I64)
            else:
                word = llir.Constant(_I64, argument.word)
            builder.store(word, _at(builder, words, k))
        builder.call(self._kernels[row.kernel], [lo, hi, words])
        builder.ret_void()
        return task

    def _call(self, task: Any, row: CallKernel) -> None:
        builder = self._builder
        data = builder.bitcast(self._bases, _POINTER)
        zero, extent = llir.Constant(_I64, 0), llir.Constant(_I64, row.extent)
        if not row.grain:
            builder.call(task, [data, zero, extent])
            return
        function = builder.function
        threads, alone, done = (function.append_basic_block(name) for name in ("threads", "alone", "done"))
        is_set = builder.icmp_unsigned("!=", self._parallel, llir.Constant(self._parallel.type, None))
        builder.cbranch(is_set, threads, alone)
        builder.position_at_end(threads)
        parts = [llir.Constant(_I32, 0), llir.Constant(_I32, 0)]
        own = builder.load(builder.gep(self._parallel, parts))
        run = builder.load(builder.gep(self._parallel, [parts[0], llir.Constant(_I32, 1)]))
        builder.call(run, [own, extent, llir.Constant(_I64, row.grain), task, data])
        builder.branch(done)
        builder.position_at_end(alone)
        builder.call(task, [data, zero, extent])
        builder.branch(done)
        builder.position_at_end(done)

    def _product(self, row: CallBlas) -> None:
        """The call of the BLAS, in a loop over the items of the batch."""
        gemm, blas, builder = row.gemm, self._program.blas, self._builder
        assert blas is not None
        size = llir.IntType(blas.integers)
        real = llir.FloatType() if gemm.dtype in ("f32", "c64") else llir.DoubleType()
        is_complex = gemm.dtype.startswith("c")
        factor = _POINTER if is_complex else real
        kinds = [*[_I32] * 3, *[size] * 3, factor, _POINTER, size, _POINTER, size, factor, _POINTER, size]
        name = blas.function(gemm.dtype)
        function = self.module.globals.get(name) or llir.Function(
            self.module, llir.FunctionType(llir.VoidType(), kinds), name
        )
        factors = [self._factor(complex(f), real, is_complex) for f in (gemm.alpha, gemm.beta)]
        a, b, c = (self._place(builder, place) for place in (row.a, row.b, row.c))
        head = [llir.Constant(_I32, n) for n in (ROW_MAJOR, TRANSPOSES[gemm.transpose_a], TRANSPOSES[gemm.transpose_b])]
        m, n, k, lda, ldb, ldc = (
            llir.Constant(size, v) for v in (gemm.m, gemm.n, gemm.k, gemm.lda, gemm.ldb, gemm.ldc)
        )

        def call(a: Any, b: Any, c: Any) -> None:
            builder.call(function, [*head, m, n, k, factors[0], a, lda, b, ldb, factors[1], c, ldc])

        strides = batch_strides(gemm, ELEMENT_BYTES[gemm.dtype])
        count = math.prod(number for number, *_ in strides)
        if count == 1:
            call(a, b, c)
            return
        before, owner = builder.block, builder.function
        body, done = owner.append_basic_block("products"), owner.append_basic_block("after")
        builder.branch(body)
        builder.position_at_end(body)
        item = builder.phi(_I64)
        item.add_incoming(llir.Constant(_I64, 0), before)
        rest, places = item, [a, b, c]
        for number, *steps in strides:
            index = builder.urem(rest, llir.Constant(_I64, number))
            rest = builder.udiv(rest, llir.Constant(_I64, number))
            places = [
                builder.gep(p, [builder.mul(index, llir.Constant(_I64, step))])
                for p, step in zip(places, steps, strict=True)
            ]
        call(*places)
        following = builder.add(item, llir.Constant(_I64, 1))
        item.add_incoming(following, body)
        builder.cbranch(builder.icmp_unsigned("<", following, llir.Constant(_I64, count)), body, done)
        builder.position_at_end(done)

    def _factor(self, value: complex, real: Any, is_complex: bool) -> Any:
        """A factor of a product; a complex one is given by its address."""
        if not is_complex:
            return llir.Constant(real, value.real)
        name = f"factor_{real}_{value.real!r}_{value.imag!r}"
        known = self.module.globals.get(name)
        if known is None:
            known = self._global(name, llir.Constant(llir.ArrayType(real, 2), [value.real, value.imag]), True)
        return self._builder.bitcast(known, _POINTER)

    def _place(self, builder: Any, argument: Argument, bases: Any = None) -> Any:
        if argument == WATCH:
            return builder.bitcast(self._never, _POINTER)
        if argument.base == CONSTANTS:
            base = builder.bitcast(self._constants, _POINTER)
        elif argument.base < 0:
            return llir.Constant(_POINTER, None)
        else:
            base = builder.load(_at(builder, self._bases if bases is None else bases, argument.base))
        return _at(builder, base, argument.word) if argument.word else base

    def _bytes(self, name: str, destination: Any, other: Any, nbytes: int) -> None:
        function = self.module.globals.get(name)
        if function is None:
            kind = llir.FunctionType(llir.VoidType(), [_POINTER, other.type, _I64, _I1])
            function = llir.Function(self.module, kind, name)
        self._builder.call(function, [destination, other, llir.Constant(_I64, nbytes), llir.Constant(_I1, 0)])


def _at(builder: Any, pointer: Any, index: int) -> Any:
    return builder.gep(pointer, [llir.Constant(_I64, index)])
