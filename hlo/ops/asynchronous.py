"""Tokens, pairs of start and done, queues to and from the host.

Tokens hold no data: an instruction that takes one runs after the instruction that made it. Between a start and its
done other instructions may run. Source: XLA's ShapeVerifier (HandleAsyncStart, HandleCopyStart, HandleInfeed, ...).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..element_type import ElementType
from ..instruction import Attributes, HloComputation, HloInstruction
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from ..text.codecs import BOOLEAN, COMPUTATION, INTEGER, SHAPE, STRING
from .checks import fail, require_declared, require_signature
from .declare import Attr
from .spec import OpSpec, Trait


def _is_start(instruction: HloInstruction) -> bool:
    return instruction.opcode is Opcode.ASYNC_START


@dataclass(frozen=True, slots=True)
class AsyncAttributes(Attributes):
    """`calls` runs in between start and done; only the start names it."""

    calls: Annotated[HloComputation | None, Attr(COMPUTATION, after="async_execution_thread")] = None
    async_execution_thread: Annotated[str, Attr(STRING, when=_is_start)] = "main"


@dataclass(frozen=True, slots=True)
class InfeedAttributes(Attributes):
    """Operand: a token. Result: (the value that was fed in, token)."""

    infeed_config: Annotated[str, Attr(STRING)] = ""


@dataclass(frozen=True, slots=True)
class OutfeedAttributes(Attributes):
    """Operands: the value to feed out, a token. Result: a token."""

    outfeed_shape: Annotated[Shape | None, Attr(SHAPE)] = None
    outfeed_config: Annotated[str, Attr(STRING)] = ""


@dataclass(frozen=True, slots=True)
class ChannelAttributes(Attributes):
    """The attributes of send, recv and their -done halves."""

    channel_id: Annotated[int | None, Attr(INTEGER)] = None
    is_host_transfer: Annotated[bool, Attr(BOOLEAN)] = False


_FAMILY = "asynchronous"
_O = Opcode
CONTEXT = Shape.array(ElementType.U32)
"""The type of the value that identifies a transfer between its start and its done."""


def _add_dependency_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """The first operand. c1: the second is a token."""
    if not operands[1].is_token:
        fail(_O.ADD_DEPENDENCY, operands, "the second operand must be a token", 1)
    return operands[0]


def _after_all_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """A token. c1: the operands are tokens."""
    if not all(o.is_token for o in operands):
        fail(_O.AFTER_ALL, operands, "the operands must be tokens", 1)
    return Shape.token()


def _async_start_rule(operands: Sequence[Shape], attributes: AsyncAttributes, declared: Shape | None) -> Shape:
    """((operands...), result of `calls`, contexts...); the contexts are optional.

    c1: `calls` is given; c2: its parameters have the operands' types; c3: a declared type begins with the tuple of the
    operands and the result.
    """
    opcode = _O.ASYNC_START
    if attributes.calls is None:
        fail(opcode, operands, "`calls` must name the computation that runs", 1)
    require_signature(opcode, operands, attributes.calls, operands, 2)
    found = Shape.tuple([Shape.tuple(operands), attributes.calls.root.shape])
    if declared is None:
        return found
    if declared.is_array or not Shape.tuple(declared.elements[:2]).compatible(found):
        fail(opcode, operands, f"the result must begin with {', '.join(map(str, found.elements))}, not {declared}", 3)
    return declared


def _started(opcode: Opcode, operand: Shape, rule: int) -> tuple[Shape, ...]:
    elements = operand.tuple_shapes
    if elements is None or len(elements) < 2 or elements[0].is_array:
        fail(opcode, [operand], "the operand must be ((operands), result, ...)", rule)
    return elements


def _async_update_rule(operands: Sequence[Shape], attributes: AsyncAttributes, declared: Shape | None) -> Shape:
    """The operand. c1: it is the result of async-start."""
    _started(_O.ASYNC_UPDATE, operands[0], 1)
    return operands[0]


def _async_done_rule(operands: Sequence[Shape], attributes: AsyncAttributes, declared: Shape | None) -> Shape:
    """Element 1 of the operand. c1: the operand is the result of async-start."""
    return _started(_O.ASYNC_DONE, operands[0], 1)[1]


def _copy_start_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """(copy, operand, u32[]). c1: the operand is an array."""
    if operands[0].is_tuple:
        fail(_O.COPY_START, operands, "the operand must be an array", 1)
    return Shape.tuple([operands[0], operands[0], CONTEXT])


def _copy_done_rule(operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """Element 0 of the operand. c1: the operand is the result of copy-start."""
    elements = operands[0].tuple_shapes
    fits = elements is not None and len(elements) == 3 and elements[0].compatible(elements[1])
    if elements is None or not fits or not elements[2].compatible(CONTEXT):
        fail(_O.COPY_DONE, operands, "the operand must be (copy, operand, u32[])", 1)
    return elements[0]


def _infeed_rule(operands: Sequence[Shape], attributes: InfeedAttributes, declared: Shape | None) -> Shape:
    """c1: the operand is a token; c2: the declared result is (data, token)."""
    if not operands[0].is_token:
        fail(_O.INFEED, operands, "the operand must be a token", 1)
    result = require_declared(_O.INFEED, operands, declared, 2)
    if result.is_array or len(result.elements) != 2 or not result.elements[1].is_token:
        fail(_O.INFEED, operands, f"the result must be a tuple of data and a token, not {result}", 2)
    return result


def _outfeed_rule(operands: Sequence[Shape], attributes: OutfeedAttributes, declared: Shape | None) -> Shape:
    """A token. c1: the second operand is a token; c2: `outfeed_shape`, if given, is the first operand's type."""
    if not operands[1].is_token:
        fail(_O.OUTFEED, operands, "the second operand must be a token", 1)
    given = attributes.outfeed_shape
    if given is not None and not given.compatible(operands[0]):
        fail(_O.OUTFEED, operands, f"outfeed_shape is {given}", 2)
    return Shape.token()


def _send_rule(operands: Sequence[Shape], attributes: ChannelAttributes, declared: Shape | None) -> Shape:
    """(data, u32[], token). c1: the second operand is a token."""
    if not operands[1].is_token:
        fail(_O.SEND, operands, "the second operand must be a token", 1)
    return Shape.tuple([operands[0], CONTEXT, Shape.token()])


def _transfer(opcode: Opcode, shapes: Sequence[Shape], found: Shape, rule: int) -> tuple[Shape, ...]:
    """The elements of (data, u32[], token)."""
    elements = found.tuple_shapes
    if elements is None or len(elements) != 3 or not elements[1].compatible(CONTEXT) or not elements[2].is_token:
        fail(opcode, shapes, f"{found} must be (data, u32[], token[])", rule)
    return elements


def _send_done_rule(operands: Sequence[Shape], attributes: ChannelAttributes, declared: Shape | None) -> Shape:
    """A token. c1: the operand is the result of send."""
    _transfer(_O.SEND_DONE, operands, operands[0], 1)
    return Shape.token()


def _recv_rule(operands: Sequence[Shape], attributes: ChannelAttributes, declared: Shape | None) -> Shape:
    """c1: the operand is a token; c2: the declared result is (data, u32[], token)."""
    if not operands[0].is_token:
        fail(_O.RECV, operands, "the operand must be a token", 1)
    result = require_declared(_O.RECV, operands, declared, 2)
    _transfer(_O.RECV, operands, result, 2)
    return result


def _recv_done_rule(operands: Sequence[Shape], attributes: ChannelAttributes, declared: Shape | None) -> Shape:
    """(data, token). c1: the operand is the result of recv."""
    data, _, token = _transfer(_O.RECV_DONE, operands, operands[0], 1)
    return Shape.tuple([data, token])


SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.ADD_DEPENDENCY, _FAMILY, 2, Attributes, _add_dependency_rule),
    OpSpec(_O.AFTER_ALL, _FAMILY, None, Attributes, _after_all_rule),
    OpSpec(_O.ASYNC_START, _FAMILY, None, AsyncAttributes, _async_start_rule, Trait.CONTROL_FLOW),
    OpSpec(_O.ASYNC_UPDATE, _FAMILY, 1, AsyncAttributes, _async_update_rule, Trait.STRUCTURE),
    OpSpec(_O.ASYNC_DONE, _FAMILY, 1, AsyncAttributes, _async_done_rule, Trait.STRUCTURE),
    OpSpec(_O.COPY_START, _FAMILY, 1, Attributes, _copy_start_rule),
    OpSpec(_O.COPY_DONE, _FAMILY, 1, Attributes, _copy_done_rule),
    OpSpec(_O.INFEED, _FAMILY, 1, InfeedAttributes, _infeed_rule, Trait.SIDE_EFFECT),
    OpSpec(_O.OUTFEED, _FAMILY, 2, OutfeedAttributes, _outfeed_rule, Trait.SIDE_EFFECT),
    OpSpec(_O.SEND, _FAMILY, 2, ChannelAttributes, _send_rule, Trait.SIDE_EFFECT),
    OpSpec(_O.SEND_DONE, _FAMILY, 1, ChannelAttributes, _send_done_rule, Trait.SIDE_EFFECT),
    OpSpec(_O.RECV, _FAMILY, 1, ChannelAttributes, _recv_rule, Trait.SIDE_EFFECT),
    OpSpec(_O.RECV_DONE, _FAMILY, 1, ChannelAttributes, _recv_done_rule, Trait.SIDE_EFFECT),
)
