#include "diag/explain/escape_filter.h"

#include <algorithm>

namespace viaduct::diag {
namespace {

constexpr char kEscape = '\x1b';

}  // namespace

std::string_view EscapeFilter::plain(std::string_view bytes) {
  if (within_ == Within::kText && bytes.find(kEscape) == std::string_view::npos) return bytes;
  plain_.clear();
  for (std::size_t at = 0; at < bytes.size();) {
    if (within_ != Within::kText) {
      if (takes(bytes[at])) ++at;
      continue;
    }
    const std::size_t end = std::min(bytes.find(kEscape, at), bytes.size());
    plain_.append(bytes.substr(at, end - at));
    at = end + 1;
    if (end < bytes.size()) within_ = Within::kEscape;
  }
  return plain_;
}

// Consumes a byte of an escape sequence. False: the byte ends a damaged sequence and is text.
bool EscapeFilter::takes(char c) {
  if (c == kEscape) {
    within_ = Within::kEscape;
    return true;
  }
  const bool is_control = static_cast<unsigned char>(c) < ' ';
  if (within_ == Within::kEscape && c == '[')
    within_ = Within::kControlSequence;
  else if (is_control || within_ == Within::kEscape || c >= '@')
    within_ = Within::kText;
  return !is_control;
}

}  // namespace viaduct::diag
