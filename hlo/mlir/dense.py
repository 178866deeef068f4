"""The literals of constants: `dense<[[1, 2], [3, 4]]>`, `dense<1.5>`, `dense<(1.0, 2.0)>`, `dense<"0x0000C07F">`.

Source: MLIR's parser of dense elements (TensorLiteralParser) and its printer. Elements are in row-major order. A string
has their bytes, in little-endian order; booleans are one byte each there, or one bit each, as older versions of MLIR
write them. A number alone fills the tensor.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from ..element_type import ElementType, element_type_of
from .elements import bits_of, float_bits, float_text, from_bits
from .tree import Dense, IndexType, Tensor

NDArray = np.ndarray[Any, Any]

_LONGEST_LIST = 100
"""A constant of more elements is printed as a string of bytes."""
_SEPARATORS = re.compile(r"[\[\](),\s]+")
_BETWEEN = re.compile(r"[^\[\](),]+")
_COMMENT = re.compile(r"//[^\n]*")


def storage(type: Tensor) -> np.dtype[Any]:
    """The dtype of a literal's array: int64 for `index`. ValueError for a type that has no literals here."""
    if isinstance(type.element, IndexType):
        return np.dtype(np.int64)
    if not isinstance(type.element, ElementType):
        raise ValueError("a literal of a quantized type")
    return type.element.dtype


def filled(value: NDArray, dimensions: tuple[int, ...]) -> NDArray:
    """An array in which one element stands for all."""
    return np.broadcast_to(value.reshape(()), dimensions)


def read_dense(text: str, type: Tensor) -> Dense:
    """The literal with `text` between `<` and `>`. ValueError, which says why, if it does not fit the type."""
    dtype = storage(type)
    if any(size < 0 for size in type.dimensions):
        raise ValueError("a literal needs a type with known sizes")
    size = math.prod(type.dimensions)
    text = text.strip()
    if text[:1] == '"':
        return Dense(type, _from_bytes(text[3:-1], dtype, type.dimensions, size))
    if "_" in text or not text.isascii():
        raise ValueError("the literal has characters that are in no number")
    if "//" in text:
        text = _COMMENT.sub("", text)
    element = type.element if isinstance(type.element, ElementType) else ElementType.S64
    is_complex = element.is_complex
    tokens = [token for token in _SEPARATORS.split(text) if token]
    if text and text[0] != "[":
        if len(tokens) != (2 if is_complex else 1) or "".join(_BETWEEN.sub("", text)) != ("(,)" if is_complex else ""):
            raise ValueError(f"expected one value or a list in the literal, found {text[:40]!r}")
        return Dense(type, filled(_converted(tokens, element), type.dimensions))
    if len(tokens) != size * (2 if is_complex else 1):
        found = len(tokens) // (2 if is_complex else 1)
        raise ValueError(f"the literal has {found} elements, its type {size}")
    if size and _BETWEEN.sub("", text) != _punctuation(type.dimensions, is_complex, len(text)):
        raise ValueError(f"the brackets of the literal do not match the sizes {list(type.dimensions)} of its type")
    if not size and text.strip("[], \n\t\r"):
        raise ValueError("the literal has elements, its type none")
    return Dense(type, _converted(tokens, element).reshape(type.dimensions))


def read_sparse(text: str, type: Tensor) -> Dense:
    """The literal with `text` between `sparse<` and `>`: a list of indices and a list of the elements there. The others
    are 0. ValueError as `read_dense`."""
    dtype, rank = storage(type), len(type.dimensions)
    if any(size < 0 for size in type.dimensions):
        raise ValueError("a literal needs a type with known sizes")
    text = _COMMENT.sub("", text).strip()
    if not text:
        return Dense(type, filled(np.zeros((), dtype), type.dimensions))
    places, values = _both(text)
    is_list = places.startswith("[")
    count = len([token for token in _SEPARATORS.split(places) if token]) // max(rank, 1) if is_list else 1
    is_flat = is_list and rank == 1 and "[" not in places[1:]
    numbers = read_dense(places, Tensor((count,) if is_flat else (count, rank), ElementType.S64)).array
    indices = numbers.reshape(count, rank)
    if not ((indices >= 0) & (indices < type.dimensions)).all():
        raise ValueError(f"an index of the literal is outside of the sizes {list(type.dimensions)} of its type")
    elements = read_dense(values, Tensor((count,), type.element)).array
    array = np.zeros(type.dimensions, dtype)
    array[tuple(indices[::-1].T)] = elements[::-1]  # of equal indices the first one counts
    array.flags.writeable = False
    return Dense(type, array)


def _both(text: str) -> tuple[str, str]:
    """The texts before and after the first comma outside of brackets."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            return text[:position].strip(), text[position + 1 :].strip()
    raise ValueError("expected indices, a comma and values in the literal")


def _punctuation(dimensions: tuple[int, ...], is_complex: bool, longest: int) -> str:
    """The brackets and commas of a literal; "" if they would be longer than `longest`."""
    text = "(,)" if is_complex else ""
    for size in reversed(dimensions):
        if (len(text) + 1) * size > longest + 1:
            return ""
        text = "[" + ",".join([text] * size) + "]"
    return text


def _from_bytes(digits: str, dtype: np.dtype[Any], dimensions: tuple[int, ...], size: int) -> NDArray:
    data = np.frombuffer(bytes.fromhex(digits) if len(digits) % 2 == 0 else b"", np.uint8)
    if not dimensions and data.size == dtype.itemsize and size == 1:
        return _viewed(data, dtype).reshape(())
    if dtype == np.bool_ and size != data.size:
        if data.size == 1 and (size > 8 or int(data[0]) in (0, 255)):
            return filled(np.array(int(data[0]) != 0), dimensions)
        if data.size == (size + 7) // 8:
            return np.unpackbits(data, bitorder="little")[:size].astype(np.bool_).reshape(dimensions)
    if data.size == size * dtype.itemsize:
        return _viewed(data, dtype).reshape(dimensions)
    if data.size == dtype.itemsize and size:
        return filled(_viewed(data, dtype), dimensions)
    raise ValueError(f"the literal has {data.size} bytes, its type needs {size * dtype.itemsize}")


def _viewed(data: NDArray, dtype: np.dtype[Any]) -> NDArray:
    """Bytes as elements, in the machine's order. Numbers of less than a byte keep their sign in the whole byte."""
    if dtype == np.bool_:
        return data.astype(np.bool_)
    name = dtype.name
    if name in ("int2", "int4", "uint2", "uint4"):
        return data.astype(np.int8 if name[0] == "i" else np.uint8).astype(dtype)
    return data.view(dtype.newbyteorder("<") if dtype.isbuiltin == 1 else dtype).astype(dtype, copy=False)


def _converted(tokens: list[str], element: ElementType) -> NDArray:
    """The elements that are written as `tokens`, two each for a complex type."""
    if element is ElementType.PRED:
        known = [_BOOLEANS.get(token) for token in tokens]
        if None in known:
            raise ValueError(f"expected true or false in the literal, found {tokens[known.index(None)][:40]!r}")
        return np.array(known, np.bool_)
    if element.is_integral:
        low, high = element.limits
        try:
            values = list(map(int, tokens))
        except ValueError:  # one is written in base 16, or is no number
            values = [high + 1]
        if not values or not low <= min(values) <= max(values) <= high:
            values = [_integer(token, element) for token in tokens]
        return np.array(values, element.dtype)
    return _floats(tokens, element.real).view(element.dtype)


_BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "-1": True}


def _integer(token: str, element: ElementType) -> int:
    low, high = element.limits
    try:
        value = int(token, 16 if token.lower().lstrip("-").startswith("0x") else 10) if len(token) < 80 else high + 1
    except ValueError:
        raise ValueError(f"expected an integer in the literal, found {token[:40]!r}") from None
    if low <= value <= high:
        return value
    wrapped = value - (1 << element.bit_width) if value > high else value + (1 << element.bit_width)
    if not low <= wrapped <= high or (value > high and token[:2].lower() != "0x"):
        raise ValueError(f"{token[:40]} does not fit in {element.value}")
    return wrapped


_FLOAT = re.compile(r"-?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?")


def _floats(tokens: list[str], element: ElementType) -> NDArray:
    values, patterns = [], []
    for index, token in enumerate(tokens):
        if token[:2] == "0x":
            patterns.append((index, token))
            values.append(1.0)
        elif _FLOAT.fullmatch(token):
            values.append(_nearest(float(token), element))
        else:
            raise ValueError(f"expected a float such as 1.0 in the literal, found {token[:40]!r}")
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.array(values, np.float64).astype(element.dtype)
    wrong = ~np.isfinite(found.astype(np.float64))
    if wrong.any():
        raise ValueError(f"{tokens[int(np.flatnonzero(wrong)[0])][:40]} does not fit in {element.value}")
    for index, token in patterns:
        found[index] = _from_pattern(token, element)
    return found


def _nearest(value: float, element: ElementType) -> float:
    """Zero becomes the smallest number of a type that has no zero."""
    return 2.0**-127 if value == 0 and element is ElementType.F8E8M0FNU else value


def _from_pattern(token: str, element: ElementType) -> NDArray:
    bits = int(token, 16) if len(token) < 40 else -1
    if not 0 <= bits < 1 << element.bit_width:
        raise ValueError(f"{token[:40]} has more bits than {element.value}")
    return from_bits(bits, element)


def read_float(token: str, element: ElementType) -> int:
    """The bits of a float that stands alone. ValueError if the type has no such number."""
    if token[:2] == "0x":
        _from_pattern(token, element)
        return int(token, 16)
    try:
        return float_bits(_nearest(float(token), element), element)
    except OverflowError:
        raise ValueError(f"{token[:40]} does not fit in {element.value}") from None


def write_dense(value: Dense) -> str:
    """The text between `<` and `>`."""
    array = value.array
    if not array.size:
        return ""
    if not array.ndim or value.is_splat or _is_uniform(array):
        return _texts(array.reshape(-1)[:1] if array.ndim else array.reshape(1))[0]
    if array.size > _LONGEST_LIST:
        return f'"0x{_bytes(array).hex().upper()}"'
    texts = _texts(np.ascontiguousarray(array).reshape(-1))
    for axis in range(array.ndim - 1, -1, -1):
        size, count = array.shape[axis], math.prod(array.shape[:axis])
        texts = ["[" + ", ".join(texts[i * size : (i + 1) * size]) + "]" for i in range(count)]
    return texts[0]


def _is_uniform(array: NDArray) -> bool:
    """All elements have the same bits."""
    first = array[(0,) * array.ndim]
    if array.dtype.kind in "biu":
        return bool((array == first).all())
    flat = np.ascontiguousarray(array).reshape(array.size, 1).view(np.uint8)
    return bool((flat == flat[0]).all())


def _bytes(array: NDArray) -> bytes:
    if array.dtype.isbuiltin == 1:
        return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return array.tobytes()


def _texts(flat: NDArray) -> list[str]:
    dtype = flat.dtype
    if dtype == np.bool_:
        return ["true" if value else "false" for value in flat.tolist()]
    if dtype.kind == "c":
        return [f"({real},{imaginary})" for real, imaginary in zip(_texts(flat.real), _texts(flat.imag))]
    element = element_type_of(dtype)
    if element.is_integral:
        return [str(int(value)) for value in flat]
    return [float_text(bits, element) for bits in bits_of(flat).tolist()]
