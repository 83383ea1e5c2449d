// Any bytes from a client of the metrics: the end of a head does not depend on the pieces in which
// it comes, and only requests are accepted.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/net/http_request.h"
#include "fuzz/samples.h"

namespace {

using namespace viaduct::base;

void check(std::string_view bytes) {
  const std::size_t size = headSize(bytes);
  if (size > bytes.size()) std::abort();
  for (std::size_t part = 0; part < bytes.size(); ++part) {
    const std::size_t found = headSize(bytes.substr(0, part));
    if (found != 0 && found != size) std::abort();
  }
  const auto request = parseHead(bytes.substr(0, size));
  if (!request) return;
  if (size == 0 || request->method.empty() || !request->path.starts_with('/')) std::abort();
  for (const char c : request->path)
    if (c <= ' ' || c == '?' || c == 0x7f) std::abort();
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const std::string_view text :
       {"GET /metrics HTTP/1.1\r\nHost: a:1\r\nAccept: */*\r\n\r\n", "HEAD /?a=b HTTP/1.0\n\n",
        "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab"})
    out.emplace_back(text.begin(), text.end());
  return out;
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check({reinterpret_cast<const char*>(data), size});
  return 0;
}
