// Base64 with padding, as JSON carries bytes. Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace viaduct::base {

std::string toBase64(std::string_view bytes);
// Returns nothing unless `text` is complete, padded base64.
std::optional<std::string> fromBase64(std::string_view text);

}  // namespace viaduct::base
