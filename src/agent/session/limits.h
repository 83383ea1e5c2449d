// Reads payloads whose parts have limits. Threads: plain values.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/session/hello.h"
#include "base/bytes.h"

namespace viaduct::agent {

using Blobs = std::vector<std::pair<std::string, base::Bytes>>;

inline void writeBlobs(base::Writer& w, const Blobs& blobs) {
  w.put(static_cast<std::uint32_t>(blobs.size()));
  for (const auto& [name, bytes] : blobs) w.text(name).sized(bytes);
}

// A base::Reader that also refuses parts beyond a limit.
class LimitedReader {
 public:
  explicit LimitedReader(std::span<const std::byte> in) : in_(in) {}

  base::Reader& raw() { return in_; }
  bool ok() const { return in_.ok() && within_; }

  std::span<const std::byte> sized(std::size_t limit) {
    const auto part = in_.sized();
    if (part.size() > limit) within_ = false;
    return ok() ? part : std::span<const std::byte>{};
  }
  std::string text(std::size_t limit) {
    const auto part = sized(limit);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  std::uint32_t count(std::size_t limit) {
    const auto n = in_.get<std::uint32_t>();
    if (n > limit) within_ = false;
    return ok() ? n : 0;
  }
  Blobs blobs() {
    Blobs out;
    const std::uint32_t n = count(kMaxBackends);
    for (std::uint32_t i = 0; i < n && ok(); ++i) {
      std::string name = text(kMaxNameBytes);
      const auto bytes = sized(kMaxBlobBytes);
      out.emplace_back(std::move(name), base::Bytes(bytes.begin(), bytes.end()));
    }
    return out;
  }

  void refuse() { within_ = false; }
  bool finished() const { return ok() && in_.left() == 0; }
  Error error(std::string_view what) const {
    const char* wrong = !within_   ? "beyond what is allowed"
                        : in_.ok() ? "bytes left over"
                                   : "cut short";
    return {
        .code = Code::kProtocol, .operation = "decode", .detail = std::string(what) + ": " + wrong};
  }

 private:
  base::Reader in_;
  bool within_ = true;
};

}  // namespace viaduct::agent
