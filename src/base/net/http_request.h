// The head of an HTTP/1 request, as far as a server of small texts needs it. Threads: pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace viaduct::base {

struct HttpRequest {
  std::string_view method;  // "GET"
  std::string_view path;    // "/metrics", without a query
};

// The size of the head at the front of `bytes`, with the empty line that ends it; 0: it goes on.
std::size_t headSize(std::string_view bytes);
// Nothing: it is no HTTP/1.0 or HTTP/1.1 request for a path. `head`: with its empty line.
std::optional<HttpRequest> parseHead(std::string_view head);

}  // namespace viaduct::base
