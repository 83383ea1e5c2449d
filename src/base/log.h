// Log lines. A failure is logged once, by the function that does not return it to a caller.
// Threads: any.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <string_view>
#include <utility>

namespace viaduct::base {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// VIADUCT_LOG (debug, info, warning, error, off) sets the level at first use. Unset, or any other
// text, means warning.
LogLevel logLevel();
void setLogLevel(LogLevel level);
void logLine(LogLevel level, std::string_view text);

// To stderr. If that stays full, the line is lost, and a later line says how many were. Later lines
// do not wait until one is written again.
void writeLogLine(LogLevel level, std::string_view text);
constexpr std::chrono::milliseconds kLogPatience{100};

// From now on logLine() calls `sink`, with locks held, in the place of writeLogLine(). Null:
// logLine() calls writeLogLine() again.
using LogSink = void (*)(LogLevel level, std::string_view text);
void setLogSink(LogSink sink);

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (level >= logLevel()) logLine(level, fmt::format(format, std::forward<Args>(args)...));
}

// Logs a fact about the whole process once, however many agents it has. The first line that is
// written sets `said`, and later calls log nothing.
template <class... Args>
void logOnce(std::atomic_flag& said, LogLevel level, fmt::format_string<Args...> format,
             Args&&... args) {
  if (level >= logLevel() && !said.test_and_set())
    logLine(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace viaduct::base
