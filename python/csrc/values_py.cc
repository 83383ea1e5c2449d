#include <fmt/format.h>
#include <pybind11/operators.h>
#include <pybind11/stl.h>
#include <viaduct/note.h>
#include <viaduct/path.h>

#include "arguments.h"
#include "bindings.h"

namespace viaduct::python {
namespace {

py::bytes bytesOf(const Note& note) { return bytesObject(note.bytes); }

constexpr auto kNote = R"(A message of bytes from a peer.

    async for note in agent.notes():
        print(note.sender, note.data)
        agent.peer(note.sender).note(b"got it")
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
      .def(py::self == py::self);
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
}

}  // namespace viaduct::python
