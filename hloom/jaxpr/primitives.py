"""The primitives that equations name. Each is one object, known by its name, so that interpreters can key on it:

    equation.primitive is hloom.lax.sin_p
    equation.primitive.bind(*values, **equation.params)

`bind` takes JAX's parameters, and runs the function of the primitive's name in `hloom.lax` or `hloom.lax.linalg`. A
primitive with other parameters has a function of its own, in its family's file beside the rule that shows the HLO op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..hlo.library import part_above
from ..hlo.support.shared_value import SharedValue
from ..hlo.support.tracebacks import boundaries
from ..tracer.arrays.array import as_value
from ..tracer.token import Token

F = TypeVar("F", bound=Callable[..., Any])


@boundaries
class JaxprPrimitive(SharedValue):
    """A primitive by JAX's name."""

    def __init__(self, name: str) -> None:
        self.name: str = name
        self._apply: Callable[..., Any] | None = None
        self._multiple_results = False

    def bind(self, *operands: Any, **params: Any) -> Any:
        """The operation on arrays and numbers, in the current trace: an array, or a list if `multiple_results`."""
        found = self._function()(*[o if isinstance(o, Token) else as_value(o) for o in operands], **params)
        return list(found) if self._multiple_results else found

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of `bind`: those of the equation. A function with derivatives of its own is in `subfuns`, in
        place of its jaxpr."""
        made = dict(params)
        if self.name in _WITH_FUNCTIONS:
            made["subfuns"] = (part_above("jaxprs").wrapped_jaxpr(made.pop("call_jaxpr")),)
        return made

    def define(self, apply: Callable[..., Any], multiple_results: bool) -> None:
        """Set the function that it binds."""
        assert self._apply is None, f"two primitives {self.name}"
        self._apply, self._multiple_results = apply, multiple_results

    @property
    def multiple_results(self) -> bool:
        """Whether `bind` returns a list."""
        self._function()
        return self._multiple_results

    @property
    def call_primitive(self) -> bool:
        """Whether an equation is a call of the jaxpr `call_jaxpr`."""
        return self.name in _CALLS

    @property
    def is_defined(self) -> bool:
        """Whether something is shown as this primitive, as far as modules are loaded."""
        return self._apply is not None

    def _function(self) -> Callable[..., Any]:
        if self._apply is None:
            view = part_above("jaxprs")  # the families define theirs
        if self._apply is None:
            self._apply, self._multiple_results = view.operation_of(self.name)
        return self._apply

    def __reduce__(self) -> tuple[Any, ...]:
        return primitive_named, (self.name,)

    def __repr__(self) -> str:
        return self.name


_CALLS = frozenset({"call", "closed_call"})
_WITH_FUNCTIONS = frozenset({"custom_jvp_call", "custom_vjp_call"})
_known: dict[str, JaxprPrimitive] = {}


def primitive(name: str, *, multiple_results: bool = False) -> Callable[[F], F]:
    """A decorator: the primitive `name` binds the function. It takes values, and parameters by keyword."""

    def decorate(apply: F) -> F:
        primitive_named(name).define(apply, multiple_results)
        return apply

    return decorate


def primitive_named(name: str) -> JaxprPrimitive:
    """The one primitive of this name."""
    found = _known.get(name)
    return _known.setdefault(name, JaxprPrimitive(name)) if found is None else found


def has_meaning(name: str) -> bool:
    """Whether the primitive is defined."""
    return name in _known and _known[name].is_defined
