"""Codecs of attributes of calls and collectives: groups of devices, aliases of a custom call's result.

Source: XLA's HloParserImpl (ParseCollectiveDeviceList, ParseInstructionOutputOperandAliasing).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ..aliases import OutputOperandAlias
from ..replica_groups import ReplicaGroups
from .codec import plain
from .codecs import integers_text, read_integer_lists, read_integers
from .scanner import Scanner

MAX_DEVICES = 1 << 20
"""The most devices of replica groups: it limits the memory that a short text can need."""


def _read_replica_groups(scanner: Scanner) -> ReplicaGroups:
    """`{{0,1},{2,3}}`; or `[2,2]<=[2,2]T(1,0)`: iota over the last dimensions, transposed, cut into the first ones; or
    axes of a mesh."""
    start = scanner.skip()
    if scanner.peek("{"):
        groups = read_integer_lists(scanner)
    elif scanner.accept_word("mesh"):
        groups = _read_groups_of_mesh(scanner, start)
    else:
        groups = _read_iota_groups(scanner, start)
    return ReplicaGroups(groups, scanner.text[start : scanner.position])


def _read_iota_groups(scanner: Scanner, start: int) -> tuple[tuple[int, ...], ...]:
    """`[2,2]<=[2,2]T(1,0)`"""
    target = _read_bracketed(scanner)
    scanner.expect("<", "in [groups,size]<=[dimensions]")
    scanner.expect("=", "in [groups,size]<=[dimensions]")
    source = _read_bracketed(scanner)
    order = _read_order(scanner, len(source))
    fits = len(target) == 2 and math.prod(target) == math.prod(source) and min((*target, *source)) >= 0
    devices = _iota(scanner, source, order, start) if fits else None
    if devices is None:
        raise scanner.error("these replica groups do not fit together", start)
    size = target[1]
    return tuple(tuple(devices[g * size : (g + 1) * size]) for g in range(target[0]))


def _read_order(scanner: Scanner, rank: int) -> tuple[int, ...]:
    """`T(1,0)`, or nothing: the order in which dimensions are gone through."""
    if not scanner.accept_word("T"):
        return tuple(range(rank))
    scanner.expect("(")
    order: tuple[int, ...] = (scanner.integer("a dimension"),)
    while scanner.accept(","):
        order += (scanner.integer("a dimension"),)
    scanner.expect(")")
    return order


def _iota(scanner: Scanner, sizes: Sequence[int], order: Sequence[int], start: int) -> list[int]:
    """0, 1, ... with dimensions `sizes`, transposed, flat."""
    if not 0 <= math.prod(sizes) <= MAX_DEVICES or sorted(order) != list(range(len(sizes))):
        raise scanner.error("these replica groups do not fit together", start)
    devices = [0]
    strides = [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]
    for d in order:
        devices = [base + k * strides[d] for base in devices for k in range(sizes[d])]
    return devices


def _read_groups_of_mesh(scanner: Scanner, start: int) -> tuple[tuple[int, ...], ...]:
    """`mesh['x'=2,'y'=4], device_ids=([8]T(0)) {'x','y':(2)2}`, after its first word: groups along axes of a mesh.

    The devices are 0, 1, ..., a transposed iota, or a list. `'y':(2)2` is a part of the axis: y is cut into 2, 2 and
    the rest, and this is the second of them. A group has the devices that differ in the listed axes only; the first
    axis varies slowest.
    """
    axes: dict[str, int] = {}
    scanner.expect("[", "to open the axes of a mesh")
    while not scanner.accept("]"):
        if axes:
            scanner.expect(",", "or ']' after an axis")
        name = scanner.string("the name of an axis")
        scanner.expect("=", "after the name of an axis")
        size = scanner.integer("the size of an axis")
        if name in axes or size < 1:
            raise scanner.error(f"the axis {name!r} of a mesh needs a name of its own and a size from 1", start)
        axes[name] = size
    count = math.prod(axes.values())
    if count > MAX_DEVICES:
        raise scanner.error(f"a mesh has at most {MAX_DEVICES} devices", start)
    devices = _read_device_ids(scanner, count, start) if scanner.accept(",") else list(range(count))
    members, firsts = [0], list(range(count))
    for size, stride in _read_axes_of_groups(scanner, axes, start):
        members = [m + k * stride for m in members for k in range(size)]
        firsts = [first for first in firsts if first // stride % size == 0]
    if len(members) * len(firsts) != count:
        raise scanner.error("a part of an axis of these replica groups is listed twice", start)
    return tuple(tuple([devices[first + m] for m in members]) for first in firsts)


def _read_device_ids(scanner: Scanner, count: int, start: int) -> list[int]:
    """`device_ids=([4,2]T(1,0))`, or `device_ids=(3,2,1,0)`: the devices of a mesh, row-major."""
    if not scanner.accept_word("device_ids"):
        raise scanner.expected("device_ids")
    scanner.expect("=")
    scanner.expect("(", "to open the devices of a mesh")
    if scanner.peek("["):
        sizes = _read_bracketed(scanner)
        devices = _iota(scanner, sizes, _read_order(scanner, len(sizes)), start)
    else:
        devices = [scanner.integer("a device")]
        while scanner.accept(","):
            devices.append(scanner.integer("a device"))
    scanner.expect(")", "to close the devices of a mesh")
    if len(devices) != count:
        raise scanner.error(f"a mesh of {count} devices has {len(devices)} device_ids", start)
    return devices


def _read_axes_of_groups(scanner: Scanner, axes: Mapping[str, int], start: int) -> list[tuple[int, int]]:
    """`{'x','y':(2)2}`: the size of each axis, or part of one, and the distance of its devices in the mesh."""
    sizes = list(axes.values())
    strides = {name: math.prod(sizes[k + 1 :]) for k, name in enumerate(axes)}
    found: list[tuple[int, int]] = []
    scanner.expect("{", "to open the axes of the groups")
    for _ in scanner.each("}", "an axis"):
        name = scanner.string("the name of an axis")
        if name not in axes:
            raise scanner.error(f"the mesh has no axis {name!r}", start)
        before, size = 1, axes[name]
        if scanner.accept(":"):
            scanner.expect("(", "to open the size of what is before the part of an axis")
            before = scanner.integer("a size")
            scanner.expect(")")
            size = scanner.integer("a size")
        if before < 1 or size < 1 or axes[name] % (before * size):
            raise scanner.error(f"the axis {name!r} of size {axes[name]} has no part ({before}){size}", start)
        found.append((size, strides[name] * (axes[name] // (before * size))))
    return found


def _read_bracketed(scanner: Scanner) -> tuple[int, ...]:
    """`[2,4]`"""
    scanner.expect("[", "to open a list of sizes")
    values = [scanner.integer("a size")]
    while scanner.accept(","):
        values.append(scanner.integer("a size"))
    scanner.expect("]", "or ',' after a size")
    return tuple(values)


def _read_aliases(scanner: Scanner) -> tuple[OutputOperandAlias, ...]:
    """`{{0}: (1, {})}`: leaf 0 of the result is in the buffer of operand 1."""
    scanner.expect("{", "to open the aliases")
    aliases: list[OutputOperandAlias] = []
    for _ in scanner.each("}", "an alias"):
        output_index = read_integers(scanner)
        scanner.expect(":")
        scanner.expect("(")
        operand = scanner.integer("the number of an operand")
        scanner.expect(",")
        operand_index = read_integers(scanner)
        scanner.expect(")", "to close the alias")
        aliases.append(OutputOperandAlias(output_index, operand, operand_index))
    return tuple(aliases)


def _aliases_text(aliases: Sequence[OutputOperandAlias]) -> str:
    parts = [f"{integers_text(a.output_index)}: ({a.operand}, {integers_text(a.operand_index)})" for a in aliases]
    return f"{{{', '.join(parts)}}}"


REPLICA_GROUPS = plain(_read_replica_groups, lambda groups: groups.text)
OUTPUT_OPERAND_ALIASES = plain(_read_aliases, _aliases_text)
