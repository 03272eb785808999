"""Arrow columns as PostgreSQL's binary COPY format: no text to write here, none to read there.

https://www.postgresql.org/docs/current/sql-copy.html, "Binary Format".
"""

import struct
import uuid
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

HEADER = b"PGCOPY\n\xff\r\n\x00" + struct.pack("!ii", 0, 0)
END = struct.pack("!h", -1)
JSONB_VERSION = b"\x01"


def rows(columns: Sequence[pa.Array], constants: Sequence[bytes]) -> bytes:
    """Rows of these binary columns (nulls stay nulls), each followed by the same constants."""
    if not len(columns[0]):
        return b""
    parts: list[pa.Array | pa.Scalar] = [pa.scalar(struct.pack("!h", len(columns) + len(constants)))]
    for column in columns:
        parts += [_lengths(column), pc.fill_null(column, b"")]
    parts.append(pa.scalar(b"".join(struct.pack("!i", len(value)) + value for value in constants)))
    joined = pc.binary_join_element_wise(*parts, b"")
    _, offsets, values = joined.buffers()
    end = np.frombuffer(offsets, np.int32)[len(joined)]
    return bytes(values.slice(0, int(end)).to_pybytes())


def _lengths(column: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.binary_length(column), -1).to_numpy(zero_copy_only=False)
    return _fixed(lengths.astype(">i4"))


def _fixed(numbers: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> pa.Array:
    """Numbers as the bytes they are."""
    width = numbers.dtype.itemsize
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(numbers), [None, pa.py_buffer(numbers.tobytes())]).cast(pa.binary())


def bigints(column: pa.Array) -> pa.Array:
    return _fixed(column.to_numpy().astype(">i8"))


def texts(column: pa.Array) -> pa.Array:
    return column.cast(pa.binary())


def jsonb(column: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(JSONB_VERSION), column.cast(pa.binary()), b"")


def bigint(value: int) -> bytes:
    """Also a timestamp with time zone: microseconds since 2000."""
    return struct.pack("!q", value)


def boolean(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def uid(value: uuid.UUID) -> bytes:
    return value.bytes
