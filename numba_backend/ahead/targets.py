"""The machines that code is compiled for: a triple, a CPU and its features, with LLVM's names."""

from __future__ import annotations

import difflib
import functools
import re
import subprocess
import sys
from typing import Any

import llvmlite.binding as llvm

from ...hlo.errors import HloError
from ...hlo.support.records import dataclass
from ..runtime.llvm_backend import host_target, tuned

_TRIPLE = re.compile(r"[A-Za-z0-9_.]+(-[A-Za-z0-9_.]+){1,3}")
_WORD = re.compile(r"[A-Za-z0-9_.+-]*")
_FEATURES = re.compile(r"([+-][A-Za-z0-9_.-]+(,[+-][A-Za-z0-9_.-]+)*)?")


class TargetError(HloError, ValueError):
    """A machine that LLVM does not know, or that hloom cannot write code for."""


@dataclass(frozen=True, slots=True)
class TargetMachine:
    """A target of object code.

    `triple`: e.g. ``"x86_64-linux-gnu"``, ``"aarch64-linux-gnu"``, ``"riscv64-linux-gnu"``,
    ``"wasm32-unknown-unknown"``; ``"native"`` is this machine.
    `cpu`: e.g. ``"x86-64-v3"``, ``"cortex-a72"``; ``"native"`` is this machine's; empty: the oldest one of the triple.
    `features`: e.g. ``"+avx2,-fma"``, after those of the CPU.

    >>> from hloom import aot
    >>> aot.TargetMachine("aarch64-linux-gnu", "cortex-a72").resolved().cpu
    'cortex-a72'
    """

    triple: str = "native"
    cpu: str = ""
    features: str = ""

    def resolved(self) -> TargetMachine:
        """The same machine with names in place of ``"native"``. TargetError for names that LLVM does not know."""
        triple, cpu, features = self.triple, self.cpu, self.features
        host, host_cpu, host_features = host_target()
        if triple == "native":
            triple = host
        if cpu == "native":
            if triple.split("-")[0] != host.split("-")[0]:
                raise TargetError(f"cpu 'native' is {host_cpu}, of {host}; name a CPU of {triple}")
            cpu, features = host_cpu, ",".join(filter(None, [host_features, features]))
        if not _TRIPLE.fullmatch(triple):
            raise TargetError(f"{triple!r} is no target triple; one is, for example, 'aarch64-linux-gnu'")
        if not _WORD.fullmatch(cpu) or not _FEATURES.fullmatch(features):
            raise TargetError(f"cpu {cpu!r} with features {features!r}: write them as in cpu 'x86-64-v3', '+avx2,-fma'")
        machine = TargetMachine(triple, cpu, features)
        machine.llvm()
        return machine

    def llvm(self) -> Any:
        """LLVM's target machine."""
        return _target_machine(self.triple, self.cpu, self.features)

    @property
    def is_wasm(self) -> bool:
        """True for WebAssembly."""
        return self.triple.startswith("wasm")


@functools.cache
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def _target_machine(triple: str, cpu: str, features: str) -> Any:
    _initialise()
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise TargetError(f"LLVM has no target for {triple!r}: {error}") from None
    if cpu or features:
        _check(triple, cpu, features)
    reloc = "static" if triple.startswith("wasm") else "pic"  # a module of WebAssembly has addresses of its own
    features = tuned(triple, features)
    machine = target.create_target_machine(cpu=cpu, features=features, opt=2, reloc=reloc, codemodel="default")
    if not str(machine.target_data).startswith("e"):
        raise TargetError(f"{triple} stores the most significant byte first; constants are written the other way round")
    return machine


def _check(triple: str, cpu: str, features: str) -> None:
    """LLVM itself only prints a warning for a name that it does not know, and ignores the name."""
    cpus, known = _vocabulary(triple)
    if cpu and cpu not in cpus:
        raise TargetError(f"LLVM knows no CPU {cpu!r} of {triple}{_similar(cpu, cpus)}")
    for feature in filter(None, features.split(",")):
        if feature[1:] not in known:
            raise TargetError(f"LLVM knows no feature {feature[1:]!r} of {triple}{_similar(feature[1:], known)}")


def _similar(word: str, words: frozenset[str]) -> str:
    close = difflib.get_close_matches(word, sorted(words), 3, 0.5)
    return f"; similar: {', '.join(close)}" if close else ""


_ASK = """
import sys, llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.Target.from_triple(sys.argv[1]).create_target_machine(cpu="help")
"""
_ENTRY = re.compile(r"^ {2}(\S+) +- ", re.MULTILINE)


@functools.cache
def _vocabulary(triple: str) -> tuple[frozenset[str], frozenset[str]]:
    """The CPUs and the features that LLVM knows for a triple. It tells them in print only, so a process of its own
    asks."""
    asked = subprocess.run([sys.executable, "-c", _ASK, triple], capture_output=True, text=True, check=True)
    cpus, _, features = asked.stderr.partition("Available features")
    return frozenset(_ENTRY.findall(cpus)), frozenset(_ENTRY.findall(features))
