"""Types of the states of handlers: a name, a number, and the function that destroys an object of the type.

Handlers state the number when they store or ask for an object. Native code finds a type by its number in a list of
nodes [next node, number, address of the deleter], which only grows.
"""

from __future__ import annotations

from array import array

from ..support.forking import Order, fork_lock
from .memory import Memory

_memory = Memory()
_lock = fork_lock(Order.LEAF)
_by_name: dict[str, tuple[int, int]] = {}
_head = array("q", [0])
_last = 0


def types_address() -> int:
    """The address of the word with the address of the first node."""
    return _head.buffer_info()[0]


def register_type(name: str, number: int, deleter: int) -> int:
    """The number of a type. `number`: one that it has already, or 0. `deleter`: the address of a function
    `void(void*)`, 0 if nothing has to be done. ValueError if the name has another number or deleter, or the number
    another name."""
    global _last
    with _lock:
        known = _by_name.get(name)
        if known is not None and known[0] == number and known[1] == deleter:
            return number
        if known is not None:
            raise ValueError(f"the type {name!r} is registered already, with number {known[0]}")
        if number == 0:
            number = _last + 1
            while any(number == other for other, _ in _by_name.values()):
                number += 1
            _last = number
        elif any(number == other for other, _ in _by_name.values()):
            raise ValueError(f"the type {name!r} cannot have number {number}: another type has it")
        node = _memory.words([_head[0], number, deleter])
        _head[0] = node
        _by_name[name] = (number, deleter)
        return number

