"""The prompt of `debug.step`: the commands of Python's debugger, and a few for loops and numbers."""

from __future__ import annotations

import cmd
import linecache
import os
import pprint
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import IO, Any

import numpy as np

from ...hlo.ir import HloInstruction
from ...hlo.metadata import line_of
from ...hlo.text.escape import escape, visible
from ...hlo.text.names import Names
from ...hlo.text.printer import instruction_text
from .execution import Frame
from .stepper import Breakpoint, StepError, Stepper
from .variables import name_of

_FEW = 8
"""Elements of an array that are shown in full."""


class Prompt(cmd.Cmd):
    """Reads commands, and moves a `Stepper`."""

    prompt = "(hdb) "

    def __init__(self, run: Stepper, stdin: IO[str] | None = None, stdout: IO[str] | None = None) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self._run = run

    def run(self, first: str | None = None) -> Any:
        """Read commands until the program is over; its result. An interrupt ends the line, not the prompt. first: the
        command before all others; by default it goes to the first line."""
        self._say(f"> {escape(self._run.module.name)}: {sum(1 for _ in self._run.module.instructions())} instructions")
        with self._run:
            self.onecmd(first or ("step" if self._has_lines() else "stepi"))
            while not self._run.is_over:
                try:
                    self.cmdloop()
                except KeyboardInterrupt:
                    self._say("--KeyboardInterrupt--")
            return self._run.result()

    def _has_lines(self) -> bool:
        return any(i.metadata is not None and i.metadata.source_file for i in self._run.module.instructions())

    # ---- showing

    def _say(self, text: str) -> None:
        self.stdout.write(text + "\n")

    def _move(self, go: Callable[[], Any]) -> bool:
        """Go on, and show where the program is then. True at its end."""
        go()
        if self._run.is_over:
            self._say("the program is over")
            return True
        if self._run.reason:
            self._say(self._run.reason)
        self._where_it_is()
        return False

    def _where_it_is(self) -> None:
        frame, i = self._run.frame, self._run.instruction
        at = f", iteration {frame.iteration}" if frame.iteration is not None else ""
        place = line_of(i.metadata) if i is not None else ""
        self._say(f"> {escape(place or 'no line of yours')} ({frame.role} of {escape(_called(frame))}{at})")
        if i is None:
            return
        source = linecache.getline(i.metadata.source_file, i.metadata.source_line).strip() if i.metadata else ""
        if source:
            self._say(f"-> {visible(source)}")
        self._say(f"   {_text(i)}")
        if i in frame.values:
            self._say(f"   {_summary(frame.values[i])}")

    def emptyline(self) -> bool:
        """Repeats the last command, as in Python's debugger."""
        return super().emptyline()

    def default(self, line: str) -> None:
        """Anything else is an expression."""
        self._print(line, repr)

    def _print(self, expression: str, form: Callable[[Any], str]) -> None:
        try:
            text = expression.strip()
            value = self._run.value(text) if text.startswith("%") else eval(text, {"np": np}, self._run.scope())
            self._say(form(value))
        except Exception as error:
            self._say(f"*** {traceback.format_exception_only(error)[-1].strip()}")

    # ---- going on

    def do_step(self, _: str) -> bool:
        """s(tep): run to the next line of yours; enter calls, loops and branches."""
        return self._move(self._run.step)

    def do_next(self, _: str) -> bool:
        """n(ext): run to the next line of yours in this function."""
        return self._move(self._run.next)

    def do_stepi(self, _: str) -> bool:
        """si, stepi: run one instruction; enter calls, loops and branches."""
        return self._move(self._run.step_instruction)

    def do_nexti(self, _: str) -> bool:
        """ni, nexti: run one instruction, a call, a loop or a branch as a whole."""
        return self._move(self._run.next_instruction)

    def do_return(self, _: str) -> bool:
        """r(eturn): run to the end of this function, branch or iteration."""
        return self._move(self._run.finish)

    def do_until(self, argument: str) -> bool:
        """unt(il) [line]: run to a later line of this function, or to this one: past the rest of a loop."""
        try:
            line = int(argument) if argument.strip() else None
        except ValueError as error:
            self._say(f"*** {error}")
            return False
        return self._move(lambda: self._run.until(line))

    def do_iteration(self, argument: str) -> bool:
        """it(eration) [number]: run to the next iteration of the loop, or to the one with this number."""
        try:
            number = int(argument) if argument.strip() else None
        except ValueError as error:
            self._say(f"*** {error}")
            return False
        return self._move(lambda: self._run.iteration(number))

    def do_continue(self, _: str) -> bool:
        """c(ont(inue)): run to a breakpoint, or to the end: then compiled, if nothing is to be watched."""
        return self._move(self._run.resume)

    def do_quit(self, _: str) -> bool:
        """q(uit), exit, end of input: leave the program."""
        sys.exit(0)

    # ---- where to stop

    def do_break(self, argument: str) -> None:
        """b(reak) [line | file:line | instruction | opcode]: stop there; alone: list all breakpoints."""
        if not argument.strip():
            for each in self._run.breakpoints:
                self._say(f"{each.number}  {escape(each.stop.text)}")
            return
        made = self._run.stop_at(argument.strip())
        self._say(f"breakpoint {made.number}: {escape(made.stop.text)}")

    def do_stop(self, argument: str) -> None:
        """stop nan | inf | outside LOW HIGH, each with [of NAME], | when EXPRESSION: stop where a value is so."""
        try:
            made = add_stop(self._run, argument)
        except (ValueError, SyntaxError) as error:
            self._say(f"*** {error}")
            return
        for each in made:
            self._say(f"breakpoint {each.number}: {escape(each.stop.text)}")

    def do_clear(self, argument: str) -> None:
        """cl(ear) [number]: forget a breakpoint, or all."""
        try:
            self._run.clear(int(argument) if argument.strip() else None)
        except (ValueError, KeyError) as error:
            self._say(f"*** {error.args[0]}")

    # ---- looking

    def do_p(self, argument: str) -> None:
        """p expression: print its value; `%name` is an instruction's, `_` the last one."""
        self._print(argument, repr)

    def do_pp(self, argument: str) -> None:
        """pp expression: print its value on several lines."""
        self._print(argument, pprint.pformat)

    def do_whatis(self, argument: str) -> None:
        """whatis expression: print the type of its value, and its range."""
        self._print(argument, _summary)

    def do_locals(self, _: str) -> None:
        """locals: print the values that have a name of yours."""
        for name, value in self._run.names().items():
            self._say(f"{name} = {_summary(value)}")

    def do_values(self, _: str) -> None:
        """v(alues): print all instructions of this computation that have run."""
        for i, value in self._run.frame.values.items():
            mine = name_of(i)
            self._say(f"%{escape(i.name)}{f' ({mine})' if mine else ''}: {_summary(value)}")

    def do_operands(self, _: str) -> None:
        """o(perands): print what the last instruction was computed from."""
        i = self._run.instruction
        for operand in dict.fromkeys(i.operands if i is not None else ()):
            value = self._run.frame.values.get(operand)
            self._say(f"{_text(operand)}\n   {'not known' if value is None else _summary(value)}")

    def do_kernel(self, argument: str) -> None:
        """k(ernel) [name]: print the kernel of the compiled program that computes a value, or the last one."""
        try:
            found = self._run.kernel(argument.strip() or None)
        except NameError as error:
            self._say(f"*** {error}")
            return
        self._say(escape(found) or "no kernel under this name: a constant, or a part of another instruction")

    def do_up(self, _: str) -> None:
        """u(p): look at the computation that called this one."""
        self._select(1)

    def do_down(self, _: str) -> None:
        """d(own): look at the computation that this one called."""
        self._select(-1)

    def _select(self, by: int) -> None:
        if not self._run.up(by):
            self._say("*** the outermost one" if by > 0 else "*** the innermost one")
        self._where_it_is()

    def do_where(self, _: str) -> None:
        """w(here), bt: print the computations that are being run, the innermost last."""
        for number, frame in enumerate(self._run.frames):
            below = self._run.frames[number + 1 :]
            i = below[0].caller if below else frame.current
            at = f", iteration {frame.iteration}" if frame.iteration is not None else ""
            place = line_of(i.metadata) if i is not None else ""
            self._say(f"  {frame.role} of {escape(_called(frame))}{at}: {escape(place) or 'no line of yours'}")

    def do_list(self, _: str) -> None:
        """l(ist): print the lines around this one."""
        i = self._run.instruction
        m = None if i is None else i.metadata
        lines = [] if m is None else linecache.getlines(m.source_file)
        if m is None or not lines:
            self._say("*** the source is not known")
            return
        for number in range(max(1, m.source_line - 5), min(len(lines), m.source_line + 5) + 1):
            self._say(f"{number:4d} {'->' if number == m.source_line else '  '} {visible(lines[number - 1].rstrip())}")

    do_s, do_n, do_si, do_ni, do_r = do_step, do_next, do_stepi, do_nexti, do_return
    do_unt, do_it, do_c, do_cont = do_until, do_iteration, do_continue, do_continue
    do_q = do_exit = do_EOF = do_quit
    do_b, do_cl, do_v, do_o, do_k = do_break, do_clear, do_values, do_operands, do_kernel
    do_u, do_d, do_w, do_bt, do_l = do_up, do_down, do_where, do_where, do_list

    def onecmd(self, line: str) -> bool:
        """Errors of the program end it, and are the caller's; those of a command are shown."""
        try:
            return bool(super().onecmd(line))
        except StepError as error:
            self._say(f"*** {error}")
            return False


def add_stop(run: Stepper, text: str) -> Sequence[Breakpoint]:
    """The stop that a text describes, as the command takes it. ValueError, SyntaxError for a text that is none."""
    kind, _, rest = text.strip().partition(" ")
    if kind == "when":
        return run.stop_where(when=rest)
    words, of = rest.split(), None
    if words[-2:-1] == ["of"]:
        words, of = words[:-2], words[-1]
    match kind, words:
        case "nan", []:
            return run.stop_where(nan=True, of=of)
        case "inf", []:
            return run.stop_where(inf=True, of=of)
        case "outside", [low, high]:
            return run.stop_where(outside=(float(low), float(high)), of=of)
    raise ValueError("stop nan | inf | outside LOW HIGH, each with [of NAME], | when EXPRESSION")


def _text(i: HloInstruction) -> str:
    return instruction_text(i, Names(()), _FEW)


def _called(frame: Frame) -> str:
    return frame.computation.name if frame.caller is None else frame.caller.name


def _summary(value: Any) -> str:
    """A value in a line: its type, and its elements, or their range."""
    if isinstance(value, tuple):
        return f"({', '.join([_summary(v) for v in value])})"
    if getattr(value, "aval", None) is not None and value.aval.is_extended:  # random keys are no numbers
        return f"{value.aval.str_short()} {value!r}"
    array = np.asarray(value)
    kind = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
    if array.size <= _FEW or array.dtype.kind not in "biufcV":
        return f"{kind} {np.array2string(array, separator=', ').replace(os.linesep, ' ')}"
    counted = []
    if array.dtype.kind in "fcV":
        for name, count in (("NaN", np.isnan(array).sum()), ("infinite", np.isinf(array).sum())):
            if count:
                counted.append(f"{count} {name}")
        array = array[np.isfinite(array)]
    if array.size and array.dtype.kind != "c":
        wide = array.astype(np.float64)
        counted.insert(0, f"min {wide.min():.6g}, max {wide.max():.6g}, mean {wide.mean():.6g}")
    return f"{kind} {', '.join(counted)}"

