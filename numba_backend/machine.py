"""The machine that programs are compiled for. Decisions of this backend depend on no other facts about a processor.

`this_machine()` is read from the system; `hloom machine` prints it, with the speeds that `machine_speed.py` measures.
`HLOOM_MACHINE="register_bytes=32"` gives other numbers than the system's, by the names of the fields.

A decision asks `target_machine()`, the machine that is compiled for: this one, or the machine of ``with
compiling_for(...)``. Programs that are compiled ahead of time are for `ANY_TARGET`, and tests make machines of their
own. A limit is a part of a cache, written where it is used: ``target_machine().second_cache // 2``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace

from ..hlo.errors import UnsupportedError
from ..hlo.support.records import dataclass
from ..hlo.system import system
from .cpus import available_cpus, cpu_description

MACHINE_VARIABLE = "HLOOM_MACHINE"

SHARE_NANOSECONDS = 3_500
"""A thread's share of some work takes at least this long; otherwise handing it over costs more than it gains."""
PIECE_NANOSECONDS = 1_500
"""The shortest piece of a kernel's range. Two threads share two of them if both are awake, as they are in a loop over
calls: handing over takes 0.5 us on a Zen 4. Where more threads share a range, each has two pieces or more."""

COPIED_BYTES, FLOPS = 10, 20
"""A nanosecond, of a copy and of a product by the BLAS on one thread."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One processor, as kernels are made for it. Sizes are in bytes."""

    cores: int
    """CPUs that this process may use."""
    registers: int
    """Vector registers."""
    register_bytes: int
    """Bytes of a vector register that kernels should use: 16, 32 or 64."""
    multiplies_bf16: bool
    """There are instructions that multiply numbers of bf16, in vectors of 64 bytes."""
    cache_line: int
    """A cache line. If lines are longer than 64 bytes, kernels write their parts."""
    first_cache: int
    """The data cache of a core."""
    second_cache: int
    """The second-level cache of a core."""
    third_cache: int
    """The third-level cache that cores share; 0: there is none, or it is not known."""
    in_halves: bool = False
    """Units are half as wide as a register, and take two cycles for one."""
    fuses: bool = False
    """There are instructions that multiply and add, and round once."""

    @property
    def last_cache(self) -> int:
        """The part of the largest cache that one program may count on; others use it too, most of it where it is large:
        copies of 8 MiB and more, a quarter of it, are faster by non-temporal stores with 32 MiB as with 260 MiB."""
        return max(self.second_cache, min(self.third_cache or _MOST_OF_LAST, _MOST_OF_LAST))

    def to_text(self) -> str:
        """One line for each field: its name and number."""
        return "\n".join(f"{f.name:16} {int(getattr(self, f.name))}" for f in fields(self))


_MOST_OF_LAST = 32 << 20

ANY_TARGET = Machine(1, 16, 32, False, 64, 1 << 15, 1 << 20, 0)
"""For ahead-of-time programs: the least registers of the targets that have vectors, and caches as most of them have. A
cache of this machine that the system does not tell has the size that it has here."""


@functools.cache
def this_machine() -> Machine:
    """The machine of this process.

    UnsupportedError for an environment variable HLOOM_MACHINE that is not a list such as "registers=16,cores=2".
    """
    words = frozenset((cpu_description() or "").split())
    count, nbytes = registers_of(words)
    caches = system.cache_sizes()
    any_ = ANY_TARGET
    first, second, third = caches.get("1", any_.first_cache), caches.get("2", any_.second_cache), caches.get("3", 0)
    found = Machine(
        available_cpus(), count, nbytes, "avx512_bf16" in words, LINE, first, second, third,
        is_in_halves(words), fuses(words),
    )  # fmt: skip
    return with_numbers(found, os.environ.get(MACHINE_VARIABLE, ""))


_target: ContextVar[Machine | None] = ContextVar("target", default=None)


def target_machine() -> Machine:
    """The machine that is compiled for: the machine of `compiling_for`, else this one."""
    return _target.get() or this_machine()


@contextmanager
def compiling_for(machine: Machine) -> Iterator[None]:
    """Compile for another machine inside of the context."""
    token = _target.set(machine)
    try:
        yield
    finally:
        _target.reset(token)


def with_numbers(machine: Machine, text: str) -> Machine:
    """A machine with some fields replaced: "register_bytes=32,cores=4"."""
    names = {f.name for f in fields(Machine)}
    found: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.strip().partition("=")
        if name not in names or not (value.isascii() and value.isdecimal()) or len(value) > 15:
            listed = ", ".join(sorted(names))
            raise UnsupportedError(f"{MACHINE_VARIABLE}={text!r}: {part!r} is no name=number of {listed}")
        found[name] = int(value)
    if found.get("register_bytes", 16) not in (16, 32, 64) or found.get("registers", 16) not in (16, 32):
        raise UnsupportedError(f"{MACHINE_VARIABLE}={text!r}: registers are 16 or 32, and have 16, 32 or 64 bytes")
    if found.get("cores", 1) < 1 or found.get("cache_line", LINE) != LINE:
        raise UnsupportedError(f"{MACHINE_VARIABLE}={text!r}: there is a core at least; a line has {LINE} bytes")
    changed = replace(machine, **{name: type(getattr(machine, name))(value) for name, value in found.items()})
    if changed.first_cache < _LEAST_CACHE or changed.second_cache < changed.first_cache:
        raise UnsupportedError(
            f"{MACHINE_VARIABLE}={text!r}: a first cache has {_LEAST_CACHE} bytes or more, a second one no less than it"
        )
    return changed


_LEAST_CACHE = 1 << 12
LINE = 64
"""Kernels write lines of so many bytes on all processors: the widest vector register has as many, and of longer lines
the halves follow each other."""


def registers_of(words: frozenset[str]) -> tuple[int, int]:
    """The number of vector registers of a processor with these features, and how many bytes of each pay.

    Of processors with AVX-512, Intel's had a lower clock with full registers until Ice Lake, so LLVM uses half of each.
    Those since Sapphire Rapids, which have AVX_VNNI too, do not: with full ones, 22 programs were 1.28 times as fast in
    the geometric mean on an Emerald Rapids (convolutions 1.8 to 2.1, products 1.7, tanh 1.6, sums as before; the
    slowest, a softmax of short rows, 0.8). AMD's always gain.
    """
    if "avx512vl" in words:
        return 32, 64 if "AuthenticAMD" in words or "avx_vnni" in words else 32
    if "asimd" in words:
        return 32, 16
    return 16, 32


def fuses(words: frozenset[str]) -> bool:
    """Whether a processor with these features multiplies and adds in one instruction."""
    return not words.isdisjoint(("fma", "asimd"))


def is_in_halves(words: frozenset[str]) -> bool:
    """Whether a processor with these features has units of 32 bytes for registers of 64, as AMD's of the fourth
    generation. Those of the fifth have AVX_VNNI too."""
    return registers_of(words)[1] == 64 and "AuthenticAMD" in words and "avx_vnni" not in words


def interleaved(register_bytes: int, features: frozenset[str]) -> int:
    """How many vectors at a time a loop over a few elementary functions computes, for vectors of so many bytes on a
    processor with these features. Each operation of a polynomial waits for the one before.

    With AVX2, on an EPYC of the third generation, ten functions take 0.86 of the time in f32 and 0.85 in f64 two at a
    time (exp 0.93, pow 0.66), and such a kernel compiles in 1.36 and 1.16 of the time, 2 to 8 ms more.
    """
    return 2 if register_bytes == 32 and "avx512vl" not in features else 1


_LEVEL_3 = frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"})
_LEVEL_4 = _LEVEL_3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


@functools.cache
def code_level() -> str:
    """The kind of processor that delivered code should be compiled for: "x86_64_v4" (AVX-512, where full registers
    pay), "x86_64_v3" (AVX2 and FMA), as its ABI numbers the levels, "aarch64_neon"; "": none of these, or unknown."""
    words = frozenset((cpu_description() or "").split())
    if words >= _LEVEL_4 and registers_of(words)[1] == 64:
        return "x86_64_v4"
    if words >= _LEVEL_3:
        return "x86_64_v3"
    return "aarch64_neon" if words >= {"aarch64", "asimd"} else ""
