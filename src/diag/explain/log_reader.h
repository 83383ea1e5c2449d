// Reads a log of any size as a stream and finds the known texts in it. Threads: one at a time.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diag/explain/escape_filter.h"
#include "diag/explain/known_texts.h"

namespace viaduct::diag {

// A known text that a log contains. Lines count from 1.
struct LogFinding {
  const KnownText* text = nullptr;
  std::uint64_t lines = 0;  // that contain it
  std::uint64_t first_line = 0;
  std::uint64_t last_line = 0;
  std::string quote = {};  // the first of them: printable ASCII, and parts of it where it is long
};

struct LogSummary {
  std::uint64_t bytes = 0;
  std::uint64_t lines = 0;
  std::vector<LogFinding> findings = {};  // in the order of their first lines
};

// Takes a log in parts of any sizes, which do not change the result. The memory that it needs does
// not depend on the log.
class LogScanner {
 public:
  void feed(std::string_view bytes);
  // The last line need not have an end.
  LogSummary finish();

 private:
  struct Match {
    std::size_t text = 0;  // its place among the known texts
    std::size_t begin = 0;
  };

  void endLine(std::string_view rest);
  void hold(std::string_view part);
  void examine(std::string_view piece, std::size_t from, std::size_t to);
  std::optional<Match> firstText(std::string_view message) const;
  void record(const Match& match, std::string_view piece);

  EscapeFilter escapes_;
  std::string held_;                 // the start of a line, or the last piece of a long one
  std::size_t held_start_ = 0;       // earlier bytes of it are those of the piece before
  std::vector<std::uint16_t> hits_;  // anchors in the piece at hand
  // Of each known text: its place in the findings, from 1.
  std::vector<std::size_t> finding_of_ = std::vector<std::size_t>(knownTexts().size());
  LogSummary summary_;
};

// Calls `progress`, if there is one, with the bytes that were read so far. The caller names the
// file in the error.
Result<LogSummary> readLog(int fd, const std::function<void(std::uint64_t)>& progress = {});

}  // namespace viaduct::diag
