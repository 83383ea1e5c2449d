#include <pybind11/stl.h>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/process_id.h"
#include "bindings.h"
#include "errors.h"
#include "gil.h"

namespace viaduct::python {
namespace {

using base::LogLevel;

// Carries log lines from the library's threads, which never take the GIL, to a thread of Python.
class LogQueue {
 public:
  void add(LogLevel level, std::string_view text) {
    {
      const std::lock_guard held(mutex_);
      if (lines_.size() < kMost) {
        lines_.emplace_back(level, text);
        more_.notify_one();
        return;
      }
    }
    base::writeLogLine(level, text);  // the thread of Python is stuck
  }

  // Waits for lines. None: close() was called, and all lines are taken.
  std::vector<std::pair<LogLevel, std::string>> take() {
    std::unique_lock held(mutex_);
    more_.wait(held, [this] { return closed_ || !lines_.empty(); });
    return std::exchange(lines_, {});
  }
  void setClosed(bool closed) {
    const std::lock_guard held(mutex_);
    closed_ = closed;
    more_.notify_all();
  }

  // A fork()ed child lacks the thread, and another thread may have held the mutex.
  bool isOfThisProcess() const { return generation_ == base::forkGeneration(); }

 private:
  static constexpr std::size_t kMost = 10'000;
  const std::uint64_t generation_ = base::forkGeneration();
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<std::pair<LogLevel, std::string>> lines_;
  bool closed_ = false;
};

// Never destroyed, because threads of the library outlive the interpreter.
std::atomic<LogQueue*> queue{nullptr};

LogQueue* ownQueue() {
  LogQueue* const now = queue.load(std::memory_order_acquire);
  return now != nullptr && now->isOfThisProcess() ? now : nullptr;
}

void enqueue(LogLevel level, std::string_view text) {
  if (LogQueue* const to = ownQueue()) return to->add(level, text);
  base::writeLogLine(level, text);
}

void startLog() {
  if (ownQueue() == nullptr) queue = new LogQueue();
  queue.load()->setClosed(false);
  base::setLogSink(&enqueue);
}

void stopLog() {
  base::setLogSink(nullptr);
  if (LogQueue* const now = ownQueue()) now->setClosed(true);
}

py::list takeLog() {
  py::list lines;
  LogQueue* const from = ownQueue();
  if (from == nullptr) return lines;
  for (const auto& [level, text] : unlocked([&] { return from->take(); }))
    lines.append(py::make_tuple(static_cast<int>(level), decoded(text, "backslashreplace")));
  return lines;
}

}  // namespace

void bindLog(py::module_& module) {
  module.def("_start_log", startLog);
  module.def("_stop_log", stopLog);
  module.def("_take_log", takeLog);
  module.def("_write_log", [](int level, const std::string& text) {
    base::writeLogLine(static_cast<LogLevel>(level), text);
  });
  module.def("_set_log_level", [](int level) { base::setLogLevel(static_cast<LogLevel>(level)); });
}

}  // namespace viaduct::python
