"""Tests blocks and selections made from every accepted form of argument."""

import numpy
import pytest

import viaduct
from viaduct import Blocks


def test_strided_blocks_cost_the_same_however_many():
    blocks = Blocks.strided(base=1 << 40, bytes=4096, stride=8192, count=1 << 30)
    assert len(blocks) == 1 << 30
    assert blocks[3] == ((1 << 40) + 3 * 8192, 4096)
    assert blocks[-1] == ((1 << 40) + ((1 << 30) - 1) * 8192, 4096)
    assert (blocks.bytes, blocks.block_bytes) == (1 << 42, 4096)


@pytest.mark.parametrize("dtype", ["uint64", "int64", "uint32", "int32", "uint16", "int16"])
@pytest.mark.parametrize("columns", [2, 3])
def test_rows_of_an_array_are_blocks(dtype, columns):
    rows = numpy.array([(4096, 16, 0), (8192, 32, 0)], dtype=dtype)[:, :columns]
    blocks = Blocks.list(rows)
    assert [blocks[i] for i in range(2)] == [(4096, 16), (8192, 32)]
    assert (blocks.bytes, blocks.block_bytes) == (48, 0)


def test_rows_of_five_are_runs():
    blocks = Blocks.list(numpy.array([(4096, 16, 0, 64, 3), (8192, 16, 0, 16, 2)], "uint64"))
    assert [blocks[i][0] for i in range(len(blocks))] == [4096, 4160, 4224, 8192, 8208]


def test_tuples_are_blocks():
    assert Blocks.list([(4096, 16), (8192, 16)])[1] == (8192, 16)
    assert Blocks.list([(4096, 16, 0), (8192, 16, 0)])[1] == (8192, 16)
    assert Blocks.list([((1 << 63) - 32, 16, 0)])[0][0] == (1 << 63) - 32


def test_the_rows_of_an_array_in_memory():
    cache = numpy.zeros((10, 2, 8), "float32")
    blocks = Blocks.of(cache)
    assert (len(blocks), blocks.block_bytes) == (10, 64)
    assert blocks[4][0] == cache[4].ctypes.data
    halves = Blocks.of(cache[:, 1])
    assert (len(halves), halves.block_bytes) == (10, 32)
    assert halves[4][0] == cache[4, 1].ctypes.data
    with pytest.raises(viaduct.InvalidError, match="contiguous rows") as raised:
        Blocks.of(cache[:, :, ::2])
    assert "first axis" in raised.value.remedy
    with pytest.raises(viaduct.InvalidError, match="contiguous rows"):
        Blocks.of(cache[::-1])


@pytest.mark.parametrize("rows, kind", [
    (numpy.zeros((3, 4), "uint64"), ValueError),
    (numpy.zeros(3, "uint64"), ValueError),
    (numpy.ones((3, 3), "float64"), TypeError),
    (numpy.array([(-4096, 16, 0)], "int64"), ValueError),
    ([(4096,)], ValueError),
    ([(4096, "16", 0)], TypeError),
    ("text", TypeError),
    (5, TypeError),
    ([(4096, 0, 0)], viaduct.InvalidError),
    ([(4096, 64, 0), (4100, 64, 0)], viaduct.InvalidError),
    ([(4096, 64, 1)], viaduct.UnsupportedError),
])
def test_rows_that_cannot_be_blocks(rows, kind):
    with pytest.raises(kind) as raised:
        Blocks.list(rows)
    assert str(raised.value)


def test_selections_from_everything_that_has_numbers():
    blocks = Blocks.strided(base=4096, bytes=16, count=100)
    for numbers in ([3, 1, 7], (3, 1, 7), numpy.array([3, 1, 7]),
                    numpy.array([3, 1, 7], "uint16"), numpy.array([3, 0, 1, 0, 7])[::2]):
        assert blocks[numbers].indices == (3, 1, 7)
    assert blocks[2:10:3].indices == (2, 5, 8)
    assert blocks[range(4, 7)].indices == (4, 5, 6)
    assert blocks[-2:].indices == (98, 99)
    assert blocks[numpy.int64(5)] == (4096 + 80, 16)
    assert len(blocks[::2]) == 50


def test_numbers_that_name_no_block():
    blocks = Blocks.strided(base=4096, bytes=16, count=100)
    for bad in (100, -101):
        with pytest.raises(IndexError):
            blocks[bad]
    for bad in ([], [-1], [1 << 32], numpy.zeros((2, 2), "int64"), slice(5, 5)):
        with pytest.raises(ValueError):
            blocks[bad]
    for bad in ([1.5], numpy.array([1.5]), "12"):
        with pytest.raises(TypeError):
            blocks[bad]


def test_a_pin_is_cut_into_blocks(agent):
    pin = agent.allocate(10000)
    assert len(pin.blocks(1000)) == 10
    assert pin.blocks(1000, offset=500, count=9)[8][0] == pin.address + 8500
    assert len(pin.blocks(500, stride=1000)) == 10
    with pytest.raises(viaduct.InvalidError, match="left over") as raised:
        pin.blocks(4096)
    assert "count=2" in raised.value.remedy
    for bad in ({"bytes": 0}, {"bytes": 10001}, {"bytes": 1000, "count": 11},
                {"bytes": 1000, "stride": 999}, {"bytes": 1000, "offset": 9001},
                {"bytes": 1, "offset": (1 << 64) - 1}):
        with pytest.raises(viaduct.InvalidError):
            pin.blocks(**bad)


def test_a_range_whose_ends_cannot_be_indices_is_refused_before_memory_is_taken():
    blocks = Blocks.strided(base=4096, bytes=16, count=8)
    with pytest.raises(ValueError, match="index"):
        blocks[range(10**14)]
