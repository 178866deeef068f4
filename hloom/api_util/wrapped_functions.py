"""A function with transformations around it. `hloom.extend.linear_util` offers it. Names follow JAX's linear_util.

    @transformation
    def doubled(factor, *args):                 # what is known at once, then the arguments
        result = yield [factor * x for x in args], {}
        yield 2 * result

    doubled(wrap_init(fun), 3.0).call_wrapped(*args)

A transformation is a generator: it yields the arguments of the function inside, gets its result, and yields its own.
One "with aux" yields a pair: its result, and a value that the second result of the transformation, a function without
arguments, returns after the call.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial, wraps
from typing import Any

_Step = Callable[..., Any]
"""step(function inside, *static facts, *arguments): a transformation as a function."""


class StoreException(Exception):
    """The value of a transformation was read before its function was called, or set twice."""


class Store:
    """A place for the one value that a call leaves."""

    def __init__(self) -> None:
        self._values: list[Any] = []

    def store(self, value: Any) -> None:
        """Leave the value; StoreException if there is one."""
        if self._values:
            raise StoreException("the function was called twice, and each call leaves a value: wrap it again")
        self._values.append(value)

    def get(self) -> Any:
        """The value; StoreException if there is none."""
        if not self._values:
            raise StoreException("the function was not called yet, so there is no value")
        return self._values[0]

    def __bool__(self) -> bool:
        return bool(self._values)


class WrappedFun:
    """`f` with transformations around it, the outermost first, and the known facts about its arguments.

    >>> import hloom
    >>> from hloom.extend.linear_util import wrap_init
    >>> wrap_init(lambda x: 2 * x).call_wrapped(3)
    6
    """

    __slots__ = ("debug_info", "f", "params", "stores", "transforms")

    def __init__(
        self,
        f: Callable[..., Any],
        transforms: tuple[tuple[_Step, tuple[Any, ...]], ...] = (),
        stores: tuple[Store | None, ...] = (),
        params: tuple[tuple[str, Any], ...] = (),
        debug_info: Any = None,
    ) -> None:
        self.f = f
        self.transforms: tuple[tuple[_Step, tuple[Any, ...]], ...] = transforms
        self.stores: tuple[Store | None, ...] = stores
        self.params: tuple[tuple[str, Any], ...] = params
        self.debug_info = debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed function>")

    def wrap(self, step: _Step, known: tuple[Any, ...], store: Store | None) -> WrappedFun:
        """This function inside of one more transformation."""
        return WrappedFun(
            self.f, ((step, known), *self.transforms), (store, *self.stores), self.params, self.debug_info
        )

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        call: Callable[..., Any] = partial(self.f, **dict(self.params)) if self.params else self.f
        for step, known in reversed(self.transforms):
            call = partial(step, call, *known)
        return call(*args, **kwargs)

    __call__ = call_wrapped

    def with_unknown_names(self) -> WrappedFun:
        """The same without the known facts about its arguments."""
        return WrappedFun(self.f, self.transforms, self.stores, self.params)

    def __repr__(self) -> str:
        steps = "".join(f"\n  inside of {getattr(step, '__name__', step)}{known}" for step, known in self.transforms)
        return f"Wrapped function {self.__name__}{steps}"


def wrap_init(f: Callable[..., Any], params: dict[str, Any] | None = None, *, debug_info: Any = None) -> WrappedFun:
    """`f` without transformations; `params` are keyword arguments that each call passes to it.

    >>> wrap_init(lambda x, scale: x * scale, {"scale": 10}).call_wrapped(3)
    30
    """
    return WrappedFun(f, params=() if params is None else tuple(sorted(params.items())), debug_info=debug_info)


def transformation2(step: _Step) -> Callable[..., WrappedFun]:
    """A function step(f, *known, *args) -> result as a transformation: called with a WrappedFun and `known`.

    >>> import hloom
    >>> from hloom.extend.linear_util import transformation2, wrap_init
    >>> @transformation2
    ... def shifted(f, by, x):
    ...     return f(x + by)
    >>> shifted(wrap_init(lambda x: 10 * x), 1).call_wrapped(3)
    40
    """

    @wraps(step)
    def around(fun: WrappedFun, *known: Any) -> WrappedFun:
        return fun.wrap(step, known, None)

    return around


def transformation_with_aux2(step: _Step) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """As `transformation2`; step(f, store, *known, *args) leaves a value by `store.store(value)`.

    >>> import hloom
    >>> from hloom.extend.linear_util import transformation_with_aux2, wrap_init
    >>> @transformation_with_aux2
    ... def counted(f, store, *args):
    ...     store.store(len(args))
    ...     return f(*args)
    >>> f, count = counted(wrap_init(lambda x, y: x + y))
    >>> f.call_wrapped(3, 4), count()
    (7, 2)
    """

    @wraps(step)
    def around(fun: WrappedFun, *known: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        store = Store()
        return fun.wrap(step, (store, *known), store), store.get

    return around


def transformation(gen: Callable[..., Generator[Any, Any, None]]) -> Callable[..., WrappedFun]:
    """A generator as a transformation: called with a WrappedFun and the static facts.

    >>> import hloom
    >>> from hloom.extend.linear_util import transformation, wrap_init
    >>> @transformation
    ... def shifted(by, x):
    ...     result = yield (x + by,), {}
    ...     yield result
    >>> shifted(wrap_init(lambda x: 10 * x), 1).call_wrapped(3)
    40
    """

    @wraps(gen)
    def step(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return _run(gen(*args, **kwargs), f)

    return transformation2(step)


def transformation_with_aux(
    gen: Callable[..., Generator[Any, Any, None]],
) -> Callable[..., tuple[WrappedFun, Callable[[], Any]]]:
    """As `transformation`; the generator's last value is a pair (result, auxiliary output).

    >>> import hloom
    >>> from hloom.extend.linear_util import transformation_with_aux, wrap_init
    >>> @transformation_with_aux
    ... def counted(*args):
    ...     result = yield args, {}
    ...     yield result, len(args)
    >>> f, count = counted(wrap_init(lambda x, y: x + y))
    >>> f.call_wrapped(3, 4), count()
    (7, 2)
    """

    @wraps(gen)
    def step(f: Callable[..., Any], store: Store, *args: Any, **kwargs: Any) -> Any:
        result, left = _run(gen(*args, **kwargs), f)
        store.store(left)
        return result

    return transformation_with_aux2(step)


def _run(steps: Generator[Any, Any, None], f: Callable[..., Any]) -> Any:
    args, kwargs = next(steps)
    result = steps.send(f(*args, **kwargs))
    steps.close()
    return result


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> tuple[bool, Any]:
    """(True, the first's value), or (False, the second's): the value of the function that was called.

    >>> import hloom
    >>> from hloom.extend.linear_util import merge_linear_aux, transformation_with_aux2, wrap_init
    >>> @transformation_with_aux2
    ... def counted(f, store, *args):
    ...     store.store(len(args))
    ...     return f(*args)
    >>> (f, first), (_, second) = counted(wrap_init(max)), counted(wrap_init(min))
    >>> f.call_wrapped(3, 4), merge_linear_aux(first, second)
    (4, (True, 2))
    """
    try:
        first = aux1()
    except StoreException:
        return False, aux2()
    try:
        aux2()
    except StoreException:
        return True, first
    raise StoreException("both functions were called")
