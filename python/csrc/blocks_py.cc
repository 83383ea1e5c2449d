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
  const Rows parsed = parseRows(rows, Pairs::kToo);
  if (!parsed.devices().isSame() || parsed.devices()[0] != 0)
    raise({.code = Code::kUnsupported,
           .operation = "blocks",
           .detail = "the device number of a row is not 0",
           .cause = "an address alone says whether it is memory of the host or of a GPU",
           .remedy = "give 0, also for addresses of GPUs"});
  auto blocks = unlocked(
      [&] { return parsed.ofRuns() ? Blocks::of(parsed.runs()) : Blocks::list(parsed.extents()); });
  return std::make_shared<BlockList>(valueOf(std::move(blocks)), py::object());
}

// True for an integer of Python or numpy, also for a numpy array without dimensions.
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
    if (taken == 0) raiseMisuse("select blocks", "the slice selects no block");
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
    throw py::index_error(fmt::format("there is no block {} in a list of {}",
                                      py::str(index).cast<std::string>(), count));
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
    R"(A list of memory blocks, numbered from 0. Any number of plans may use one list.

    blocks = pin.blocks(4096)                  # a pin, cut into blocks of 4,096 bytes
    blocks = Blocks.of(cache)                  # cache[i] of a numpy array or tensor is block i
    blocks = Blocks.strided(base, bytes=4096, stride=8192, count=1000)
    blocks = Blocks.list([(address, bytes, 0), ...])    # or an N×3 array
    blocks[5]                                  # (address, bytes) of block 5
    blocks[[3, 1, 7]], blocks[2:10]            # a Selection, for plan(), write() and read()

A run of blocks with one size and one stride costs as much as one block. A list never changes.
Blocks of an array or of a pin keep the memory alive.)";

constexpr auto kSelection = R"(Some blocks of a list, in the order in which a transfer copies them.

    selection = blocks[[3, 1, 7]]     # or a range, a slice, or an array of any integer type
    agent.write(peer, selection, remote_blocks[0:3])
)";

}  // namespace

void bindBlocks(py::module_& module) {
  py::class_<BlockList, std::shared_ptr<BlockList>>(module, "Blocks", kBlocks)
      .def_static(
          "of",
          [](const py::object& array) {
            const ObjectMemory memory = memoryOf("blocks", array);
            return blocksOf(rowsOf("blocks", memory), memory.keeper);
          },
          py::arg("array"), Doc{R"(
Makes one block of each row of an array or tensor: block i is array[i]. Each row has to be
contiguous.)"})
      .def_static(
          "strided",
          [](std::uint64_t base, std::uint64_t bytes, std::uint64_t count, std::uint64_t stride) {
            return blocksOf({.base = base, .stride = stride, .bytes = bytes, .count = count});
          },
          py::arg("base"), py::arg("bytes"), py::arg("count"), py::arg("stride") = 0, Doc{R"(
Makes `count` blocks of `bytes` bytes each. The first block begins at the address `base`, and each
next block `stride` bytes later. With stride=0 the blocks touch. The cost does not depend on
`count`.)"})
      .def_static("list", listOf, py::arg("rows"), Doc{R"(
Makes one block of each row (address, bytes) or (address, bytes, device). A row
(address, bytes, device, stride, count) makes `count` blocks that begin `stride` bytes apart.

`rows` is a sequence of tuples, or an array of integers of any type with 2, 3 or 5 columns. The
device has to be 0, also for addresses of GPUs.)"})
      .def("__len__", [](const BlockList& list) { return list.blocks().count(); })
      .def("__getitem__", itemOf)
      .def_property_readonly(
          "bytes", [](const BlockList& list) { return list.blocks().bytes(); },
          "The sum of the sizes of all blocks, in bytes.")
      .def_property_readonly(
          "block_bytes", [](const BlockList& list) { return list.blocks().blockBytes(); },
          "The size of each block in bytes, or 0 if the sizes differ.")
      .def("__repr__", py::overload_cast<const BlockList&>(&describe));

  py::class_<SelectedBlocks>(module, "Selection", kSelection)
      .def("__len__", [](const SelectedBlocks& selected) { return selected.indices.size(); })
      .def_property_readonly(
          "indices", [](const SelectedBlocks& selected) { return tupleOf(selected.indices); },
          "The numbers of the selected blocks, as a tuple.")
      .def("__repr__", [](const SelectedBlocks& selected) {
        return fmt::format("<viaduct.Selection {} of {}>", selected.indices.size(),
                           describe(*selected.list));
      });
}

}  // namespace viaduct::python
