// For tests: bytes and keys from the hexadecimal text of published test vectors.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/net/crypto.h"

namespace viaduct::base {

inline Bytes bytesOfHex(std::string_view hex) {
  Bytes out;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2)
    out.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(at, 2)), nullptr, 16)));
  return out;
}
inline Key keyOfHex(std::string_view hex) {
  const Bytes bytes = bytesOfHex(hex);
  Key key{};
  std::memcpy(key.data(), bytes.data(), key.size());
  return key;
}

}  // namespace viaduct::base
