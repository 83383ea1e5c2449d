// The result of a call: a value, or the error. Threads: plain values.
#pragma once

#include <viaduct/cxx20.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace viaduct {

enum class Code : std::uint8_t {
  kInvalid,      // the arguments cannot be right
  kNotFound,     // no such peer, pin, backend, name
  kUnsupported,  // this build, backend or machine cannot do it
  kDenied,       // no access: wrong secret, not registered, forbidden by the system
  kBusy,         // no room now; the same call may succeed later
  kTimeout,      // the deadline passed
  kCancelled,    // the caller cancelled it
  kPeerLost,     // the peer died, froze or cannot be reached
  kDevice,       // the system or a device reported a failure
  kExhausted,    // out of memory, file descriptors, slots
  kProtocol,     // the other side broke the protocol
  kStale,        // the lease of the access has ended
  kCorrupt,      // a block has other bytes than its digest says
  kDraining,     // this agent or the peer is about to leave and begins nothing new: go elsewhere
};
inline constexpr Code kLastCode = Code::kDraining;
const char* codeName(Code code);

// Names the failed call, the system's message, the likely cause and the remedy.
struct Error {
  Code code = Code::kInvalid;
  std::string operation = {};  // the call: "connect", "process_vm_writev", "plan"
  std::string detail = {};     // the provider's or the system's own text, or the facts
  int os_errno = 0;            // 0: no system call failed
  std::string peer = {};       // the peer concerned
  std::string device = {};     // the NIC or backend
  std::string file = {};       // the file or folder
  std::string cause = {};      // likely cause, in words
  std::string remedy = {};     // what to do

  // All filled fields in one line.
  std::string text() const;
};

// The error of a system call that has just failed with `os_errno`; detail is the system's text.
Error systemError(Code code, std::string operation, int os_errno);

namespace detail {
// Both print a line and end the process, in every build. The line of dieWithoutValue() has the
// error's text.
[[noreturn, gnu::cold]] void dieWithoutValue(const Error* held);
[[noreturn, gnu::cold]] void dieWithoutError();
}  // namespace detail

// A value of type T, or the error. Member names follow std::expected. Reading the value of an
// error, or the error of a value, ends the process with a line on stderr.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& value() & {
    needValue();
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    needValue();
    return *std::get_if<0>(&state_);
  }
  T&& value() && { return std::move(value()); }
  const Error& error() const& {
    needError();
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    needError();
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  void needValue() const {
    if (!has_value()) [[unlikely]]
      detail::dieWithoutValue(std::get_if<1>(&state_));
  }
  void needError() const {
    if (has_value()) [[unlikely]]
      detail::dieWithoutError();
  }
  std::variant<T, Error> state_;
};

struct Ok {};
using Status = Result<Ok>;

}  // namespace viaduct

// VIADUCT_TRY(auto rail, openRail(nic));  binds the value, or returns the error to the caller.
// VIADUCT_CHECK(pin(memory));             the same for a call without a value.
// NOLINTBEGIN(bugprone-macro-parentheses): `decl` is a declaration
#define VIADUCT_CAT_2(a, b) a##b
#define VIADUCT_CAT(a, b) VIADUCT_CAT_2(a, b)
#define VIADUCT_TRY(decl, expr) VIADUCT_TRY_2(VIADUCT_CAT(try_, __LINE__), decl, expr)
#define VIADUCT_TRY_2(tmp, decl, expr)     \
  auto tmp = (expr);                       \
  if (!tmp) return std::move(tmp).error(); \
  decl = *std::move(tmp)
#define VIADUCT_CHECK(expr) \
  if (auto viaduct_check = (expr); !viaduct_check) return std::move(viaduct_check).error()
// NOLINTEND(bugprone-macro-parentheses)
