#include <fmt/format.h>
#include <viaduct/result.h>

#include "errors.h"
#include "gil.h"

namespace viaduct::python {

py::object exceptionOf(const Error& error) {
  // An exiting interpreter would end a daemon thread in the middle of this function. Releasing the
  // GIL blocks the thread here first.
  if (Exit::hasBegun()) unlocked([] {});
  const py::object classes = py::module_::import("viaduct._errors").attr("BY_CODE");
  const auto text = [](const std::string& bytes) { return decoded(bytes, "backslashreplace"); };
  using py::operator""_a;
  return classes[codeName(error.code)](
      text(error.text()), "operation"_a = error.operation, "detail"_a = text(error.detail),
      "os_errno"_a = error.os_errno, "peer"_a = text(error.peer), "device"_a = text(error.device),
      "file"_a = text(error.file), "cause"_a = text(error.cause), "remedy"_a = text(error.remedy));
}

void raise(const Error& error) {
  const py::object exception = exceptionOf(error);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
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
