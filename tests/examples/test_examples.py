"""The examples: their results against known properties, and the programs as a user runs them."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

import char_rnn
import fit_ode
import hloom
import hloom.numpy as jnp
import kalman_smoother
import mnist_data
import per_example_gradients
import sample_hmc

PROGRAMS = {
    fit_ode: ("ode", ["--steps", "5"]),
    sample_hmc: ("hmc", ["--samples", "100", "--warm-up", "100"]),
    char_rnn: ("rnn", ["--steps", "5", "--hidden", "16"]),
    kalman_smoother: ("kalman", ["--steps", "5", "--points", "60"]),
    per_example_gradients: ("gradients", ["--epochs", "1", "--hidden", "8"]),
}
"""The name of each in `make`, and arguments for a short run."""


# ---- as programs


@pytest.mark.one_in(2)
@pytest.mark.parametrize("program", PROGRAMS)
def test_draws_a_picture(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new" / "picture.png"
    monkeypatch.setattr(sys, "argv", ["example", *PROGRAMS[program][1], "--out", str(path)])
    program.main()
    assert capsys.readouterr().out.endswith(f"Picture: {path}\n")
    with Image.open(path) as picture:
        assert picture.format == "PNG" and picture.width == 1100
        assert len(np.unique(np.asarray(picture))) > 20


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--out", "picture.bmp"], r"ends in \.png"),
        (["--steps", "0"], "0 is not above 0"),
        (["--stages", "4"], "unrecognized"),
    ],
)
def test_bad_options(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["example", *arguments])
    with pytest.raises(SystemExit) as caught:
        fit_ode.main()
    assert caught.value.code == 2 and re.search(message, capsys.readouterr().err)


def test_bad_files_are_told_in_one_line(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(root / "examples" / "per_example_gradients.py"), "--data", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2 and ran.stderr.startswith("IdxError: ") and ran.stderr.count("\n") == 1


@pytest.mark.parametrize("program", PROGRAMS)
def test_is_in_the_gallery_with_its_picture_and_in_the_makefile(program: ModuleType, root: Path) -> None:
    name, _ = PROGRAMS[program]
    assert f"\nPROGRAM_{name} = {program.__name__}\n" in (root / "Makefile").read_text()
    gallery = (root / "docs" / "examples.md").read_text()
    assert f"`make {name}`" in gallery and f"](images/examples/{name}.png)" in gallery
    picture = root / "docs" / "images" / "examples" / f"{name}.png"
    assert picture.stat().st_size < 100_000
    with Image.open(picture) as image:
        assert image.format == "PNG" and image.width >= 1000


@pytest.mark.slow
@pytest.mark.parametrize(
    "program, expected",
    [
        ("fit_ode", r"loss 1\.19\d\d -> 0\.0481 in 1,000 steps"),
        ("sample_hmc", r"accepted: 9\d\.\d% of 20,000 paths"),
        ("char_rnn", r"step +800   0\.\d{3} bits a letter"),
        ("kalman_smoother", r"distance from the truth: seen [\d.]+, filter [\d.]+, smoother [\d.]+"),
        ("per_example_gradients", r"of the 144 longest gradients, (8[5-9]|9\d)% belong to wrong labels"),
    ],
)
def test_takes_less_than_a_minute(program: str, expected: str, root: Path, tmp_path: Path) -> None:
    began = time.perf_counter()
    command = [sys.executable, str(root / "examples" / f"{program}.py"), "--out", str(tmp_path / "picture.png")]
    environment = {"HLOOM_CACHE_DIR": str(tmp_path / "kernels"), "PATH": ""}  # nothing is compiled already
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert re.search(expected, ran.stdout), ran.stdout
    assert time.perf_counter() - began < 60


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_is_a_jax_program(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its two imports changed it runs there, and prints the same."""
    pytest.importorskip("jax")
    source = Path(str(program.__file__)).read_text()
    for name, other in (("import hloom\n", "import jax as hloom\n"), ("hloom.numpy as jnp", "jax.numpy as jnp")):
        assert source.count(name) == 1
        source = source.replace(name, other)
    printed = []
    arguments = [*PROGRAMS[program][1], "--out", str(tmp_path / "picture.png")]
    monkeypatch.setattr(sys, "argv", ["example", *arguments])
    space: dict[str, Any] = {"__name__": "example", "__doc__": program.__doc__}
    exec(compile(source, "example", "exec"), space)
    for main in (program.main, space["main"]):
        main()
        words = re.sub(r"[\d.]+ m?s\b", "", capsys.readouterr().out)
        printed.append([float(number) for number in re.findall(r"-?\d+\.\d+", words)])
    assert len(printed[0]) >= 2
    np.testing.assert_allclose(printed[0], printed[1], rtol=0.2 if program is sample_hmc else 5e-3, atol=5e-3)


# ---- the differential equation


def test_the_fit_finds_the_published_rates() -> None:
    """B. Carpenter, "Predator-prey population dynamics" (2018), fits the same model to the same data in Stan."""
    params, losses = fit_ode.fit(250)
    assert losses[0] > 1 and losses[-1] < 0.05
    rates = {name: float(np.exp(value)) for name, value in params.items() if name != "start"}
    for name, published in {"alpha": 0.55, "beta": 0.028, "gamma": 0.80, "delta": 0.024}.items():
        assert rates[name] == pytest.approx(published, rel=0.1), name


def test_the_solver_is_right() -> None:
    """Against SciPy's, at the numbers of years and of points that the picture has."""
    integrate = pytest.importorskip("scipy.integrate")
    rates = {"alpha": 0.55, "beta": 0.028, "gamma": 0.8, "delta": 0.024}
    params = hloom.tree.map(jnp.log, {**rates, "start": jnp.array([34.0, 6.0])})
    path = np.asarray(fit_ode.solve(params, 20, 10))

    def slope(_: float, state: Any) -> list[float]:
        (u, v), r = state, rates
        return [(r["alpha"] - r["beta"] * v) * u, (r["delta"] * u - r["gamma"]) * v]

    times = np.arange(200) / 10
    expected = integrate.solve_ivp(slope, (0, 20), [34.0, 6.0], t_eval=times, rtol=1e-9, atol=1e-9).y.T
    np.testing.assert_allclose(path, expected, rtol=1e-3)
    np.testing.assert_allclose(fit_ode.solve(params, 20), path[::10], rtol=1e-4)


# ---- Hamiltonian Monte Carlo


def test_samples_have_the_known_moments() -> None:
    positions, probabilities, step_sizes = sample_hmc.run_chains(4, 300, 1500, 1)
    assert positions.shape == (4, 1500, 2) and step_sizes.shape == (4, 300)
    assert 0.8 < probabilities.mean() < 0.99
    assert np.all(sample_hmc.r_hat(positions) < 1.02)
    worth = sample_hmc.effective(positions)
    assert np.all(worth > 500)
    errors = sample_hmc.DEVIATION / np.sqrt(np.minimum(worth, 6000))
    assert np.all(np.abs(positions.mean((0, 1)) - sample_hmc.MEAN) < 5 * errors)
    np.testing.assert_allclose(positions.std((0, 1)), sample_hmc.DEVIATION, rtol=0.1)


def test_a_path_can_be_gone_back() -> None:
    start, push = jnp.array([0.3, -0.2]), jnp.array([1.0, 0.5])
    position, momentum = sample_hmc.leapfrog(start, push, 0.1)
    assert float(jnp.linalg.norm(position - start)) > 0.5
    back, momentum = sample_hmc.leapfrog(position, -momentum, 0.1)
    np.testing.assert_allclose(back, start, atol=1e-4)
    np.testing.assert_allclose(momentum, -push, atol=1e-4)


def test_chains_that_disagree_are_noticed() -> None:
    rng = np.random.default_rng(0)
    positions = rng.normal(size=(4, 1000, 2))
    assert np.all(np.abs(sample_hmc.r_hat(positions) - 1) < 0.01)
    assert np.all(sample_hmc.effective(positions) > 2000)
    positions[0, :, 1] += 1
    agree, disagree = sample_hmc.r_hat(positions)
    assert agree < 1.01 and disagree > 1.05


# ---- the recurrent network


def test_the_rhyme() -> None:
    verses = char_rnn.TEXT.split("\n\n")[:-1]
    assert verses[0] == "This is the house that Jack built."
    assert verses[2] == "This is the rat\nthat ate the malt\nthat lay in the house that Jack built."
    assert len(verses) == 12 and verses[11].endswith(verses[10].removeprefix("This is "))


def test_the_unit_is_what_numpy_says() -> None:
    params = char_rnn.init_params(hloom.random.key(0), 5)
    arrays = {name: np.asarray(value, np.float64) for name, value in params.items()}
    state, letters = np.random.default_rng(1).normal(size=(3, 5)), np.array([4, 0, 9])
    seen, kept = arrays["input"][letters] + arrays["bias"], state @ arrays["state"]
    update, reset = (1 / (1 + np.exp(-(seen + kept)[:, 5 * k : 5 * k + 5])) for k in range(2))
    expected = (1 - update) * np.tanh(seen[:, 10:] + reset * kept[:, 10:]) + update * state
    np.testing.assert_allclose(char_rnn.gru(params, state.astype("f"), letters), expected, rtol=1e-4, atol=1e-5)


def test_it_learns_to_write_the_rhyme() -> None:
    options = SimpleNamespace(steps=200, hidden=48, seed=0)
    params, losses = char_rnn.train(options)
    assert losses[0] > 4 and np.mean(losses[-10:]) < 0.25
    written = char_rnn.as_text(char_rnn.write(params, hloom.random.key(1), 600)).split()
    known = set(char_rnn.TEXT.split())
    assert len(written) > 80 and np.mean([word in known for word in written]) > 0.75


# ---- the Kalman smoother


def test_filter_and_smoother_are_conditioning() -> None:
    """All positions and sightings are one normal distribution: by its formulas, in f64, with one sighting missing."""
    count, noise = 7, {"change": math.log(0.5), "error": math.log(2.0)}
    _, seen, _ = kalman_smoother.simulate(count, 3)
    known = np.arange(count) != 4
    change, error = 0.25 * kalman_smoother.CHANGE.astype(float), 4.0 * np.eye(2)
    move, see = kalman_smoother.MOVE.astype(float), kalman_smoother.SEE.astype(float)
    mean, cov = np.r_[seen[0], 0, 0].astype(float), np.diag([50.0, 50, 5, 5])
    means, covs = [], []
    for _ in range(count):
        mean, cov = move @ mean, move @ cov @ move.T + change
        means.append(mean)
        covs.append(cov)
    joint = np.zeros((4 * count, 4 * count))
    for i in range(count):
        for j in range(i, count):
            block = np.linalg.matrix_power(move, j - i) @ covs[i]
            joint[4 * j : 4 * j + 4, 4 * i : 4 * i + 4] = block
            joint[4 * i : 4 * i + 4, 4 * j : 4 * j + 4] = block.T
    look = np.kron(np.eye(count)[known], see)
    spread = look @ joint @ look.T + np.kron(np.eye(known.sum()), error)
    surprise = seen[known].ravel() - look @ np.concatenate(means)
    gain = np.linalg.solve(spread, look @ joint).T
    expected_mean = (np.concatenate(means) + gain @ surprise).reshape(count, 4)
    expected_cov = joint - gain @ spread @ gain.T

    params = hloom.tree.map(jnp.float32, noise)
    found_mean, found_cov, filtered, _ = kalman_smoother.smooth(params, seen, known)
    np.testing.assert_allclose(found_mean, expected_mean, rtol=1e-3, atol=1e-3)
    for k in range(count):
        np.testing.assert_allclose(
            found_cov[k], expected_cov[4 * k : 4 * k + 4, 4 * k : 4 * k + 4], rtol=0.01, atol=1e-3
        )
    np.testing.assert_allclose(filtered[-1], expected_mean[-1], rtol=1e-3, atol=1e-3)
    fit = surprise @ np.linalg.solve(spread, surprise) + np.linalg.slogdet(2 * np.pi * spread)[1]
    assert float(kalman_smoother.loss(params, seen, known)) == pytest.approx(fit / 2 / known.sum(), rel=1e-3)


def test_noise_levels_are_learned_and_the_smoother_is_better() -> None:
    truth, seen, known = kalman_smoother.simulate(200, 4)
    params, history = kalman_smoother.learn(seen, known, 120)
    assert history[-1, 0] < history[0, 0] - 1
    assert float(np.exp(params["change"])) == pytest.approx(kalman_smoother.TRUE_CHANGE, rel=0.4)
    assert float(np.exp(params["error"])) == pytest.approx(kalman_smoother.TRUE_ERROR, rel=0.2)
    smooth_mean, _, mean, _ = kalman_smoother.smooth(params, seen, known)
    far = [np.sqrt(np.mean(kalman_smoother.distance(m, truth) ** 2)) for m in (seen, mean, smooth_mean)]
    assert far[2] < 0.8 * far[1] < 0.8 * far[0]


# ---- gradients of examples


@pytest.fixture(scope="module")
def few() -> tuple[Any, Any, Any]:
    """Parameters, ten images, their labels."""
    params = per_example_gradients.init_params(hloom.random.key(0), 20, 6)
    rng = np.random.default_rng(0)
    return params, rng.random((10, 20), np.float32), rng.integers(0, 10, 10).astype(np.int32)


def test_lengths_are_those_of_the_gradients_one_by_one(few: tuple[Any, Any, Any]) -> None:
    params, images, labels = few
    expected = []
    for image, label in zip(images, labels):
        gradient = hloom.grad(per_example_gradients.loss)(params, image, label)
        expected.append(np.linalg.norm(np.concatenate([np.ravel(g) for g in gradient.values()])))
    np.testing.assert_allclose(per_example_gradients.lengths(params, images, labels), expected, rtol=1e-5)


def test_limits(few: tuple[Any, Any, Any]) -> None:
    """Without one it is the gradient of the mean loss; a low one makes all of equal length."""
    params, images, labels = few

    def mean_loss(params: Any) -> Any:
        return jnp.mean(hloom.vmap(per_example_gradients.loss, in_axes=(None, 0, 0))(params, images, labels))

    unlimited = per_example_gradients.limited_mean(params, images, labels, math.inf)
    for name, expected in hloom.grad(mean_loss)(params).items():
        np.testing.assert_allclose(unlimited[name], expected, rtol=1e-4, atol=1e-6)
    lengths = np.asarray(per_example_gradients.lengths(params, images, labels))
    low = float(lengths.min()) / 2
    limited = per_example_gradients.limited_mean(params, images, labels, low)
    for name, part in limited.items():
        parts = [hloom.grad(per_example_gradients.loss)(params, i, k)[name] for i, k in zip(images, labels)]
        expected = np.mean([np.asarray(p) * low / n for p, n in zip(parts, lengths)], axis=0)
        np.testing.assert_allclose(part, expected, rtol=1e-4, atol=1e-6)


def test_wrong_labels_are_found() -> None:
    digits = mnist_data.load(None, bundled=True)
    labels, wrong = per_example_gradients.with_wrong_labels(digits.train_labels, 0)
    assert wrong.sum() == 144 and np.array_equal(wrong, labels != digits.train_labels)
    options, bar = SimpleNamespace(seed=0, epochs=5, hidden=32), SimpleNamespace(update=int, set_postfix=dict)
    for limit, noise, rate in ((math.inf, 0.0, 0.1), (3.0, 0.5, 0.3)):
        params, accuracies = per_example_gradients.train(digits, labels, limit, noise, rate, options, bar)
        assert accuracies[-1] > 0.85
        found = per_example_gradients.all_lengths(params, digits.train_images, labels)
        assert np.mean(wrong[np.argsort(found)[::-1][:144]]) > 0.7
