"""Handwritten digits, all real: MNIST from a folder, from a download, or the small set in scikit-learn.

This module reads files and downloads for the examples; it has nothing about training. Call `load`. An error in a file
raises `IdxError`, which names the file, the error and the next step.

The IDX format and MNIST: Y. LeCun, C. Cortes, C. J. C. Burges, "The MNIST database of handwritten digits".
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import http.client
import math
import os
import queue
import re
import socket
import sys
import tempfile
import threading
import urllib.error
import urllib.request
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

NDArray = np.ndarray[Any, Any]

MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://yann.lecun.com/exdb/mnist/",
)
SHA256 = {
    "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
TIMEOUT_SECONDS = 3.0
HELD_BACK = 0.2
"""The part for tests, if a data set has no separate test set."""

# train-images-idx3-ubyte.gz is the published name; some archives have train-images.idx3-ubyte
_FILE_NAME = re.compile(r"(train|t10k|test)[-_.](images|labels)[-_.]idx[13][-_.]ubyte(\.gz)?", re.IGNORECASE)
_UNSIGNED_BYTE = 0x08


class DataError(Exception):
    """The digits are not available; the message says why and what to do."""


class IdxError(DataError):
    """An IDX file is missing or damaged, or does not fit the file that belongs to it."""


@dataclass(frozen=True, slots=True)
class Digits:
    """Images f32[n, rows * columns] from 0 (paper) to 1 (ink), labels s32[n] from 0 to 9, in two parts."""

    name: str
    image_shape: tuple[int, int]
    train_images: NDArray
    train_labels: NDArray
    test_images: NDArray
    test_labels: NDArray


def load(folder: Path | None = None, *, bundled: bool = False) -> Digits:
    """The digits in `folder`; without one, MNIST from the cache or a mirror; without that, scikit-learn's.

    `bundled` goes straight to scikit-learn's. Raises DataError or IdxError.
    """
    if folder is not None:
        return read_folder(folder)
    if bundled:
        return bundled_digits()
    cache = cache_folder()
    try:
        _download_once(cache)
    except OSError as error:
        print(
            f"MNIST could not be downloaded ({error}); using the 1,797 digits that scikit-learn carries instead.",
            file=sys.stderr,
        )
        return bundled_digits()
    return replace(read_folder(cache), name="MNIST")


# ---- IDX files


def read_folder(folder: Path) -> Digits:
    """The data set in `folder` (or in its MNIST/raw, as torchvision makes it): IDX files, gzipped or not.

    With both a train and a t10k (or test) pair, they are the two parts; with only one, a fifth of it is kept for the
    test, always the same fifth. Raises IdxError.
    """
    pairs = _find_pairs(folder)
    read = {part: _read_pair(*files) for part, files in pairs.items()}
    sizes = {images.shape[1:] for images, _ in read.values()}
    if len(sizes) > 1:
        raise IdxError(
            f"{folder}: the training images have {_pixels(read['train'][0])} pixels and the test images "
            f"{_pixels(read['test'][0])}. Put files of one data set there."
        )
    if len(read) == 2:
        return _digits(str(folder), *read["train"], *read["test"])
    ((images, labels),) = read.values()
    return _split(f"{folder} ({len(images):,} images in one pair of files)", images, labels)


def read_idx(path: Path, dimensions: int) -> NDArray:
    """The unsigned bytes of an IDX file with that many dimensions, u8. The content, not the name, tells if it is gzip.

    Raises IdxError.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise IdxError(
            f"{path}: cannot be read ({error.strerror}). Check that it is a file that you may read."
        ) from error
    again = "Copy or download the file again."
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise IdxError(f"{path}: damaged gzip data ({error}). {again}") from error
    header = 4 + 4 * dimensions
    magic = bytes((0, 0, _UNSIGNED_BYTE, dimensions))
    if data[:4] != magic:
        raise IdxError(
            f"{path}: not an IDX file of unsigned bytes with {dimensions} dimension{'s' * (dimensions > 1)}: "
            f"it begins with {data[:4].hex(' ') or 'nothing'}, not {magic.hex(' ')}. {again}"
        )
    if len(data) < header:
        raise IdxError(f"{path}: ends within its header of {header} bytes. {again}")
    shape = tuple(int(n) for n in np.frombuffer(data, ">u4", dimensions, 4))
    expected, found = math.prod(shape), len(data) - header
    if found != expected:
        fault = "truncated" if found < expected else "too long"
        raise IdxError(
            f"{path}: {fault}: the header announces {' x '.join(map(str, shape))} = {expected:,} bytes, "
            f"{found:,} follow. {again}"
        )
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


def _find_pairs(folder: Path) -> dict[str, tuple[Path, Path]]:
    """`train` and `test`, if they exist: each an images file and a labels file."""
    wanted = "train-images-idx3-ubyte and train-labels-idx1-ubyte, or t10k-..., gzipped or not"
    if not folder.is_dir():
        raise IdxError(f"{folder}: no such folder. --data takes the folder that holds {wanted}.")
    for place in (folder, folder / "MNIST" / "raw"):
        found: dict[tuple[str, str], Path] = {}
        for path in sorted(place.iterdir(), reverse=True) if place.is_dir() else ():  # so that x wins over x.gz
            match = _FILE_NAME.fullmatch(path.name)
            if match:
                part = "train" if match[1].lower() == "train" else "test"
                found[part, match[2].lower()] = path
        pairs = {}
        for part in ("train", "test"):
            images, labels = found.get((part, "images")), found.get((part, "labels"))
            if images and labels:
                pairs[part] = images, labels
            elif images or labels:
                present, missing = (images, "labels") if images else (labels, "images")
                raise IdxError(f"{present}: the {missing} that belong to it are missing. Put that file beside it.")
        if pairs:
            return pairs
    raise IdxError(f"{folder}: no MNIST files there. It should hold {wanted}.")


def _read_pair(images_path: Path, labels_path: Path) -> tuple[NDArray, NDArray]:
    images, labels = read_idx(images_path, 3), read_idx(labels_path, 1)
    if len(images) != len(labels):
        raise IdxError(
            f"{labels_path}: {len(labels):,} labels, but {images_path.name} beside it has {len(images):,} images. "
            "Take both files from the same data set."
        )
    if images.size == 0:
        raise IdxError(f"{images_path}: holds no images. Give a file with some.")
    if labels.max() > 9:
        raise IdxError(f"{labels_path}: has the label {labels.max()}; digits are 0 to 9. Use MNIST's own labels.")
    return images, labels


# ---- the download


def cache_folder() -> Path:
    """Where downloaded MNIST is kept: `hloom/mnist` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hloom" / "mnist"


_failed: OSError | None = None
"""Why this process could not download."""


def _download_once(folder: Path) -> None:
    """`download`, which is not tried again in this process after it has failed."""
    global _failed
    if _failed is not None:
        raise _failed
    try:
        download(folder, MIRRORS)
    except OSError as error:
        _failed = error
        raise


def download(folder: Path, mirrors: tuple[str, ...]) -> None:
    """Download MNIST's four files into `folder`, unless they are there already; checks the published checksums.

    A mirror that fails once is not used again, and none is where there is no network. Raises OSError (no network, no
    disk) with the last reason.
    """
    missing = [name for name, digest in SHA256.items() if _sha256(folder / name) != digest]
    folder.mkdir(parents=True, exist_ok=True)
    mirrors_left = list(mirrors)
    reason = OSError("no mirrors")
    while missing and mirrors_left:
        try:
            _download_file(mirrors_left[0] + missing[0], folder / missing[0], SHA256[missing[0]])
            missing.pop(0)
        except (OSError, http.client.HTTPException) as error:
            cause = getattr(error, "reason", error)
            reason = OSError(str(getattr(cause, "strerror", None) or cause))
            mirrors_left.pop(0)
            if _means_no_network(error):
                break
    if missing:
        raise reason


def _means_no_network(error: Exception) -> bool:
    """True if other addresses will fail in the same way: names are not found, or nothing can be reached."""
    reason = getattr(error, "reason", error)
    unreachable = isinstance(reason, OSError) and reason.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH)
    return isinstance(reason, socket.gaierror | _NoAnswer) or unreachable


class _NoAnswer(OSError):
    """A server, or the search for its address, took too long."""


def _opened(url: str) -> Any:
    """The response of a server. The search for an address has no time limit of its own, so a thread does it."""
    found: queue.Queue[Any] = queue.Queue()

    def ask() -> None:
        try:
            found.put(urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS))
        except Exception as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()  # the page that came with it
            found.put(error.with_traceback(None))  # its frames would keep the socket

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = found.get(timeout=2 * TIMEOUT_SECONDS)
    except queue.Empty:
        raise _NoAnswer(f"{url} did not answer within {2 * TIMEOUT_SECONDS:g} s") from None
    try:
        if isinstance(answer, Exception):
            raise answer
        return answer
    finally:
        del answer  # an error refers to this frame, which must not refer to it: it may hold a connection


def _download_file(url: str, path: Path, digest: str) -> None:
    """Fetch one file; it gets its name only when it is complete and correct."""
    with (
        _opened(url) as response,
        tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file,
    ):
        try:
            total = int(response.headers.get("Content-Length") or 0) or None
            with tqdm(desc=path.name, total=total, unit="B", unit_scale=True, disable=None, leave=False) as bar:
                while chunk := response.read(1 << 16):
                    file.write(chunk)
                    bar.update(len(chunk))
            file.close()
            if _sha256(Path(file.name)) != digest:
                raise OSError(f"{url} is not the file that was published: its checksum differs")
            os.replace(file.name, path)
        except BaseException:  # Ctrl-C too: leave no half-written file
            Path(file.name).unlink(missing_ok=True)
            raise


def _sha256(path: Path) -> str:
    """The checksum of a file, or "" if it does not exist."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


# ---- the digits that scikit-learn carries


def bundled_digits() -> Digits:
    """1,797 digits of 43 people, 8x8 pixels of 17 greys, scaled to 28x28 by linear interpolation; a fifth is for tests.

    Source: E. Alpaydin, C. Kaynak, "Optical Recognition of Handwritten Digits", UCI repository (the test part, as
    scikit-learn bundles it). Raises DataError without scikit-learn.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise DataError(
            "scikit-learn is not installed, and it carries the digits that serve without a network. "
            "Run: pip install scikit-learn - or give MNIST's files with --data DIR."
        ) from error
    bunch = load_digits()
    small, large = (np.arange(8) + 0.5) / 8, (np.arange(28) + 0.5) / 28  # pixel centres on the unit square
    stretch = np.stack([np.interp(large, small, unit) for unit in np.eye(8)], axis=1)  # [28, 8]
    images = np.rint(stretch @ (bunch.images * (255 / 16)) @ stretch.T).astype(np.uint8)
    return _split("scikit-learn's digits", images, bunch.target)


# ---- shared


def _split(name: str, images: NDArray, labels: NDArray) -> Digits:
    """Keep a fifth for tests, picked by a fixed shuffle: files are sorted by writer or difficulty."""
    order = np.random.default_rng(0).permutation(len(images))
    test = round(len(images) * HELD_BACK)
    if not 0 < test < len(images):
        raise DataError(f"{name}: too few images to hold a fifth back for the test. Give more.")
    rest, held = order[test:], order[:test]
    return _digits(name, images[rest], labels[rest], images[held], labels[held])


def _digits(name: str, images: NDArray, labels: NDArray, test_images: NDArray, test_labels: NDArray) -> Digits:
    def flat(array: NDArray) -> NDArray:
        return array.reshape(len(array), -1).astype(np.float32) / np.float32(255)

    rows, columns = images.shape[1:]
    s32 = np.int32
    return Digits(name, (rows, columns), flat(images), labels.astype(s32), flat(test_images), test_labels.astype(s32))


def _pixels(images: NDArray) -> str:
    return " x ".join(map(str, images.shape[1:]))
