#include "base/file_error.h"

#include <cerrno>
#include <utility>

namespace viaduct::base {
namespace {

Code codeOf(int os_errno) {
  switch (os_errno) {
    case ENOENT:
    case ENOTDIR:
      return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::kDenied;
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL:
      return Code::kInvalid;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Code::kExhausted;
    default:
      return Code::kDevice;
  }
}

}  // namespace

Error fileError(std::string operation, int os_errno, std::string file) {
  Error error = systemError(codeOf(os_errno), std::move(operation), os_errno);
  error.file = std::move(file);
  return error;
}

}  // namespace viaduct::base
