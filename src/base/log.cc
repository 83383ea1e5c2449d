#include "base/log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <string>

#include "base/environment.h"

namespace viaduct::base {
namespace {

constexpr std::array<std::string_view, 5> kNames{"debug", "info", "warning", "error", "off"};

LogLevel fromEnvironment() {
  const char* text = variable("VIADUCT_LOG");
  for (std::size_t i = 0; text != nullptr && i < kNames.size(); ++i)
    if (kNames[i] == text) return static_cast<LogLevel>(i);
  return LogLevel::kWarning;
}

std::atomic<LogLevel>& current() {
  static std::atomic<LogLevel> level{fromEnvironment()};
  return level;
}

std::atomic<LogSink> current_sink{nullptr};

}  // namespace

LogLevel logLevel() { return current().load(std::memory_order_relaxed); }
void setLogLevel(LogLevel level) { current().store(level, std::memory_order_relaxed); }

void setLogSink(LogSink sink) { current_sink.store(sink, std::memory_order_release); }

void logLine(LogLevel level, std::string_view text) {
  const LogSink sink = current_sink.load(std::memory_order_acquire);
  (sink != nullptr ? sink : &writeLogLine)(level, text);
}

void writeLogLine(LogLevel level, std::string_view text) {
  const std::string line = fmt::format("viaduct[{}] {}: {}\n", ::getpid(),
                                       kNames[static_cast<std::size_t>(level)], text);
  // There is no place to report that the log cannot be written.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace viaduct::base
