"""Solves in programs that leave the process: tridiagonal systems, sparse times dense, as texts."""

from __future__ import annotations

from .factorize import Lines, lines


def tridiagonal_solve() -> Lines:
    """gtsv: dl, d, du: n, y: n x m; the same as results, and info. Rows are exchanged as LAPACK does. A system with a
    pivot of zero is left where it is."""
    return lines("""
for i in range(n):
    new_dl[b * n + i] = dl[b * n + i]
    new_d[b * n + i] = d[b * n + i]
    new_du[b * n + i] = du[b * n + i]
for i in range(n * m):
    out[b * n * m + i] = y[b * n * m + i]
bad = 0
for k in range(n - 1):
    if bad == 0:
        lower = new_dl[b * n + k + 1]
        pivot = new_d[b * n + k]
        if abs1(lower) == R(0):
            if abs1(pivot) == R(0):
                bad = k + 1
        elif abs1(pivot) >= abs1(lower):
            factor = lower / pivot
            new_d[b * n + k + 1] = new_d[b * n + k + 1] - factor * new_du[b * n + k]
            for j in range(m):
                place = b * n * m + (k + 1) * m + j
                out[place] = out[place] - factor * out[place - m]
            new_dl[b * n + k + 1] = T(R(0))
        else:
            factor = pivot / lower
            new_d[b * n + k] = lower
            item = new_d[b * n + k + 1]
            new_d[b * n + k + 1] = new_du[b * n + k] - factor * item
            if k < n - 2:
                new_dl[b * n + k + 1] = new_du[b * n + k + 1]
                new_du[b * n + k + 1] = -(factor * new_dl[b * n + k + 1])
            else:
                new_dl[b * n + k + 1] = T(R(0))
            new_du[b * n + k] = item
            for j in range(m):
                place = b * n * m + (k + 1) * m + j
                item = out[place - m]
                out[place - m] = out[place]
                out[place] = item - factor * out[place]
if n > 0 and bad == 0:
    pivot = new_d[b * n + n - 1]
    if abs1(pivot) == R(0):
        bad = n
if bad == 0:
    for step in range(n):
        k = n - 1 - step
        for j in range(m):
            place = b * n * m + k * m + j
            item = out[place]
            if k < n - 1:
                item = item - new_du[b * n + k] * out[place + m]
            if k < n - 2:
                item = item - new_dl[b * n + k + 1] * out[place + 2 * m]
            out[place] = item / new_d[b * n + k]
info[b] = int32(bad)
""")


_ELIMINATED = """
for i in range(n):
    first[i] = d[b * n + i]
    second[i] = du[b * n + i]
    third[i] = T(R(0))
second[n - 1] = T(R(0))
here = first[0]
upper = second[0]
largest = maximum(abs(here), abs(upper))
scale = abs(here) + abs(upper)
for i in range(n - 1):
    below = dl[b * n + i + 1]
    diagonal = d[b * n + i + 1]
    above = second[i + 1]
    here = first[i]
    upper = second[i]
    next_scale = abs(below) + abs(diagonal) + abs(above)
    done = abs(below) == R(0)
    kept = done
    if not done:
        ratio = abs(below) / next_scale
        other_ratio = R(0)
        if abs(here) != R(0):
            other_ratio = abs(here) / scale
        kept = ratio <= other_ratio
    factor = T(R(0))
    if kept:
        if abs(here) != R(0):
            factor = below / here
    else:
        factor = here / below
        first[i] = below
        second[i] = diagonal
        third[i] = above
    if done:
        first[i + 1] = diagonal
    elif kept:
        first[i + 1] = diagonal - factor * second[i]
    else:
        first[i + 1] = upper - factor * second[i]
    if kept:
        second[i + 1] = above
        scale = next_scale
    else:
        second[i + 1] = -(factor * above)
        scale = abs(first[i + 1]) + abs(second[i + 1])
    for j in range(m):
        place = b * n * m + (i + 1) * m + j
        row = out[place - m]
        other = out[place]
        if not kept:
            out[place - m] = other
            out[place] = row - factor * other
        elif not done:
            out[place] = other - factor * row
    if i < n - 2:
        largest = maximum(largest, maximum(abs(first[i]), maximum(abs(second[i]), abs(third[i]))))
largest = maximum(largest, abs(first[n - 1]))
if n == 1:
    largest = abs(first[0])
"""


def perturbed_tridiagonal() -> Lines:
    """dl, d, du: n, y: n x m of a batch; out; first, second, third: n. See composed.py of HLO's custom calls."""
    return lines("""
for i in range(n * m):
    out[b * n * m + i] = y[b * n * m + i]
""") + lines(_ELIMINATED) + lines("""
for down in range(n):
    i = n - 1 - down
    size = R(0)
    for j in range(m):
        place = b * n * m + i * m + j
        if i + 1 < n:
            out[place] = out[place] - second[i] * out[place + m]
        if i + 2 < n:
            out[place] = out[place] - third[i] * out[place + 2 * m]
        size = maximum(size, abs(out[place]))
    pivot = first[i]
    step = maximum(EPS * largest, TINY)
    if real(pivot) < R(0):
        step = -step
    moving = abs(pivot) < R(1)
    while moving:
        magnitude = abs(pivot)
        if magnitude < TINY:
            moved = magnitude == R(0) or size * TINY > magnitude
            if not moved:
                pivot = pivot / TINY
                for j in range(m):
                    out[b * n * m + i * m + j] = out[b * n * m + i * m + j] / TINY
        else:
            moved = size > magnitude / TINY
        if moved:
            pivot = pivot + T(step)
            step = step * R(2)
        moving = moved and abs(pivot) < R(1)
    if n == 1:
        for j in range(m):
            out[b * n * m + i * m + j] = out[b * n * m + i * m + j] / pivot
    else:
        pivot = T(R(1)) / pivot
        for j in range(m):
            out[b * n * m + i * m + j] = out[b * n * m + i * m + j] * pivot
""")


def sparse_times_dense(zero: str, bad: str) -> Lines:
    """cpu_csr_sparse_dense_ffi: values, columns: `count`, starts, dense: n x m, out. `b` is a row. A row with an index
    out of range becomes `bad`, since a kernel cannot raise an error."""
    return lines(f"""
start = int64(starts[b])
stop = int64(starts[b + 1])
fits = start >= 0 and start <= stop and stop <= count
for j in range(m):
    out[b * m + j] = {zero}
if fits:
    for k in range(start, stop):
        column = int64(columns[k])
        if column < 0 or column >= n:
            fits = False
        else:
            for j in range(m):
                out[b * m + j] = add(out[b * m + j], multiply(values[k], dense[column * m + j]))
if not fits:
    for j in range(m):
        out[b * m + j] = {bad}
""")
