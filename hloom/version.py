"""`hloom.version`: the version of this library. It imports nothing, since building a package reads it."""

__version__ = "0.1.0"
__version_info__: tuple[int, ...] = tuple(int(part) for part in __version__.split("."))
