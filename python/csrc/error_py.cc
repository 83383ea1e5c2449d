#include <fmt/format.h>
#include <viaduct/result.h>

#include <string>
#include <string_view>
#include <utility>

#include "bindings.h"
#include "errors.h"
#include "gil.h"

namespace viaduct::python {
namespace {

// A name in the texts of the library, and the name of the same thing in Python.
struct Name {
  std::string_view library, python;
};
constexpr Name kNames[]{
    {" with Agent::open() or settingsFromEnvironment())", " in the environment)"},
    {"settled() of Agent::self() is true", "`settled` of Agent.self() is True"},
    {"Peer::settled() is true", "Peer.settled is True"},
    {"settled() is true", "`settled` is True"},
    {"Peer::ready(deadline)", "Peer.ready(timeout)"},
    {"Peer::waitPin", "Peer.pin()"},
    {"Peer::pins()", "Peer.pins"},
    {"Peer::state()", "Peer.state"},
    {"Peer::ways()", "Peer.ways"},
    {"Agent::backends()", "Agent.backends"},
    {"Agent::allocate", "Agent.allocate()"},
    {"Agent::find()", "Agent.find()"},
    {"drainState() tells", "drain_state has"},
    {"Lease::ticket() returned", "Lease.ticket has"},
    {"Lease::ticket()", "Lease.ticket"},
    {"Segment::file()", "Agent.pin_file()"},
    {"DeviceMemory::open()", "Agent.pin()"},
    {"Storage::open()", "Agent.pin_file()"},
    {"FileOptions::create", "create=True"},
    {"FileOptions::", ""},
    {"Settings::", ""},
    {"checkBlocks", "check_blocks"},
    {"digestBlocks", "digest_blocks"},
    {"encodeDigests", "Digests.encode"},
    {"decodeDigests", "Digests.decode"},
    {"exportCard({.pins = \"*\"})", "Agent.export_card()"},
    {"exportCard()", "Agent.card"},
    {"revokeCards()", "revoke_cards()"},
    {"Card::narrow", "narrow_card"},
    {"importCard", "connect"},
    {"waitNote", "wait_note"},
    {"waitPin", "pin"},
    {"eventFd", "fileno"},
};

std::string inPython(std::string text) {
  for (const auto& [library, python] : kNames)
    for (std::size_t at = 0; (at = text.find(library, at)) != std::string::npos;
         at += python.size())
      text.replace(at, library.size(), python);
  return text;
}

}  // namespace

py::object exceptionOf(const Error& told) {
  Error error = told;
  for (std::string* part : {&error.operation, &error.detail, &error.cause, &error.remedy})
    *part = inPython(std::move(*part));
  // An exiting interpreter would end a daemon thread in the middle of this function. Releasing the
  // GIL blocks the thread here first.
  if (Exit::hasBegun()) unlocked([] {});
  const py::object classes = py::module_::import("viaduct._errors").attr("_BY_CODE");
  const auto text = [](const std::string& bytes) { return decoded(bytes, "backslashreplace"); };
  using py::operator""_a;
  return classes[codeName(error.code)](
      text(error.text()), "operation"_a = error.operation, "detail"_a = text(error.detail),
      "os_errno"_a = error.os_errno, "peer"_a = text(error.peer), "device"_a = text(error.device),
      "file"_a = text(error.file), "cause"_a = text(error.cause), "remedy"_a = text(error.remedy));
}

void bindErrors(py::module_& module) { module.def("_in_python", &inPython); }

void setError(const Error& error) {
  const py::object exception = exceptionOf(error);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

void raise(const Error& error) {
  setError(error);
  throw py::error_already_set();
}

void raiseMisuse(const char* operation, std::string detail, std::string remedy) {
  raise({.code = Code::kInvalid,
         .operation = operation,
         .detail = std::move(detail),
         .remedy = std::move(remedy)});
}

void raiseWrongType(const char* operation, py::handle argument, std::string_view remedy) {
  throw py::type_error(fmt::format("{}: an argument of the type {}; what to do: {}", operation,
                                   typeName(argument), remedy));
}

py::object decoded(std::string_view text, const char* errors) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), errors));
}

}  // namespace viaduct::python
