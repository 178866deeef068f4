"""Arrays in files of others, for the command line and for programs that are compiled ahead of time."""

from __future__ import annotations

from typing import Any

import numpy as np

NDArray = np.ndarray[Any, Any]


class ArrayFileError(Exception):
    """A file that holds no arrays which can be loaded; the text names the file, and says why."""


def read_arrays(path: str) -> dict[str, NDArray]:
    """The arrays of an ``.npz`` file by their names, or the array of an ``.npy`` file under "". No pickle is loaded.

    Raises ArrayFileError for any fault of the file, also if memory is short for the contents that it claims.
    """
    try:
        with open(path, "rb") as file:  # NumPy leaves a damaged archive open
            loaded = np.load(file, allow_pickle=False)
            return {"": loaded} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except OSError as error:
        raise ArrayFileError(f"cannot read {path}: {error.strerror or error}") from None
    except Exception as error:
        # NumPy, zipfile and zlib have a dozen classes of errors for damaged data, a RecursionError among them.
        said = str(error).partition("\n")[0] or type(error).__name__
        raise ArrayFileError(f"{path} holds no arrays that NumPy can load: {said}") from None
