"""jax._src.api_util: which arguments of a function are meant."""

import inspect as _inspect
from collections.abc import Iterable as _Iterable

__all__ = ["infer_argnums_and_argnames"]


def infer_argnums_and_argnames(
    sig: _inspect.Signature, argnums: int | _Iterable[int] | None, argnames: str | _Iterable[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions and names of the same arguments; those of the two that are not given follow from the signature."""
    numbers = () if argnums is None else (argnums,) if isinstance(argnums, int) else tuple(argnums)
    names = () if argnames is None else (argnames,) if isinstance(argnames, str) else tuple(argnames)
    both = [
        (i, name)
        for i, (name, parameter) in enumerate(sig.parameters.items())
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    if argnums is None:
        numbers = tuple(i for i, name in both if name in names)
    elif argnames is None:
        names = tuple(name for i, name in both if i in numbers)
    return numbers, names
