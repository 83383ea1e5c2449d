// The outcomes of NIXL's calls. A call that fails throws a Failure, which becomes an exception in
// Python, or a status in C. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace viaduct::nixl {

// Programs compare these numbers with NIXL's, so the numbers must not change.
enum class Outcome : int {
  kInProgress = 1,
  kSuccess = 0,
  kNotPosted = -1,
  kInvalid = -2,
  kBackend = -3,
  kNotFound = -4,
  kMismatch = -5,
  kNotAllowed = -6,
  kRepostActive = -7,
  kUnknown = -8,
  kNotSupported = -9,
  kRemoteDisconnect = -10,
  kCancelled = -11,
  kNoTelemetry = -12,
};
struct OutcomeName {
  Outcome outcome;
  const char* text;
  const char* exception;  // in Python; null: not an error
};
inline constexpr std::array kOutcomeNames{
    OutcomeName{Outcome::kInProgress, "NIXL_IN_PROG", nullptr},
    OutcomeName{Outcome::kSuccess, "NIXL_SUCCESS", nullptr},
    OutcomeName{Outcome::kNotPosted, "NIXL_ERR_NOT_POSTED", "nixlNotPostedError"},
    OutcomeName{Outcome::kInvalid, "NIXL_ERR_INVALID_PARAM", "nixlInvalidParamError"},
    OutcomeName{Outcome::kBackend, "NIXL_ERR_BACKEND", "nixlBackendError"},
    OutcomeName{Outcome::kNotFound, "NIXL_ERR_NOT_FOUND", "nixlNotFoundError"},
    OutcomeName{Outcome::kMismatch, "NIXL_ERR_MISMATCH", "nixlMismatchError"},
    OutcomeName{Outcome::kNotAllowed, "NIXL_ERR_NOT_ALLOWED", "nixlNotAllowedError"},
    OutcomeName{Outcome::kRepostActive, "NIXL_ERR_REPOST_ACTIVE", "nixlRepostActiveError"},
    OutcomeName{Outcome::kUnknown, "NIXL_ERR_UNKNOWN", "nixlUnknownError"},
    OutcomeName{Outcome::kNotSupported, "NIXL_ERR_NOT_SUPPORTED", "nixlNotSupportedError"},
    OutcomeName{Outcome::kRemoteDisconnect, "NIXL_ERR_REMOTE_DISCONNECT",
                "nixlRemoteDisconnectError"},
    OutcomeName{Outcome::kCancelled, "NIXL_ERR_CANCELED", "nixlCancelledError"},
    OutcomeName{Outcome::kNoTelemetry, "NIXL_ERR_NO_TELEMETRY", "nixlNoTelemetryError"},
};

// The failure of a call. Its text begins with the outcome's name.
class Failure : public std::runtime_error {
 public:
  Failure(Outcome outcome, const std::string& text);
  Outcome outcome() const { return outcome_; }

 private:
  Outcome outcome_;
};

[[noreturn]] void fail(Outcome outcome, const std::string& text);
[[noreturn]] void fail(const Error& error);

template <class T>
T valueOf(Result<T> result) {
  if (!result) fail(result.error());
  return *std::move(result);
}
inline void check(const Status& status) {
  if (!status) fail(status.error());
}

}  // namespace viaduct::nixl
