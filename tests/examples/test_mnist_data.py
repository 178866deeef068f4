"""The examples' data: correct and damaged IDX files, the download, the bundled digits."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mnist_data


@pytest.fixture(autouse=True)
def nothing_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnist_data, "_failed", None)


RNG = np.random.default_rng(7)


def idx(array: np.ndarray) -> bytes:
    """The IDX file of an array of bytes."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def images(count: int, side: int = 28) -> np.ndarray:
    return RNG.integers(0, 256, (count, side, side), np.uint8)


def labels(count: int) -> np.ndarray:
    return RNG.integers(0, 10, count, np.uint8)


def fill(folder: Path, part: str, image_bytes: bytes, label_bytes: bytes, suffix: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{part}-images-idx3-ubyte{suffix}").write_bytes(image_bytes)
    (folder / f"{part}-labels-idx1-ubyte{suffix}").write_bytes(label_bytes)
    return folder


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("place", ["", "MNIST/raw"])
def test_a_folder_with_both_parts(tmp_path: Path, suffix: str, place: str) -> None:
    pack = gzip.compress if suffix else bytes
    train, test, train_labels, test_labels = images(20), images(5), labels(20), labels(5)
    fill(tmp_path / place, "train", pack(idx(train)), pack(idx(train_labels)), suffix)
    fill(tmp_path / place, "t10k", pack(idx(test)), pack(idx(test_labels)), suffix)
    digits = mnist_data.load(tmp_path)
    assert digits.image_shape == (28, 28)
    assert digits.train_images.dtype == np.float32 and digits.train_labels.dtype == np.int32
    np.testing.assert_allclose(digits.train_images * 255, train.reshape(20, 784), rtol=1e-6)
    np.testing.assert_allclose(digits.test_images * 255, test.reshape(5, 784), rtol=1e-6)
    np.testing.assert_array_equal(digits.train_labels, train_labels)
    np.testing.assert_array_equal(digits.test_labels, test_labels)


@pytest.mark.parametrize("part", ["train", "t10k"])
def test_one_pair_is_split_and_every_image_keeps_its_label(tmp_path: Path, part: str) -> None:
    pixels = np.repeat(np.arange(10, dtype=np.uint8), 10)[:, None, None] * np.ones((28, 28), np.uint8)
    fill(tmp_path, part, idx(pixels), idx(pixels[:, 0, 0]))
    digits = mnist_data.load(tmp_path)
    assert (len(digits.train_images), len(digits.test_images)) == (80, 20)
    for some, theirs in (
        (digits.train_images, digits.train_labels),
        (digits.test_images, digits.test_labels),
    ):
        np.testing.assert_array_equal(np.rint(some[:, 0] * 255), theirs)
    again = mnist_data.load(tmp_path)
    np.testing.assert_array_equal(digits.test_labels, again.test_labels)


def test_names_with_a_dot_and_the_plain_file_before_the_packed_one(tmp_path: Path) -> None:
    (tmp_path / "t10k-images.idx3-ubyte").write_bytes(idx(images(10)))
    (tmp_path / "t10k-labels.idx1-ubyte").write_bytes(idx(labels(10)))
    (tmp_path / "t10k-images.idx3-ubyte.gz").write_bytes(b"never read")
    (tmp_path / "README.txt").write_text("not data")
    assert len(mnist_data.load(tmp_path).test_labels) == 2


GOOD_IMAGES, GOOD_LABELS = idx(images(10)), idx(labels(10))
BROKEN = {
    "empty": (b"", GOOD_LABELS, r"images-idx3-ubyte: not an IDX file .* begins with nothing"),
    "text": (b"<html>404</html>", GOOD_LABELS, r"images-idx3-ubyte: not an IDX file .* begins with 3c 68 74 6d"),
    "labels for images": (GOOD_LABELS, GOOD_LABELS, r"images-idx3-ubyte: not an IDX file .* 3 dimensions"),
    "images for labels": (GOOD_IMAGES, GOOD_IMAGES, r"labels-idx1-ubyte: not an IDX file .* 1 dimension:"),
    "signed bytes": (b"\0\0\x09\x03" + GOOD_IMAGES[4:], GOOD_LABELS, "not an IDX file of unsigned bytes"),
    "cut header": (GOOD_IMAGES[:10], GOOD_LABELS, "ends within its header of 16 bytes"),
    "truncated": (GOOD_IMAGES[:-1], GOOD_LABELS, r"truncated: .* 10 x 28 x 28 = 7,840 bytes, 7,839 follow"),
    "too long": (GOOD_IMAGES, GOOD_LABELS + b"!", r"labels-idx1-ubyte: too long: .* = 10 bytes, 11 follow"),
    "huge count": (b"\0\0\x08\x03" + b"\xff" * 12, GOOD_LABELS, "truncated"),
    "counts differ": (GOOD_IMAGES, idx(labels(9)), r"9 labels, but .*images-idx3-ubyte beside it has 10 images"),
    "no images": (idx(images(0)), idx(labels(0)), "holds no images"),
    "label 47": (GOOD_IMAGES, idx(np.full(10, 47)), r"has the label 47; digits are 0 to 9"),
    "bad gzip": (gzip.compress(GOOD_IMAGES)[:50], GOOD_LABELS, "images-idx3-ubyte: damaged gzip data"),
    "gzip, then noise": (b"\x1f\x8b" + bytes(range(90)), GOOD_LABELS, "damaged gzip data"),
    "gzip, flipped bit": (
        gzip.compress(GOOD_IMAGES, mtime=0)[:-8] + b"\0" * 8,
        GOOD_LABELS,
        "damaged gzip data",
    ),
}


@pytest.mark.parametrize("image_bytes, label_bytes, message", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_named(tmp_path: Path, image_bytes: bytes, label_bytes: bytes, message: str) -> None:
    fill(tmp_path, "t10k", image_bytes, label_bytes)
    with pytest.raises(mnist_data.IdxError, match=message) as caught:
        mnist_data.load(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert str(caught.value).endswith(".")


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(mnist_data.IdxError, match="no such folder"):
        mnist_data.load(tmp_path / "nowhere")
    with pytest.raises(mnist_data.IdxError, match=r"no MNIST files there.*train-images-idx3-ubyte"):
        mnist_data.load(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(GOOD_LABELS)
    with pytest.raises(mnist_data.IdxError, match=r"t10k-labels-idx1-ubyte: the images that belong to it are missing"):
        mnist_data.load(tmp_path)


def test_parts_of_different_size(tmp_path: Path) -> None:
    fill(tmp_path, "train", idx(images(10)), GOOD_LABELS)
    fill(tmp_path, "t10k", idx(images(10, side=14)), GOOD_LABELS)
    with pytest.raises(mnist_data.IdxError, match=r"28 x 28 pixels and the test images 14 x 14"):
        mnist_data.load(tmp_path)


def test_too_few_to_split(tmp_path: Path) -> None:
    fill(tmp_path, "t10k", idx(images(1)), idx(labels(1)))
    with pytest.raises(mnist_data.DataError, match="too few images"):
        mnist_data.load(tmp_path)


def test_bundled_digits() -> None:
    digits = mnist_data.load(bundled=True)
    assert digits.train_images.shape == (1438, 784) and digits.test_images.shape == (359, 784)
    assert digits.train_images.min() == 0 and digits.train_images.max() == 1
    assert sorted(set(digits.test_labels.tolist())) == list(range(10))
    # scaling keeps the ink where it was: a digit's mean is its small original's, but for what the border gains
    small = np.sort(mnist_data_small_means())
    large = np.sort(np.concatenate([digits.train_images.mean(1), digits.test_images.mean(1)]))
    np.testing.assert_allclose(small, large, atol=0.03)


def mnist_data_small_means() -> np.ndarray:
    from sklearn.datasets import load_digits

    return load_digits().images.mean((1, 2)) / 16


# ---- the download, from a server of our own


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """A mirror at an address of this machine, with four small files that have the expected checksums."""
    folder = tmp_path / "mirror"
    for part in ("train", "t10k"):
        fill(folder, part, gzip.compress(GOOD_IMAGES), gzip.compress(GOOD_LABELS), ".gz")
    digests = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in mnist_data.SHA256}
    monkeypatch.setattr(mnist_data, "SHA256", digests)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}/", folder
        httpd.shutdown()
        thread.join()


def test_download_fills_the_cache_and_mends_it(
    server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, _ = server
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(mnist_data, "MIRRORS", (address + "not/there/", address))
    cache = mnist_data.cache_folder()
    mnist_data.download(cache, mnist_data.MIRRORS)
    assert sorted(p.name for p in cache.iterdir()) == sorted(mnist_data.SHA256)  # and no half-written file
    damaged = cache / "t10k-labels-idx1-ubyte.gz"
    damaged.write_bytes(b"damaged")
    mnist_data.download(cache, (address,))
    assert hashlib.sha256(damaged.read_bytes()).hexdigest() == mnist_data.SHA256[damaged.name]
    mnist_data.download(cache, ())  # all there: no request
    loaded = mnist_data.load()
    assert len(loaded.train_labels) == 10 and loaded.name == "MNIST"


def test_a_wrong_file_is_never_stored(server: tuple[str, Path], tmp_path: Path) -> None:
    address, folder = server
    (folder / "train-images-idx3-ubyte.gz").write_bytes(b"<html>please log in</html>")
    cache = tmp_path / "cache"
    with pytest.raises(OSError, match="checksum differs"):
        mnist_data.download(cache, (address,))
    assert list(cache.iterdir()) == []


def test_without_a_network_the_bundled_digits_serve_and_one_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(mnist_data, "MIRRORS", ("http://127.0.0.1:9/",))
    digits = mnist_data.load()
    assert digits.name == "scikit-learn's digits"
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "1,797 digits" in said


def test_a_failed_download_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked: list[str] = []

    def refuse(url: str, timeout: float) -> None:
        asked.append(url)
        raise urllib.error.URLError(socket.gaierror(-2, "Name or service not known"))

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    for _ in range(2):
        assert mnist_data.load().name == "scikit-learn's digits"
    assert len(asked) == 1, "no other mirror is asked where there is no network, and none again"
    assert capsys.readouterr().err.count("(Name or service not known)") == 2


def test_a_server_that_says_nothing_does_not_hold_the_example_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mnist_data, "TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(OSError, match=r"timed out|did not answer"):
            mnist_data.download(tmp_path, (url, url))
    released = threading.Event()
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: released.wait(600))  # as a slow name server
    began = time.perf_counter()
    with pytest.raises(OSError, match=r"did not answer within 0\.4 s"):
        mnist_data.download(tmp_path, ("http://a/", "http://b/"))
    assert time.perf_counter() - began < 60
    released.set()
