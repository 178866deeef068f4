"""`hloom.scipy.ndimage`, `interpolate`, `integrate`, `cluster.vq` and `spatial.transform` against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.integrate
import scipy.interpolate
import scipy.ndimage
import scipy.spatial.transform

import hloom
import hloom.numpy as jnp
from hloom import random
from hloom.scipy.cluster.vq import vq
from hloom.scipy.integrate import trapezoid
from hloom.scipy.interpolate import RegularGridInterpolator
from hloom.scipy.ndimage import map_coordinates
from hloom.scipy.spatial.transform import Rotation, Slerp
from support.batch_check import check_batches
from support.grad_check import check_derivatives

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 5))
PLACES = RNG.uniform(-9, 12, (2, 3, 7))
THEIRS = scipy.spatial.transform.Rotation


def close(found: Any, expected: Any) -> None:
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-10, atol=1e-10)


# ---- between elements


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize(
    "mode", ["constant", "reflect", *[pytest.param(m, marks=pytest.mark.slow) for m in ("nearest", "wrap", "mirror")]]
)
def test_map_coordinates(mode: str, order: int) -> None:
    named = {"wrap": "grid-wrap", "constant": "grid-constant"}.get(mode, mode)
    expected = scipy.ndimage.map_coordinates(X, PLACES, order=order, mode=named, cval=1.5)
    with hloom.enable_x64(True):
        close(map_coordinates(X, PLACES, order, mode, 1.5), expected)
        close(hloom.jit(lambda x, c: map_coordinates(x, [c[0], c[1]], order, mode, cval=1.5))(X, PLACES), expected)
        if order and mode == "mirror":
            check_derivatives(lambda xs: [map_coordinates(*xs, 1, mode)], [X, PLACES], tolerance=1e-5)


def test_map_coordinates_of_integers() -> None:
    numbers = np.arange(6, dtype=np.int32).reshape(2, 3) * 7
    places = np.array([[0.5, 1.2], [0.7, 1.9]], np.float32)
    found = map_coordinates(numbers, places, 1, "nearest")
    assert found.dtype == "int32"
    assert (
        np.asarray(found).tolist() == scipy.ndimage.map_coordinates(numbers, places, order=1, mode="nearest").tolist()
    )
    assert map_coordinates(jnp.arange(5), [jnp.array([-1, 2, 9])], 1, "nearest").tolist() == [0, 2, 4]


GRID = (np.array([0.0, 1, 2.5, 4]), np.array([-1.0, 0, 0.5, 2, 3]))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill", [np.nan, None])
def test_regular_grid_interpolator(method: str, fill: float | None) -> None:
    values = RNG.standard_normal((4, 5, 2))
    theirs = scipy.interpolate.RegularGridInterpolator(GRID, values, method, bounds_error=False, fill_value=fill)
    places = RNG.uniform(-1.5, 4.5, (6, 3, 2))
    with hloom.enable_x64(True):
        ours = RegularGridInterpolator(GRID, values, method, fill_value=fill)
        close(ours(places), theirs(places))
        close(ours((places[..., 0], 0.3)), theirs((places[..., 0], 0.3)))
        close(ours(GRID[1][:2]), theirs(GRID[1][:2]))
        close(hloom.jit(lambda f, x: f(x))(ours, places), theirs(places))
        line = RegularGridInterpolator(GRID[:1], values[:, 0, 0], method, fill_value=fill)
        one = scipy.interpolate.RegularGridInterpolator(GRID[:1], values[:, 0, 0], method, False, fill)
        close(line(places[0, :, 0]), one(places[0, :, 0]))
        if fill is None and method == "linear":
            extended = lambda xs: [RegularGridInterpolator(GRID, xs[0], fill_value=None)(xs[1])]  # noqa: E731
            check_derivatives(extended, [values, places[:2] / 3])


def test_trapezoid() -> None:
    steps = np.sort(RNG.standard_normal(5))
    with hloom.enable_x64(True):
        for args in ((X,), (X, None, 0.5, 0), (X, steps), (X, X + 9 * np.arange(4)[:, None], 1.0, 0), (X[0], steps)):
            close(trapezoid(*args), scipy.integrate.trapezoid(*args))
        check_batches(trapezoid, [X, steps])
    assert trapezoid(np.arange(3)).dtype == "float32"


def test_vq() -> None:
    points, codes = RNG.standard_normal((30, 3)), RNG.standard_normal((4, 3))
    with hloom.enable_x64(True):
        for a, b in ((points, codes), (points[:, 0], codes[:, 0])):
            for found, expected in zip(vq(a, b), scipy.cluster.vq.vq(a, b), strict=True):
                close(found, expected)


# ---- rotations

QUATERNIONS = RNG.standard_normal((5, 4))
SEQUENCES = ["xyz", "ZXZ", *[pytest.param(s, marks=pytest.mark.slow) for s in ("XYZ", "zyx", "zxz", "YZX", "xyx")]]


@pytest.mark.parametrize("seq", SEQUENCES)
def test_euler_angles(seq: str) -> None:
    with hloom.enable_x64(True):
        ours, theirs = Rotation.from_quat(QUATERNIONS), THEIRS.from_quat(QUATERNIONS)
        close(ours.as_euler(seq), theirs.as_euler(seq))
        close(ours[1].as_euler(seq, degrees=True), theirs[1].as_euler(seq, degrees=True))
        for k in (1, 2, 3):
            angles = RNG.standard_normal((4, k))
            close(Rotation.from_euler(seq[:k], angles).as_matrix(), THEIRS.from_euler(seq[:k], angles).as_matrix())
        single = Rotation.from_euler(seq[0], 40.0, degrees=True)
        close(single.as_matrix()[None], THEIRS.from_euler(seq[0], [40.0], degrees=True).as_matrix().reshape(1, 3, 3))


def test_euler_angles_where_axes_are_one() -> None:
    angles = np.array([[0.4, np.pi / 2, 0.3], [0.4, -np.pi / 2, 0.3], [0.4, 0.0, 0.3]])
    with hloom.enable_x64(True):
        for seq in ("xyz", "XYZ", "zxz"):
            rotation = Rotation.from_euler(seq, angles)
            found = rotation.as_euler(seq)
            close(Rotation.from_euler(seq, found).as_matrix(), rotation.as_matrix())
        assert np.asarray(Rotation.from_euler("xyz", angles[:2]).as_euler("xyz"))[:, 2].tolist() == [0, 0]


FORMS: dict[str, Callable[[Any], Any]] = {
    "matrix": lambda r: r.as_matrix(),
    "rotvec": lambda r: r.as_rotvec(),
    "rotvec in degrees": lambda r: r.as_rotvec(degrees=True),
    "mrp": lambda r: r.as_mrp(),
    "canonical": lambda r: r.as_quat(canonical=True),
    "scalar first": lambda r: r.as_quat(canonical=True, scalar_first=True),
    "magnitude": lambda r: r.magnitude(),
    "inverse": lambda r: r.inv().as_matrix(),
    "product": lambda r: (r * r[1]).as_matrix(),
    "mean": lambda r: r.mean().as_matrix(),
    "weighted mean": lambda r: r.mean(np.arange(1.0, 6)).as_matrix(),
    "apply": lambda r: r.apply(np.arange(15.0).reshape(5, 3)),
    "apply inverse": lambda r: r.apply(np.arange(3.0), inverse=True),
    "concatenate": lambda r: type(r).concatenate([r, r[:2]]).as_matrix(),
    "from matrix": lambda r: type(r).from_matrix(r.as_matrix()).as_matrix(),
    "from matrix, half turns": lambda r: (
        type(r)
        .from_matrix(np.stack([np.diag(d) for d in ([1.0, -1, -1], [-1, 1.0, -1], [-1, -1, 1.0], [1.0, 1, 1])]))
        .as_quat(canonical=True)
    ),
    "from rotvec": lambda r: type(r).from_rotvec(np.array([[1e-5, 0, 0], [0.4, 0.5, 3]])).as_matrix(),
    "from rotvec in degrees": lambda r: type(r).from_rotvec(np.array([30.0, 60, 9]), degrees=True).as_matrix(),
    "from mrp": lambda r: type(r).from_mrp(np.array([[0.2, 0.3, 0.4], [0, 0, 0.0]])).as_matrix(),
    "identity": lambda r: (type(r).identity() * r).as_matrix(),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", FORMS)
def test_rotations(name: str) -> None:
    function = FORMS[name]
    with hloom.enable_x64(True):
        expected = function(THEIRS.from_quat(QUATERNIONS))
        close(function(Rotation.from_quat(QUATERNIONS)), expected)
        if name in ("product", "mean", "from matrix"):
            close(hloom.jit(lambda q: function(Rotation.from_quat(q)))(QUATERNIONS), expected)


def test_slerp() -> None:
    times, at = np.array([0.0, 1, 3, 4, 7]), np.array([0.0, 0.3, 1, 2.9, 6.5, 7])
    with hloom.enable_x64(True):
        ours = Slerp.init(times, Rotation.from_quat(QUATERNIONS))
        theirs = scipy.spatial.transform.Slerp(times, THEIRS.from_quat(QUATERNIONS))
        close(ours(at).as_matrix(), theirs(at).as_matrix())
        close(hloom.jit(lambda s, t: s(t).as_matrix())(ours, 2.0), theirs(2.0).as_matrix())


@pytest.mark.usefixtures("evaluator")
@pytest.mark.slow
def test_derivatives_of_rotations() -> None:
    """Of rotations by 0 too."""
    vectors = RNG.standard_normal((3, 3))
    with hloom.enable_x64(True):
        check_derivatives(lambda xs: [Rotation.from_rotvec(xs[0]).apply(xs[1])], [vectors, vectors + 1])
        check_derivatives(lambda xs: [Rotation.from_rotvec(xs[0]).as_matrix()], [vectors * 0])
        check_derivatives(lambda xs: [Rotation.from_quat(xs[0]).as_rotvec()], [np.array([0.0, 0, 0, 2])])
        check_derivatives(lambda xs: [Rotation.from_quat(xs[0]).as_euler("xyz")], [QUATERNIONS])
        slerp = Slerp.init(np.arange(5.0), Rotation.from_quat(QUATERNIONS))
        check_derivatives(lambda xs: [slerp(xs[0]).as_matrix()], [np.array([0.5, 2.25])])


def test_random_rotations_are_uniform() -> None:
    """The mean of an entry of a uniformly distributed matrix is 0, and the mean of its square is 1/3."""
    found = np.asarray(Rotation.random(random.key(0), 4000).as_matrix())
    np.testing.assert_allclose(found.mean(0), 0, atol=0.05)
    np.testing.assert_allclose((found**2).mean(0), 1 / 3, atol=0.03)
    assert Rotation.random(random.key(1)).single and len(Rotation.identity(3)) == 3


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "coordinates": (lambda: map_coordinates(X, PLACES[:1], 1), ValueError, "sequence of length input.ndim"),
    "mode": (lambda: map_coordinates(X, PLACES, 1, "x"), NotImplementedError, "does not yet support mode 'x'"),
    "order": (lambda: map_coordinates(X, PLACES, 2), NotImplementedError, "requires order<=1"),
    "method": (lambda: RegularGridInterpolator(GRID, X, "cubic"), ValueError, "method 'cubic' is not defined"),
    "bounds": (lambda: RegularGridInterpolator(GRID, X, bounds_error=True), NotImplementedError, "bounds_error"),
    "points": (lambda: RegularGridInterpolator(GRID, X.T), ValueError, "must be as many"),
    "many points": (lambda: RegularGridInterpolator(GRID, X[0]), ValueError, "2 point arrays, but values has 1"),
    "fill": (lambda: RegularGridInterpolator(GRID, X, fill_value=1j), ValueError, "compatible with values"),
    "places": (lambda: RegularGridInterpolator(GRID, X)(X), ValueError, "xi have dimension 5"),
    "vq rank": (lambda: vq(X, X[0]), ValueError, "same rank"),
    "vq": (lambda: vq(X, X[:, :2]), ValueError, "as many features"),
    "quaternion": (lambda: Rotation.from_quat(X), ValueError, r"last dimensions must be \(4,\)"),
    "axes": (lambda: Rotation.from_euler("xYz", X[:3]), ValueError, "Expected axes from `seq`"),
    "equal axes": (lambda: Rotation.from_euler("xxz", X[:, :3]), ValueError, "consecutive axes to be different"),
    "no axes": (lambda: Rotation.from_euler("", 1.0), ValueError, "non-empty string"),
    "angles": (lambda: Rotation.from_euler("xy", X), ValueError, "xy has 2 axes"),
    "two axes": (lambda: Rotation.identity().as_euler("xy"), ValueError, "Expected 3 axes"),
    "single": (lambda: Rotation.identity()[0], TypeError, "not subscriptable"),
    "length": (lambda: len(Rotation.identity()), TypeError, "no len"),
    "weights": (lambda: Rotation.identity(3).mean(X), ValueError, "to be 1 dimensional"),
    "number of weights": (lambda: Rotation.identity(3).mean(X[0]), ValueError, "5 values and 3 rotations"),
    "slerp": (lambda: Slerp.init(X[0], X), TypeError, "must be a `Rotation` instance"),
    "slerp of one": (lambda: Slerp.init(X[0], Rotation.identity()), ValueError, "at least 2 rotations"),
    "slerp times": (lambda: Slerp.init(X[0], Rotation.identity(3)), ValueError, "3 rotations and 5 timestamps"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()
