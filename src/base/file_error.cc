#include "base/file_error.h"

#include <array>
#include <cerrno>
#include <utility>

#include "base/lists.h"

namespace viaduct::base {
namespace {

// The codes of known errnos. Every other errno is kDevice.
using Meaning = std::pair<int, Code>;
constexpr std::array kMeanings{
    Meaning{ENOENT, Code::kNotFound},  Meaning{ENOTDIR, Code::kNotFound},
    Meaning{EACCES, Code::kDenied},    Meaning{EPERM, Code::kDenied},
    Meaning{EROFS, Code::kDenied},     Meaning{EISDIR, Code::kInvalid},
    Meaning{ELOOP, Code::kInvalid},    Meaning{ENAMETOOLONG, Code::kInvalid},
    Meaning{EINVAL, Code::kInvalid},   Meaning{ENOSPC, Code::kExhausted},
    Meaning{EDQUOT, Code::kExhausted}, Meaning{EMFILE, Code::kExhausted},
    Meaning{ENFILE, Code::kExhausted}, Meaning{ENOMEM, Code::kExhausted}};

}  // namespace

Error fileError(std::string operation, int os_errno, std::string file) {
  const Meaning* const known = firstWith(kMeanings, &Meaning::first, os_errno);
  Error error =
      systemError(known == nullptr ? Code::kDevice : known->second, std::move(operation), os_errno);
  error.file = std::move(file);
  return error;
}

}  // namespace viaduct::base
