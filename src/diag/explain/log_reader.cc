#include "diag/explain/log_reader.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/file_error.h"
#include "base/printable.h"
#include "diag/explain/text_finder.h"

namespace viaduct::diag {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} * 1024;
// A longer line is examined in pieces of this size. Each piece sees kContext bytes of its
// neighbours, so both pieces contain a message at the border whole. The piece in which the message
// starts counts it.
constexpr std::size_t kPiece = std::size_t{16} * 1024;
constexpr std::size_t kContext = std::size_t{2} * 1024;
constexpr std::string_view kEscapedEnd = "\\n";  // ends a line in a log wrapped in JSON

constexpr std::size_t kLongestQuote = 300;  // most bytes of a quoted line
constexpr std::size_t kQuotedStart = 60;    // from a longer line: time, host, process
constexpr std::size_t kQuotedBefore = 20;   // bytes before the match

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool continuesNumber(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// The position of `part` in `line` from `from` on. A number at the end of `part` has to end there.
std::size_t findPart(std::string_view line, std::string_view part, std::size_t from) {
  for (auto at = line.find(part, from); at != std::string_view::npos;
       at = line.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    if (!isDigit(part.back()) || end == line.size() || !continuesNumber(line[end])) return at;
  }
  return std::string_view::npos;
}

// A pattern's longest part, for which the automaton searches.
struct Anchor {
  std::size_t text = 0;
  const TextPattern* pattern = nullptr;
};

std::vector<Anchor> allAnchors() {
  std::vector<Anchor> out;
  for (std::size_t i = 0; i < knownTexts().size(); ++i)
    for (const TextPattern& pattern : knownTexts()[i].patterns) out.push_back({i, &pattern});
  return out;
}

std::vector<std::string_view> wordsOf(const std::vector<Anchor>& anchors) {
  const auto shorter = [](std::string_view a, std::string_view b) { return a.size() < b.size(); };
  std::vector<std::string_view> out;
  out.reserve(anchors.size());
  for (const Anchor& anchor : anchors)
    out.push_back(*std::max_element(anchor.pattern->begin(), anchor.pattern->end(), shorter));
  return out;
}

struct Anchors {
  std::vector<Anchor> all = allAnchors();
  TextFinder finder{wordsOf(all)};
};

const Anchors& anchors() {
  static const Anchors built;
  return built;
}

// The position of the pattern's first part, if all parts are there.
std::optional<std::size_t> findPattern(std::string_view message, const TextPattern& pattern) {
  std::size_t begin = 0, end = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::size_t at = findPart(message, pattern[i], end);
    if (at == std::string_view::npos) return std::nullopt;
    if (i == 0) begin = at;
    end = at + pattern[i].size();
  }
  return begin;
}

// Returns the whole line, or of a long line only its start and the surroundings of the match.
std::string quoteOf(std::string_view line, std::size_t begin) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.size() <= kLongestQuote) return base::printable(line, kLongestQuote);
  const std::size_t from = std::min(begin, line.size()) - std::min(begin, kQuotedBefore);
  if (from <= kQuotedStart)
    return base::printable(line.substr(0, kLongestQuote), kLongestQuote) + " ...";
  const std::string_view match = line.substr(from, kLongestQuote - kQuotedStart);
  const bool to_the_end = from + match.size() == line.size();
  return base::printable(line.substr(0, kQuotedStart), kLongestQuote) + " ... " +
         base::printable(match, kLongestQuote) + (to_the_end ? "" : " ...");
}

// Whether to read again after a failed read. Waits if no bytes are there yet: another program that
// shares standard input may have made it non-blocking.
bool canReadAgain(int fd, int os_errno) {
  if (os_errno == EAGAIN) {
    pollfd readable{fd, POLLIN, 0};
    ::poll(&readable, 1, -1);
  }
  return os_errno == EAGAIN || os_errno == EINTR;
}

Error readError(int os_errno, std::uint64_t bytes) {
  Error error = base::fileError("read the log", os_errno, {});
  if (bytes > 0) error.detail += fmt::format(", after {} bytes", bytes);
  if (os_errno == EISDIR) error.remedy = "name a file in the folder";
  return error;
}

}  // namespace

void LogScanner::feed(std::string_view bytes) {
  summary_.bytes += bytes.size();
  for (std::string_view left = escapes_.plain(bytes); !left.empty();) {
    const auto end = left.find('\n');
    if (end == std::string_view::npos) {
      hold(left);
      return;
    }
    endLine(left.substr(0, end));
    left.remove_prefix(end + 1);
  }
}

LogSummary LogScanner::finish() {
  if (!held_.empty()) endLine({});
  return std::move(summary_);
}

void LogScanner::endLine(std::string_view rest) {
  if (held_.empty() && rest.size() <= kPiece) {
    examine(rest, 0, rest.size());
  } else {
    hold(rest);
    examine(held_, held_start_, held_.size());
    held_.clear();
    held_start_ = 0;
  }
  ++summary_.lines;
}

// Appends to the current line, of which it keeps at most kPiece bytes.
void LogScanner::hold(std::string_view part) {
  while (!part.empty()) {
    if (held_.size() == kPiece) {
      examine(held_, held_start_, kPiece - kContext);
      held_.erase(0, kPiece - 2 * kContext);
      held_start_ = kContext;
    }
    const std::size_t taken = std::min(part.size(), kPiece - held_.size());
    held_.append(part.substr(0, taken));
    part.remove_prefix(taken);
  }
}

// Records the texts that begin in [from, to) of the piece, at most one per message.
void LogScanner::examine(std::string_view piece, std::size_t from, std::size_t to) {
  hits_.clear();
  anchors().finder.scan(piece, [&](std::uint16_t anchor) {
    if (std::find(hits_.begin(), hits_.end(), anchor) == hits_.end()) hits_.push_back(anchor);
  });
  if (hits_.empty()) return;
  std::ranges::sort(hits_);  // in the order of the known texts
  for (std::size_t start = 0; start < piece.size();) {
    const std::size_t end = std::min(piece.find(kEscapedEnd, start), piece.size());
    if (auto match = firstText(piece.substr(start, end - start))) {
      match->begin += start;
      if (match->begin >= from && match->begin < to) record(*match, piece);
    }
    start = end + kEscapedEnd.size();
  }
}

// Returns the known text that matches the message and comes first in knownTexts().
std::optional<LogScanner::Match> LogScanner::firstText(std::string_view message) const {
  for (const std::uint16_t hit : hits_) {
    const Anchor& anchor = anchors().all[hit];
    if (const auto begin = findPattern(message, *anchor.pattern)) return Match{anchor.text, *begin};
  }
  return std::nullopt;
}

void LogScanner::record(const Match& match, std::string_view piece) {
  const std::uint64_t line = summary_.lines + 1;
  std::size_t& place = finding_of_[match.text];
  if (place == 0) {
    summary_.findings.push_back(
        {&knownTexts()[match.text], 0, line, 0, quoteOf(piece, match.begin)});
    place = summary_.findings.size();
  }
  LogFinding& finding = summary_.findings[place - 1];
  if (finding.last_line == line) return;  // another piece of the same line has recorded it
  finding.last_line = line;
  ++finding.lines;
}

Result<LogSummary> readLog(int fd, const std::function<void(std::uint64_t)>& progress) {
  LogScanner scanner;
  std::string buffer(kReadBytes, '\0');
  for (std::uint64_t bytes = 0;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got == 0) return scanner.finish();
    if (got < 0) {
      const int os_errno = errno;
      if (!canReadAgain(fd, os_errno)) return readError(os_errno, bytes);
      continue;
    }
    scanner.feed({buffer.data(), static_cast<std::size_t>(got)});
    bytes += static_cast<std::uint64_t>(got);
    if (progress) progress(bytes);
  }
}

}  // namespace viaduct::diag
