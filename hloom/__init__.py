"""hloom: JAX's programming model for the CPU, in Python that a person can read.

    import hloom
    import hloom.numpy as jnp

    f = hloom.jit(lambda x: jnp.tanh(x) * 2)
    hloom.grad(lambda x: f(x).sum())(jnp.ones(3))

Names are loaded when they are first used: `import hloom` is fast, and `import hloom.hlo` needs NumPy alone.
"""

import importlib as _importlib
import os as _os
import sys as _sys
import typing as _typing

if _os.path.islink(_os.path.join(__path__[0], "hlo")):  # a checkout: modules have the paths that editors open
    __path__.insert(0, _os.path.dirname(__path__[0]))
    from . import autodiff as _autodiff  # noqa: F401
    from . import hlo as _hlo  # noqa: F401
    from . import numba_backend as _numba_backend  # noqa: F401
    from . import tracer as _tracer  # noqa: F401

    del __path__[0]
elif _os.path.isfile(_os.path.join(__path__[0], "hlo")):
    from importlib.util import find_spec as _find_spec

    if _find_spec(f"{__name__}.hlo") is None:
        raise ImportError(
            f"{__path__[0]} lacks its links: run `git config core.symlinks true; git checkout HEAD hloom`, or "
            "`pip install .` and use another folder"
        )

_importlib.import_module(".hlo.support.forking", __name__)  # before the other modules: a fork waits for their imports

from .hlo.support.loading import load as _load  # noqa: E402
from .version import __version__ as __version__  # noqa: E402  # after the fork is prepared


def __getattr__(name: str) -> _typing.Any:
    """The first name that is asked for: only then the list of names is read."""
    _load(".namespaces", __name__).publish(__name__, after=".numpy")  # arrays get their methods from there
    return getattr(_sys.modules[__name__], name)


def __dir__() -> list[str]:
    return sorted({*__getattr__("__all__"), *(name for name in globals() if name.startswith("__"))})
