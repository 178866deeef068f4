"""The random numbers of JAX's keys, by hand: Threefry-2x32 with 20 rounds (Salmon et al., 2011).

With them a Numba version draws the same numbers as the program beside it.
"""

from __future__ import annotations

import numpy as np

from .case import by_hand

u4, f4 = np.uint32, np.float32


@by_hand
def threefry(k0, k1, x0, x1):
    """Two words from a key of two words and a counter of two words."""
    k2 = u4(k0 ^ k1 ^ u4(0x1BD11BDA))
    x0, x1 = u4(x0 + k0), u4(x1 + k1)
    for group in range(5):
        for r in (13, 15, 26, 6) if group % 2 == 0 else (17, 29, 16, 24):
            x0 = u4(x0 + x1)
            x1 = u4(u4(x1 << u4(r)) | u4(x1 >> u4(32 - r))) ^ x0
        k0, k1, k2 = k1, k2, k0
        x0, x1 = u4(x0 + k0), u4(x1 + k1 + u4(group + 1))
    return x0, x1


@by_hand
def fold_in(k0, k1, data):
    """The key `jax.random.fold_in(key, data)`; with `data` 0 and 1 also the keys of `jax.random.split(key)`."""
    return threefry(u4(k0), u4(k1), u4(0), u4(data))


@by_hand
def unit(k0, k1, i):
    """Element i of `jax.random.uniform(key, ...)`: the first 23 bits."""
    a, b = threefry(u4(k0), u4(k1), u4(0), u4(i))
    return f4(u4(a ^ b) >> u4(9)) * f4(2.0**-23)


LOW = np.nextafter(f4(-1), f4(0))


@by_hand
def normal(k0, k1, i):
    """Element i of `jax.random.normal(key, ...)`: the inverse error function (Giles, 2012) of a uniform number."""
    x = max(unit(k0, k1, i) * (f4(1) - LOW) + LOW, LOW)
    w = -np.log1p(-x * x)
    if w < f4(5):
        w -= f4(2.5)
        p = f4(2.81022636e-08)
        p = f4(3.43273939e-07) + p * w
        p = f4(-3.5233877e-06) + p * w
        p = f4(-4.39150654e-06) + p * w
        p = f4(0.00021858087) + p * w
        p = f4(-0.00125372503) + p * w
        p = f4(-0.00417768164) + p * w
        p = f4(0.246640727) + p * w
        p = f4(1.50140941) + p * w
    else:
        w = np.sqrt(w) - f4(3)
        p = f4(-0.000200214257)
        p = f4(0.000100950558) + p * w
        p = f4(0.00134934322) + p * w
        p = f4(-0.00367342844) + p * w
        p = f4(0.00573950773) + p * w
        p = f4(-0.0076224613) + p * w
        p = f4(0.00943887047) + p * w
        p = f4(1.00167406) + p * w
        p = f4(2.83297682) + p * w
    return f4(1.4142135) * p * x
