"""Reading tokens, and transfers to and from the host: HLO has them in two halves, and their data as tuples."""

from __future__ import annotations

from collections.abc import Sequence

from ..builder import make_tuple
from ..instruction import NO_ATTRIBUTES, HloInstruction
from ..mlir.tree import Operation
from ..opcode import Opcode
from ..ops.asynchronous import CONTEXT, ChannelAttributes, InfeedAttributes, OutfeedAttributes
from ..shape import Shape
from .attribute_mappings import read_channel
from .attributes import read_boolean, read_string
from .scope import Rule, Scope
from .types import shape_of

Results = Sequence[HloInstruction]


def _after_all(scope: Scope, operation: Operation) -> Results:
    return [scope.op(Opcode.AFTER_ALL, scope.operands(operation))]


def _data(operation: Operation) -> list[Shape]:
    """The shapes of the results before the token."""
    return [shape_of(value.type) for value in operation.results[:-1]]


def _infeed(scope: Scope, operation: Operation) -> Results:
    """The data are a tuple, also if it has one element."""
    shape = Shape.tuple([Shape.tuple(_data(operation)), Shape.token()])
    attributes = InfeedAttributes(read_string(operation.attributes.get("infeed_config", "")))
    fed = scope.main(Opcode.INFEED, scope.operands(operation), attributes, shape)
    data = scope.element(fed, 0)
    return [*(scope.element(data, k) for k in range(len(operation.results) - 1)), scope.element(fed, 1)]


def _outfeed(scope: Scope, operation: Operation) -> Results:
    *values, token = scope.operands(operation)
    packed = scope.packed(values)
    config = read_string(operation.attributes.get("outfeed_config", ""))
    attributes = OutfeedAttributes(packed.shape, config)
    return [scope.main(Opcode.OUTFEED, (packed, token), attributes, None)]


def _channel(operation: Operation) -> ChannelAttributes:
    number = read_channel(operation.attributes.get("channel_handle"))
    return ChannelAttributes(number, read_boolean(operation.attributes.get("is_host_transfer", False)))


def _send(scope: Scope, operation: Operation) -> Results:
    *values, token = scope.operands(operation)
    packed = values[0] if len(values) == 1 else scope.add(make_tuple(values))
    attributes = _channel(operation)
    sent = scope.main(Opcode.SEND, (packed, token), attributes, None)
    return [scope.op(Opcode.SEND_DONE, (sent,), attributes)]


def _recv(scope: Scope, operation: Operation) -> Results:
    data = _data(operation)
    packed = data[0] if len(data) == 1 else Shape.tuple(data)
    attributes = _channel(operation)
    begun = scope.main(
        Opcode.RECV, scope.operands(operation), attributes, Shape.tuple([packed, CONTEXT, Shape.token()])
    )  # fmt: skip
    done = scope.op(Opcode.RECV_DONE, (begun,), attributes)
    received = scope.element(done, 0)
    return [*scope.unpacked(received, len(data)), scope.element(done, 1)]


def _create_token(scope: Scope, operation: Operation) -> Results:
    return [scope.op(Opcode.AFTER_ALL, (), NO_ATTRIBUTES)]


RULES: dict[str, Rule] = {
    "stablehlo.after_all": _after_all,
    "stablehlo.create_token": _create_token,
    "stablehlo.infeed": _infeed,
    "stablehlo.outfeed": _outfeed,
    "stablehlo.send": _send,
    "stablehlo.recv": _recv,
}
