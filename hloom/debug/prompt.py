"""`debug.breakpoint`: a prompt at a point of a running program, with the values of the frames that traced it."""

from __future__ import annotations

import cmd
import inspect
import pprint
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import FrameType
from typing import IO, Any

from ..autodiff.stopping import stop_gradient
from ..hlo.support.forking import Order, fork_lock
from ..hlo.support.records import dataclass
from ..tracer.core import Trace, Tracer, current_trace
from ..tracer.source import is_users
from ..tracer.trees import tree
from .callbacks import call_debug, pure_callback

_lock = fork_lock(Order.USER)
"""One prompt at a time, for all threads; code that is typed into one may open another."""


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    stdin: IO[str] | None = None,
    stdout: IO[str] | None = None,
) -> Any:
    r"""Stop when the program comes to this point, and read commands. JAX's `debug.breakpoint`.

    The prompt knows the local variables of the frames that led here; traced ones have the values of this run. `help`
    lists the commands; anything that is no command is evaluated as an expression. `c` goes on, `q` leaves the program
    (SystemExit).

    backend: "cli" or None: there is one kind of prompt. num_frames: how many frames it knows, by default all.
    filter_frames: leave out the frames of this library. stdin, stdout: files to read from and write to, in place of the
    terminal. token: a tree of arrays, which is returned: the prompt opens when they are computed, if the result is
    used. ordered: accepted; effects have the order of the program.

    >>> import hloom
    >>> from hloom import debug, numpy as jnp
    >>> import io
    >>> f = hloom.jit(lambda x: debug.breakpoint(token=2 * x, stdin=io.StringIO("x + 1\nc\n")))
    >>> f(jnp.arange(3))
    Entering jdb:
    (jdb) Array([1, 2, 3], dtype=int32)
    (jdb) Array([0, 2, 4], dtype=int32)
    """
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint has the backend 'cli' only, not {backend!r}")
    if token is not None and ordered:
        raise ValueError("`ordered` and `token` are mutually exclusive arguments.")
    frames, values = _snapshot(sys._getframe(1), filter_frames, num_frames)

    def prompt(*found: Any) -> None:
        with _lock:
            _Prompt(_filled(frames, found), stdin, stdout).run()

    if token is None:
        call_debug("debug.breakpoint", prompt, tuple(values), {})
        return None

    def hand_on(token: Any, *found: Any) -> Any:
        prompt(*found)
        return token

    token, values = stop_gradient((token, values))
    return pure_callback(hand_on, token, token, *values, vmap_method="sequential")


# ---- frames


@dataclass(frozen=True, slots=True)
class _Frame:
    """A frame of the user's program when it was traced."""

    file: str
    function: str
    line: int
    source: tuple[str, ...]
    """The lines of the function; empty if they are not known."""
    first: int
    """The number of the first of them."""
    variables: dict[str, Any]
    """Local variables; traced values are `_Place`s until the program runs."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the value of a traced variable is found among the arguments of the callback."""

    number: int


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A traced value that belongs to another program, and has no value here."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _snapshot(frame: FrameType | None, filtered: bool, limit: int | None) -> tuple[list[_Frame], list[Tracer]]:
    """The frames, innermost first, and the traced values that they hold."""
    known = set(map(id, _enclosing(current_trace())))
    places: dict[int, _Place] = {}
    values: list[Tracer] = []

    def stand_in(leaf: Any) -> Any:
        if not isinstance(leaf, Tracer):
            return leaf
        if id(leaf._trace) not in known:
            return _Unknown(repr(leaf))
        place = places.get(id(leaf))
        if place is None:
            place = places[id(leaf)] = _Place(len(values))
            values.append(leaf)
        return place

    frames: list[_Frame] = []
    while frame is not None and (limit is None or len(frames) < limit):
        if not filtered or is_users(frame):
            variables = {name: _mapped(stand_in, value) for name, value in frame.f_locals.items()}
            source, first = _source(frame)
            code = frame.f_code
            frames.append(_Frame(code.co_filename, code.co_name, frame.f_lineno, source, first, variables))
        frame = frame.f_back
    return frames, values


def _enclosing(trace: Trace | None) -> Iterator[Trace]:
    while trace is not None:
        yield trace
        trace = trace.parent


def _mapped(function: Any, value: Any) -> Any:
    """The tree with its leaves replaced. A value that is no tree does not change."""
    try:
        leaves, treedef = tree.flatten(value)
    except Exception:  # a dictionary with keys that have no order, a container that fails to flatten: shown as it is
        return value
    if not any(isinstance(x, Tracer | _Place) for x in leaves):
        return value
    return tree.unflatten(treedef, [function(x) for x in leaves])


def _source(frame: FrameType) -> tuple[tuple[str, ...], int]:
    try:
        lines, first = inspect.getsourcelines(frame)
    except (OSError, TypeError):
        return (), 0
    return tuple([line.rstrip("\n") for line in lines]), max(first, 1)


def _filled(frames: Sequence[_Frame], found: Sequence[Any]) -> list[_Frame]:
    """The frames with the values of a run."""

    def value(leaf: Any) -> Any:
        return found[leaf.number] if isinstance(leaf, _Place) else leaf

    return [replace(f, variables={k: _mapped(value, v) for k, v in f.variables.items()}) for f in frames]


# ---- the prompt


class _Prompt(cmd.Cmd):
    """Reads and obeys commands."""

    prompt = "(jdb) "
    intro = "Entering jdb:"

    def __init__(self, frames: Sequence[_Frame], stdin: IO[str] | None, stdout: IO[str] | None) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self._frames = frames or [_Frame("<unknown>", "<unknown>", 0, (), 0, {})]
        self._at = 0

    def run(self) -> None:
        """Until the user continues. An interrupt ends the line, not the prompt."""
        while True:
            try:
                self.cmdloop()
                return
            except KeyboardInterrupt:
                self._say("--KeyboardInterrupt--")
                self.intro = ""

    def _say(self, text: str) -> None:
        self.stdout.write(text + "\n")

    def emptyline(self) -> bool:
        return False

    def default(self, line: str) -> None:
        """Anything else is an expression."""
        self._show(line, repr)

    def _show(self, expression: str, form: Any) -> None:
        try:
            frame = self._frames[self._at]
            self._say(form(eval(expression, {}, dict(frame.variables))))
        except Exception as error:
            self._say(f"*** {traceback.format_exception_only(error)[-1].strip()}")

    def do_p(self, argument: str) -> None:
        """p expression: print the value of an expression."""
        self._show(argument, repr)

    def do_pp(self, argument: str) -> None:
        """pp expression: print the value of an expression on several lines."""
        self._show(argument, pprint.pformat)

    def do_locals(self, _: str) -> None:
        """locals: print the local variables of the frame."""
        for name, value in self._frames[self._at].variables.items():
            self._say(f"{name} = {value!r}")

    def do_up(self, _: str) -> None:
        """u(p): go to the frame that called this one."""
        self._move(1, "At topmost frame.")

    def do_down(self, _: str) -> None:
        """d(own): go to the frame that this one called."""
        self._move(-1, "At bottommost frame.")

    def _move(self, by: int, end: str) -> None:
        if 0 <= self._at + by < len(self._frames):
            self._at += by
        else:
            self._say(end)
        self._context(2)

    def do_list(self, _: str) -> None:
        """l(ist): print the lines around this one."""
        self._context(5)

    def _context(self, around: int) -> None:
        frame = self._frames[self._at]
        self._say(f"> {frame.file}({frame.line})")
        for number, text in enumerate(frame.source, frame.first):
            if abs(number - frame.line) <= around:
                self._say(f"{'->' if number == frame.line else '  '}  {text}")

    def do_where(self, _: str) -> None:
        """w(here), bt: print the frames, the innermost last."""
        self._say("Traceback:")
        for frame in reversed(self._frames):
            self._say(f'  File "{frame.file}", line {frame.line}, in {frame.function}')
            index = frame.line - frame.first
            self._say(f"    {frame.source[index].strip() if 0 <= index < len(frame.source) else '<no source>'}")

    def do_continue(self, _: str) -> bool:
        """c(ont(inue)): go on with the program."""
        return True

    def do_quit(self, _: str) -> None:
        """q(uit), exit, end of input: leave the program."""
        sys.exit(0)

    do_u, do_d, do_l, do_w, do_bt = do_up, do_down, do_list, do_where, do_where
    do_c = do_cont = do_continue
    do_q = do_exit = do_EOF = do_quit
