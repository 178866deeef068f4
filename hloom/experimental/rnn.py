"""`hloom.experimental.rnn`: long short-term memory over batches of sequences, with names of jax.experimental.rnn.

The weights are one vector, as in cuDNN: for each layer and direction the matrices of the input and of the state, then
for each the two biases. The rows of each are for the input, forget, cell and output gates, in this order.
"""

import math as _math
from typing import Any as _Any

from .. import lax as _lax
from .. import numpy as _jnp
from .. import random as _random
from ..hlo.errors import UnsupportedError as _UnsupportedError
from ..namespaces import publish as _publish
from ..nn import sigmoid as _sigmoid

__all__ = ["get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "swap_lstm_gates", "unpack_lstm_weights"]


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> list[tuple[int, ...]]:
    directions = 2 if bidirectional else 1
    found: list[tuple[int, ...]] = []
    for layer in range(num_layers * directions):
        width = input_size if layer < directions else directions * hidden_size
        found += [(4 * hidden_size, width), (4 * hidden_size, hidden_size)]
    return [*found, *[(4 * hidden_size,)] * (2 * num_layers * directions)]


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> int:
    """How many weights there are.

    >>> from hloom.experimental import rnn
    >>> rnn.get_num_params_in_lstm(input_size=3, hidden_size=2, num_layers=1, bidirectional=False)
    56
    """
    return sum([_math.prod(s) for s in _shapes(input_size, hidden_size, num_layers, bidirectional)])


def init_lstm_weight(rng: _Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool) -> _Any:
    """Weights, f32, uniform between plus and minus 1 / sqrt(hidden_size), from the key `rng`.

    >>> import hloom
    >>> from hloom.experimental import rnn
    >>> rnn.init_lstm_weight(hloom.random.key(0), 4, 8, 1, False).shape
    (448,)
    """
    bound = _math.sqrt(1 / hidden_size)
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    return _random.uniform(rng, (count,), _jnp.float32, -bound, bound)


def _pieces(weights: _Any, *sizes: _Any) -> list[_Any]:
    found, start = [], 0
    for shape in _shapes(*sizes):
        end = start + _math.prod(shape)
        found.append(weights[start:end].reshape(shape))
        start = end
    return found


def swap_lstm_gates(
    weights: _Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> _Any:
    """The weights with the rows of cell and output gates exchanged.

    >>> import hloom
    >>> from hloom.experimental import rnn
    >>> weights = rnn.init_lstm_weight(hloom.random.key(0), 4, 8, 1, False)
    >>> rnn.swap_lstm_gates(weights, 4, 8, 1, False).shape == weights.shape
    True
    """
    pieces = _pieces(_jnp.asarray(weights), input_size, hidden_size, num_layers, bidirectional)
    gates = [_jnp.split(p, 4) for p in pieces]
    return _jnp.concatenate([part.ravel() for i, f, g, o in gates for part in (i, f, o, g)])


def unpack_lstm_weights(
    weights: _Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[dict[int, _Any], dict[int, _Any], dict[int, _Any], dict[int, _Any]]:
    """(W_ih, W_hh, b_ih, b_hh), each by the number of the layer; with two directions a layer has two numbers.

    >>> import hloom
    >>> from hloom.experimental import rnn
    >>> weights = rnn.init_lstm_weight(hloom.random.key(0), 4, 8, 1, False)
    >>> inner, hidden, *_ = rnn.unpack_lstm_weights(weights, 4, 8, 1, False)
    >>> inner[0].shape, hidden[0].shape
    ((32, 4), (32, 8))
    """
    pieces = _pieces(weights, input_size, hidden_size, num_layers, bidirectional)
    half = len(pieces) // 2
    matrices, biases = pieces[:half], pieces[half:]
    return tuple([dict(enumerate(p)) for p in (matrices[::2], matrices[1::2], biases[::2], biases[1::2])])  # type: ignore[return-value]


def lstm(
    x: _Any, h_0: _Any, c_0: _Any, weights: _Any, seq_lengths: _Any, input_size: int, hidden_size: int,
    num_layers: int, dropout: float, bidirectional: bool, precision: _Any = None,
) -> tuple[_Any, _Any, _Any]:  # fmt: skip
    """(outputs, last states, last cells) of layers of long short-term memory.

    Args:
      x: f32[batch, time, input_size].
      h_0, c_0: the first states and cells, f32[directions * num_layers, batch, hidden_size].
      weights: as `init_lstm_weight` makes them.
      seq_lengths: s32[batch]: the outputs after the end of a sequence are 0.
      dropout: 0; UnsupportedError for others.
      precision: of the products.

    Outputs are f32[batch, time, directions * hidden_size].

    >>> import hloom
    >>> from hloom.experimental import rnn
    >>> from hloom import numpy as jnp
    >>> weights = rnn.init_lstm_weight(hloom.random.key(0), 4, 8, 1, False)
    >>> x, state, lengths = jnp.ones((2, 3, 4)), jnp.zeros((1, 2, 8)), jnp.array([3, 2])
    >>> y, h, c = rnn.lstm(x, state, state, weights, lengths, 4, 8, 1, 0.0, False)
    >>> y.shape, h.shape, c.shape
    ((2, 3, 8), (1, 2, 8), (1, 2, 8))
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _layers(x, h_0, c_0, *parts, seq_lengths, num_layers, dropout, bidirectional, precision)


def lstm_ref(
    x: _Any, h_0: _Any, c_0: _Any, W_ih: dict[int, _Any], W_hh: dict[int, _Any], b_ih: dict[int, _Any],
    b_hh: dict[int, _Any], seq_lengths: _Any, input_size: int, hidden_size: int, num_layers: int, dropout: float,
    bidirectional: bool,
) -> tuple[_Any, _Any, _Any]:  # fmt: skip
    """`lstm` for weights that `unpack_lstm_weights` has taken apart.

    >>> import hloom
    >>> from hloom.experimental import rnn
    >>> from hloom import numpy as jnp
    >>> weights = rnn.init_lstm_weight(hloom.random.key(0), 4, 8, 1, False)
    >>> x, state, lengths = jnp.ones((2, 3, 4)), jnp.zeros((1, 2, 8)), jnp.array([3, 2])
    >>> parts = rnn.unpack_lstm_weights(weights, 4, 8, 1, False)
    >>> y, h, c = rnn.lstm_ref(x, state, state, *parts, lengths, 4, 8, 1, 0.0, False)
    >>> y.shape
    (2, 3, 8)
    """
    return _layers(x, h_0, c_0, W_ih, W_hh, b_ih, b_hh, seq_lengths, num_layers, dropout, bidirectional, None)


def _layers(
    x: _Any, h_0: _Any, c_0: _Any, W_ih: dict[int, _Any], W_hh: dict[int, _Any], b_ih: dict[int, _Any],
    b_hh: dict[int, _Any], seq_lengths: _Any, num_layers: int, dropout: float, bidirectional: bool, precision: _Any,
) -> tuple[_Any, _Any, _Any]:  # fmt: skip
    if seq_lengths.dtype != _jnp.int32:
        raise NotImplementedError(f"`seq_lengths` can only be int32, not {seq_lengths.dtype}")
    if dropout:
        raise _UnsupportedError(f"lstm: dropout={dropout}: the masks of cuDNN cannot be known")
    inputs = x.transpose(1, 0, 2)
    goes_on = (_jnp.arange(x.shape[1])[:, None] < seq_lengths)[..., None]
    directions = 2 if bidirectional else 1
    states, cells = [], []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            weights = W_ih[k], W_hh[k], b_ih[k], b_hh[k]
            (h, c), y = _along(inputs, goes_on, h_0[k], c_0[k], weights, direction == 1, precision)
            outputs.append(y)
            states.append(h)
            cells.append(c)
        inputs = _jnp.concatenate(outputs, axis=-1)
    return inputs.transpose(1, 0, 2), _jnp.stack(states), _jnp.stack(cells)


def _along(
    inputs: _Any, goes_on: _Any, h: _Any, c: _Any, weights: _Any, reverse: bool, precision: _Any
) -> tuple[_Any, _Any]:
    """One layer in one direction. Where a sequence has ended the state stays: backwards it begins at its end."""
    w_ih, w_hh, b_ih, b_hh = weights
    given = _jnp.matmul(inputs, w_ih.T, precision=precision) + (b_ih + b_hh)

    def step(state: _Any, row: _Any) -> _Any:
        (h, c), (gates, is_there) = state, row
        i, f, g, o = _jnp.split(gates + _jnp.matmul(h, w_hh.T, precision=precision), 4, axis=-1)
        new_c = _sigmoid(f) * c + _sigmoid(i) * _jnp.tanh(g)
        new_h = _sigmoid(o) * _jnp.tanh(new_c)
        kept = _jnp.where(is_there, new_h, h), _jnp.where(is_there, new_c, c)
        return kept, _jnp.where(is_there, new_h, 0)

    return _lax.scan(step, (h, c), (given, goes_on), reverse=reverse)


_publish(__name__)
