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

// A known text that is in the log. Lines count from 1.
struct LogFinding {
  const KnownText* text = nullptr;
  std::uint64_t lines = 0;  // lines that contain it
  std::uint64_t first_line = 0;
  std::uint64_t last_line = 0;
  std::string quote = {};  // of the first such line: printable ASCII; cut if it is long
};

struct LogSummary {
  std::uint64_t bytes = 0;
  std::uint64_t lines = 0;
  std::vector<LogFinding> findings = {};  // in the order of their first lines
};

// Scans a log in parts; their sizes do not change the result. Memory does not grow with the log.
class LogScanner {
 public:
  void feed(std::string_view bytes);
  // Ends the log, whose last line may lack an end.
  LogSummary finish();

 private:
  struct Match {
    std::size_t text = 0;  // index among the known texts
    std::size_t begin = 0;
  };

  void endLine(std::string_view rest);
  void hold(std::string_view part);
  void examine(std::string_view piece, std::size_t from, std::size_t to);
  std::optional<Match> firstText(std::string_view message) const;
  void record(const Match& match, std::string_view piece);

  EscapeFilter escapes_;
  std::string held_;                 // the start of a line, or the last piece of a long one
  std::size_t held_start_ = 0;       // index in held_: texts before it are already counted
  std::vector<std::uint16_t> hits_;  // anchors in the current piece
  // For each known text: its number among the findings, from 1; 0: not found.
  std::vector<std::size_t> finding_of_ = std::vector<std::size_t>(knownTexts().size());
  LogSummary summary_;
};

// Calls `progress`, if given, with the number of bytes read so far. The caller adds the file name
// to an error.
Result<LogSummary> readLog(int fd, const std::function<void(std::uint64_t)>& progress = {});

}  // namespace viaduct::diag
