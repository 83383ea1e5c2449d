"""Tests descriptor lists: construction, changes, comparison and serialization."""

import pickle

import nixl._bindings as b
import numpy as np
import pytest

ROWS = [(4096, 64, 0), (8192, 32, 1), (1 << 63, 16, 0)]
TYPES = [
    (b.nixlXferDList, [(4096, 64, 0), (8192, 32, 1)], (12288, 8, 2)),
    (b.nixlRegDList, [(4096, 64, 0, b"x"), (8192, 32, 1, b"\xff\x00")], (12288, 8, 2, b"")),
    (b.nixlRemoteDList, [(4096, 64, 0, "A"), (8192, 32, 1, "B")], (12288, 8, 2, "C")),
]


@pytest.mark.parametrize("kind,rows,more", TYPES)
def test_lists_have_the_calls_of_a_list(kind, rows, more):
    descs = kind(b.DRAM_SEG, rows)
    assert descs.getType() == b.DRAM_SEG
    assert descs.descCount() == 2 and not descs.isEmpty()
    assert [descs[0], descs[1]] == rows == list(descs)
    assert descs.index(rows[1]) == 1
    with pytest.raises(b.nixlNotFoundError):
        descs.index(more)
    descs.addDesc(more)
    descs.append(rows[0])
    assert list(descs) == [*rows, more, rows[0]]
    descs[0] = more
    assert list(descs) == [more, rows[1], more, rows[0]]
    descs.remDesc(1)
    assert list(descs) == [more, more, rows[0]]
    with pytest.raises(IndexError):
        descs[3]
    with pytest.raises(IndexError):
        descs.remDesc(-1)
    with pytest.raises(IndexError):
        descs[7] = more
    descs.clear()
    assert descs.isEmpty() and descs.descCount() == 0


@pytest.mark.parametrize("kind,rows,more", TYPES)
def test_equal_means_the_same_memory_and_rows(kind, rows, more):
    one = kind(b.DRAM_SEG, rows)
    assert one == kind(b.DRAM_SEG, list(rows))
    assert one != kind(b.VRAM_SEG, rows)
    assert one != kind(b.DRAM_SEG, rows[:1])
    assert one != kind(b.DRAM_SEG, [rows[0], more])
    changed_device = [rows[0], (*rows[1][:2], 5, *rows[1][3:])]
    assert one != kind(b.DRAM_SEG, changed_device)
    assert one != "a list"


@pytest.mark.parametrize("kind,rows,more", TYPES)
def test_an_empty_list_is_true(kind, rows, more):
    assert kind(b.DRAM_SEG)
    assert kind(b.DRAM_SEG, []).isEmpty()
    assert kind(b.DRAM_SEG, 3).descCount() == 3


def test_tails_tell_lists_apart():
    assert b.nixlRegDList(b.DRAM_SEG, [(1, 2, 0, "a")]) != b.nixlRegDList(
        b.DRAM_SEG, [(1, 2, 0, "b")]
    )


def test_trim_drops_the_metadata():
    registered = b.nixlRegDList(b.FILE_SEG, [(0, 64, 3, "rw:/a")])
    trimmed = registered.trim()
    assert isinstance(trimmed, b.nixlXferDList)
    assert trimmed == b.nixlXferDList(b.FILE_SEG, [(0, 64, 3)])
    trimmed.addDesc((1, 1, 1))
    assert registered.descCount() == 1


def test_printing_names_type_memory_and_rows(capsys):
    b.nixlXferDList(b.DRAM_SEG, [(4096, 64, 0)]).print()
    out = capsys.readouterr().out
    assert "nixlXferDList" in out and "DRAM_SEG" in out and "(4096, 64, 0)" in out


@pytest.mark.parametrize("kind,rows,more", TYPES)
def test_lists_survive_pickling_and_serialize(kind, rows, more):
    descs = kind(b.OBJ_SEG, rows)
    assert pickle.loads(pickle.dumps(descs)) == descs
    again = b.deserialize(b.serialize(descs))
    assert type(again) is kind and again == descs


def test_strided_rows_survive_serialize():
    descs = b.nixlXferDList(b.DRAM_SEG, np.array([[4096, 64, 0, 128, 1000]], np.uint64))
    assert descs[0] == (4096, 64, 0, 128, 1000)
    assert b.deserialize(b.serialize(descs)) == descs


def test_deserialize_runs_nothing():
    class Evil:
        def __reduce__(self):
            return (exec, ("raise SystemExit('it was run')",))

    for blob in (pickle.dumps(Evil()), pickle.dumps([1, 2]), b"\x80\x04."):
        with pytest.raises(b.nixlInvalidParamError, match="not a descriptor list"):
            b.deserialize(blob)


@pytest.mark.parametrize("kind,rows,more", TYPES)
def test_every_truncation_and_every_flipped_bit_is_refused(kind, rows, more):
    blob = b.serialize(kind(b.DRAM_SEG, rows))
    for length in range(len(blob)):
        with pytest.raises(b.nixlInvalidParamError):
            b.deserialize(blob[:length])
    for place in range(len(blob)):
        for bit in range(8):
            wrong = bytearray(blob)
            wrong[place] ^= 1 << bit
            with pytest.raises(b.nixlInvalidParamError):
                b.deserialize(bytes(wrong))
    with pytest.raises(b.nixlInvalidParamError):
        b.deserialize(blob + b"\0")


def test_a_state_of_another_type_is_refused():
    list_of_one_type = b.nixlXferDList(b.DRAM_SEG, [(1, 2, 3)])
    other = b.nixlRegDList.__new__(b.nixlRegDList)
    with pytest.raises(b.nixlInvalidParamError, match="another type"):
        other.__setstate__(b.serialize(list_of_one_type))


def test_serialize_takes_lists_alone():
    with pytest.raises(TypeError, match="nixlXferDList"):
        b.serialize([(1, 2, 3)])


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.uint64, np.int64]
)
def test_rows_of_every_integer_type(dtype):
    array = np.array([[1, 2, 3], [4, 5, 6]], dtype)
    assert list(b.nixlXferDList(b.DRAM_SEG, array)) == [(1, 2, 3), (4, 5, 6)]
    assert list(b.nixlRegDList(b.DRAM_SEG, array)) == [(1, 2, 3, b""), (4, 5, 6, b"")]


def test_rows_of_strided_arrays():
    wide = np.arange(60, dtype=np.uint64).reshape(10, 6)
    expected = [tuple(int(x) for x in row) for row in wide[::3, ::2]]
    assert list(b.nixlXferDList(b.DRAM_SEG, wide[::3, ::2])) == expected
    assert list(b.nixlXferDList(b.DRAM_SEG, wide[::-1, :3])) == [
        tuple(int(x) for x in row) for row in wide[::-1, :3]
    ]
    fortran = np.asfortranarray(np.arange(30, dtype=np.int64).reshape(10, 3))
    assert list(b.nixlXferDList(b.DRAM_SEG, fortran)) == [tuple(row) for row in fortran.tolist()]


@pytest.mark.parametrize("kind", [b.nixlXferDList, b.nixlRegDList])
def test_the_fourth_column_of_an_array_is_zero(kind):
    three = np.array(ROWS, np.uint64)
    four = np.column_stack([three, np.zeros(len(ROWS), np.uint64)])
    assert kind(b.DRAM_SEG, four) == kind(b.DRAM_SEG, three)


def test_a_long_array_keeps_mixed_devices():
    array = np.zeros((10000, 3), np.uint64)
    array[:, 0] = np.arange(10000)
    array[:, 2] = np.arange(10000) // 5000
    descs = b.nixlXferDList(b.DRAM_SEG, array)
    assert (
        descs[4999] == (4999, 0, 0) and descs[5000] == (5000, 0, 1) and descs[9999] == (9999, 0, 1)
    )


@pytest.mark.parametrize("column", [1, 2])
@pytest.mark.parametrize("columns", [3, 4])
def test_an_array_whose_last_row_differs(column, columns):
    array = np.zeros((5000, columns), np.int64)
    array[:, 0], array[:, 1] = np.arange(5000) * 64, 64
    alike = b.nixlXferDList(b.DRAM_SEG, array)
    assert alike == b.nixlXferDList(b.DRAM_SEG, [tuple(row) for row in array[:, :3].tolist()])
    array[-1, column] = 7
    differs = b.nixlXferDList(b.DRAM_SEG, array)
    assert differs != alike and differs[4998] == alike[4998]
    assert differs[4999] == tuple(array[-1, :3].tolist())
    array[-1, column] = -7
    with pytest.raises(ValueError, match=f"row 4999, column {column}: -7 is negative"):
        b.nixlXferDList(b.DRAM_SEG, array)


def test_a_row_changes_its_size_and_device_alone():
    descs = b.nixlXferDList(b.DRAM_SEG, [(0, 64, 1), (64, 64, 1), (128, 64, 1)])
    before = b.nixlXferDList(b.DRAM_SEG, list(descs))
    descs[1] = (64, 32, 2)
    assert list(descs) == [(0, 64, 1), (64, 32, 2), (128, 64, 1)]
    descs.remDesc(1)
    descs.addDesc((256, 64, 1))
    assert list(descs) == [(0, 64, 1), (128, 64, 1), (256, 64, 1)]
    descs[1], descs[2] = before[1], before[2]
    assert descs == before and b.deserialize(b.serialize(descs)) == before


def test_addresses_keep_bit_63():
    assert list(b.nixlXferDList(b.DRAM_SEG, ROWS)) == ROWS
    assert list(b.nixlXferDList(b.DRAM_SEG, np.array(ROWS, np.uint64))) == ROWS


def test_numpy_integers_in_tuples():
    row = (np.uint64(5), np.int32(6), np.int64(0))
    assert list(b.nixlXferDList(b.DRAM_SEG, [row])) == [(5, 6, 0)]


@pytest.mark.parametrize(
    "wrong,error,text",
    [
        (np.zeros((3, 2), np.uint64), ValueError, r"shape \(3, 2\)"),
        (np.zeros((3, 6), np.uint64), ValueError, r"shape \(3, 6\)"),
        (np.array([[1, 2, 0, 0], [1, 2, 0, 7]]), ValueError, "row 1: the fourth column"),
        (np.zeros(3, np.uint64), ValueError, r"shape \(3\)"),
        (np.zeros((1, 3, 3), np.uint64), ValueError, "shape"),
        (np.zeros((3, 3)), TypeError, "format 'd'"),
        (np.zeros((3, 3), np.float32), TypeError, "integers"),
        (np.zeros((3, 3), bool), TypeError, "integers"),
        (np.zeros((3, 3), ">u8"), TypeError, "byte order"),
        (np.array([[1, -2, 0]], np.int64), ValueError, "row 0, column 1: -2 is negative"),
        ([(1, 2)], ValueError, "row 0 is tuple of 2 items"),
        ([(1, 2, 0), (1, 2, 0, 4, 1)], ValueError, "row 1"),
        ([5], ValueError, "row 0 is int"),
        ([(1.5, 2, 0)], TypeError, "address is float"),
        ([(1, -2, 0)], ValueError, "bytes is -2"),
        ([(1 << 64, 2, 0)], ValueError, "address is"),
        ("abc", TypeError, "got str"),
        (b"abc", TypeError, "got bytes"),
        (None, TypeError, "got NoneType"),
        (7.5, TypeError, "got float"),
    ],
)
def test_wrong_rows_say_what_to_do(wrong, error, text):
    with pytest.raises(error, match=text):
        b.nixlXferDList(b.DRAM_SEG, wrong)


def test_wrong_tails_say_what_to_do():
    with pytest.raises(ValueError, match="metadata"):
        b.nixlRegDList(b.DRAM_SEG, [(1, 2, 0)])
    with pytest.raises(TypeError, match="fourth item"):
        b.nixlRegDList(b.DRAM_SEG, [(1, 2, 0, 7)])
    with pytest.raises(ValueError, match="agent"):
        b.nixlRemoteDList(b.DRAM_SEG, [(1, 2, 0)])
    with pytest.raises(TypeError, match="no place for agents"):
        b.nixlRemoteDList(b.DRAM_SEG, np.zeros((2, 3), np.uint64))
    with pytest.raises(ValueError, match="three numbers"):
        b.nixlRegDList(b.DRAM_SEG, np.zeros((2, 5), np.uint64))


def test_rows_of_three_and_of_five_do_not_mix():
    descs = b.nixlXferDList(b.DRAM_SEG, [(1, 2, 0)])
    with pytest.raises(ValueError, match="not both"):
        descs.addDesc((1, 2, 0, 4, 1))
    with pytest.raises(ValueError, match="not both"):
        descs[0] = (1, 2, 0, 4, 1)
