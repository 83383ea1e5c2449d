#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <utility>

#include "base/lists.h"
#include "errors.h"
#include "nixl_status.h"

namespace viaduct::python::nixl {
namespace {

struct Row {
  Outcome outcome;
  const char* name;
  const char* exception;  // null: not an error
};

constexpr std::array kRows{
    Row{Outcome::kInProgress, "NIXL_IN_PROG", nullptr},
    Row{Outcome::kSuccess, "NIXL_SUCCESS", nullptr},
    Row{Outcome::kNotPosted, "NIXL_ERR_NOT_POSTED", "nixlNotPostedError"},
    Row{Outcome::kInvalid, "NIXL_ERR_INVALID_PARAM", "nixlInvalidParamError"},
    Row{Outcome::kBackend, "NIXL_ERR_BACKEND", "nixlBackendError"},
    Row{Outcome::kNotFound, "NIXL_ERR_NOT_FOUND", "nixlNotFoundError"},
    Row{Outcome::kMismatch, "NIXL_ERR_MISMATCH", "nixlMismatchError"},
    Row{Outcome::kNotAllowed, "NIXL_ERR_NOT_ALLOWED", "nixlNotAllowedError"},
    Row{Outcome::kRepostActive, "NIXL_ERR_REPOST_ACTIVE", "nixlRepostActiveError"},
    Row{Outcome::kUnknown, "NIXL_ERR_UNKNOWN", "nixlUnknownError"},
    Row{Outcome::kNotSupported, "NIXL_ERR_NOT_SUPPORTED", "nixlNotSupportedError"},
    Row{Outcome::kRemoteDisconnect, "NIXL_ERR_REMOTE_DISCONNECT", "nixlRemoteDisconnectError"},
    Row{Outcome::kCancelled, "NIXL_ERR_CANCELED", "nixlCancelledError"},
    Row{Outcome::kNoTelemetry, "NIXL_ERR_NO_TELEMETRY", "nixlNoTelemetryError"},
};

// These objects live as long as the process, because an exception may still propagate while Python
// destroys the module.
std::array<PyObject*, kRows.size()> exceptions{};
PyObject *success = nullptr, *in_progress = nullptr;

std::size_t rowOf(Outcome outcome) {
  std::size_t row = 0;
  while (kRows[row].outcome != outcome) ++row;
  return row;
}

// Other codes are kBackend.
using CodeOutcome = std::pair<Code, Outcome>;
constexpr std::array kOutcomes{CodeOutcome{Code::kInvalid, Outcome::kInvalid},
                               CodeOutcome{Code::kNotFound, Outcome::kNotFound},
                               CodeOutcome{Code::kUnsupported, Outcome::kNotSupported},
                               CodeOutcome{Code::kDenied, Outcome::kNotAllowed},
                               CodeOutcome{Code::kCancelled, Outcome::kCancelled},
                               CodeOutcome{Code::kPeerLost, Outcome::kRemoteDisconnect}};

}  // namespace

void fail(Outcome outcome, const std::string& text) {
  const std::size_t row = rowOf(outcome);
  const std::string whole = fmt::format("{}: {}", kRows[row].name, text);
  // Texts of the system and names of peers may not be UTF-8.
  PyErr_SetObject(exceptions[row], decoded(whole, "backslashreplace").ptr());
  throw py::error_already_set();
}

void fail(const Error& error) {
  const auto* const known = base::firstWith(kOutcomes, &CodeOutcome::first, error.code);
  fail(known == nullptr ? Outcome::kBackend : known->second, error.text());
}

py::object successObject() { return py::reinterpret_borrow<py::object>(success); }
py::object inProgressObject() { return py::reinterpret_borrow<py::object>(in_progress); }

void bindStatus(py::module_& module) {
  py::enum_<Outcome> outcomes(module, "nixl_status_t",
                              "The outcome of a call, or the state of a transfer.");
  for (const Row& row : kRows) outcomes.value(row.name, row.outcome);
  outcomes.export_values();
  success = py::object(module.attr("NIXL_SUCCESS")).release().ptr();
  in_progress = py::object(module.attr("NIXL_IN_PROG")).release().ptr();
  for (std::size_t row = 0; row < kRows.size(); ++row) {
    if (kRows[row].exception == nullptr) continue;
    exceptions[row] = PyErr_NewException(
        fmt::format("nixl._bindings.{}", kRows[row].exception).c_str(), PyExc_Exception, nullptr);
    if (exceptions[row] == nullptr) throw py::error_already_set();
    module.attr(kRows[row].exception) = py::reinterpret_borrow<py::object>(exceptions[row]);
  }
}

}  // namespace viaduct::python::nixl
