"""RuleTable: at most one rule for each opcode. It refuses a second one, and reports a missing one.

Each layer that must handle every op has such a table: the evaluator, the element rules of `numba_backend/emit/`,
derivatives and their transposes. Text and layout rules follow from the declarations of the ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from .errors import UnsupportedError
from .opcode import Opcode

R = TypeVar("R", bound=Callable[..., object])


class RuleTable(Generic[R]):
    """Rules of one layer (`what`) by opcode. `unsupported` records that an op has no rule on purpose, and why."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._rules: dict[Opcode, R] = {}
        self._unsupported: dict[Opcode, str] = {}

    def register(self, *opcodes: Opcode) -> Callable[[R], R]:
        """Decorator: the function is the rule of `opcodes`."""

        def decorate(rule: R) -> R:
            for opcode in opcodes:
                self[opcode] = rule
            return rule

        return decorate

    def __setitem__(self, opcode: Opcode, rule: R) -> None:
        assert opcode not in self._rules and opcode not in self._unsupported, f"two {self.what} rules for {opcode}"
        self._rules[opcode] = rule

    def unsupported(self, opcodes: Iterable[Opcode], why: str) -> None:
        """Record that `opcodes` have no rule in this table, and why."""
        for opcode in opcodes:
            assert opcode not in self._rules and opcode not in self._unsupported, f"two {self.what} rules for {opcode}"
            self._unsupported[opcode] = why

    def __getitem__(self, opcode: Opcode) -> R:
        """The rule; UnsupportedError if there is none."""
        try:
            return self._rules[opcode]
        except KeyError:
            why = self._unsupported.get(opcode, "no rule is registered")
            raise UnsupportedError(f"{self.what} of HLO op {opcode.value} is not supported: {why}") from None

    def __contains__(self, opcode: Opcode) -> bool:
        return opcode in self._rules

    def reason(self, opcode: Opcode) -> str | None:
        """Why `opcode` is unsupported, or None."""
        return self._unsupported.get(opcode)

    def missing(self) -> list[Opcode]:
        """Opcodes with neither a rule nor a recorded reason."""
        return [o for o in Opcode if o not in self._rules and o not in self._unsupported]
