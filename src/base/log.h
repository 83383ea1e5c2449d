// Log lines. A failure is logged once, where it stops. Threads: any.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <string_view>
#include <utility>

namespace viaduct::base {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// From VIADUCT_LOG (debug, info, warning, error, off) at first use; warning when unset.
LogLevel logLevel();
void setLogLevel(LogLevel level);
void logLine(LogLevel level, std::string_view text);  // one write(2) to stderr

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (level >= logLevel()) logLine(level, fmt::format(format, std::forward<Args>(args)...));
}

// What is true of the whole process, however many agents it has: `said` is set with the first line
// that is written, and no other follows.
template <class... Args>
void logOnce(std::atomic_flag& said, LogLevel level, fmt::format_string<Args...> format,
             Args&&... args) {
  if (level >= logLevel() && !said.test_and_set())
    logLine(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace viaduct::base
