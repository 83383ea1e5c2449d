#include "base/net/http_request.h"

#include <algorithm>
#include <cctype>

namespace viaduct::base {
namespace {

// Takes a line off the front, without its line end.
std::string_view takeLine(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Whether the text may be a method or a header's name.
bool isToken(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](unsigned char c) {
    return std::isalnum(c) != 0 || kMarks.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

bool isVisible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c != 0x7f; });
}

bool isHeader(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !isToken(line.substr(0, colon))) return false;
  const std::string_view value = line.substr(colon + 1);
  return std::none_of(value.begin(), value.end(),
                      [](unsigned char c) { return (c < ' ' && c != '\t') || c == 0x7f; });
}

}  // namespace

std::size_t headSize(std::string_view bytes) {
  for (std::size_t at = bytes.find('\n'); at != std::string_view::npos;
       at = bytes.find('\n', at + 1)) {
    const std::string_view next = bytes.substr(at + 1, 2);
    if (next.starts_with('\n')) return at + 2;
    if (next == "\r\n") return at + 3;
  }
  return 0;
}

std::optional<HttpRequest> parseHead(std::string_view head) {
  const std::string_view line = takeLine(head);
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const std::string_view method = line.substr(0, first), version = line.substr(last + 1);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (!isToken(method) || !target.starts_with('/') || !isVisible(target) ||
      (version != "HTTP/1.1" && version != "HTTP/1.0"))
    return std::nullopt;
  for (std::string_view header = takeLine(head); !header.empty(); header = takeLine(head))
    if (!isHeader(header)) return std::nullopt;
  return HttpRequest{.method = method, .path = target.substr(0, target.find('?'))};
}

}  // namespace viaduct::base
