#include <fmt/format.h>
#include <viaduct/result.h>

#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "base/words.h"

namespace viaduct {

namespace {

constexpr base::Words<Code, 14> kCodeNames{{{"invalid", Code::kInvalid},
                                            {"not found", Code::kNotFound},
                                            {"unsupported", Code::kUnsupported},
                                            {"denied", Code::kDenied},
                                            {"busy", Code::kBusy},
                                            {"timed out", Code::kTimeout},
                                            {"cancelled", Code::kCancelled},
                                            {"peer lost", Code::kPeerLost},
                                            {"device error", Code::kDevice},
                                            {"exhausted", Code::kExhausted},
                                            {"protocol error", Code::kProtocol},
                                            {"stale", Code::kStale},
                                            {"corrupt", Code::kCorrupt},
                                            {"draining", Code::kDraining}}};

}  // namespace

const char* codeName(Code code) { return base::wordOf(kCodeNames, code); }

std::string Error::text() const {
  std::string out =
      fmt::format("{}: {}", operation.empty() ? "viaduct" : operation, codeName(code));
  if (!detail.empty()) out += fmt::format(": {}", detail);
  if (os_errno != 0) out += fmt::format(" (errno {})", os_errno);
  if (!peer.empty()) out += fmt::format("; peer {}", peer);
  if (!device.empty()) out += fmt::format("; device {}", device);
  if (!file.empty()) out += fmt::format("; file {}", file);
  if (!cause.empty()) out += fmt::format("; likely cause: {}", cause);
  if (!remedy.empty()) out += fmt::format("; what to do: {}", remedy);
  return out;
}

Error systemError(Code code, std::string operation, int os_errno) {
  return {.code = code,
          .operation = std::move(operation),
          .detail = std::system_category().message(os_errno),
          .os_errno = os_errno};
}

namespace detail {

void dieWithoutValue(const Error* held) {
  const std::string text = held != nullptr ? held->text() : "it was left without either";
  fmt::print(stderr, "viaduct: the value of a Result was read, but it holds an error: {}\n", text);
  std::abort();
}

void dieWithoutError() {
  fmt::print(stderr, "viaduct: the error of a Result was read, but it holds a value\n");
  std::abort();
}

}  // namespace detail

}  // namespace viaduct
