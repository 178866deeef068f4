"""RuleTable: at most one rule for each opcode. It refuses a second one, and reports a missing one.

Each layer that must handle every op has such a table: the evaluator, the element rules of `numba_backend/emit/`,
derivatives and their transposes. Text and layout rules follow from the declarations of the ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from .errors import UnsupportedError
from .opcode import Opcode
from .ops import FAMILY

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


class RulesByFamily(RuleTable[R]):
    """A table whose rules are in one file for each family of `ops/`, of the same name. A file is imported when
    something is asked of an opcode of its family that is not in the table yet."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self._imports: dict[str, Callable[[], object]] = {}
        self._arriving: dict[Opcode, R] = {}
        """Rules that a file has registered. They join the others when all of it is there: another thread may ask for
        them before."""

    def come_from(self, imports: Mapping[str, Callable[[], object]]) -> None:
        """Have these functions import the files of the families."""
        self._imports.update(imports)

    def __setitem__(self, opcode: Opcode, rule: R) -> None:
        assert opcode not in self._arriving, f"two {self.what} rules for {opcode}"
        assert opcode not in self._rules and opcode not in self._unsupported, f"two {self.what} rules for {opcode}"
        self._arriving[opcode] = rule

    def _find(self, opcode: Opcode) -> None:
        if opcode in self._rules or opcode in self._unsupported:
            return
        family = FAMILY[opcode]
        self._imports[family]()
        for other, rule in list(self._arriving.items()):
            if FAMILY[other] == family:
                self._rules[other] = rule
                self._arriving.pop(other, None)

    def __getitem__(self, opcode: Opcode) -> R:
        rule = self._rules.get(opcode)
        if rule is not None:
            return rule
        self._find(opcode)
        return super().__getitem__(opcode)

    def __contains__(self, opcode: Opcode) -> bool:
        self._find(opcode)
        return super().__contains__(opcode)

    def reason(self, opcode: Opcode) -> str | None:
        self._find(opcode)
        return super().reason(opcode)

    def missing(self) -> list[Opcode]:
        for opcode in Opcode:
            self._find(opcode)
        return super().missing()
