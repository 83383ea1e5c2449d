#include <fmt/format.h>

#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "memory_of.h"
#include "rows.h"
#include "selection.h"

namespace viaduct::python {
namespace {

std::shared_ptr<BlockList> listOf(const py::object& rows) {
  Rows parsed = parseRows(rows, Pairs::kToo);
  if (!parsed.devices.empty() || parsed.device != 0)
    raise({.code = Code::kUnsupported,
           .operation = "blocks",
           .detail = "a row names the memory of a device",
           .cause = "no backend of this build reaches the memory of GPUs",
           .remedy = "use device 0, which is the host"});
  auto blocks = unlocked([&] {
    return parsed.runs.empty() ? Blocks::list(parsed.extents) : Blocks::of(std::move(parsed.runs));
  });
  return std::make_shared<BlockList>(valueOf(std::move(blocks)), py::object());
}

// An integer of Python or of numpy, also as an array without dimensions.
bool isNumber(const py::object& index) {
  if (PyLong_Check(index.ptr()) != 0) return true;
  if (PyIndex_Check(index.ptr()) == 0) return false;
  return !py::hasattr(index, "ndim") || index.attr("ndim").cast<int>() == 0;
}

py::object itemOf(const py::object& self, const py::object& index) {
  const auto list = self.cast<std::shared_ptr<const BlockList>>();
  const Blocks& blocks = list->blocks();
  const auto count = static_cast<Py_ssize_t>(blocks.count());
  if (PySlice_Check(index.ptr()) != 0) {
    Py_ssize_t start = 0, stop = 0, step = 0;
    if (PySlice_Unpack(index.ptr(), &start, &stop, &step) != 0) throw py::error_already_set();
    const Py_ssize_t taken = PySlice_AdjustIndices(count, &start, &stop, step);
    if (taken == 0) raiseMisuse("select blocks", "the slice names no block");
    Indices indices(static_cast<std::size_t>(taken));
    for (Py_ssize_t i = 0; i < taken; ++i)
      indices[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(start + i * step);
    return py::cast(SelectedBlocks{list, std::move(indices)});
  }
  if (!isNumber(index)) return py::cast(SelectedBlocks{list, indicesOf(index)});
  Py_ssize_t number = PyNumber_AsSsize_t(index.ptr(), PyExc_IndexError);
  if (number == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (number < 0) number += count;
  if (number < 0 || number >= count)
    throw py::index_error(fmt::format("block {} of {}", py::str(index).cast<std::string>(), count));
  const Extent extent = blocks[static_cast<std::uint64_t>(number)];
  return py::make_tuple(extent.address, extent.bytes);
}

std::string describe(const BlockList& list) {
  const Blocks& blocks = list.blocks();
  const std::string each =
      blocks.blockBytes() == 0 ? "" : fmt::format(" of {} bytes", blocks.blockBytes());
  return fmt::format("<viaduct.Blocks {}{}, {} bytes from {:#x}>", blocks.count(), each,
                     blocks.bytes(), blocks.count() == 0 ? 0 : blocks[0].address);
}

constexpr auto kBlocks =
    R"(Blocks of memory, numbered from 0. Described once, used by any number of plans.

    blocks = pin.blocks(4096)                  # a pin, cut into blocks of 4,096 bytes
    blocks = Blocks.of(cache)                  # cache[i] of a numpy array or tensor is block i
    blocks = Blocks.strided(base, bytes=4096, stride=8192, count=1000)
    blocks = Blocks.list([(address, bytes, 0), ...])    # or an N×3 array
    blocks[5]                                  # (address, bytes) of block 5
    blocks[[3, 1, 7]], blocks[2:10]            # a Selection: what plan(), write() and read() take

A million equal blocks are one run and cost as much as one. Immutable. Blocks of an array or of a pin
keep its memory alive.)";

constexpr auto kSelection = R"(Some blocks of a list, in the order in which a transfer takes them.

    selection = blocks[[3, 1, 7]]     # a list, a range, a slice, or an integer array of any type
    agent.write(peer, selection, remote_blocks[0:3])
)";

}  // namespace

void bindBlocks(py::module_& module) {
  py::class_<BlockList, std::shared_ptr<BlockList>>(module, "Blocks", kBlocks)
      .def_static(
          "of",
          [](const py::object& array) {
            const ObjectMemory memory = memoryOf("blocks", array);
            return std::make_shared<BlockList>(valueOf(Blocks::strided(rowsOf("blocks", memory))),
                                               memory.keeper);
          },
          py::arg("array"), R"(of(array)
--

The rows of an array or tensor: array[i] is block i. Each row has to be contiguous.)")
      .def_static(
          "strided",
          [](std::uint64_t base, std::uint64_t bytes, std::uint64_t count, std::uint64_t stride) {
            return std::make_shared<BlockList>(
                valueOf(Blocks::strided(
                    {.base = base, .stride = stride, .bytes = bytes, .count = count})),
                py::object());
          },
          py::arg("base"), py::arg("bytes"), py::arg("count"), py::arg("stride") = 0,
          R"(strided(base, bytes, count, stride=0)
--

`count` blocks of `bytes` each. The first begins at `base`, the others `stride` bytes apart; 0: they
touch. Costs the same however many blocks there are.)")
      .def_static("list", listOf, py::arg("rows"), R"(list(rows)
--

One block for each row (address, bytes) or (address, bytes, device), or the blocks of the runs
(address, bytes, device, stride, count).

`rows` is a sequence of tuples, or an array of integers of any type with 2, 3 or 5 columns. The
device is 0, the host.)")
      .def("__len__", [](const BlockList& list) { return list.blocks().count(); })
      .def("__getitem__", itemOf)
      .def_property_readonly(
          "bytes", [](const BlockList& list) { return list.blocks().bytes(); },
          "The bytes of all blocks together.")
      .def_property_readonly(
          "block_bytes", [](const BlockList& list) { return list.blocks().blockBytes(); },
          "The bytes of every block if all have equally many, else 0.")
      .def("__repr__", describe);

  py::class_<SelectedBlocks>(module, "Selection", kSelection)
      .def("__len__", [](const SelectedBlocks& selected) { return selected.indices.size(); })
      .def_property_readonly(
          "indices",
          [](const SelectedBlocks& selected) {
            py::tuple indices(selected.indices.size());
            for (std::size_t i = 0; i < selected.indices.size(); ++i)
              indices[i] = selected.indices[i];
            return indices;
          },
          "The numbers of the blocks.")
      .def("__repr__", [](const SelectedBlocks& selected) {
        return fmt::format("<viaduct.Selection {} of {}>", selected.indices.size(),
                           describe(*selected.list));
      });
}

}  // namespace viaduct::python
