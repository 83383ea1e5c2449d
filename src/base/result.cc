#include <fmt/format.h>
#include <viaduct/result.h>

#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace viaduct {

const char* codeName(Code code) {
  switch (code) {
    case Code::kInvalid:
      return "invalid";
    case Code::kNotFound:
      return "not found";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kDenied:
      return "denied";
    case Code::kBusy:
      return "busy";
    case Code::kTimeout:
      return "timed out";
    case Code::kCancelled:
      return "cancelled";
    case Code::kPeerLost:
      return "peer lost";
    case Code::kDevice:
      return "device error";
    case Code::kExhausted:
      return "exhausted";
    case Code::kProtocol:
      return "protocol error";
  }
  return "?";
}

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
