"""The example as a user runs it, and its training step against the same step written out in NumPy."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloom
import train_mnist


def run(root: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "examples" / "train_mnist.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)


def test_learns_the_bundled_digits_and_draws_a_picture(root: Path, tmp_path: Path) -> None:
    picture = tmp_path / "new" / "digits.png"
    ran = run(root, "--digits", "--epochs", "12", "--out", str(picture))
    assert ran.returncode == 0, ran.stderr
    accuracies = [float(percent) for percent in re.findall(r"test accuracy +([\d.]+)%", ran.stdout)]
    assert len(accuracies) == 12
    assert accuracies[-1] >= 97.0
    assert accuracies[0] < accuracies[-1]
    lines = ran.stdout.splitlines()
    assert re.fullmatch(r"compiling: [\d.]+ s", lines[1]) and re.fullmatch(r"training: [\d.]+ s", lines[-3])
    assert lines[-2] == f"scikit-learn's digits: {accuracies[-1]:.2f}% of 359 test digits read right"
    header = picture.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(header[16:20]) > 1000, "pixels across"


@pytest.mark.slow
def test_learns_the_same_in_the_layouts_of_a_tpu(root: Path, tmp_path: Path) -> None:
    """The sums are taken in another order, so the last digits of losses may differ; accuracies hardly."""
    lines = {}
    for target in ("cpu", "tpu"):
        ran = run(root, "--digits", "--epochs", "6", "--target", target, "--out", str(tmp_path / "digits.png"))
        assert ran.returncode == 0, ran.stderr
        lines[target] = re.findall(r"loss ([\d.]+) +test accuracy +([\d.]+)%", ran.stdout)
        assert len(lines[target]) == 6
    for (loss, accuracy), (other_loss, other_accuracy) in zip(lines["cpu"], lines["tpu"], strict=True):
        assert float(other_loss) == pytest.approx(float(loss), abs=0.01)
        assert float(other_accuracy) == pytest.approx(float(accuracy), abs=1.5)
    assert float(lines["tpu"][-1][1]) >= 95.0


def test_the_training_step_for_a_tpu_has_its_layouts(root: Path) -> None:
    ran = run(root, "--digits", "--show", "optimized", "--target", "tpu")
    assert ran.returncode == 0, ran.stderr
    assert "{1,0:T(8,128)" in ran.stdout
    entry_layout = ran.stdout[: ran.stdout.index("\n")]
    assert "T(" not in entry_layout, "arguments and results are row-major"


@pytest.mark.parametrize(
    "stage, found",
    [
        ("hlo", [r"HloModule", r"ENTRY", r" dot\(", r"f32\[784,512\]"]),
        ("optimized", [r"HloModule", r"ENTRY", r" fusion\(", r"is_scheduled=true"]),
        ("kernels", [r"def \w+\(lo, hi, ", r"for \w+ in range\(lo, hi\):"]),
        ("passes", [r"^pass +ms +instructions", r"^all +[\d.]+ +\d+ -> \d+$"]),
        ("memory", [r"^peak of a call +[\d,]+$", r"^memory map of "]),
    ],
)
def test_show(
    stage: str, found: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["train_mnist.py", "--digits", "--show", stage])
    train_mnist.main()
    out, err = capsys.readouterr()
    for pattern in found:
        assert re.search(pattern, out, re.MULTILINE), f"{pattern} is not in:\n{out[:2000]}"
    assert err == "" and "metadata" not in out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--data", "{tmp}"], r"^IdxError: .*truncated.*again\.$"),
        (["--digits", "--out", "/proc/nowhere/picture.png"], r"/proc/nowhere"),
    ],
)
def test_bad_input_is_told_in_one_line(root: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(bytes.fromhex("00000803 0000000a 0000001c 0000001c"))
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(bytes.fromhex("00000801 0000000a") + bytes(10))
    ran = run(root, *(argument.format(tmp=tmp_path) for argument in arguments), cwd=tmp_path)
    assert ran.returncode == 2
    assert re.search(message, ran.stderr, re.MULTILINE), ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--out", "picture.bmp"], r"ends in \.png"),
        (["--epochs", "0"], r"0 is not above 0"),
        (["--hidden", "64,many"], r"--hidden"),
        (["--show", "assembler"], r"--show"),
        (["--target", "gpu"], r"--target"),
        (["--digits", "--data", "."], r"not allowed with"),
    ],
)
def test_bad_options(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit) as caught:
        train_mnist.parse_options(arguments)
    assert caught.value.code == 2
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C goes to all processes of a console")
def test_interrupt_is_clean(root: Path, tmp_path: Path) -> None:
    # The signal may be ignored here, and so in the child (cron, `&`): Python's own handler is set first.
    program = "import runpy, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); del sys.argv[0]; "
    program += "sys.path[0] = sys.argv[0].rpartition('/')[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-u", "-c", program, str(root / "examples" / "train_mnist.py")]
    command += ["--digits", "--epochs", "100000", "--out", str(tmp_path / "never.png")]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        assert process.stdout is not None
        while "epoch" not in process.stdout.readline():
            assert process.poll() is None, process.communicate()[1]
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors and "Interrupted." in errors
    assert not (tmp_path / "never.png").exists()


@pytest.mark.parametrize("epochs", [1, 3])
def test_the_picture_names_the_data_and_the_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epochs: int
) -> None:
    from matplotlib.figure import Figure

    said: list[str] = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *a: (said.extend(words(figure)), save(figure, *a)))
    monkeypatch.setattr(sys, "argv", ["train", "--digits", "--epochs", str(epochs), "--out", str(tmp_path / "$p.png")])
    train_mnist.main()
    assert re.fullmatch(r"scikit-learn's digits: [\d.]+% of 359 test digits read right", said[0])
    count = "1 epoch" if epochs == 1 else f"{epochs} epochs"
    assert re.fullmatch(rf"1,438 images to train, {count}; [\d.]+ s of compiling, then [\d.]+ s of training", said[1])


def words(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.texts]


@pytest.mark.parametrize("target", ["cpu", "tpu"])
def test_the_training_step_is_what_numpy_says(target: str) -> None:
    """Two steps of a 6-5-4-10 network, forwards, backwards and update written out by hand in f64."""
    hloom.config.update("hloom_target", target)
    try:
        check_training_step()
    finally:
        hloom.config.update("hloom_target", "cpu")


def check_training_step() -> None:
    rng = np.random.default_rng(3)
    sizes, rate, momentum = [6, 5, 4, 10], 0.3, 0.9
    params = train_mnist.init_params(hloom.random.key(1), sizes)
    state = (params, hloom.tree.map(lambda p: 0 * p, params))
    images, labels = rng.normal(size=(7, 6)).astype(np.float32), rng.integers(0, 10, 7).astype(np.int32)
    weights = [np.asarray(layer["w"], np.float64) for layer in params]
    biases = [np.asarray(layer["b"], np.float64) for layer in params]
    moving = [np.zeros_like(array) for array in weights + biases]
    for _ in range(2):
        state, value = train_mnist.train_step(state, images, labels, rate, momentum)
        expected = numpy_step(weights, biases, moving, images, labels, rate, momentum)
        np.testing.assert_allclose(value, expected, rtol=1e-5)
        for layer, weight, bias in zip(state[0], weights, biases):
            np.testing.assert_allclose(layer["w"], weight, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(layer["b"], bias, rtol=1e-4, atol=1e-5)


def numpy_step(
    weights: list[np.ndarray],
    biases: list[np.ndarray],
    moving: list[np.ndarray],
    images: np.ndarray,
    labels: np.ndarray,
    rate: float,
    momentum: float,
) -> float:
    """One step, in place; the loss before it."""
    inputs = [images.astype(np.float64)]
    for weight, bias in zip(weights[:-1], biases[:-1]):
        inputs.append(np.maximum(inputs[-1] @ weight + bias, 0))
    scores = inputs[-1] @ weights[-1] + biases[-1]
    probabilities = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    rows = np.arange(len(labels))
    value = -np.log(probabilities[rows, labels]).mean()
    probabilities[rows, labels] -= 1
    delta = probabilities / len(labels)
    weight_gradients, bias_gradients = [], []
    for weight, layer_input in zip(weights[::-1], inputs[::-1]):
        weight_gradients.insert(0, layer_input.T @ delta)
        bias_gradients.insert(0, delta.sum(0))
        delta = (delta @ weight.T) * (layer_input > 0)
    for array, velocity, gradient in zip(weights + biases, moving, weight_gradients + bias_gradients):
        velocity *= momentum
        velocity -= rate * gradient
        array += velocity
    return float(value)
