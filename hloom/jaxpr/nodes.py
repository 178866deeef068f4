"""The classes of jaxprs. `view.py` makes these from HLO; users build and rewrite them.

They are values: nothing changes them, `replace` makes others. Names and attributes follow jax.extend.core.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Self

from ..extend.effects import Effect as Effect
from ..hlo.ir import Metadata
from ..hlo.notebooks import in_notebooks
from ..hlo.support.records import dataclass
from ..hlo.support.shared_value import SharedValue
from ..tracer.aval import ShapedArray
from .atoms import Atom, Var
from .printing import WIDTH, Options, equation_text, jaxpr_text

no_effects: frozenset[Effect] = frozenset()


@dataclass(frozen=True)
class OpEffect(Effect):
    """The effect of an HLO op, by its name."""

    name: str

    def __str__(self) -> str:
        return self.name


class SourceInfo(NamedTuple):
    """Where in the user's program an equation comes from."""

    file: str = ""
    line: int = 0
    name_stack: str = ""
    """The scopes (`named_scope`) around it in its function, between slashes."""

    @staticmethod
    def of(metadata: Metadata | None) -> SourceInfo:
        if metadata is None:
            return SourceInfo()
        scopes = metadata.op_name.rpartition("/")[0].partition("/")[2]  # behind the name of the function
        return SourceInfo(metadata.source_file, metadata.source_line, scopes)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "<unknown>"


class _Value(SharedValue):
    """Slots that are set once."""

    __slots__: tuple[str, ...] = ()

    def replace(self, **changes: Any) -> Self:
        """The same with other attributes."""
        names: tuple[str, ...] = self.__slots__
        fields = {name: getattr(self, name) for name in names if name != "__weakref__"}
        unknown = changes.keys() - fields.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no attribute {', '.join(sorted(unknown))}")
        return type(self)(**{**fields, **changes})


class JaxprEqn(_Value):
    """An equation: ``outvars = primitive[params] invars``.

    >>> equation = hloom.make_jaxpr(lambda x: jnp.sin(2 * x))(1.5).eqns[1]
    >>> equation.primitive.name, equation.outvars[0].aval
    ('sin', ShapedArray(float32[], weak_type=True))
    """

    __slots__ = ("effects", "invars", "outvars", "params", "primitive", "source_info")

    def __init__(
        self,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        primitive: Any,
        params: dict[str, Any],
        effects: frozenset[Effect] = no_effects,
        source_info: SourceInfo | None = None,
    ) -> None:
        self.invars: list[Atom] = list(invars)
        self.outvars: list[Var] = list(outvars)
        self.primitive = primitive
        """An object with a `name`, `multiple_results` and `bind`."""
        self.params: dict[str, Any] = params
        self.effects: frozenset[Effect] = effects
        self.source_info: SourceInfo = source_info if source_info is not None else SourceInfo()

    def __str__(self) -> str:
        return equation_text(self, Options())

    __repr__ = __str__


class Jaxpr(_Value):
    """A function: `eqns` from `constvars` and `invars` to `outvars`.

    >>> jaxpr = hloom.make_jaxpr(lambda x: jnp.sin(2 * x))(1.5).jaxpr
    >>> [equation.primitive.name for equation in jaxpr.eqns]
    ['mul', 'sin']
    """

    __slots__ = ("__weakref__", "constvars", "debug_info", "effects", "eqns", "invars", "outvars")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        effects: frozenset[Effect] = no_effects,
        debug_info: Any = None,
    ) -> None:
        self.constvars: list[Var] = list(constvars)
        self.invars: list[Var] = list(invars)
        self.outvars: list[Atom] = list(outvars)
        self.eqns: list[JaxprEqn] = list(eqns)
        self.effects: frozenset[Effect] = effects
        self.debug_info = debug_info

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.outvars]

    def pretty_print(
        self,
        *,
        source_info: bool = False,
        print_shapes: bool = True,
        custom_pp_eqn_rules: bool = True,
        name_stack: bool = False,
        print_effects: bool = False,
        width: int = WIDTH,
        use_color: bool = False,
    ) -> str:
        """The jaxpr as text. `source_info`: with the user's line of each equation; `name_stack`: with its scopes;
        `custom_pp_eqn_rules` False: with all parameters. `use_color` is for JAX's sake."""
        return jaxpr_text(
            self, Options(source_info, print_shapes, custom_pp_eqn_rules, name_stack, print_effects), width
        )

    def __str__(self) -> str:
        return self.pretty_print()

    __repr__ = __str__

    _repr_html_ = in_notebooks


def _read(path: str) -> Any:
    """A property that reads the attribute at `path`."""
    return property(attrgetter(path))


class ClosedJaxpr(_Value):
    """A jaxpr with the values of its `constvars`.

    >>> w = jnp.array([1.0, 2.0])
    >>> closed = hloom.make_jaxpr(lambda x: x * w)(1.5)
    >>> closed.consts, closed.in_avals
    ([Array([1., 2.], dtype=float32)], [ShapedArray(float32[], weak_type=True)])
    """

    __slots__ = ("consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        if len(consts) != len(jaxpr.constvars):
            raise ValueError(f"the jaxpr has {len(jaxpr.constvars)} constants, not {len(consts)}")
        self.jaxpr: Jaxpr = jaxpr
        self.consts: list[Any] = list(consts)

    literals: list[Any] = _read("consts")
    """Their older name."""
    eqns: list[JaxprEqn] = _read("jaxpr.eqns")
    constvars: list[Var] = _read("jaxpr.constvars")
    invars: list[Var] = _read("jaxpr.invars")
    outvars: list[Atom] = _read("jaxpr.outvars")
    debug_info: Any = _read("jaxpr.debug_info")
    in_avals: list[ShapedArray] = _read("jaxpr.in_avals")
    out_avals: list[ShapedArray] = _read("jaxpr.out_avals")
    effects: frozenset[Effect] = _read("jaxpr.effects")

    def pretty_print(self, **options: Any) -> str:
        """As `Jaxpr.pretty_print`."""
        return self.jaxpr.pretty_print(**options)

    def __str__(self) -> str:
        return self.pretty_print()

    __repr__ = __str__

    _repr_html_ = in_notebooks
