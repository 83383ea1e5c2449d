#include "rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "errors.h"
#include "gil.h"

namespace viaduct::python {
namespace {

// Reading fewer elements takes less time than handing the GIL to another thread.
constexpr std::size_t kLongArray = 4096;
constexpr std::uint64_t kMostBlocks = std::numeric_limits<std::uint32_t>::max();

// Holds the buffer of a caller's array open as long as the object lives.
class Array {
 public:
  explicit Array(py::handle source) : owner_(py::reinterpret_borrow<py::object>(source)) {
    // A torch tensor has no buffer, but its numpy() returns an array that shares the memory.
    if (PyObject_CheckBuffer(owner_.ptr()) == 0) owner_ = owner_.attr("numpy")();
    if (PyObject_GetBuffer(owner_.ptr(), &view_, PyBUF_RECORDS_RO) != 0)
      throw py::error_already_set();
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { PyBuffer_Release(&view_); }

  int dimensions() const { return view_.ndim; }
  std::size_t extent(int dimension) const {
    return static_cast<std::size_t>(view_.shape[dimension]);
  }
  py::ssize_t stride(int dimension) const { return view_.strides[dimension]; }
  const char* data() const { return static_cast<const char*>(view_.buf); }
  std::string_view format() const { return view_.format == nullptr ? "B" : view_.format; }
  py::ssize_t itemBytes() const { return view_.itemsize; }

 private:
  py::object owner_;
  Py_buffer view_{};
};

// Calls `read` with a zero of the array's element type, which selects the template instance.
template <class Read>
void withElement(const Array& array, const Read& read) {
  std::string_view format = array.format();
  const auto beginsWith = [&](std::string_view any) {
    return !format.empty() && any.find(format[0]) != std::string_view::npos;
  };
  if (beginsWith("@=<")) format.remove_prefix(1);
  const bool is_signed = beginsWith("bhilqn"), is_unsigned = beginsWith("BHILQN");
  if (format.size() != 1 || (!is_signed && !is_unsigned))
    throw py::type_error(
        fmt::format("the array's elements have the format '{}'; use integers in the byte order of "
                    "this machine, for example dtype=numpy.uint64",
                    array.format()));
  switch (array.itemBytes()) {
    case 1:
      return is_signed ? read(std::int8_t{}) : read(std::uint8_t{});
    case 2:
      return is_signed ? read(std::int16_t{}) : read(std::uint16_t{});
    case 4:
      return is_signed ? read(std::int32_t{}) : read(std::uint32_t{});
    default:
      return is_signed ? read(std::int64_t{}) : read(std::uint64_t{});
  }
}

template <class T>
T load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
bool isNegative(T value) {
  if constexpr (std::is_signed_v<T>) return value < 0;
  return false;
}

[[noreturn]] void refuseNegative(std::size_t row, std::size_t column, std::int64_t value) {
  throw py::value_error(fmt::format(
      "row {}, column {}: {} is negative; addresses at or above 2**63 need dtype=numpy.uint64", row,
      column, value));
}

[[noreturn]] void refuseFourth(std::size_t row) {
  throw py::value_error(fmt::format(
      "row {}: the fourth column of an array is not 0; it is in the place of metadata, which an "
      "array cannot hold",
      row));
}

// Releases the GIL around `call` if the array is long.
template <class Call>
void readUnlocked(std::size_t elements, const Call& call) {
  if (elements < kLongArray) return call();
  const Unlocked unlocked;
  call();
}

// Reads rows of one size on one device, as most arrays have, without a branch for each. False: the
// rows differ, or a number is wrong.
template <class T>
bool readAlike(const Array& array, Rows& into) {
  const std::size_t rows = array.extent(0), columns = array.extent(1);
  if (rows == 0 || columns == 5) return false;
  const py::ssize_t next_row = array.stride(0), next_column = array.stride(1);
  const auto cell = [&](const char* row, std::size_t column) {
    return column < columns ? load<T>(row + static_cast<py::ssize_t>(column) * next_column) : T{};
  };
  const char* at = array.data();
  const T bytes = cell(at, 1), device = cell(at, 2);
  T other = cell(at, 3);
  bool negative = isNegative(bytes) || isNegative(device);
  std::vector<std::uint64_t> addresses(rows);
  for (std::uint64_t& address : addresses) {
    const T number = cell(at, 0);
    negative |= isNegative(number);
    other = static_cast<T>(other | (cell(at, 1) ^ bytes) | (cell(at, 2) ^ device) | cell(at, 3));
    address = static_cast<std::uint64_t>(number);
    at += next_row;
  }
  if (negative || other != 0) return false;
  into = Rows(std::move(addresses), static_cast<std::uint64_t>(bytes),
              static_cast<std::uint64_t>(device));
  return true;
}

template <class T>
void readRows(const Array& array, Rows& into) {
  const std::size_t rows = array.extent(0), columns = array.extent(1);
  const py::ssize_t next_row = array.stride(0), next_column = array.stride(1);
  const char* at = array.data();
  into.reserve(rows);
  for (std::size_t row = 0; row < rows; ++row, at += next_row) {
    const auto take = [&](std::size_t column) {
      return column < columns ? load<T>(at + static_cast<py::ssize_t>(column) * next_column) : T{};
    };
    // (address, bytes, device, stride or 0, count)
    const T cells[5] = {take(0), take(1), take(2), take(3), take(4)};
    if (std::any_of(std::begin(cells), std::end(cells), isNegative<T>)) [[unlikely]]
      for (std::size_t column = 0; column < columns; ++column)
        if (isNegative(cells[column]))
          refuseNegative(row, column, static_cast<std::int64_t>(cells[column]));
    if (columns == 4 && cells[3] != 0) [[unlikely]]
      refuseFourth(row);
    const auto cell = [&](std::size_t column) { return static_cast<std::uint64_t>(cells[column]); };
    if (columns == 5)
      into.add(Run{cell(0), cell(3), cell(1), cell(4)}, cell(2));
    else
      into.add(Extent{cell(0), cell(1)}, cell(2));
  }
}

Rows rowsOfArray(py::handle source, Pairs pairs) {
  const Array array(source);
  const std::size_t other = pairs == Pairs::kToo ? 2 : 4;
  const bool of_rows = array.dimensions() == 2 &&
                       (array.extent(1) == 3 || array.extent(1) == 5 || array.extent(1) == other);
  if (!of_rows) {
    std::string shape;
    for (int i = 0; i < array.dimensions(); ++i)
      shape += fmt::format("{}{}", i == 0 ? "" : ", ", array.extent(i));
    throw py::value_error(
        fmt::format("the array has the shape ({}); use N rows of (address, bytes, device), of "
                    "(address, bytes, device, 0) or of (address, bytes, device, stride, count)",
                    shape));
  }
  Rows rows;
  withElement(array, [&]<class T>(T) {
    readUnlocked(array.extent(0), [&] {
      if (!readAlike<T>(array, rows)) readRows<T>(array, rows);
    });
  });
  return rows;
}

py::object fastSequence(py::handle source, const char* wanted) {
  PyObject* items = PyUnicode_Check(source.ptr()) || PyBytes_Check(source.ptr()) ||
                            PyByteArray_Check(source.ptr())
                        ? nullptr
                        : PySequence_Fast(source.ptr(), "");
  if (items == nullptr) {
    PyErr_Clear();
    throw py::type_error(fmt::format("got {}; use {}", typeName(source), wanted));
  }
  return py::reinterpret_steal<py::object>(items);
}

// Reads tuples of three Python integers, of which none runs Python code.
class Triples {
 public:
  explicit Triples(Rows& into) : into_(into) {}
  // False: the tuple is another kind of row. The caller keeps the tuple as it is until the next
  // call.
  bool add(PyObject* tuple) {
    if (PyTuple_CheckExact(tuple) == 0 || PyTuple_GET_SIZE(tuple) != 3 || !into_.mayAdd(false))
      return false;
    for (std::size_t column = 0; column < 3; ++column)
      if (!read(PyTuple_GET_ITEM(tuple, static_cast<py::ssize_t>(column)), column)) return false;
    into_.add(Extent{cells_[0], cells_[1]}, cells_[2]);
    return true;
  }
  // Call this after Python code has run, because that code may have replaced the numbers.
  void forget() { numbers_ = {}; }

 private:
  // Most rows have the very objects of the row before them as their size and device.
  bool read(PyObject* number, std::size_t column) {
    if (number == numbers_[column]) return true;
    if (PyLong_CheckExact(number) == 0) return false;
    numbers_[column] = nullptr;
    cells_[column] = PyLong_AsUnsignedLongLong(number);
    if (cells_[column] == std::numeric_limits<std::uint64_t>::max() &&
        PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return false;
    }
    numbers_[column] = number;
    return true;
  }

  Rows& into_;
  std::array<PyObject*, 3> numbers_{};  // of the row before, which still holds them
  std::array<std::uint64_t, 3> cells_{};
};

void addTuple(py::handle tuple, std::size_t number, Pairs pairs, Rows& into) {
  const bool sequence = PyTuple_Check(tuple.ptr()) || PyList_Check(tuple.ptr());
  const auto columns = sequence ? PySequence_Fast_GET_SIZE(tuple.ptr()) : py::ssize_t{0};
  const bool of_pair = columns == 2 && pairs == Pairs::kToo;
  const bool of_three = columns == 3 || of_pair, of_five = columns == 5;
  if ((!of_three && !of_five) || !into.mayAdd(of_five))
    throw py::value_error(
        fmt::format("row {} is {} of {} items; use (address, bytes, device) in every row, or "
                    "(address, bytes, device, stride, count) in every row",
                    number, typeName(tuple), columns));
  // A list may change while __index__ of one of its items runs.
  const auto row = py::reinterpret_steal<py::tuple>(PySequence_Tuple(tuple.ptr()));
  if (!row) throw py::error_already_set();
  const auto cell = [&](std::size_t column) {
    static constexpr const char* kNames[] = {"address", "bytes", "device", "stride", "count"};
    return parseUnsigned(PyTuple_GET_ITEM(row.ptr(), column), kNames[column]);
  };
  if (of_three)
    into.add(Extent{cell(0), cell(1)}, of_pair ? 0 : cell(2));
  else
    into.add(Run{cell(0), cell(3), cell(1), cell(4)}, cell(2));
}

[[noreturn]] void refuseIndex(std::size_t place, const std::string& value) {
  throw py::value_error(
      fmt::format("index {} at place {}; indices go from 0 to {}", value, place, kMostBlocks));
}

template <class T>
void readIndices(const Array& array, std::vector<std::uint32_t>& into) {
  const std::size_t count = array.extent(0);
  const py::ssize_t next = array.stride(0);
  const char* at = array.data();
  into.resize(count);
  for (std::size_t i = 0; i < count; ++i, at += next) {
    const T value = load<T>(at);
    if (isNegative(value) || static_cast<std::uint64_t>(value) > kMostBlocks) [[unlikely]]
      refuseIndex(i, fmt::to_string(value));
    into[i] = static_cast<std::uint32_t>(value);
  }
}

std::vector<std::uint32_t> indicesOfArray(py::handle source) {
  const Array array(source);
  if (array.dimensions() != 1)
    throw py::value_error(
        fmt::format("the array of indices has {} dimensions; use one", array.dimensions()));
  std::vector<std::uint32_t> indices;
  withElement(array, [&]<class T>(T) {
    readUnlocked(array.extent(0), [&] { readIndices<T>(array, indices); });
  });
  return indices;
}

std::uint32_t checkedIndex(std::size_t place, py::handle value) {
  const std::uint64_t index = parseUnsigned(value, "index");
  if (index > kMostBlocks) refuseIndex(place, fmt::to_string(index));
  return static_cast<std::uint32_t>(index);
}

std::vector<std::uint32_t> indicesOfRange(py::handle range) {
  const auto count = py::len(range);
  if (count == 0) return {};
  // If both ends of the range are in bounds, all numbers between them are in bounds too.
  const std::int64_t first = checkedIndex(0, range.attr("__getitem__")(0));
  const std::int64_t last = checkedIndex(count - 1, range.attr("__getitem__")(-1));
  std::vector<std::uint32_t> indices(count);
  const std::int64_t step = count == 1 ? 0 : (last - first) / static_cast<std::int64_t>(count - 1);
  for (std::size_t i = 0; i < count; ++i)
    indices[i] = static_cast<std::uint32_t>(first + static_cast<std::int64_t>(i) * step);
  return indices;
}

}  // namespace

std::uint64_t parseUnsigned(py::handle value, const char* what) {
  py::object number;
  if (PyLong_Check(value.ptr()) == 0) {
    number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!number) {
      PyErr_Clear();
      throw py::type_error(fmt::format("{} is {}; use an integer", what, typeName(value)));
    }
    value = number;
  }
  const unsigned long long result = PyLong_AsUnsignedLongLong(value.ptr());
  if (result == std::numeric_limits<unsigned long long>::max() && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw py::value_error(fmt::format("{} is {}; use an integer from 0 to 2**64 - 1", what,
                                      py::str(value).cast<std::string>()));
  }
  return result;
}

bool isArray(py::handle source) {
  PyObject* const it = source.ptr();
  if (PyBytes_Check(it) || PyByteArray_Check(it) || PyUnicode_Check(it)) return false;
  return PyObject_CheckBuffer(it) != 0 ||
         (PyList_Check(it) == 0 && PyTuple_Check(it) == 0 && py::hasattr(source, "numpy"));
}

Rows parseRows(py::handle source, Pairs pairs) {
  if (isArray(source)) return rowsOfArray(source, pairs);
  const py::object items =
      fastSequence(source, "an N×3, N×4 or N×5 array of integers, or a list of tuples");
  Rows rows;
  const auto count = PySequence_Fast_GET_SIZE(items.ptr());
  rows.reserve(static_cast<std::size_t>(count));
  Triples triples(rows);
  for (py::ssize_t i = 0; i < count; ++i) {
    // An item's __index__ may shrink the list, so check the size before each access.
    if (i >= PySequence_Fast_GET_SIZE(items.ptr())) break;
    if (triples.add(PySequence_Fast_GET_ITEM(items.ptr(), i))) continue;
    triples.forget();
    const auto item = py::reinterpret_borrow<py::object>(PySequence_Fast_GET_ITEM(items.ptr(), i));
    addTuple(item, static_cast<std::size_t>(i), pairs, rows);
  }
  return rows;
}

std::vector<std::uint32_t> parseIndices(py::handle source) {
  if (PyRange_Check(source.ptr())) return indicesOfRange(source);
  if (isArray(source)) return indicesOfArray(source);
  const py::object items = fastSequence(source, "a list of integers, a range, or an array");
  std::vector<std::uint32_t> indices;
  indices.reserve(static_cast<std::size_t>(PySequence_Fast_GET_SIZE(items.ptr())));
  for (py::ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) {
    const auto item = py::reinterpret_borrow<py::object>(PySequence_Fast_GET_ITEM(items.ptr(), i));
    indices.push_back(checkedIndex(static_cast<std::size_t>(i), item));
  }
  return indices;
}

}  // namespace viaduct::python
