#include "backends/local/fault.h"

#include <cerrno>
#include <utility>

namespace viaduct::local {
namespace {

Error refused(const char* call, int os_errno) {
  Error error = systemError(Code::kDevice, call, os_errno);
  if (os_errno == ESRCH) error.code = Code::kPeerLost;
  if (os_errno == EPERM) {
    error.code = Code::kDenied;
    error.cause = "ptrace access to the peer was withdrawn while the link was in use";
  }
  if (os_errno == EFAULT) {
    error.code = Code::kDenied;
    error.cause = "registered memory was unmapped or protected, here or at the peer";
    error.remedy = "keep memory mapped and accessible while its Pin exists";
  }
  return error;
}

Error plain(Fault::Cause kind) {
  using enum Fault::Cause;
  const auto make = [](Code code, const char* detail) {
    return Error{.code = code, .operation = "local copy", .detail = detail};
  };
  switch (kind) {
    case kCancelled:
      return make(Code::kCancelled, "cancelled before the copy was complete");
    case kClosed:
      return make(Code::kPeerLost, "the link was closed");
    case kFenced:
      return make(Code::kPeerLost, "the peer has ended this session");
    case kWithdrawnHere:
      return make(Code::kDenied, "the local memory is no longer registered");
    case kWithdrawnThere:
      return make(Code::kDenied, "the peer's memory is no longer registered");
    case kOutside:
      return make(Code::kInvalid, "outside of the peer's registered memory");
    default:
      return make(Code::kPeerLost, "the peer's process has died");
  }
}

}  // namespace

Error errorOf(Fault fault, const std::string& peer) {
  Error error = fault.kind == Fault::Cause::kRead    ? refused("process_vm_readv", fault.os_errno)
                : fault.kind == Fault::Cause::kWrite ? refused("process_vm_writev", fault.os_errno)
                                                     : plain(fault.kind);
  error.peer = peer;
  return error;
}

}  // namespace viaduct::local
