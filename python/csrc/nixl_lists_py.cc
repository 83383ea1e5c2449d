#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <utility>

#include "nixl/lists.h"
#include "nixl/status.h"
#include "nixl_bindings.h"
#include "rows.h"

namespace viaduct::nixl {
namespace {

// print() and repr() show only this many rows of a longer list.
constexpr std::size_t kPrintedRows = 16;

std::string textOf(py::handle value, const char* what) {
  if (PyUnicode_Check(value.ptr()) == 0 && PyBytes_Check(value.ptr()) == 0)
    throw py::type_error(fmt::format("{} is {}; use str or bytes", what, typeName(value)));
  return value.cast<std::string>();
}

// Parses one row as the list's type requires: the numbers, then the text of the row.
template <class L>
std::pair<Rows, std::string> parseRow(py::handle source) {
  if constexpr (!L::kHasTexts) {
    return {python::parseRows(py::make_tuple(source)), {}};
  } else {
    const bool sequence = PyTuple_Check(source.ptr()) || PyList_Check(source.ptr());
    if (!sequence || py::len(source) != 4)
      throw py::value_error(fmt::format("a row is {}; use (address, bytes, device, {})",
                                        py::repr(source).template cast<std::string>(),
                                        std::is_same_v<L, RemoteList> ? "agent" : "metadata"));
    const py::tuple row(py::reinterpret_borrow<py::object>(source));
    return {python::parseRows(py::make_tuple(py::make_tuple(row[0], row[1], row[2]))),
            textOf(row[3], "the fourth item of a row")};
  }
}

std::size_t checkedPlace(const List& list, py::ssize_t place) {
  if (place < 0 || static_cast<std::size_t>(place) >= list.rows->count())
    throw py::index_error(
        fmt::format("there is no descriptor {} in a list of {}", place, list.rows->count()));
  return static_cast<std::size_t>(place);
}

template <class L>
void append(L& list, py::handle source) {
  auto [one, text] = parseRow<L>(source);
  Rows& rows = list.ownRows();
  if (!rows.mayAdd(one.ofRuns()))
    throw py::value_error("a list has rows of three numbers or rows of five, not both");
  if (one.ofRuns())
    rows.add(one.run(0), one.devices()[0]);
  else
    rows.add(one.extent(0), one.devices()[0]);
  if (L::kHasTexts) list.texts.push_back(std::move(text));
}

template <class L>
L parseList(Memory memory, py::handle source) {
  L list{{memory}};
  if (!L::kHasTexts || python::isArray(source)) {
    if (std::is_same_v<L, RemoteList>)
      throw py::type_error(
          "an array has no place for agents; use tuples (address, bytes, device, agent)");
    list.rows = std::make_shared<Rows>(python::parseRows(source));
    if (L::kHasTexts && list.rows->ofRuns())
      throw py::value_error(
          "registered memory takes rows of three numbers (address, bytes, device), not of five");
    if (L::kHasTexts) list.texts.resize(list.rows->count());
    return list;
  }
  for (const py::handle row : py::iter(source)) append(list, row);
  return list;
}

template <class L>
L zeroes(Memory memory, std::size_t count) {
  L list{{memory}};
  resizeRows(list, count);
  return list;
}

template <class L>
py::tuple get(L& list, std::size_t at) {
  const Run run = list.rows->run(at);
  const std::uint64_t device = list.rows->devices()[at];
  if constexpr (std::is_same_v<L, RegistrationList>)
    return py::make_tuple(run.base, run.bytes, device, py::bytes(list.texts[at]));
  else if constexpr (std::is_same_v<L, RemoteList>)
    return py::make_tuple(run.base, run.bytes, device, nameObject(list.texts[at]));
  else if (list.rows->ofRuns())
    return py::make_tuple(run.base, run.bytes, device, run.stride, run.count);
  else
    return py::make_tuple(run.base, run.bytes, device);
}

template <class L>
void set(L& list, py::ssize_t place, py::handle source) {
  const std::size_t at = checkedPlace(list, place);
  auto [one, text] = parseRow<L>(source);
  Rows& rows = list.ownRows();
  if (one.ofRuns() != rows.ofRuns())
    throw py::value_error("a list has rows of three numbers or rows of five, not both");
  rows.set(at, one, 0);
  if (L::kHasTexts) list.texts[at] = std::move(text);
}

bool equal(const List& one, const List& other) {
  return one.memory == other.memory && *one.rows == *other.rows && one.texts == other.texts;
}

template <class L>
std::size_t find(L& list, py::handle source) {
  L wanted;
  append(wanted, source);
  for (std::size_t row = 0; row < list.rows->count(); ++row)
    if (get(list, row).equal(get(wanted, 0))) return row;
  fail(Outcome::kNotFound, fmt::format("index: the list has no descriptor {}",
                                       py::repr(source).template cast<std::string>()));
}

template <class L>
std::string show(const char* name, L& list) {
  const std::size_t count = list.rows->count();
  std::string text = fmt::format("{}({}, {} descriptors", name, memoryName(list.memory), count);
  for (std::size_t row = 0; row < std::min(count, kPrintedRows); ++row)
    text += fmt::format("{}{}", row == 0 ? ": " : ", ",
                        py::repr(get(list, row)).template cast<std::string>());
  return text + (count > kPrintedRows ? ", ...)" : ")");
}

// Refuses the state of another list type, just as it refuses damaged bytes.
template <class L>
L unpickle(const py::bytes& state) {
  auto list = decodeList(std::string(state));
  if (!std::holds_alternative<L>(list))
    fail(Outcome::kInvalid, "unpickle: the state belongs to another type of list");
  return std::get<L>(std::move(list));
}

template <class L>
py::class_<L> bindList(py::module_& module, const char* name) {
  using py::operator""_a;
  py::class_<L> list(module, name);
  list.def(py::init(&zeroes<L>), "type"_a, "init_size"_a = 0)
      .def(py::init(
               [](Memory memory, const py::object& descs) { return parseList<L>(memory, descs); }),
           "type"_a, "descs"_a)
      .def("getType", [](const L& self) { return self.memory; })
      .def("descCount", [](const L& self) { return self.rows->count(); })
      .def("isEmpty", [](const L& self) { return self.rows->count() == 0; })
      .def("__eq__",
           [](L& self, const py::object& other) {
             return py::isinstance<L>(other) && equal(self, other.cast<const L&>());
           })
      .def("__getitem__", [](L& self, py::ssize_t i) { return get(self, checkedPlace(self, i)); })
      .def("__setitem__", set<L>)
      .def("addDesc", append<L>, "desc"_a)
      .def("append", append<L>, "desc"_a)
      .def("index", find<L>, "desc"_a)
      .def(
          "remDesc", [](L& self, py::ssize_t i) { removeRow(self, checkedPlace(self, i)); },
          "index"_a)
      .def("clear", [](L& self) { resizeRows(self, 0); })
      .def("print", [name](L& self) { py::print(show(name, self)); })
      .def("__repr__", [name](L& self) { return show(name, self); })
      .def(py::pickle([](const L& self) { return py::bytes(encodeList(self)); }, &unpickle<L>));
  module.def("serialize", [](const L& descs) { return py::bytes(encodeList(descs)); });
  return list;
}

}  // namespace

void bindLists(py::module_& module) {
  py::enum_<Memory> memories(module, "nixl_mem_t", "A kind of memory.");
  for (const Memory memory :
       {Memory::kDram, Memory::kVram, Memory::kBlock, Memory::kObject, Memory::kFile})
    memories.value(memoryName(memory), memory);
  memories.export_values();

  bindList<TransferList>(module, "nixlXferDList");
  bindList<RegistrationList>(module, "nixlRegDList").def("trim", [](const RegistrationList& self) {
    return TransferList{{self.memory, self.rows}};
  });
  bindList<RemoteList>(module, "nixlRemoteDList");
  module.def(
      "deserialize",
      [](const py::bytes& state) {
        return std::visit([](auto list) { return py::cast(std::move(list)); },
                          decodeList(std::string(state)));
      },
      "Decodes a descriptor list from untrusted bytes. Damaged bytes raise nixlInvalidParamError.");
}

}  // namespace viaduct::nixl
