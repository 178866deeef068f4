"""The machine: memory with addresses of its own, a queue that one thread executes in order, a clock, a trace.

Nothing outside of this file sees the memory: programs are executed and arrays are copied by commands in the queue.
"""

from __future__ import annotations

import bisect
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np
from hloom.hlo import ElementType, Shape
from hloom.hlo.evaluator.table import evaluate_op
from hloom.hlo.stream_executor import DeviceError, DeviceMemoryError, DeviceMemoryUsage, Event, StreamExecutor

from .isa import (
    BYTES_A_CYCLE,
    SCRATCHPAD,
    SCRATCHPAD_BYTES,
    START,
    Command,
    Dma,
    Gather,
    Iota,
    Jump,
    MatMul,
    Scatter,
    Switch,
    ToyProgram,
    Vector,
    View,
)

NDArray = np.ndarray[Any, Any]
FIRST_ADDRESS = 0x7000_0000_0000
"""No address of this process: a program that took it for one would be killed."""
ALIGNMENT = 64
_COPIED_AS = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}


@dataclass(frozen=True, slots=True)
class Executed:
    """A span of the queue's work: from one cycle to another."""

    start: int
    end: int
    text: str

    def __str__(self) -> str:
        return f"{self.start:>10} {self.end - self.start:>8}  {self.text}"


class _Done(Event):
    """It has happened once it is set, perhaps with an error."""

    def __init__(self) -> None:
        self._set = threading.Event()
        self._error: DeviceError | None = None

    def set(self, error: DeviceError | None) -> None:
        self._error = error
        self._set.set()

    def has_happened(self) -> bool:
        return self._set.is_set()

    @property
    def error(self) -> DeviceError | None:
        return self._error

    def wait(self) -> None:
        self._set.wait()
        if self._error is not None:
            raise self._error


@dataclass(frozen=True, slots=True)
class _Entry:
    """Of the queue: what to do, and what must outlive that."""

    text: str
    work: Callable[[], int]
    done: _Done
    keep: object
    needs: Sequence[Event]


class ToyDevice(StreamExecutor):
    """A device with `memory_bytes` of memory."""

    def __init__(self, memory_bytes: int = 256 << 20, trace_length: int = 100_000) -> None:
        self.name = "toy:0"
        self.cycles = 0
        self.trace: deque[Executed] = deque(maxlen=trace_length)
        self._machine = _Machine(np.zeros(memory_bytes, np.uint8))
        self._memory = _Allocator(memory_bytes)
        self._queue: SimpleQueue[_Entry] = SimpleQueue()
        self._process = os.getpid()
        threading.Thread(target=self._execute, daemon=True, name="toy accelerator").start()

    # ---- memory

    def allocate(self, nbytes: int) -> int:
        address = self._memory.allocate(nbytes)
        if address is None:
            self.synchronize()  # what the queue still uses may be free then
            address = self._memory.allocate(nbytes)
        if address is None:
            usage = self.memory_usage()
            raise DeviceMemoryError(
                f"{self.name} has no {nbytes:,} bytes left in one piece: {usage.used:,} of {usage.size:,} are in use"
            )
        return address

    def deallocate(self, address: int) -> None:
        self._memory.given_back.append(address)

    def memory_usage(self) -> DeviceMemoryUsage:
        return self._memory.usage()

    # ---- the queue

    def _enqueue(self, text: str, work: Callable[[], int], keep: object, needs: Sequence[Event] = ()) -> _Done:
        if os.getpid() != self._process:
            raise DeviceError(f"{self.name} belongs to process {self._process}: a fork has no queue")
        done = _Done()
        self._queue.put(_Entry(text, work, done, keep, needs))
        return done

    def _execute(self) -> None:
        while True:
            entry = self._queue.get()
            failed = next((event.error for event in entry.needs if event.error is not None), None)
            if failed is None:
                started = self.cycles
                try:
                    self.cycles += entry.work()
                except Exception as error:  # the thread must go on: those who wait get the error
                    failed = DeviceError(f"{self.name}: {entry.text}: {error}")
                else:
                    self.trace.append(Executed(started, self.cycles, entry.text))
            entry.done.set(failed)
            del entry  # if this was the last reference to a block, it is free now, not after the next command

    def copy_to_device(self, address: int, data: NDArray, keep: object) -> Event:
        def work() -> int:
            self._machine.memory[address - FIRST_ADDRESS :][: data.nbytes] = data
            return START + -(-data.nbytes // BYTES_A_CYCLE)

        return self._enqueue(f"host to device, {data.nbytes} bytes", work, keep)

    def copy_from_device(self, address: int, nbytes: int) -> NDArray:
        data = np.empty(nbytes, np.uint8)

        def work() -> int:
            data[:] = self._machine.memory[address - FIRST_ADDRESS :][:nbytes]
            return START + -(-nbytes // BYTES_A_CYCLE)

        self._enqueue(f"device to host, {nbytes} bytes", work, None).wait()
        return data

    def launch(self, program: Any, addresses: Sequence[int], needs: Sequence[Event], keep: object) -> Event:
        blocks = [self._memory.block(address) for address in addresses]
        return self._enqueue(f"launch {program.name}", lambda: self._run(program, blocks), keep, needs)

    def _run(self, program: ToyProgram, blocks: Sequence[tuple[int, int]]) -> int:
        started = self.cycles
        for command, cycles in self._machine.run(program, blocks):
            self.trace.append(Executed(self.cycles, self.cycles + cycles, f"  {command}"))
            self.cycles += cycles
        spent, self.cycles = self.cycles - started, started
        return spent

    def synchronize(self) -> None:
        self._enqueue("synchronize", lambda: 0, None).wait()


class _Allocator:
    """First fit. Blocks are given back from any thread, also from a finalizer in the middle of `allocate`."""

    def __init__(self, size: int) -> None:
        self.given_back: deque[int] = deque()
        self._size = size
        self._used: dict[int, int] = {}
        self._order = [0, size]
        self._sum = self._peak = 0
        self._lock = threading.RLock()

    def allocate(self, nbytes: int) -> int | None:
        needed = -(-nbytes // ALIGNMENT) * ALIGNMENT
        with self._lock:
            self._take_back()
            ends = [0, *(start + self._used[start] for start in self._order[1:-1])]
            for end, start in zip(ends, self._order[1:], strict=True):
                if start - end >= needed:
                    bisect.insort(self._order, end, 1)
                    self._used[end] = needed
                    self._sum += needed
                    self._peak = max(self._peak, self._sum)
                    return FIRST_ADDRESS + end
        return None

    def _take_back(self) -> None:
        while self.given_back:
            start = self.given_back.popleft() - FIRST_ADDRESS
            self._sum -= self._used.pop(start)
            self._order.pop(bisect.bisect_left(self._order, start, 1))

    def block(self, address: int) -> tuple[int, int]:
        """Where a block begins in the memory, and its size; an empty block has address 0."""
        return (address - FIRST_ADDRESS, self._used[address - FIRST_ADDRESS]) if address else (0, 0)

    def usage(self) -> DeviceMemoryUsage:
        with self._lock:
            self._take_back()
            return DeviceMemoryUsage(self._size, self._sum, self._peak)


class _Machine:
    """Executes programs. `run` yields each command with its cycles after it was executed."""

    def __init__(self, memory: NDArray) -> None:
        self.memory = memory
        self._scratchpad = np.zeros(SCRATCHPAD_BYTES, np.uint8)

    def run(self, program: ToyProgram, blocks: Sequence[tuple[int, int]]) -> Any:
        self._blocks = [self.memory[start : start + size] for start, size in blocks]
        counter = 0
        while counter < len(program.commands):
            command = program.commands[counter]
            target = self._do(command)
            counter = counter + 1 if target is None else target
            yield command, command.cycles

    def _do(self, command: Command) -> int | None:
        match command:
            case Dma(target=target, source=source):
                self._array(target)[...] = self._array(source).copy()
            case Vector():
                operands = [self._pad(element, offset, command.count) for element, offset in command.sources]
                shape = Shape.array(command.element, (command.count,))
                result = evaluate_op(command.opcode, operands, command.attributes, shape)
                self._pad(command.element, command.target, command.count)[:] = result
            case Iota(element=element, target=offset, first=first, count=count):
                self._pad(element, offset, count)[:] = np.arange(first, first + count).astype(element.dtype)
            case MatMul(element=element, m=m, k=k, n=n):
                a = self._pad(element, command.a, m * k).reshape(m, k)
                b = self._pad(element, command.b, k * n).reshape(k, n)
                c = self._pad(element, command.c, m * n).reshape(m, n)
                c[:] = c + a @ b if command.adds else a @ b
            case Gather(target=offset, memory=memory, indices=indices, count=count):
                found, there = self._indexed(indices, count)
                self._bytes(offset, count, memory.itemsize)[there] = self._array(memory)[found]
            case Scatter(memory=memory, source=offset, indices=indices, count=count):
                found, there = self._indexed(indices, count)
                self._array(memory)[found] = self._bytes(offset, count, memory.itemsize)[there]
            case Jump(target=label, unless=unless):
                return label.position if unless is None or not self._array(unless).any() else None
            case Switch(index=index, targets=targets):
                number = int(self._array(index).view(np.int32).reshape(()))
                return targets[number if 0 <= number < len(targets) else -1].position
        return None

    def _indexed(self, offset: int, count: int) -> tuple[NDArray, NDArray]:
        indices = self._pad(ElementType.S64, offset, count)
        there = indices >= 0
        return indices[there], there

    def _pad(self, element: ElementType, offset: int, count: int) -> NDArray:
        return self._scratchpad[offset : offset + count * element.dtype.itemsize].view(element.dtype)

    def _bytes(self, offset: int, count: int, itemsize: int) -> NDArray:
        return self._array(View.dense(SCRATCHPAD, offset, (count,), itemsize))

    def _array(self, view: View) -> NDArray:
        """The elements of a view, as words. ValueError if one is outside of its block."""
        memory = self._scratchpad if view.block == SCRATCHPAD else self._blocks[view.block]
        offset = view.offset
        for start in view.starts:
            place = View(start.block, start.offset, (), (), start.element.byte_width)
            index = int(self._array(place).reshape(1).view(start.element.dtype)[0])
            offset += min(max(index, 0), start.limit) * start.stride
        word = _COPIED_AS.get(view.itemsize, f"V{view.itemsize}")
        try:
            return np.ndarray(view.sizes, word, memory.data, offset, view.strides)
        except (TypeError, ValueError) as error:
            raise ValueError(f"illegal address: {view} in a block of {memory.nbytes} bytes ({error})") from None
