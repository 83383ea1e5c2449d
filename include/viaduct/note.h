// Bytes delivered to a peer, alone or after a transfer's data. Threads: plain values.
#pragma once

#include <viaduct/cxx20.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct {

inline constexpr std::size_t kMaxNoteBytes = std::size_t{1} << 20U;

struct Note {
  std::string from = {};  // the peer's name
  std::vector<std::byte> bytes = {};
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

}  // namespace viaduct
