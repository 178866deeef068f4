"""Codecs of attributes of calls and collectives: groups of devices, aliases of a custom call's result.

Source: XLA's HloParserImpl (ParseCollectiveDeviceList, ParseInstructionOutputOperandAliasing).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..aliases import OutputOperandAlias
from ..replica_groups import ReplicaGroups
from .codec import plain
from .codecs import integers_text, read_integer_lists, read_integers
from .scanner import Scanner

MAX_DEVICES = 1 << 20
"""The most devices of replica groups: it limits the memory that a short text can need."""


def _read_replica_groups(scanner: Scanner) -> ReplicaGroups:
    """`{{0,1},{2,3}}`, or `[2,2]<=[2,2]T(1,0)`: iota over the last dimensions, transposed, cut into the first ones."""
    start = scanner.skip()
    if scanner.peek("{"):
        groups = read_integer_lists(scanner)
        return ReplicaGroups(groups, scanner.text[start : scanner.position])
    target = _read_bracketed(scanner)
    scanner.expect("<", "in [groups,size]<=[dimensions]")
    scanner.expect("=", "in [groups,size]<=[dimensions]")
    source = _read_bracketed(scanner)
    order = tuple(range(len(source)))
    if scanner.accept_word("T"):
        scanner.expect("(")
        order = (scanner.integer("a dimension"),)
        while scanner.accept(","):
            order += (scanner.integer("a dimension"),)
        scanner.expect(")")
    count = math.prod(source)
    fits = len(target) == 2 and math.prod(target) == count and 0 <= count <= MAX_DEVICES
    if not fits or sorted(order) != list(range(len(source))) or min((*target, *source)) < 0:
        raise scanner.error("these replica groups do not fit together", start)
    devices = [0]
    strides = [math.prod(source[d + 1 :]) for d in range(len(source))]
    for d in order:
        devices = [base + k * strides[d] for base in devices for k in range(source[d])]
    size = target[1]
    groups = tuple(tuple(devices[g * size : (g + 1) * size]) for g in range(target[0]))
    return ReplicaGroups(groups, scanner.text[start : scanner.position])


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
    while not scanner.peek("}"):
        if aliases:
            scanner.expect(",", "or '}' after an alias")
        output_index = read_integers(scanner)
        scanner.expect(":")
        scanner.expect("(")
        operand = scanner.integer("the number of an operand")
        scanner.expect(",")
        operand_index = read_integers(scanner)
        scanner.expect(")", "to close the alias")
        aliases.append(OutputOperandAlias(output_index, operand, operand_index))
    scanner.expect("}")
    return tuple(aliases)


def _aliases_text(aliases: Sequence[OutputOperandAlias]) -> str:
    parts = [f"{integers_text(a.output_index)}: ({a.operand}, {integers_text(a.operand_index)})" for a in aliases]
    return f"{{{', '.join(parts)}}}"


REPLICA_GROUPS = plain(_read_replica_groups, lambda groups: groups.text)
OUTPUT_OPERAND_ALIASES = plain(_read_aliases, _aliases_text)
