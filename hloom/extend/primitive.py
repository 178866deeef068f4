"""Primitive, an operation that a library adds; `hloom.extend.core` offers it. Modelled on jax.extend.core.Primitive.

    scaled_add = Primitive("scaled_add")

    @scaled_add.def_meaning
    def _(x, y, *, scale):
        return x + scale * y

    scaled_add.bind(x, y, scale=2.0)

The meaning is all that a primitive needs. In HLO each use is a composite call of it; outside of jit it runs as a
compiled program; its derivative and its batching are derived from its meaning. `def_evaluate`, `def_jvp`,
`def_transpose` and `def_batch` set better rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..autodiff.batches import Axis, with_batch_shape
from ..autodiff.tangents import Operand, Tangent, Zero, float0_zeros, instantiate
from ..hlo.ir import Metadata
from ..hlo.ops.control_flow import TARGET_KEY
from ..hlo.shape import Shape
from ..hlo.support.loading import load
from ..hlo.support.records import dataclass
from ..hlo.support.shared_value import SharedValue
from ..hlo.support.tracebacks import boundaries
from ..tracer import core
from ..tracer.arrays.array import Array, as_value
from ..tracer.arrays.overlay import storages
from ..tracer.aval import ShapedArray
from ..tracer.checks.key_uses import Sink, Uses
from ..tracer.core import Call, Value, bind_call
from ..tracer.ops import is_inexact
from ..tracer.recording import trace_to_computation
from ..tracer.source import function_line
from ..tracer.traced import DerivedCache, with_avals
from ..tracer.trees import tree
from .given import Given, tangent_of

if TYPE_CHECKING:  # only primitives that are declared in JAX's way load it
    from .protocol import Definition

F = TypeVar("F", bound=Callable[..., Any])
_PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True, slots=True)
class _Use:
    """The primitive with certain types of operands and certain parameters."""

    call: Call
    captured: tuple[Value, ...]
    out_avals: tuple[ShapedArray, ...]
    out_tree: Any


@boundaries
class Primitive(SharedValue):
    """An operation that HLO has no opcode for.

    Args:
      name: its name in HLO text (`composite.name`) and in messages.
      meaning: a function of arrays, with parameters by keyword, that defines the operation. It may also be
        set later, by `def_meaning`.

    The operands of `bind` are arrays or numbers. Its parameters are Python values that can be hashed: sizes, flags,
    numbers that are fixed while tracing.

    >>> scaled_add = Primitive("scaled_add", lambda x, y, *, scale: x + scale * y)
    >>> f = lambda x, y: scaled_add.bind(x, y, scale=2.0)
    >>> hloom.jit(f)(1.0, 3.0), hloom.grad(f, argnums=1)(1.0, 3.0)
    (Array(7., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """

    def __init__(self, name: str, meaning: Callable[..., Any] | None = None) -> None:
        if not name:
            raise ValueError("a primitive needs a name")
        self.name = name
        self._meaning = meaning
        self._uses = DerivedCache()
        self._core = core.Primitive(name, evaluate=core.run_program)
        self._definition: Definition | None = None

    multiple_results = False
    """Set it to True if the functions of a primitive that is defined as in JAX return lists, and its rules take them.
    A meaning may return a container of arrays in any case."""

    call_primitive = False
    """Whether an equation calls a jaxpr, which interpreters of jaxprs ask."""

    custom_call_target = ""
    """A custom call that computes the same from the same operands, with the parameters as its configuration: one of
    hloom's own. A backend that has a kernel for it runs that; others run the meaning."""

    is_shown = False
    """Whether jaxprs show a primitive of hloom's own library as itself, for functions that interpret them; else JAX's
    equivalent is shown."""

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def uses_keys(self, *operands: int) -> None:
        """It consumes the random keys among some of its operands, for any meaning."""
        uses = Uses({k: Sink() for k in operands})
        self._core.key_uses = lambda call: uses

    @property
    def has_meaning(self) -> bool:
        """Whether a function of arrays defines it; else a lowering does."""
        return self._meaning is not None

    @property
    def is_of_library(self) -> bool:
        """Whether hloom's own library made it."""
        return str(getattr(self._meaning, "__module__", "")).partition(".")[0] == _PACKAGE

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """For interpreters of jaxprs: the parameters of `bind`."""
        return dict(params)

    def bind(self, *operands: Any, **params: Any) -> Any:
        """The operation on `operands`: the results of the meaning, an array or a container of arrays.

        Raises:
          NotImplementedError: there is no meaning, as in JAX where no rule evaluates a primitive.
          TypeError: an operand is no array, or a parameter cannot be hashed.
        """
        values = [as_value(o) for o in operands]
        if self._definition is not None and not self.has_meaning:
            found = bind_call(self._definition.call(values, params), values)
            return found if self.multiple_results else found[0]
        use = self._use(values, params)
        results = bind_call(use.call, [*values, *use.captured])
        return tree.unflatten(use.out_tree, with_avals(results, use.out_avals))

    def _use(self, values: Sequence[Value], params: dict[str, Any]) -> _Use:
        meaning = self._meaning
        if meaning is None:
            raise NotImplementedError(f"the primitive {self.name} has no meaning: set it with def_meaning")
        key = (tuple([v.aval for v in values]), tuple(sorted(params.items())))
        try:
            hash(key)
        except TypeError:
            raise TypeError(f"the parameters of the primitive {self.name} must be hashable, not {params}") from None

        def make() -> tuple[_Use, bool]:
            out_tree: Any = None

            def flat(given: list[Value]) -> list[Value]:
                nonlocal out_tree
                leaves, out_tree = tree.flatten(meaning(*given, **params))
                return [as_value(leaf) for leaf in leaves]

            traced = trace_to_computation(
                flat,
                [v.aval for v in values],
                self.name,
                description=f"{self.name}, which is {function_line(meaning)}",
                metadata=Metadata(self.name),  # it is used in many lines; inlining inserts the caller's line
            )
            printed = tuple([(k, repr(v)) for k, v in sorted(params.items())])
            if self.custom_call_target:
                printed = (*printed, (TARGET_KEY, self.custom_call_target))
            given = Given(self, params, key[0])
            call = Call(self._core, traced.computation, given, self.name, printed, len(traced.captured))
            return _Use(call, tuple(traced.captured), traced.out_avals, out_tree), traced.is_closed

        return self._uses.get((meaning,), key, make)

    def __reduce__(self) -> Any:
        return self._core.__reduce__()  # which says why it cannot be pickled

    # ---- its rules

    def def_meaning(self, meaning: F) -> F:
        """Set the meaning: meaning(*arrays, **params) -> an array, or a container of arrays."""
        self._meaning = meaning
        return meaning

    def as_in_jax(self) -> Definition:
        """The declarations about it in JAX's way: by `def_impl`, `def_abstract_eval`, and the tables of rules in
        `hloom.interpreters`. If there is a meaning, it counts."""
        if self._definition is None:
            self._definition = load(".protocol", __package__).Definition(self, self._core)
        return self._definition

    def def_impl(self, impl: F) -> F:
        """Set the implementation outside of jit, as JAX's primitives do: impl(*arrays, **params). See
        `interpreters.mlir`."""
        self.as_in_jax().impl = impl
        return impl

    @property
    def impl(self) -> Callable[..., Any]:
        """The implementation that `def_impl` has set, for interpreters of jaxprs; `bind`, if it has a meaning only.

        Raises NotImplementedError if it has none of them.
        """
        given = None if self._definition is None else self._definition.impl
        if given is None and not self.has_meaning:
            raise NotImplementedError(f"Evaluation rule for {self.name!r} not implemented")
        return self.bind if given is None else given

    def def_abstract_eval(self, abstract_eval: F) -> F:
        """Set the types of results, as JAX's primitives do: abstract_eval(*types, **params) -> a ShapedArray, or a list
        of them. The results of tracing must have these types."""
        definition = self.as_in_jax()
        definition.abstract_eval, definition.has_effects = abstract_eval, False
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: F) -> F:
        """As `def_abstract_eval`, with effects: abstract_eval(*types, **params) -> (a ShapedArray or a list of them, a
        set of effects). Compiling a use whose effects are not among `mlir.lowerable_effects` raises ValueError."""
        definition = self.as_in_jax()
        definition.abstract_eval, definition.has_effects = abstract_eval, True
        return abstract_eval

    def def_evaluate(self, evaluate: F) -> F:
        """Set the implementation outside of jit: evaluate(*arrays, **params), with results of the meaning's types."""

        def run(call: Call, arrays: Sequence[Array]) -> list[Value]:
            given: Given = call.params
            return self._checked("evaluate", evaluate(*given.operands(arrays), **given.params), _types(call))

        self._core.evaluate = run
        return evaluate

    def def_jvp(self, rule: F, *, symbolic_zeros: bool = False) -> F:
        """Set the derivative: rule(primals, tangents, **params) -> (result, tangent of the result).

        `tangents` has an array for each operand, zeros where it has no tangent; for integers and booleans `float0`
        zeros. With `symbolic_zeros` it has None in both cases. The tangent has the structure of the result; None is
        zero.
        """

        def direction(aval: ShapedArray, tangent: Tangent) -> Any:
            if symbolic_zeros:
                return None if isinstance(tangent, Zero) else tangent
            return instantiate(tangent) if is_inexact(aval.dtype) else float0_zeros(aval)

        def jvp(
            call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
        ) -> tuple[list[Value], list[Tangent]]:
            given: Given = call.params
            self._refuse_captured(tangents[len(given.avals) :])
            own = zip(given.avals, tangents)
            directions = [direction(a, t) for a, t in own]
            result, moved = rule(given.operands(primals), tuple(directions), **given.params)
            results = self._checked("jvp", result, _types(call))
            if moved is None:
                return results, [Zero(r.aval) for r in results]
            leaves = tree.leaves(moved, is_leaf=lambda x: x is None)
            if len(leaves) != len(results):
                raise TypeError(f"the jvp rule of {self.name} gives {len(leaves)} tangents for {len(results)} results")
            pairs = zip(results, leaves, strict=True)
            return results, [tangent_of(r, t) for r, t in pairs]

        self._core.jvp = jvp
        return rule

    def def_transpose(self, rule: F) -> F:
        """Set the transpose: rule(cotangent, *operands, **params) -> a cotangent for each operand.

        For a primitive that is linear in some operands: the rule gets these as `Linear`, with only a type (`.aval`).
        The jvp rule binds the primitive itself, with tangents in place of these operands.
        The cotangent is a list, with None for zeros, if the primitive has several results. None is also the answer for
        operands that are not Linear.
        """

        def transpose(
            call: Call, cotangents: Sequence[Value | None], operands: Sequence[Operand]
        ) -> Sequence[Value | None]:
            given: Given = call.params
            own = given.operands(operands)
            cotangent = list(cotangents) if len(cotangents) > 1 else cotangents[0]
            found = tuple(rule(cotangent, *own, **given.params))
            if len(found) != len(own):
                counts = f"{len(found)} cotangents for {len(own)} operands"
                raise TypeError(f"the transpose rule of {self.name} gives {counts}")
            return [*(None if ct is None else as_value(ct) for ct in found), *[None] * call.captured]

        self._core.transpose = transpose
        self._core.is_linear = True
        return rule

    def def_linear(self, rule: F) -> F:
        """Say that it is linear in all operands together, and set its transpose. Like jax.interpreters.ad.deflinear."""

        def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...], **params: Any) -> tuple[Any, Any]:
            return self.bind(*primals, **params), self.bind(*tangents, **params)

        self.def_jvp(jvp)
        return self.def_transpose(rule)

    def def_batch(self, rule: F) -> F:
        """Set its rule of vmap: rule(axis_size, batched, *operands, **params) -> (result, which parts of it are
        batched).

        `batched` has a bool for each operand: whether it has the batch, of `axis_size` elements, as a further first
        dimension. The second result has the structure of the first. Without a rule the meaning is batched, and so are
        the rules of the derivatives.
        """

        def batch(
            call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Axis
        ) -> tuple[list[Value], list[bool]]:
            given: Given = call.params
            own = len(given.avals)
            if any(batched[own:]):
                raise TypeError(f"the meaning of {self.name} closes over a value that is batched: make it an operand")
            flags = tuple(batched[:own])
            whole = Given(self, given.params, tuple(_with_batch(given.avals, flags, axis)))
            answer = rule(axis.size, flags, *whole.operands(operands), **given.params)
            if not isinstance(answer, tuple | list) or len(answer) != 2:
                raise TypeError(f"the batch rule of {self.name} must return a pair (result, which arrays are batched)")
            found = [bool(flag) for flag in tree.leaves(answer[1])]
            shapes = call.computation.root.shape.elements
            wanted = [with_batch_shape(axis, s) if f else s for s, f in zip(shapes, found, strict=False)]
            return self._checked("batch", answer[0], wanted), found

        self._core.batch = batch
        return rule

    def _refuse_captured(self, tangents: Sequence[Tangent]) -> None:
        if not all(isinstance(t, Zero) for t in tangents):
            raise TypeError(
                f"the meaning of {self.name} closes over a value that is differentiated; its jvp "
                "rule knows only of its operands. Make that value an operand."
            )

    def _checked(self, what: str, result: Any, wanted: Sequence[Shape]) -> list[Value]:
        """The leaves of a rule's result, as storage; TypeError unless they have the types `wanted`, of the meaning."""
        values = list(storages(tuple([as_value(leaf) for leaf in tree.leaves(result)])))
        if [v.aval.hlo for v in values] != list(wanted):
            found = ", ".join(v.aval.str_short() for v in values)
            types = ", ".join(map(str, wanted))
            raise TypeError(f"the {what} rule of {self.name} gives {found}, but its meaning {types}")
        return values


def _types(call: Call) -> Sequence[Shape]:
    """The types of the results of a call's meaning."""
    return call.computation.root.shape.elements


def _with_batch(avals: Sequence[ShapedArray], batched: Sequence[bool], axis: Axis) -> list[ShapedArray]:
    """The types of operands as the rule of vmap gets them: keys are keys there."""
    return [ShapedArray((axis.size, *a.shape), a.dtype) if b else a for a, b in zip(avals, batched, strict=True)]
