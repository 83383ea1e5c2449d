#include "measure/result/log_line.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/text.h"

namespace viaduct::measure {
namespace {

constexpr std::size_t kLongest = 4096;       // longer lines are ignored
constexpr std::size_t kLongestSource = 200;  // longest prefix of a log collector
constexpr std::string_view kSpace = " \t\r\v\f";

bool isDigit(char c) { return c >= '0' && c <= '9'; }

// Returns the end of the escape sequence that starts at `at`.
std::size_t afterEscape(std::string_view line, std::size_t at) {
  if (at + 1 >= line.size() || line[at + 1] != '[') return std::min(at + 2, line.size());
  std::size_t end = at + 2;
  while (end < line.size() && (line[end] < '@' || line[end] > '~')) ++end;
  return std::min(end + 1, line.size());
}

// Compares the text at `at` with a shape: 0 matches any digit, T matches T or a blank, and other
// characters match themselves.
bool hasShape(std::string_view text, std::size_t at, std::string_view shape) {
  if (at + shape.size() > text.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const char c = text[at + i];
    const bool fits = shape[i] == '0'   ? isDigit(c)
                      : shape[i] == 'T' ? c == 'T' || c == ' '
                                        : c == shape[i];
    if (!fits) return false;
  }
  return true;
}

// True if the word contains a time or a date.
bool isTime(std::string_view word) {
  for (std::size_t at = 0; at < word.size(); ++at)
    if (hasShape(word, at, "00:00:00") || hasShape(word, at, "0000-00-00")) return true;
  return false;
}

std::string withoutTimes(std::string_view text) {
  std::string out;
  for (const std::string_view word : base::wordsOf(text))
    if (!isTime(word)) out.append(out.empty() ? "" : " ").append(word);
  return out;
}

// Returns the groups in brackets at the front of the line.
std::string_view bracketed(std::string_view line) {
  std::size_t end = 0;
  for (;;) {
    const std::size_t at = line.find_first_not_of(kSpace, end);
    if (at == std::string_view::npos || line[at] != '[') return line.substr(0, end);
    const std::size_t close = line.find(']', at);
    if (close == std::string_view::npos) return line.substr(0, end);
    end = close + 1;
  }
}

}  // namespace

std::optional<double> figureIn(std::string_view word) {
  const auto value = base::numberIn<double>(word);
  return value && *value >= 0 ? value : std::nullopt;
}

std::optional<std::uint64_t> wholeOf(std::optional<double> value, double most) {
  if (!value || *value < 1 || *value > most || std::floor(*value) != *value) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::string plainLine(std::string_view line) {
  constexpr char kEscape = '\x1b';
  std::string out;
  if (line.size() > kLongest) return out;
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == kEscape) {
      at = afterEscape(line, at);
    } else {
      if (line[at] != '\r') out += line[at];
      ++at;
    }
  }
  return out;
}

std::string sourceOf(std::string_view line) {
  const std::string_view front = line.substr(0, kLongestSource);
  for (const std::string_view mark : {" | ", " \xe2\x80\xba "})
    if (const auto at = front.find(mark); at != std::string_view::npos)
      return withoutTimes(front.substr(0, at));
  return withoutTimes(bracketed(front));
}

std::string timeIn(std::string_view line, std::size_t end) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00";
  for (std::size_t at = 0; at < std::min(end, line.size()); ++at)
    if (hasShape(line, at, kShape)) {
      std::string out(line.substr(at, kShape.size()));
      out[kShape.find('T')] = 'T';
      return out + "Z";
    }
  return {};
}

std::optional<LogSetting> settingIn(std::string_view line) {
  constexpr std::string_view kEndpoint = "ETCD Endpoint";
  LogSetting out;
  std::size_t from = line.find("(--");
  if (from != std::string_view::npos) {
    const std::string_view rest = line.substr(from + 3);
    out.name = rest.substr(0, std::min(rest.find_first_of("=) "), rest.size()));
  } else if (from = line.find(kEndpoint); from != std::string_view::npos) {
    out.name = "etcd_endpoints";
    from += kEndpoint.size() - 1;
  }
  if (out.name.empty()) return std::nullopt;
  // The value follows the first colon that ends the label. Blanks pad the label.
  for (auto at = line.find(':', from); at != std::string_view::npos; at = line.find(':', at + 1)) {
    const std::string_view label = base::trimmed(line.substr(from, at - from));
    if (!label.ends_with(')') && out.name != "etcd_endpoints") continue;
    out.value = base::trimmed(line.substr(at + 1));
    return out;
  }
  return std::nullopt;
}

bool isSecret(std::string_view flag) {
  constexpr std::array<std::string_view, 5> kParts{"key", "secret", "token", "connection",
                                                   "password"};
  return std::any_of(kParts.begin(), kParts.end(), [&](std::string_view part) {
    return flag.find(part) != std::string_view::npos;
  });
}

}  // namespace viaduct::measure
