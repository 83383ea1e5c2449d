#include "base/log.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <string>

#include "base/environment.h"
#include "base/poller.h"

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

constexpr std::string_view kCut = " ...";

// Signals do not end the wait.
bool stderrHasRoom(std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  pollfd room{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  int ready = -1;
  do {
    ready = ::poll(&room, 1, Poller::milliseconds(until - Clock::now()));
  } while (ready == -1 && errno == EINTR);
  return ready != 0;
}

}  // namespace

LogLevel logLevel() { return current().load(std::memory_order_relaxed); }
void setLogLevel(LogLevel level) { current().store(level, std::memory_order_relaxed); }

void setLogSink(LogSink sink) { current_sink.store(sink, std::memory_order_release); }

void logLine(LogLevel level, std::string_view text) {
  const LogSink sink = current_sink.load(std::memory_order_acquire);
  (sink != nullptr ? sink : &writeLogLine)(level, text);
}

// The caller may hold an agent's lock, so a reader of stderr that has stopped may hold it up only
// once, and briefly: a slow reader loses nothing.
void writeLogLine(LogLevel level, std::string_view text) {
  static std::atomic<std::uint64_t> lost{0};
  if (!stderrHasRoom(lost == 0 ? kLogPatience : std::chrono::milliseconds(0))) {
    ++lost;
    return;
  }
  std::string line =
      fmt::format("viaduct[{}] {}: {}", ::getpid(), kNames[static_cast<std::size_t>(level)], text);
  std::string end = "\n";
  if (const std::uint64_t before = lost.exchange(0); before != 0)
    end = fmt::format(" (stderr was full, and {} earlier lines are lost)\n", before);
  // A pipe that is ready takes PIPE_BUF bytes at once.
  const std::size_t longest = PIPE_BUF - end.size();
  if (line.size() > longest) line.replace(longest - kCut.size(), std::string::npos, kCut);
  line += end;
  // There is no place to report that the log cannot be written.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace viaduct::base
