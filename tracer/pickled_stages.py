"""Lowered and compiled programs in other processes: the program goes as HLO text, its function stays behind."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

from ..hlo.ir import HloModule
from ..hlo.opcode import Opcode
from ..hlo.support.loading import load
from .arguments import signature_of

T = TypeVar("T")


class AbsentFunction:
    """Stands for the function of a program that was loaded: its description in messages, and the names of its
    arguments."""

    def __init__(self, name: str, file: str, line: int, parameters: tuple[tuple[str, int], ...] | None) -> None:
        self.__name__ = self.__qualname__ = name
        self._state = name, file, line, parameters
        if file:
            self.__code__: SimpleNamespace = SimpleNamespace(co_filename=file, co_firstlineno=line)
        if parameters is not None:
            made = [inspect.Parameter(p, inspect._ParameterKind(kind)) for p, kind in parameters]
            self.__signature__ = inspect.Signature(made)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{self.__name__} is not here: its program was loaded, and not the function")

    def __reduce__(self) -> Any:
        return AbsentFunction, self._state

    def __repr__(self) -> str:
        return f"<the function {self.__name__}, which is not here>"


def absent(fun: Callable[..., Any]) -> AbsentFunction:
    """The stand-in for `fun` in other processes. Defaults of parameters are left out: they may be anything."""
    if isinstance(fun, AbsentFunction):
        return fun
    code = getattr(fun, "__code__", None)  # a callable object has none
    parameters = signature_of(fun)
    return AbsentFunction(
        getattr(fun, "__name__", None) or type(fun).__name__,
        "" if code is None else code.co_filename,
        0 if code is None else code.co_firstlineno,
        None if parameters is None else tuple([(p.name, int(p.kind)) for p in parameters]),
    )


def picklable(value: T, otherwise: T) -> T:
    """`value`, if it can be pickled."""
    try:
        pickle.dumps(value)
    except Exception:  # any error that the methods of its objects raise
        return otherwise
    return value


def check_text_is_all(stage: object, module: HloModule, with_references: bool, over_devices: bool) -> None:
    """TypeError for a program that is more than its text."""
    why = None
    if with_references:
        why = "it reads or writes mutable arrays, which are in the memory of this process"
    elif over_devices:
        why = "it is a program over several devices, which jit makes for the places of its arguments"
    unavailable = load("..hlo.custom_call_targets.table", __package__).UNAVAILABLE
    for i in module.instructions():
        if i.opcode is Opcode.CUSTOM_CALL and i.attributes.custom_call_target in unavailable:
            why = unavailable[i.attributes.custom_call_target]
    if why is not None:
        raise TypeError(
            f"{stage!r} cannot be pickled: {why}. Pickle the jitted function, and lower it where it is loaded."
        )
