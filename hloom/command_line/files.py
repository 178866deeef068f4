"""The values of options: modules and arrays in files, targets."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..aot.array_files import ArrayFileError, read_arrays
from ..hlo import stablehlo
from ..hlo.backend import default_target
from ..hlo.collectives.world import MAX_LOCAL_DEVICES, local_device_count, set_local_device_count
from ..hlo.comparing import random_array
from ..hlo.errors import BytecodeError, EmptyQueueError, ScheduleError, UnsupportedError
from ..hlo.host_queues import HOST_QUEUES, INFEED, channel, queue_of
from ..hlo.ir import HloInstruction, HloModule
from ..hlo.mlir.bytecode import MAGIC
from ..hlo.opcode import Opcode
from ..hlo.shape import Shape
from ..hlo.target import Target
from ..hlo.targets import target_named
from ..hlo.text.parser import parse
from ..numba_backend.choices import with_schedules
from .outcome import ModuleError, UsageError

NDArray = np.ndarray[Any, Any]


class ModuleFile(NamedTuple):
    """A module and the text from which it was read."""

    name: str
    text: str
    module: HloModule

    @contextmanager
    def within_means(self) -> Iterator[HloModule]:
        """Gives the module. If it needs more memory than there is, or data that is not given, a ModuleError names the
        instruction."""
        unfed = {queue for i in self.module.instructions() if (queue := self._unfed(i))}
        try:
            with HOST_QUEUES.closed(unfed):
                yield self.module
        except MemoryError:
            largest = max(self.module.instructions(), key=lambda i: i.shape.byte_size)
            size = f"{largest.shape.byte_size / 2**30:,.1f} GiB"
            what = f"there is not enough memory: the largest array, {largest.name}, is {largest.shape}, {size}"
            raise ModuleError(f"{self._position(largest.name)}: {what}") from None
        except EmptyQueueError as error:
            position = self._position(error.instruction)
            if position == self.name:  # a pass gave it another name
                first = next(i for i in self.module.instructions() if queue_of(i) == error.queue)
                position = self._position(first.name)
            raise ModuleError(f"{position}: {error}") from None

    def _unfed(self, instruction: HloInstruction) -> str | None:
        """The queue that the instruction takes from, if nothing but the instructions before it can have put something
        there: a command runs a program and feeds none."""
        queue = queue_of(instruction)
        alone = self.module.replica_count * self.module.num_partitions == 1
        if queue == INFEED or alone:
            return queue
        sent = (i for i in self.module.instructions() if i.opcode is Opcode.SEND)
        return None if any(channel(i.attributes.channel_id) == queue for i in sent) else queue

    def with_devices(self, module: HloModule) -> None:
        """Give the process, which runs nothing else, as many devices as a module needs, if it has fewer. `module`: this
        one, perhaps partitioned. ModuleError for more than a process can have."""
        count = module.replica_count * module.num_partitions
        if count > MAX_LOCAL_DEVICES:
            what = f"a process has at most {MAX_LOCAL_DEVICES:,} devices, not {count:,}"
            place = _place(self.text, re.search(r"\b(replica_count|num_partitions)=|\bsharding=", self.text))
            raise ModuleError(f"{self.name}{place}: module {module.name} is for {_devices(module)}: {what}")
        set_local_device_count(max(local_device_count(), count))

    def _position(self, instruction: str) -> str:
        """`file:line:column` of an instruction; the file alone if the text gives it another name."""
        found = re.search(rf"^\s*(?:ROOT\s+)?(?=%?{re.escape(instruction)}\s*=)", self.text, re.MULTILINE)
        return f"{self.name}{_place(self.text, found)}"


def _place(text: str, found: re.Match[str] | None) -> str:
    """`:line:column` of the text after a match, "" without one."""
    if found is None:
        return ""
    return f":{text.count(chr(10), 0, found.end()) + 1}:{found.end() - text.rfind(chr(10), 0, found.end())}"


MODULE_SUFFIXES = (".hlo", ".mlir", ".mlirbc")
"""How the names of files end whose modules can be run."""


def read_module(name: str) -> ModuleFile:
    """The module in the file, or on stdin for "-": HLO text, StableHLO's text or its bytecode, or a file that
    `hloom.export` or `jax.export` wrote. HloParseError if it is none of these, UsageError if there is no file."""
    data, shown = _read_bytes(name), "<stdin>" if name == "-" else name
    if not stablehlo.is_bytecode(data) and 0 in data and MAGIC in data:
        from ..export import deserialize

        try:
            data = deserialize(data).mlir_module_serialized
        except ValueError as error:
            raise BytecodeError(str(error), 0, shown) from None
    if stablehlo.is_bytecode(data):
        return ModuleFile(shown, "", stablehlo.parse_bytecode(data))
    text = data.decode("utf-8", "surrogateescape")
    if name.endswith(".mlir") or stablehlo.is_text(text):
        return ModuleFile(shown, text, stablehlo.parse(text, shown))
    return ModuleFile(shown, text, parse(text, shown))


def scheduled(module: HloModule, options: Namespace) -> HloModule:
    """The module with the schedules of --schedule. ScheduleError, which names the file, if it has others."""
    if options.schedule is None:
        return module
    from ..numba_backend.schedule.text import parse as parse_schedules

    try:
        return with_schedules(module, parse_schedules(read_text(options.schedule)))
    except ScheduleError as error:
        raise ScheduleError(f"{options.schedule}: {error}") from None


def read_text(name: str) -> str:
    """Bytes that are not UTF-8 stay in the text as lone surrogates, and the parser reports their position."""
    return _read_bytes(name).decode("utf-8", "surrogateescape")


def _read_bytes(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None
    except ValueError as error:  # a name that no file has
        raise UsageError(f"cannot read {name!r}: {error}") from None


def write_text(name: str, text: str) -> None:
    try:
        Path(name).write_text(text, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise UsageError(f"cannot write {name}: {error.strerror}") from None


def target_of(options: Namespace) -> Target:
    """The target that --target names, else HLOOM_TARGET, else the cpu. UsageError if there is no such target."""
    try:
        return target_named(default_target() if options.target is None else options.target)
    except UnsupportedError as error:
        raise UsageError(str(error)) from None


def arguments_for(module: HloModule, options: Namespace) -> list[NDArray]:
    """An array for each leaf of the entry's parameters: from files, or random. UsageError if they do not fit, or if the
    module is for several devices."""
    if module.replica_count * module.num_partitions > 1:
        raise UsageError(f"module {module.name} is for {_devices(module)}: `hloom run` and `hloom check` run such")
    return arguments_of_devices(module, options)[0]


def arguments_of_devices(module: HloModule, options: Namespace) -> list[list[NDArray]]:
    """The arguments of `arguments_for`, for each device that runs the module; files have the arrays of one device after
    the arrays of another."""
    leaves = [leaf for parameter in module.entry.parameters for leaf in parameter.shape.leaves()]
    types = _types(leaves, module)
    count = module.replica_count * module.num_partitions
    if options.input:
        arrays = [array for name in options.input for array in _load(name)]
    elif options.random or not leaves:
        generator = np.random.default_rng(options.seed)
        arrays = [random_array(leaf, generator) for leaf in leaves * count]
    else:
        raise UsageError(f"module {module.name} takes {types}: give them with --input, or say --random")
    if len(arrays) != len(leaves) * count:
        raise UsageError(f"module {module.name} takes {types}, but --input has {len(arrays)} arrays")
    fitting = [_fitting(array, leaf, number) for number, (array, leaf) in enumerate(zip(arrays, leaves * count))]
    return [fitting[k * len(leaves) : (k + 1) * len(leaves)] for k in range(count)]


def _devices(module: HloModule) -> str:
    return f"{module.replica_count} replicas and {module.num_partitions} partitions"


def _types(leaves: Sequence[Shape], module: HloModule) -> str:
    shown = ", ".join(map(str, leaves[:8])) + (", ..." if len(leaves) > 8 else "")
    what = f"{len(leaves)} arrays ({shown})" if len(leaves) != 1 else f"an array {shown}"
    several = module.replica_count * module.num_partitions > 1
    return f"{what} for each device of {_devices(module)}" if several else what


def _load(name: str) -> list[NDArray]:
    try:
        return list(read_arrays(name).values())
    except ArrayFileError as error:
        raise UsageError(str(error)) from None


def _fitting(array: NDArray, leaf: Shape, number: int) -> NDArray:
    """`array`, which must be of the leaf's type. NumPy stores types that it does not know (bf16) as bytes."""
    dtype = leaf.element.dtype
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)
    if array.dtype != dtype or array.shape != leaf.dimensions:
        found = f"{array.dtype}{list(array.shape)}"
        raise UsageError(f"input {number} must be {leaf}, an array {dtype}{list(leaf.dimensions)}; it is {found}")
    return array


def store_results(path: str, results: Mapping[int, Sequence[NDArray]], several: bool) -> None:
    """See `--output` in `options.py`. `results`: the results of each device of this process; `several`: whether there
    are several devices in all."""
    named: dict[str, Any] = {
        f"{f'device{device}.' if several else ''}result{number}": result
        for device, each in results.items() for number, result in enumerate(each)
    }  # fmt: skip
    try:
        if path.endswith(".npz"):
            np.savez(path, **named)
            return
        folder = path.endswith("/") or Path(path).is_dir()
        stem = Path(path) if folder else Path(path).parent
        stem.mkdir(parents=True, exist_ok=True)
        for name, result in named.items():
            file = name if folder else Path(path).name + name.replace("result", "")
            np.save(stem / f"{file}.npy", result)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
