#include <fmt/format.h>
#include <pybind11/stl.h>
#include <viaduct/memory.h>
#include <viaduct/note.h>
#include <viaduct/path.h>

#include "bindings.h"
#include "selection.h"

namespace viaduct::python {
namespace {

py::bytes bytesOf(const Note& note) {
  return {reinterpret_cast<const char*>(note.bytes.data()), note.bytes.size()};
}

constexpr auto kNote = R"(A message of bytes from a peer.

    async for note in agent.notes():
        print(note.sender, note.data)
        agent.peer(note.sender).note(b"got it")
)";

constexpr auto kRemotePin = R"(Memory that a peer has pinned, for the remote side of a transfer.

    inbox = peer.pin("inbox", timeout=10)
    agent.write(peer, data, inbox)                       # the whole pin
    agent.write(peer, data, inbox.blocks(4096)[[0, 5]])
)";

void bindPath(py::module_& module) {
  py::class_<PathShare>(module, "PathShare", "The share of a transfer that one rail carried.")
      .def_readonly("backend", &PathShare::backend, "The backend's name: \"local\", \"tcp\", ...")
      .def_readonly("way", &PathShare::way,
                    "How the backend copied: \"mapped\", \"cma\", \"socket\", ...")
      .def_readonly("rail", &PathShare::rail,
                    "The NIC, queue or group of sockets that carried the bytes.")
      .def_readonly("bytes", &PathShare::bytes, "The number of bytes that the rail carried.")
      .def_readonly("ops", &PathShare::ops, "The number of contiguous copies that the rail made.")
      .def("__repr__", [](const PathShare& share) {
        return fmt::format("<viaduct.PathShare {}/{} {}: {} bytes in {} ops>", share.backend,
                           share.way, share.rail, share.bytes, share.ops);
      });
  py::class_<Path>(module, "Path",
                   R"(The backends and rails that moved the bytes of a transfer.

    transfer.wait()
    print(transfer.path)                       # local/mapped 1.0 MiB in 16 ops
    transfer.path.shares[0].backend            # "local"
)")
      .def_property_readonly(
          "shares", [](const Path& path) { return py::tuple(py::cast(path.shares)); },
          "One PathShare for each rail.")
      .def("__str__", &Path::text)
      .def("__repr__",
           [](const Path& path) { return fmt::format("<viaduct.Path {}>", path.text()); })
      .def(
          "__eq__", [](const Path& one, const Path& other) { return one == other; },
          py::is_operator());
}

}  // namespace

void bindValues(py::module_& module) {
  bindPath(module);
  py::class_<Note>(module, "Note", kNote)
      .def_readonly("sender", &Note::from, "The name of the peer that sent the note.")
      .def_property_readonly("data", bytesOf, "The bytes of the note.")
      .def_property_readonly(
          "text", [](const Note& note) { return py::str(bytesOf(note).attr("decode")()); },
          "The bytes decoded as UTF-8. UnicodeDecodeError: the bytes are not UTF-8.")
      .def("__bytes__", bytesOf)
      .def("__repr__", [](const Note& note) {
        return fmt::format("<viaduct.Note {} bytes from {:?}>", note.bytes.size(), note.from);
      });
  py::class_<PinInfo>(module, "RemotePin", kRemotePin)
      .def_readonly("label", &PinInfo::label,
                    "The label that the peer gave the memory; may be empty.")
      .def_readonly("address", &PinInfo::address,
                    "The address of the memory in the peer's process.")
      .def_readonly("bytes", &PinInfo::bytes, "The size of the pinned memory in bytes.")
      .def_property_readonly(
          "kind", [](const PinInfo& pin) { return memoryKindName(pin.kind); },
          "\"host\", \"file\", \"block\" (a block device) or \"object\".")
      .def_property_readonly(
          "read_only", [](const PinInfo& pin) { return pin.access == MemoryAccess::kReadOnly; },
          "Whether transfers may only read the memory.")
      .def_property_readonly(
          "write_only", [](const PinInfo& pin) { return pin.access == MemoryAccess::kWriteOnly; },
          "Whether transfers may only write the memory, because the card grants no reading.")
      .def("__len__", [](const PinInfo& pin) { return pin.bytes; })
      .def(
          "blocks",
          [](const PinInfo& pin, std::uint64_t bytes, std::uint64_t stride, std::uint64_t offset,
             std::optional<std::uint64_t> count) {
            return blocksWithin(pin, {bytes, stride, offset, count}, {});
          },
          py::arg("bytes"), py::kw_only(), py::arg("stride") = 0, py::arg("offset") = 0,
          py::arg("count") = py::none(), kBlocksOfPin)
      .def(
          "__eq__", [](const PinInfo& one, const PinInfo& other) { return one == other; },
          py::is_operator())
      .def("__repr__", [](const PinInfo& pin) {
        return fmt::format("<viaduct.RemotePin {:?} {} bytes at {:#x}>", pin.label, pin.bytes,
                           pin.address);
      });
}

}  // namespace viaduct::python
