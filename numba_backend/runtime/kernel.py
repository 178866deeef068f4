"""A kernel before it is compiled: its text, its parameters, its identity. Needs only the standard library.

A kernel's text is a Python function that Numba compiles (see `KernelSource`). Its identity is a hash of everything that
decides its machine code, so equal texts share one compilation, in memory and on disk, across programs and processes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...hlo.support.records import dataclass
from ...hlo.support.sha256 import sha256

if TYPE_CHECKING:
    from ..loops.statements import LoopProgram

ELEMENT_BYTES = {
    "pred": 1, "s8": 1, "s16": 2, "s32": 4, "s64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "c64": 8, "c128": 16,
}  # fmt: skip

ParameterKind = Literal["pointer", "size", "scalar"]


class Parameter(NamedTuple):
    """One kernel parameter after `lo, hi`. A plain tuple `("pointer", "f32")` may be given instead.

    `pointer` points to elements of `dtype` (pred is stored as uint8, f16 and bf16 as uint16); `size` is an int64;
    `scalar` is one element, which travels as a 64-bit pattern (so c128 cannot be one).
    """

    kind: ParameterKind
    dtype: str


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A kernel's text and parameters.

    convention "kernel" (what the emitter writes): `source` defines `name(lo, hi, *parameters)`, which returns nothing;
    pointers do not alias. Its machine code is `void symbol(int64 lo, int64 hi, int64 *args)`, where `args[k]` holds
    parameter k. Names it may use: `dialect.SCOPE`.

    convention "native" (the runtime's own functions): `name(*parameters)`, all int64, returns an int64; its machine
    code is `int64 symbol(int64, ...)`. Names it may use: `machine.SCOPE`.
    """

    name: str
    source: str
    parameters: tuple[Parameter, ...]
    convention: Literal["kernel", "native"] = "kernel"
    program: LoopProgram | None = field(default=None, compare=False, repr=False)
    """The loop program that `source` is printed from, if its writer has it; without it, the text is read."""
    in_package: bool = field(default=False, compare=False, repr=False)
    """An elementary function, whose machine code may come with the package (native_code.py)."""
    compiler: Literal["numba"] | None = None
    """"numba": Numba compiles the text. None: this library does, and Numba compiles texts that it refuses."""
    identity: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or not self.name.isascii():
            raise ValueError(f"a kernel's name must be an ASCII identifier, got {self.name!r}")
        parameters = tuple(Parameter(*parameter) for parameter in self.parameters)
        for parameter in parameters:
            _check_parameter(self.name, parameter)
        object.__setattr__(self, "parameters", parameters)
        parts = [self.convention, self.name, _spell(parameters), self.source]
        object.__setattr__(self, "identity", digest(parts if self.compiler is None else [*parts, self.compiler]))

    @property
    def symbol(self) -> str:
        """The name of the entry point in the object file; distinct kernels have distinct symbols."""
        return f"hloom_{self.name}_{self.identity[:24]}"

    @property
    def signature(self) -> str:
        """The parameters as text, e.g. ``pointer f32, size s64``."""
        return _spell(self.parameters)


class StoredKernel(NamedTuple):
    """A kernel that is known by its identity alone; the store has its code."""

    identity: str
    name: str
    convention: Literal["kernel", "native"]

    @property
    def symbol(self) -> str:
        """See `KernelSource`."""
        return f"hloom_{self.name}_{self.identity[:24]}"


def digest(parts: Iterable[str]) -> str:
    """A hex SHA-256 of the parts and of the boundaries between them."""
    state = sha256()
    for part in parts:
        data = part.encode()
        state.update(b"%d:" % len(data))
        state.update(data)
    return state.hexdigest()


def _spell(parameters: tuple[Parameter, ...]) -> str:
    return ", ".join(f"{kind} {dtype}" for kind, dtype in parameters)


def _check_parameter(name: str, parameter: Parameter) -> None:
    kind, dtype = parameter
    if kind not in ("pointer", "size", "scalar") or dtype not in ELEMENT_BYTES:
        raise ValueError(f"kernel {name!r}: no such parameter: {kind} {dtype}")
    if kind == "size" and dtype != "s64":
        raise ValueError(f"kernel {name!r}: a size is an s64, got {dtype}")
    if kind == "scalar" and ELEMENT_BYTES[dtype] > 8:
        raise ValueError(f"kernel {name!r}: a {dtype} does not fit the 64 bits of a scalar; pass a pointer to it")
