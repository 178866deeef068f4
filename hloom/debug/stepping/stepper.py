"""A function run in steps: the object behind the prompt, for programs and notebooks."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import numpy as np

from ...hlo.backend import get_compiler
from ...hlo.cutout import cut_out
from ...hlo.effects import effects_of, has_side_effect
from ...hlo.errors import UnsupportedError
from ...hlo.evaluator import evaluate_instruction
from ...hlo.ir import HloComputation, HloInstruction, HloModule
from ...hlo.metadata import PlacedMetadata, line_of
from ...hlo.opcode import Opcode
from ...hlo.support.records import dataclass
from ...hlo.support.value_tree import leaves_of, value_of
from . import loops, stops
from .execution import Execution, Frame, Value
from .programs import Program
from .stops import Stop
from .variables import named, variables_of

_PLAIN = frozenset({Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST})
"""Instructions that move no data."""
_QUIET = _PLAIN | {Opcode.BROADCAST, Opcode.IOTA, Opcode.RESHAPE}
"""Instructions that do not make a line worth a pause."""


class StepError(RuntimeError):
    """A command cannot be done at this place. It is no error of the program, which can go on."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A place or a condition to stop at."""

    number: int
    stop: Stop

    def __repr__(self) -> str:
        return f"<Breakpoint {self.number}: {self.stop.text}>"


class Stepper:
    """A function that runs in steps. It is a context manager; leaving the block gives up what has not run.

    >>> from hloom import debug, numpy as jnp
    >>> def f(x):
    ...     y = jnp.log(x)
    ...     return y - y
    >>> with debug.step(f, jnp.array([1.0, 0.0]), prompt=False) as run:
    ...     _ = run.stop_where(nan=True)
    ...     run.resume()
    ...     print(run.instruction.opcode.value, run.value())
    subtract [ 0. nan]
    """

    def __init__(self, program: Program, kernels: bool = False) -> None:
        """kernels: each instruction of the program, which has been through all passes, is computed by its kernel."""
        module = self.module = program.module
        devices = module.num_partitions * module.replica_count
        if devices > 1:
            raise UnsupportedError(
                f"debug.step: {module.name} is for {devices} devices; step the function of one of them, on its part of "
                "the arrays"
            )
        self._program = program
        self._is_optimized = kernels
        self._kernels: dict[HloInstruction, Callable[..., Value]] = {}
        self._loops: dict[tuple[Any, ...], loops.WatchedLoop] = {}
        self._homes: dict[str, str] | None = None
        self._jump: tuple[HloInstruction | None, int] | None = None
        """The loop, and its iteration, to run to."""
        source = iter(program.leaves)
        arguments = [value_of(p.shape, source) for p in module.entry.parameters]
        self._execution = Execution(
            module.entry, arguments, self._enters, self._by_kernel if kernels else evaluate_instruction, self._skip
        )
        self._breakpoints: list[Breakpoint] = []
        self._numbers = 0
        self._into = True
        self._selected = 0
        self.reason = ""
        """The breakpoint that the program stopped at, as text; "" after a step."""

    # ---- where it is

    @property
    def frames(self) -> Sequence[Frame]:
        """The computations that are being run: the program first, the innermost last. None when it is over."""
        return self._execution.frames

    @property
    def frame(self) -> Frame:
        """The selected frame: the innermost one, unless `up` has chosen another. StepError when the program is
        over."""
        if not self.frames:
            raise StepError("the program is over")
        return self.frames[max(0, len(self.frames) - 1 - self._selected)]

    @property
    def instruction(self) -> HloInstruction | None:
        """The instruction of the selected frame that ran last; None before the first. Of an outer frame: the one that
        calls the next frame."""
        if self._selected:
            return self.frames[len(self.frames) - self._selected].caller
        return self.frame.current

    @property
    def line(self) -> str:
        """The user's line of the instruction, as ``file.py:3``; "" if it is not known."""
        i = self.instruction
        return "" if i is None else line_of(i.metadata)

    @property
    def is_over(self) -> bool:
        """Whether the program has run to its end."""
        return self._execution.is_over

    def up(self, count: int = 1) -> bool:
        """Select a frame further out; further in with a negative count. False at the end."""
        wanted = self._selected + count
        if not 0 <= wanted < len(self.frames):
            return False
        self._selected = wanted
        return True

    # ---- values

    def names(self) -> dict[str, Value]:
        """The values that have a name in the user's source: the function's arguments, and what the selected frame and
        those around it have computed. Where two functions use a name, the function of the current line comes first."""
        found: dict[str, Any] = dict(self._program.arguments)
        i = self.instruction
        function = i.metadata.function if i is not None and isinstance(i.metadata, PlacedMetadata) else ""
        for frame in self.frames[: len(self.frames) - self._selected]:
            found.update(variables_of(frame, function))
        return found

    def value(self, name: str | None = None) -> Value:
        """A value that has been computed: of a variable of the user's, or of an instruction (`%name` or `name`); by
        default the last one. NameError, if there is none (yet).

        An array is NumPy's, and read-only.
        """
        if name is None:
            i = self.instruction
            if i is None or i not in self.frame.values:
                raise NameError("no instruction of this frame has run yet")
            return _shown(self.frame.values[i])
        if not name.startswith("%") and name in (known := self.names()):
            return _shown(known[name])
        wanted = name.removeprefix("%")
        for frame in reversed(self.frames[: len(self.frames) - self._selected]):
            for i, value in frame.values.items():
                if i.name == wanted:
                    return _shown(value)
        raise NameError(f"{name} has no value here")

    def kernel(self, name: str | None = None) -> str:
        """The instruction of the program after all passes that computes a value, which is a kernel of that name; by
        default that of the last one. "" for one that no kernel computes under its name: it became a constant or a part
        of another instruction, or its place is a loop that is one kernel. NameError for a name that is none."""
        if self._homes is None:
            self._homes = _homes(self._program.optimized())
        if name is None:
            wanted = [self.instruction]
        else:
            wanted = [i for c in self.module.computations if (i := named(c, name)) is not None]
        if not wanted:
            raise NameError(f"no instruction is named {name}")
        return next((self._homes[i.name] for i in wanted if i is not None and i.name in self._homes), "")

    # ---- where to stop

    def stop_where(
        self, *, nan: bool = False, inf: bool = False, outside: tuple[float, float] | None = None,
        of: str | None = None, when: Callable[[Frame], Any] | str | None = None,
    ) -> list[Breakpoint]:  # fmt: skip
        """Stop where a value has a NaN or an infinity, or leaves a range: the first that does, or, with `of`, that of a
        variable or an instruction. Or where `when` is true: a function of the frame, or an expression of the names; an
        expression that fails is a StepError of the call that goes on, and the program can go on from there."""
        wanted: list[Stop] = []
        if nan:
            wanted.append(stops.nan(of))
        if inf:
            wanted.append(stops.infinity(of))
        if outside is not None:
            wanted.append(stops.outside(*outside, of))
        if isinstance(when, str):
            code = compile(when, "<stop when>", "eval")
            wanted.append(stops.when(when, lambda frame: self._is_true(when, code)))
        elif when is not None:
            wanted.append(stops.when(getattr(when, "__name__", "a condition"), when))
        if not wanted:
            raise ValueError("stop_where: say where: nan=True, inf=True, outside=(low, high) or when=...")
        return [self._add(stop) for stop in wanted]

    def _is_true(self, text: str, code: CodeType) -> bool:
        try:
            return bool(eval(code, {"np": np}, self.scope()))
        except NameError:
            raise
        except Exception as error:
            said = traceback.format_exception_only(error)[-1].strip()
            raise StepError(f"stop when {text}: {said}") from error

    def stop_at(self, place: int | str) -> Breakpoint:
        """Stop at a line (a number, or "file.py:12"), or at an instruction: its name, opcode or op_name."""
        if isinstance(place, int) or place.isdigit():
            return self._add(stops.at_line(None, int(place)))
        file, colon, line = place.rpartition(":")
        if colon and line.isdigit():
            return self._add(stops.at_line(file, int(line)))
        return self._add(stops.at_instruction(place))

    def _add(self, stop: Stop) -> Breakpoint:
        self._numbers += 1
        self._breakpoints.append(made := Breakpoint(self._numbers, stop))
        return made

    @property
    def breakpoints(self) -> Sequence[Breakpoint]:
        """All places and conditions to stop at."""
        return tuple(self._breakpoints)

    def clear(self, number: int | None = None) -> None:
        """Forget a breakpoint, or all. KeyError for a number that there is not."""
        kept = [] if number is None else [b for b in self._breakpoints if b.number != number]
        if number is not None and len(kept) == len(self._breakpoints):
            raise KeyError(f"there is no breakpoint {number}")
        self._breakpoints = kept

    def scope(self) -> dict[str, Any]:
        """Names for expressions: the user's, and `_`, the last value."""
        names = {name: _shown(value) for name, value in self.names().items()}
        i = self.instruction
        if i is not None and i in self.frame.values:
            names["_"] = _shown(self.frame.values[i])
        return names

    # ---- going on

    def step_instruction(self) -> None:
        """Run one instruction. A call, a loop or a branch is entered."""
        self._go(True, lambda frame: True)

    def next_instruction(self) -> None:
        """Run one instruction of this computation; a call, a loop or a branch as a whole."""
        depth = self._depth()
        self._go(False, lambda frame: len(self.frames) <= depth)

    def step(self) -> None:
        """Run up to the next line of the user's. Calls, loops and branches are entered."""
        before = self._place()
        self._go(True, lambda frame: self._is_new_line(frame, before))

    def next(self) -> None:
        """Run up to the next line of the user's in this computation, or in one around it."""
        before, depth = self._place(), self._depth()
        self._go(False, lambda frame: len(self.frames) <= depth and self._is_new_line(frame, before))

    def finish(self) -> None:
        """Run to the end of this computation, or of this iteration of a loop."""
        wanted = self.frame
        self._go(False, lambda frame: wanted not in self.frames or (frame is wanted and frame.is_done))

    def until(self, line: int | None = None) -> None:
        """Run to a later line of this function, or to a line of another one, as at its end; past the iterations that
        are left of a loop, which run compiled if there are no breakpoints. line: to this line of this function, or to
        one after it. StepError for a line that is not a later one."""
        before, depth, inside = self._place(), self._depth(), self.frame
        file, now, function = before or ("", 0, "")
        if line is not None and line <= now:
            raise StepError(f"line {line} is not after line {now}")
        least = now + 1 if line is None else line

        def is_there(frame: Frame) -> bool:
            place = self._place()
            if place is None or len(self.frames) > depth or not self._is_new_line(frame, before):
                return False
            if len(self.frames) < depth:
                return True
            if (place[0], place[2]) == (file, function):
                return place[1] >= least
            return line is None and (frame.caller is None or place != _place_of(frame.caller))  # it counts iterations

        self._jump = inside.caller if inside.role in ("body", "condition") else None, loops.MOST
        try:
            self._go(bool(self._breakpoints), is_there)
        finally:
            self._jump = None

    def iteration(self, number: int | None = None) -> None:
        """Run to the next iteration of the innermost loop, or to the iteration with this number: compiled, if there are
        no breakpoints. StepError outside of a loop, and for an iteration that is over."""
        inside = next((f for f in reversed(self.frames) if f.iteration is not None), None)
        if inside is None or inside.iteration is None:
            raise StepError("not in a loop")
        loop, wanted = inside.caller, inside.iteration + 1 if number is None else number
        depth = self.frames.index(inside)
        if number is not None and number <= inside.iteration:
            raise StepError(f"iteration {number} is over: this is iteration {inside.iteration}")

        def is_there(frame: Frame) -> bool:
            if len(self.frames) <= depth or self.frames[depth].caller is not loop:
                return True
            at = self.frames[depth]
            if at.role != "body" or at.iteration is None or at.iteration < wanted:
                return False
            return at.iteration > wanted or (frame.current is not None and frame.current.opcode not in _PLAIN)

        self._jump = loop, wanted
        try:
            self._go(bool(self._breakpoints) or wanted == inside.iteration + 1, is_there)
        finally:
            self._jump = None

    def resume(self) -> Any:
        """Run until a breakpoint, or to the end. Without breakpoints, and if the program has no side effects, the rest
        runs compiled. The function's result at the end, None at a breakpoint."""
        if not self._breakpoints and not effects_of(self.module.entry):
            self._execution.close()
            self._execution.is_over = True
            self._result = self._program.run()
            return self._result
        self._go(False, lambda frame: False)
        return self.result() if self.is_over else None

    _result: Any = None

    def result(self) -> Any:
        """The function's result. StepError before the end."""
        if not self.is_over:
            raise StepError("the program is not over: resume() runs to its end")
        if self._result is None:
            self._result = self._program.wrap([np.array(x, order="C") for x in leaves_of(self._execution.result)])
        return self._result

    def __enter__(self) -> Stepper:
        return self

    def __exit__(self, *_: object) -> None:
        self._execution.close()

    # ---- within

    def _go(self, into: bool, is_there: Callable[[Frame], bool]) -> None:
        self.reason, self._selected, self._into = "", 0, into
        while (frame := self._execution.advance()) is not None:
            i = frame.current
            assert i is not None, "a frame pauses after an instruction"
            for each in self._breakpoints:
                if each.stop.holds(frame, i, frame.values[i]):
                    self.reason = f"breakpoint {each.number}: {each.stop.text}"
                    return
            if is_there(frame):
                return

    def _depth(self) -> int:
        return len(self.frames) - self._selected

    def _place(self) -> tuple[str, int, str] | None:
        """The file, the line and the function of the instruction that ran last."""
        i = self.instruction if self.frames else None
        return None if i is None else _place_of(i)

    def _is_new_line(self, frame: Frame, before: tuple[str, int, str] | None) -> bool:
        i = frame.current
        place = None if i is None or i.opcode in _QUIET else _place_of(i)
        return place is not None and bool(place[0]) and (before is None or place[:2] != before[:2])

    def _enters(self, i: HloInstruction) -> bool:
        if self._is_optimized and i.opcode is Opcode.FUSION:
            return False
        return self._into or bool(self._breakpoints) or has_side_effect(i)

    def _skip(self, loop: HloInstruction, iteration: int, state: Value) -> tuple[int, Value]:
        """A loop runs compiled up to the wanted iteration. If all stops are for bad values, it runs compiled up to the
        iteration that makes the first bad value."""
        if has_side_effect(loop) or self._is_optimized or not loops.can_be_watched(loop):
            return iteration, state
        if self._jump is not None and self._jump[0] is loop and not self._breakpoints:
            wanted, self._jump = self._jump[1], None
            if wanted > iteration:
                state, count, _ = self._watched(loop, ()).run(state, wanted - iteration)
                iteration += count
            self._into = True
            return iteration, state
        stops = [b.stop for b in self._breakpoints]
        if self._into or not stops or any(s.in_loops is None for s in stops):
            return iteration, state
        count, state = self._watched(loop, stops).before_the_first(state)
        return iteration + count, state

    def _watched(self, loop: HloInstruction, wanted: Sequence[Stop]) -> loops.WatchedLoop:
        key = (loop, *wanted)
        if key not in self._loops:
            self._loops[key] = loops.WatchedLoop(loop, [s.in_loops for s in wanted if s.in_loops is not None])
        return self._loops[key]

    def _by_kernel(self, i: HloInstruction, operands: Sequence[Value]) -> Value:
        if i.opcode in _PLAIN or has_side_effect(i):
            return evaluate_instruction(i, operands)
        run = self._kernels.get(i)
        if run is None:
            run = self._kernels[i] = _compiled(i)
        return run(operands)


def _place_of(i: HloInstruction) -> tuple[str, int, str] | None:
    m = i.metadata
    return None if m is None else (m.source_file, m.source_line, m.function if isinstance(m, PlacedMetadata) else "")


def _homes(module: HloModule) -> dict[str, str]:
    """By the names of the instructions of an optimised module: the fusion that each is in, or itself."""
    found: dict[str, str] = {}

    def visit(computation: HloComputation, fusion: str) -> None:
        for i in computation.instructions:
            if i.opcode not in _PLAIN:
                found[i.name] = fusion or i.name
            for called in i.called_computations():
                visit(called, fusion or (i.name if i.opcode is Opcode.FUSION else ""))

    visit(module.entry, "")
    return found


def _shown(value: Value) -> Value:
    """A value for the user: arrays are read-only."""
    if isinstance(value, tuple):
        return tuple([_shown(v) for v in value])
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def _compiled(i: HloInstruction) -> Callable[[Sequence[Value]], Value]:
    """One instruction of a program after all passes, by its kernel."""
    inputs = list(dict.fromkeys(i.operands))
    compiler: Any = get_compiler()
    if not hasattr(compiler, "compile_optimized"):
        raise UnsupportedError(f"debug.step: kernels=True needs a backend with kernels, not {type(compiler).__name__}")
    executable = compiler.compile_optimized(cut_out(i, inputs))

    def run(operands: Sequence[Value]) -> Value:
        values = dict(zip(i.operands, operands, strict=True))
        leaves = [np.asarray(leaf) for o in inputs for leaf in leaves_of(values[o])]
        return value_of(i.shape, iter(executable.execute(leaves)))

    return run

