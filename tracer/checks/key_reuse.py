"""Random keys that are used twice: the check of `debug_key_reuse`. Imported when that is on for the first time.

`uses_of` derives which keys a computation uses from its instructions: calls with declared uses (`key_uses.py`) are the
source, and uses are followed through calls, loops and branches; a key that it uses twice is a KeyReuseError. Every
jitted function is checked when it is traced. Outside of jit, concrete keys record their consumption: by operations and
loops (`KeyLayer`), and by calls of jitted functions (`watched`). The words that store the keys have the record.

Names and semantics follow jax.experimental.key_reuse.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...hlo.evaluator import evaluate_op
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.metadata import line_of
from ...hlo.opcode import Opcode
from ...hlo.shape import Shape
from ..arrays.array import Array
from ..arrays.overlay import storage_of, storages
from ..control_flow.scan import SCAN, Scan
from ..core import Call, Value, array_of, call_of, taken_branch
from ..errors import KeyReuseError
from ..layers import Layer
from ..settings.context import current_context
from ..source import user_line
from ..traced import JIT, Traced
from ..trees import tree
from .key_uses import ALL, NONE, Forward, Mask, Sink, Uses, masked

_SAME = frozenset({
    *(Opcode.BITCAST, Opcode.BROADCAST, Opcode.CONVERT, Opcode.COPY, Opcode.OPT_BARRIER, Opcode.RESHAPE),
    *(Opcode.REVERSE, Opcode.TRANSPOSE),
})  # fmt: skip
"""Ops with a result that holds all elements of the operand: keys remain the keys that they were."""


# ---- the keys of a computation


class _Origin:
    """Words that a computation takes or makes, some of which may be consumed keys."""

    __slots__ = ("consumed", "is_paid", "line", "number", "parent", "shape")

    def __init__(
        self, shape: Shape, number: int | None = None, consumed: Mask = NONE, parent: _View | None = None
    ) -> None:
        self.shape = shape
        self.number = number
        """The parameter that it is."""
        self.consumed = consumed
        self.line = ""
        self.parent = parent
        """The origin that it is a part of, at computed places: the first use of a part consumes the whole of it."""
        self.is_paid = parent is None


class _View:
    """Words of an origin at other places: the instructions that moved them."""

    __slots__ = ("origin", "path")

    def __init__(self, origin: _Origin, path: tuple[Any, ...] = ()) -> None:
        self.origin = origin
        self.path = path
        """Functions of an array of places, which moved them one after the other."""

    def moved(self, instruction: HloInstruction) -> _View:
        return self.at(partial(_moved_places, instruction))

    def at(self, places: Callable[[np.ndarray[Any, Any]], Any]) -> _View:
        """The words that are where `places` moves them."""
        if len(self.path) > _LONG:
            known = self._places()
            return _View(self.origin, (lambda _: known, places))
        return _View(self.origin, (*self.path, places))

    def part(self, shape: Shape) -> _View:
        """An array of some of the words, at unknown places."""
        return _View(_Origin(shape, parent=self if self.origin.parent is None else self.origin.parent))

    def _places(self) -> np.ndarray[Any, Any]:
        """For each word the place where it is in the origin."""
        sizes = self.origin.shape.dimensions
        found = np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes)
        for move in self.path:
            found = np.asarray(move(found))
        return found

    def consumed(self) -> Mask:
        origin = self.origin
        mask = origin.consumed
        if not origin.is_paid:
            assert origin.parent is not None
            before = origin.parent.consumed()
            if before.all():
                return before
        return masked(mask.reshape(-1)[self._places()]) if mask.ndim and self.path else mask

    def sink(self, sink: Sink, line: str) -> str | None:
        """Use up words; where they were used up before, if they were."""
        origin, mask = self.origin, sink.mask
        if not mask.any():
            return None
        if mask.ndim and self.path:
            whole = np.zeros(origin.shape.dimensions, np.bool_)
            whole.reshape(-1)[self._places()[mask]] = True
            mask = whole
        if not origin.is_paid:
            assert origin.parent is not None
            before = origin.parent.sink(Sink(), line)
            if before is not None:
                return before
            origin.is_paid = True
        if np.logical_and(origin.consumed, mask).any():
            return origin.line
        origin.consumed, origin.line = masked(np.logical_or(origin.consumed, mask)), line
        return None

    def forward(self) -> Forward | None:
        """From which parameter it comes."""
        if self.origin.parent is not None:
            found = self.origin.parent.forward()
            return None if found is None else Forward(found.operand, is_whole=False)
        return None if self.origin.number is None else Forward(self.origin.number, not self.path)


_LONG = 16


def _moved_places(i: HloInstruction, places: np.ndarray[Any, Any]) -> Any:
    return places if i.opcode is Opcode.CONVERT else evaluate_op(i.opcode, [places], i.attributes, i.shape)


_found: weakref.WeakKeyDictionary[HloComputation, Uses] = weakref.WeakKeyDictionary()


def uses_of(computation: HloComputation) -> Uses:
    """Which keys a computation uses of its parameters, or of the elements of its one tuple; KeyReuseError if it uses a
    key twice."""
    found = _found.get(computation)
    if found is None:
        found = _found[computation] = _derived(computation)
    return found


def _derived(computation: HloComputation) -> Uses:
    parameters = computation.parameters
    takes_tuple = len(parameters) == 1 and parameters[0].shape.is_tuple
    shapes = list(parameters[0].shape.elements) if takes_tuple else [p.shape for p in parameters]
    inputs = [_View(_Origin(s, k)) for k, s in enumerate(shapes)]
    env: dict[HloInstruction, Any] = {}
    for i in computation.instructions:
        if i.opcode is Opcode.PARAMETER:
            env[i] = inputs if takes_tuple else inputs[i.attributes.number]
        else:
            env[i] = _step(i, [env[o] for o in i.operands])
    root = env[computation.root]
    results: list[_View] = root if isinstance(root, list) else [root]
    forwards, consumed = {}, {}
    for n, view in enumerate(results):
        forward = view.forward()
        if forward is not None:
            forwards[n] = forward
        elif view.consumed().any():
            consumed[n] = view.consumed()
    sinks = {v.origin.number: Sink(v.origin.consumed, v.origin.line) for v in inputs if v.origin.consumed.any()}
    return Uses(sinks, forwards, consumed)  # type: ignore[arg-type]  # parameters have numbers


def _step(i: HloInstruction, operands: list[Any]) -> Any:
    """The result of an instruction on the values of its operands."""
    match i.opcode:
        case Opcode.TUPLE:
            return operands
        case Opcode.GET_TUPLE_ELEMENT:
            return operands[0][i.attributes.index]
        case Opcode.CALL:
            call = call_of(i.attributes)
            return _applied(i, call.primitive.name or "call", _uses_of_call(call), operands)
        case Opcode.WHILE:
            return _applied(i, "while", _uses_of_while(i.attributes, line_of(i.metadata)), operands[0])
        case Opcode.CONDITIONAL:
            return _branched(i, [uses_of(b) for b in i.attributes.branch_computations], operands[1])
    if i.opcode in _SAME:
        return [v.moved(i) for v in operands[0]] if isinstance(operands[0], list) else operands[0].moved(i)
    return [_View(_Origin(s)) for s in i.shape.elements] if i.shape.is_tuple else _View(_Origin(i.shape))


def _applied(i: HloInstruction, name: str, uses: Uses, operands: list[Any]) -> Any:
    views = operands[0] if len(operands) == 1 and isinstance(operands[0], list) else operands
    for k, sink in sorted(uses.sinks.items()):
        line = line_of(i.metadata) or sink.line
        before = views[k].sink(sink, line)
        if before is not None:
            raise _reused(f"In {name}, argument {k} is already consumed.", line, before)
    shapes = i.shape.elements if i.shape.is_tuple else [i.shape]
    results = []
    for n, shape in enumerate(shapes):
        forward = uses.forwards.get(n)
        if forward is None:
            results.append(_View(_Origin(shape, consumed=uses.consumed.get(n, NONE))))
        else:
            view = views[forward.operand]
            results.append(view if forward.is_whole else view.part(shape))
    return results if i.shape.is_tuple else results[0]


def _branched(i: HloInstruction, branches: Sequence[Uses], operands: list[Any]) -> Any:
    """One of several computations runs: a key may be used in each of them."""
    origins = list(dict.fromkeys([o for v in operands for o in _with_parents(v.origin)]))
    before = [(o.consumed, o.line, o.is_paid) for o in origins]
    after = list(before)
    for uses in branches:
        for o, state in zip(origins, before, strict=True):
            o.consumed, o.line, o.is_paid = state
        _applied(i, "cond", uses, operands)
        for k, o in enumerate(origins):
            if o.consumed is not before[k][0] or o.is_paid is not before[k][2]:
                consumed = masked(np.logical_or(after[k][0], o.consumed))
                after[k] = consumed, o.line, o.is_paid or after[k][2]
    for o, state in zip(origins, after, strict=True):
        o.consumed, o.line, o.is_paid = state
    union = _union(branches)
    return _applied(i, "cond", Uses({}, union.forwards, union.consumed), operands)


def _with_parents(origin: _Origin) -> list[_Origin]:
    return [origin] if origin.parent is None else [origin, *_with_parents(origin.parent.origin)]


def _reused(message: str, line: str, before: str) -> KeyReuseError:
    where = f"\n  at {line or '<unknown>'}\n  The key was first used at {before or '<unknown>'}."
    return KeyReuseError(f"{message}{where}\n  Make new keys with hloom.random.split, one for each use.")


# ---- calls, loops and branches


def _uses_of_call(call: Call) -> Uses:
    rule = call.primitive.key_uses
    found: Uses | None = None if rule is None else rule(call)
    return uses_of(call.computation) if found is None else found


def _union(branches: Sequence[Uses]) -> Uses:
    """The uses of several computations, one of which runs."""
    sinks: dict[int, Sink] = {}
    consumed: dict[int, Mask] = {}
    for uses in branches:
        for k, sink in uses.sinks.items():
            mask = np.logical_or(sinks[k].mask, sink.mask) if k in sinks else sink.mask
            sinks[k] = Sink(masked(mask), sink.line)
        for n, mask in uses.consumed.items():
            consumed[n] = masked(np.logical_or(consumed.get(n, NONE), mask))
    first, *others = branches
    forwards = {n: f for n, f in first.forwards.items() if all(o.forwards.get(n) == f for o in others)}
    return Uses(sinks, forwards, {n: m for n, m in consumed.items() if n not in forwards})


def _repeated(uses: Uses, count: int) -> tuple[set[int], set[int], int | None]:
    """For a body that is repeated on its own first `count` results: the operands that some iteration uses, the results
    that are consumed in the end, and one that an iteration uses although an earlier one did."""
    own = {k for k in uses.sinks if k < count}
    moved = {(n, f.operand) for n, f in uses.forwards.items() if n < count and f.operand < count}
    used, consumed = set(own), {n for n in uses.consumed if n < count}
    while True:
        before = len(used), len(consumed)
        used |= {k for n, k in moved if n in used}
        consumed |= {n for n, k in moved if k in own | consumed}
        if before == (len(used), len(consumed)):
            return used, consumed, next(iter(sorted(own & consumed)), None)


def _uses_of_while(attributes: Any, line: str) -> Uses:
    test, body = uses_of(attributes.condition), uses_of(attributes.body)
    what = "leads to key reuse when repeatedly executed"
    count = len(attributes.body.root.shape.elements)
    again = next((k for k in sorted(test.sinks) if body.forwards.get(k) == Forward(k)), None)
    if again is not None:
        raise _reused(f"while_loop cond function {what}", line, test.sinks[again].line)
    both = next((k for k in sorted(test.sinks) if k in body.sinks), None)
    if both is not None:
        raise _reused("while_loop cond and body functions both use the same key", line, test.sinks[both].line)
    merged = Uses({**body.sinks, **test.sinks}, body.forwards, body.consumed)
    used, consumed, again = _repeated(merged, count)
    if again is not None:
        raise _reused(f"while_loop {'cond' if again in test.sinks else 'body'} function {what}", line, line)
    forwards = {n: f for n, f in body.forwards.items() if f == Forward(n)}
    ended = {n: ALL for n in consumed | set(test.sinks) if n not in forwards}
    return Uses({**{k: Sink(ALL, line) for k in used}, **merged.sinks}, forwards, ended)


@SCAN.def_key_uses
def _uses_of_scan(call: Call) -> Uses:
    rule: Scan = call.params
    body, consts, ends = uses_of(rule.body), rule.num_consts, rule.num_consts + rule.num_carry
    what = "scan body function leads to key reuse when repeatedly executed, because"
    if rule.length > 1:
        again = next((k for k in sorted(body.sinks) if k < consts), None)
        if again is not None:
            line = body.sinks[again].line
            raise _reused(f"{what} key constants are repeatedly consumed", line, line)
    carry, rows = range(rule.num_carry), {k for k in body.sinks if k >= ends}
    carried = Uses(
        {k - consts: s for k, s in body.sinks.items() if consts <= k < ends},
        {n: Forward(f.operand - consts) for n, f in body.forwards.items() if consts <= f.operand < ends},
        {**body.consumed, **{n: ALL for n, f in body.forwards.items() if f.operand in rows}},
    )
    used, consumed, again = _repeated(carried, rule.num_carry)
    if again is not None and rule.length > 1:
        line = carried.sinks[again].line
        raise _reused(f"{what} consumed inputs don't match sourced outputs", line, line)
    sinks = {consts + k: Sink() for k in used} if rule.length > 1 else {}
    sinks |= {k: s if k < ends else Sink(_of_rows(s.mask, rule.length), s.line) for k, s in body.sinks.items()}
    forwards = {}
    for n, f in body.forwards.items():
        if n in carry and f == Forward(consts + n):
            forwards[n] = f
        elif n not in carry and f.operand < len(rule.body.parameters) - 1:  # the last one is the index
            forwards[n] = Forward(f.operand, is_whole=False)
    ended = {*consumed, *(n for n in body.consumed if n not in carry)}
    return Uses(sinks, forwards, {n: ALL for n in ended if n not in forwards})


def _of_rows(mask: Mask, length: int) -> Mask:
    """The words of an array with `mask` in each row."""
    return masked(np.broadcast_to(mask, (length, *mask.shape))) if mask.ndim else mask


# ---- concrete keys


_views: dict[int, tuple[weakref.ref[Array], _View]] = {}
"""By identity of words of keys, the keys that they are."""


def _view(words: Array) -> _View:
    found = _views.get(id(words))
    if found is not None and found[0]() is words:
        return found[1]
    view = _View(_Origin(words.aval.hlo))
    _set_view(words, view)
    return view


def _set_view(words: Array, view: _View) -> None:
    name = id(words)
    _views[name] = weakref.ref(words, lambda _: _views.pop(name, None)), view


class _Running:
    """An operation on concrete keys: its keys are consumed before it runs, or not if it then fails."""

    def __init__(self, name: str, uses: Uses, operands: Sequence[Any]) -> None:
        self._uses = uses
        self._views = {k: _view(operands[k]) for k in {*uses.sinks, *(f.operand for f in uses.forwards.values())}}
        self._before = [
            (o, o.consumed, o.line, o.is_paid) for v in self._views.values() for o in _with_parents(v.origin)
        ]
        line = user_line()
        for k, sink in sorted(uses.sinks.items()):
            before = self._views[k].sink(sink, line)
            if before is not None:
                self.undo()
                raise _reused(f"Previously-consumed key passed to {name} at index {k}", line, before)

    def undo(self) -> None:
        for origin, consumed, line, is_paid in self._before:
            origin.consumed, origin.line, origin.is_paid = consumed, line, is_paid

    def __enter__(self) -> _Running:
        _depth.inside += 1  # its own operations are among its uses
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        _depth.inside -= 1
        if kind is not None:
            self.undo()

    def results(self, results: Sequence[Any], places: Callable[[np.ndarray[Any, Any]], Any] | None = None) -> None:
        """Say of results which keys they are. places(numbers of an operand's words) -> numbers of the result's
        words."""
        for n, result in enumerate(results):
            forward = self._uses.forwards.get(n)
            if forward is None:
                mask = self._uses.consumed.get(n)
                if mask is not None:
                    _set_view(result, _View(_Origin(result.aval.hlo, consumed=mask)))
            else:
                view = self._views[forward.operand]
                if not forward.is_whole and places is not None:
                    view = view.at(places)
                elif not forward.is_whole:
                    view = view.part(result.aval.hlo)
                _set_view(result, view)


def _watch(
    name: str, uses: Uses, operands: Sequence[Any], run: Callable[[], list[Any]],
    again: Callable[[list[Any]], list[Any]] | None = None,
) -> list[Any]:  # fmt: skip
    """The results of `run`, an operation with these uses. again(operands): its results on other operands."""
    running = _Running(name, uses, operands)
    with running:
        results = run()
        for n, result in enumerate(results):
            if n not in uses.forwards and any(result is o for o in operands):  # the same words are another key now
                results[n] = result.with_aval(result.aval)

        def places(numbers: np.ndarray[Any, Any]) -> Any:
            assert again is not None
            given = Array(operands[0].aval, numbers.astype(operands[0].aval.dtype))
            return again([given, *operands[1:]])[0]._view

        running.results(results, places if again is not None else None)
    return results


class _Depth(threading.local):
    inside = 0


_depth = _Depth()


def _is_on() -> bool:
    return not _depth.inside and current_context().debug_key_reuse


class KeyLayer(Layer):
    """Marks keys, for `debug_key_reuse`."""

    def process(self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape) -> Any:
        run: Callable[[], Any] = partial(self.below.process, opcode, operands, attributes, shape)
        if not _is_on():
            return run()
        arrays = [array_of(o) for o in operands]
        if opcode is Opcode.WHILE:
            return _watch("while", _uses_of_while(attributes, user_line()), arrays, run)
        if opcode is Opcode.CONDITIONAL:
            branches = attributes.branch_computations
            return _watch("cond", uses_of(branches[taken_branch(arrays[0], len(branches))]), arrays[1:], run)
        result = run()
        is_moved = opcode in _SAME and isinstance(result, Array) and result is not arrays[0]
        if is_moved and arrays[0].aval.dtype == _WORDS:
            _set_view(result, _view(arrays[0]).moved(HloInstruction(opcode, shape, (), attributes)))
        return result

    def process_call(self, call: Call, operands: tuple[Value, ...]) -> Any:
        run: Callable[[], list[Any]] = partial(self.below.process_call, call, operands)
        if not _is_on():
            return run()
        rule = call.primitive.key_uses
        if not isinstance(call.meaning, HloComputation) and (rule is None or rule(call) is None):
            return run()  # a function runs operation by operation
        name = _JITTED if call.primitive is JIT else call.primitive.name or "call"
        again = partial(self.below.process_call, call) if isinstance(call.params, Uses) else None
        return _watch(name, _uses_of_call(call), [array_of(o) for o in operands], run, again)


_JITTED = "jit-compiled function"
_WORDS = np.dtype(np.uint32)
"""The dtype of the words of keys."""


# ---- jitted functions


def check(traced: Traced) -> None:
    """KeyReuseError if a traced function uses a key twice."""
    uses_of(traced.computation)


def watched(run: Callable[[Sequence[Array]], Any], traced: Traced) -> Callable[[Sequence[Array]], Any]:
    """`run`, which runs the program of `traced`, with marks at keys among arguments and results."""
    uses = uses_of(traced.computation)
    if not (uses.sinks or uses.forwards or uses.consumed):
        return run

    def run_and_mark(arrays: Sequence[Array]) -> Any:
        if not _is_on():
            return run(arrays)
        running = _Running(_JITTED, uses, storages((*arrays, *traced.captured)))
        with running:
            result = run(arrays)
            running.results([storage_of(x) for x in tree.leaves(result) if isinstance(x, Array)])
        return result

    return run_and_mark
