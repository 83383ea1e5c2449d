// Parses the head of an HTTP/1 request, as far as a server of small texts needs it. Threads: pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace viaduct::base {

struct HttpRequest {
  std::string_view method;  // "GET"
  std::string_view path;    // "/metrics", without a query
};

// The size of the head at the start of `bytes`, including the empty line; 0: the head is
// incomplete.
std::size_t headSize(std::string_view bytes);
// Returns nothing unless `head` is an HTTP/1.0 or HTTP/1.1 request for a path. `head` includes its
// empty line.
std::optional<HttpRequest> parseHead(std::string_view head);

}  // namespace viaduct::base
