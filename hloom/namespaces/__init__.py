"""The common parts of all public namespaces: publishing their functions, and errors for missing names.

    publish(__name__)      # the last line of a namespace's file

makes each public function a boundary (`hlo/support/tracebacks.py`) with the namespace as its home:
`numpy.sin.__module__` is "hloom.numpy", so that it can be pickled, and no file of the library is named. A name that is
not there gets an AttributeError with the next step. The lists behind that message are read at the first missing name.

A namespace lists its names once, in a stub beside its file: ``hloom/numpy/__init__.pyi`` says

    from .unary_ufuncs import cos as cos, sin as sin

Type checkers and editors read the stub as an export, and `publish` reads it here: a name is loaded when it is first
used. A file that defines its functions itself has no stub, and lists them in `__all__`.
"""

from __future__ import annotations

import builtins
import difflib
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.util import resolve_name
from types import FunctionType, ModuleType
from typing import Any

from ..hlo.support.loading import load
from ..hlo.support.tracebacks import boundary, hide, inner

_PACKAGE = __name__.partition(".")[0]


def publish(
    module: str, *, after: str | None = None, aliases_are_one: bool = False, examples: tuple[str, ...] = ()
) -> None:
    """Make a module a public namespace of the names in its stub, or of those in its `__all__`.

    The names of a stub are loaded when they are first used, those of `after` before all that are no modules. A function
    becomes a boundary when it is first asked for: of the hundreds in a namespace, a program uses a few. But code of the
    namespace's own file finds only its plain attributes, so there all are boundaries at once.

    Two names of one function are two functions, each with its own `__name__`, as in JAX; with `aliases_are_one` they
    are one object, as in `jax.nn`.

    examples: the imports with which the examples of its files begin. An example that begins with none gets those that
    it uses, and those of the package.
    """
    if examples:
        _imports[module] = examples
    _namespaces.add(module)
    if aliases_are_one:
        _ALIASES_ARE_ONE.add(module)
    names = vars(sys.modules[module])
    if "__all__" in names:
        names["__getattr__"] = partial(_find, module, {}, None)
        _homes.add(module)
        for name in names["__all__"]:
            if isinstance(names[name], type):  # it has the module that defines it, or a namespace with a stub
                _complete_examples(names[name], (module, name))
            else:
                names[name] = published(names[name], name, module)
        return
    homes = stub_names(sys.modules[module])
    names["__all__"] = list(homes)
    _homes.update(resolve_name(home, names["__package__"]) for home, _ in homes.values() if home.strip("."))
    names["__getattr__"] = partial(_find, module, homes, after)
    names["__dir__"] = lambda: sorted({*(n for n in names if n.startswith("__")), *homes})
    for name, (home, _) in homes.items():
        if home == f".{name}":  # the import system binds the file to the name when it is first loaded
            _find(module, homes, after, name)


_IMPORT = re.compile(r"^from (\S+) import (?:\(([^)]*)\)|([^(\n]*))$", re.MULTILINE)
_RENAMED = re.compile(r"^([A-Za-z]\w*) = (_\w+)$", re.MULTILINE)


def stub_names(module: ModuleType) -> dict[str, tuple[str, str]]:
    """The public names of a namespace's stub: the module of each, as its import writes it, and its name there.

    ImportError for an import that type checkers do not take for an export.
    """
    spec = module.__spec__
    assert spec is not None and spec.origin is not None
    path = spec.origin.removesuffix("c") + "i"
    text = spec.loader.get_data(path).decode()  # type: ignore[union-attr]
    homes, private = {}, {}
    for home, several, one in _IMPORT.findall(text):
        for item in (several or one).replace("\n", " ").split(","):
            match item.split():
                case [name, "as", public] if name == public:
                    homes[name] = home, name
                case [name, "as", own] if own[0] == "_":
                    private[own] = home, name
                case [name, *_]:
                    raise ImportError(
                        f"{path}: write `{name} as {name}`, which type checkers take for a public name, or run "
                        "python tools/namespaces.py --write"
                    )
    homes.update({name: private[own] for name, own in _RENAMED.findall(text)})
    return homes


_ALIASES_ARE_ONE: set[str] = set()
_imports: dict[str, tuple[str, ...]] = {_PACKAGE: (f"import {_PACKAGE}", f"import {_PACKAGE}.numpy as jnp")}
"""Of namespaces: the imports with which the examples of their files begin."""
_namespaces: set[str] = set()
_homes: set[str] = set()
"""The modules that define what a namespace offers."""
_published: dict[tuple[str, str, FunctionType], FunctionType] = {}


def is_home(module: str) -> bool:
    """Whether a module defines functions that a namespace offers."""
    return module in _homes


def published(found: Any, name: str, module: str) -> Any:
    """An object as `module` offers it under `name`."""
    if isinstance(found, FunctionType):
        function = inner(found)
        if module in _ALIASES_ARE_ONE and function.__name__ in sys.modules[module].__all__:
            name = function.__name__
        key = module, name, function
        found = _published.get(key)
        if found is None:
            found = boundary(function)
            _complete_example(found, getattr(found, "__wrapped__", found).__module__, (module, name))
            found.__module__, found.__name__, found.__qualname__ = module, name, name
            found.__code__ = found.__code__.replace(co_name=name, co_qualname=name)
            found = _published.setdefault(key, found)  # another thread may have been here, too
    elif isinstance(found, partial):
        found = partial(published(found.func, found.func.__name__, module), *found.args, **found.keywords)
    elif isinstance(found, type):
        _complete_examples(found, (module, name))
        home = found.__module__
        if home.startswith(f"{_PACKAGE}."):
            load(home)  # cloudpickle pickles a class by value if its module is not loaded (`hlo/library.py`)
            if home not in _namespaces and found.__name__ == name:
                found.__module__ = module
    elif type(found).__module__.startswith(f"{_PACKAGE}.") and "__module__" in getattr(found, "__dict__", ()):
        # a function in the form of an object
        own = vars(found).get("__name__", name)
        if own != name and own in sys.modules[module].__all__ and module not in _ALIASES_ARE_ONE:
            other = object.__new__(type(found))
            vars(other).update(vars(found))
            found = other
            found.__name__ = found.__qualname__ = name
        _complete_example(found, getattr(found, "__wrapped__", found).__module__, (module, name))
        found.__module__ = module
    return found


def _complete_examples(kind: type, own: tuple[str, str]) -> None:
    """Complete the examples of a class, and of its methods and properties: its own, and those of the library's classes
    from which it inherits, or which inherit from it."""
    _complete_example(kind, kind.__module__, own)
    for each in (*kind.__mro__, *kind.__subclasses__()):
        home = each.__module__
        for found in vars(each).values() if home.partition(".")[0] == _PACKAGE else ():
            if isinstance(found, classmethod | staticmethod):  # which have the text, too
                _complete_example(found.__func__, home, own)
            if isinstance(found, FunctionType | property | classmethod | staticmethod):
                _complete_example(found, home, own)


_BARE = r"(?<![\w.\"'])[^\W\d]\w*(?!\w| ?=[^=])"
"""The names that a line of an example uses as they are: no attribute, no text, no argument by name. One expression for
all names: to compile one takes longer than to complete a hundred examples."""


@cache
def _imports_of(home: str, space: str) -> list[tuple[str, list[str]]]:
    """The imports for examples in a module, each with the names that it binds: those of the namespace whose folder has
    the module, or else of the namespace `space`, which offers the object; then the package's."""
    while home and home not in _imports:
        home = home.rpartition(".")[0]
    lines = dict.fromkeys((*_imports.get(space if home == _PACKAGE else home, ()), *_imports[_PACKAGE]))
    bound = [line.partition("import ")[2].split(",") for line in lines]
    return [(line, [n.split()[-1].partition(".")[0] for n in names]) for line, names in zip(lines, bound, strict=True)]


def _complete_example(found: Any, home: str, own: tuple[str, str]) -> None:
    """Begin the example of an object's documentation with the imports that it uses: of the object itself, which is
    `own`, a namespace and a name; those of the namespace with the module `home`; those of the package."""
    doc = found.__doc__
    place = doc.find(">>> ") if isinstance(doc, str) else -1
    if place < 0 or doc.startswith(("import ", "from "), place + 4):
        return
    code = doc[place:]
    lines: list[str] = []
    known: list[str] = []
    space, name = own
    if f" {name}" in code or f"({name}" in code:  # which spares most the regular expression
        is_other = hasattr(builtins, name) or name == space.rpartition(".")[2]
        of_code = [x for x in map(str.lstrip, code.splitlines()) if name in x and x.startswith((">>> ", "... "))]
        if not is_other and any(name in re.findall(_BARE, line) for line in of_code):
            lines, known = [f"from {space} import {name}"], [name]
    for line, names in _imports_of(home, space):
        for each in names:
            if each in code and each not in known:
                lines.append(line)
                known += names
                break
    indent = doc[doc.rfind("\n", 0, place) + 1 : place]
    lines.sort(key=_imports[_PACKAGE].__contains__, reverse=True)
    added = "".join([f">>> {line}\n{indent}" for line in lines])
    found.__doc__ = doc[:place] + added + code


# ---- names that are not there


class _Nothing:
    """An object without names, in which Python looks for names to suggest: the message has better ones."""

    def __dir__(self) -> list[str]:
        return []


class _Missing(AttributeError):
    """A name that a namespace does not have. The message is made when it is read: programs, and the import system, also
    ask for names only to know whether they exist."""

    def __init__(self, module: str, name: str) -> None:
        super().__init__(name=name, obj=_Nothing())
        self._asked = module, name

    def __str__(self) -> str:
        if not self.args:
            self.args = (_message(*self._asked),)
        return str(self.args[0])

    def __reduce__(self) -> tuple[type[AttributeError], tuple[str]]:
        return AttributeError, (str(self),)


_Missing.__module__, _Missing.__name__, _Missing.__qualname__ = "builtins", "AttributeError", "AttributeError"


_listeners: list[Callable[[str, str], None]] = []


def on_missing(listener: Callable[[str, str], None]) -> None:
    """Call listener(module, name) from now on when a namespace lacks a requested name."""
    if listener not in _listeners:
        _listeners.append(listener)


def missing(module: str, name: str, *, silently: bool = False) -> AttributeError:
    """The error for a name that the namespace `module` does not have: a description of the name, and a replacement.

    silently: the program did not ask for the name.
    """
    if not silently:
        for listener in _listeners:
            listener(module, name)
    return _Missing(module, name)


def _find(module: str, homes: Mapping[str, tuple[str, str]], after: str | None, name: str) -> Any:
    """A namespace's `__getattr__`: an object that is loaded at its first use, or an error."""
    if name in homes:
        home, own = homes[name]
        package = sys.modules[module].__package__
        if not home.strip("."):
            return load(home + own, package)
        if after is not None:
            load(after, package, stays=True)
        found = vars(sys.modules[module])[name] = published(getattr(load(home, package), own), name, module)
        return found
    error = missing(module, name)
    try:
        raise error
    except AttributeError:
        hide(error)
        raise


def _message(module: str, name: str) -> str:
    unknown = f"module {module!r} has no attribute {name!r}"
    if name.startswith("_"):
        return unknown
    jax_names = load(".jax_names", __name__)
    space = module[len(_PACKAGE) + 1 :]
    jax = f"jax.{space}".rstrip(".")
    advice = jax_names.reason(space, name)
    is_known = advice is not None
    in_jax = name in jax_names.lacking(space)
    elsewhere = _elsewhere(space, name, jax_names)
    if in_jax and elsewhere is None and advice is None:
        advice = _numpy_has(space, name)
    if in_jax:
        unknown = f"{jax} has {name!r}, {module} does not have it{'' if is_known else ' yet'}"
    if advice is not None:
        return f"{unknown}: {advice}"
    if elsewhere is not None:
        return f"{unknown}: there is {elsewhere}"
    if not in_jax and (outside := _numpy_has(space, name)) is not None:
        return f"{unknown}: {outside}"
    if not in_jax and (near := _near(module, name)):
        return f"{unknown}: did you mean {' or '.join([', '.join(near[:-1]), near[-1]] if near[1:] else near)}?"
    return unknown


def _elsewhere(space: str, name: str, jax_names: Any) -> str | None:
    """Another namespace that has the name."""
    for other in jax_names.SEARCHED:
        if other != space and name in load(f"{_PACKAGE}.{other}".rstrip(".")).__all__:
            return f"{_PACKAGE}.{other}.{name}".replace("..", ".")
    return None


def _numpy_has(space: str, name: str) -> str | None:
    """NumPy's or SciPy's function of this name, for arrays that are not traced."""
    if space.partition(".")[0] not in ("numpy", "scipy"):
        return None
    try:
        found = load(space)
    except ImportError:
        return None
    if name not in dir(found):
        return None
    return f"outside of jit and grad, {space}.{name} takes concrete arrays"


def _near(module: str, name: str) -> list[str]:
    """Names of the namespace that are spelled like it."""
    public = getattr(sys.modules[module], "__all__", ())  # a folder below the library publishes none
    lower: dict[str, str] = {n.lower(): n for n in public}
    found = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.7)
    found = found or [n for n in lower if n.startswith(name.lower()) and len(name) > 1][:3]
    return [repr(lower[n]) for n in found]
