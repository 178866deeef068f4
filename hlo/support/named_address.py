"""Addresses in this process with a name, so that another process can find its own address."""

from __future__ import annotations


class NamedAddress(int):
    """The address of a function of a library or of a block of the runtime. It is an int like any other; `kind` says
    which process can find it, and `name` is the name to look up. Arithmetic on it gives a plain int, which has no
    name."""

    kind: str
    name: str

    def __new__(cls, address: int, kind: str, name: str) -> NamedAddress:
        self = super().__new__(cls, address)
        self.kind, self.name = kind, name
        return self
