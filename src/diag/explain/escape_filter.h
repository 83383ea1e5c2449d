// Removes terminal escape sequences, such as colours, from a stream. Threads: one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace viaduct::diag {

class EscapeFilter {
 public:
  // Returns `bytes` without escape sequences, even if one began in an earlier call. The result is
  // valid until the next call, and only while `bytes` is valid.
  std::string_view plain(std::string_view bytes);

 private:
  enum class Within : std::uint8_t { kText, kEscape, kControlSequence };

  bool takes(char c);

  Within within_ = Within::kText;
  std::string plain_;
};

}  // namespace viaduct::diag
