// Reads and writes files on a pool of threads: all of them where the system refuses io_uring, else
// those that would block.
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "backends/file/engine.h"
#include "base/blocked_signals.h"
#include "base/fd.h"

namespace viaduct::file {
namespace {

constexpr std::uint32_t kMostThreads = 32;

// The state that the threads share. A thread that is stuck in the kernel may outlive the engine.
struct ThreadQueue {
  struct IoRequest {
    std::uint32_t token;
    Io io = {};
    std::function<int()> call = {};  // empty: do the I/O
  };
  std::mutex mutex;
  std::condition_variable work;
  std::deque<IoRequest> requests;
  std::deque<Engine::EndedIo> ended;
  std::atomic<bool> any_ended{false};
  base::Fd doorbell;  // readable while `ended` is not empty
  bool over = false;
  bool waking = false;  // a thread has been notified, and does not run yet
  std::uint32_t idle = 0;

  // The functions below are called with the mutex held. Wakes one thread, which wakes the next
  // thread if requests are left. So short requests wake few threads.
  void wake() {
    if (idle == 0 || std::exchange(waking, true)) return;
    work.notify_one();
  }
  void end(std::uint32_t token, int result) {
    if (token == Engine::kNoToken) return;
    ended.push_back({token, result});
    if (any_ended.exchange(true)) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto rung = ::write(doorbell.get(), &one, sizeof one);
  }
};

int perform(const Io& io) {
  const iovec memory{io.memory, io.bytes};
  const auto offset = static_cast<off_t>(io.offset);
  const ssize_t moved =
      io.write ? ::pwritev2(io.fd, &memory, 1, offset, 0) : ::preadv2(io.fd, &memory, 1, offset, 0);
  return moved < 0 ? -errno : static_cast<int>(moved);
}

void serve(const std::shared_ptr<ThreadQueue>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    while (!shared->over && shared->requests.empty()) {
      ++shared->idle;
      shared->work.wait(lock);
      --shared->idle;
      shared->waking = false;
    }
    if (shared->over) return;
    ThreadQueue::IoRequest request = std::move(shared->requests.front());
    shared->requests.pop_front();
    if (!shared->requests.empty()) shared->wake();
    lock.unlock();
    const int result = request.call ? request.call() : perform(request.io);
    request.call = {};  // frees what the call owns, without the mutex
    lock.lock();
    shared->end(request.token, result);
  }
}

class ThreadEngine final : public Engine {
 public:
  ThreadEngine(std::uint32_t depth, base::Fd doorbell) : most_(std::min(depth, kMostThreads)) {
    shared_->doorbell = std::move(doorbell);
  }
  ~ThreadEngine() override {
    bool stuck = false;
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->over = true;
      stuck = shared_->idle != threads_.size();
    }
    shared_->work.notify_all();
    for (std::thread& thread : threads_)
      if (stuck)
        thread.detach();
      else
        thread.join();
  }
  ThreadEngine(const ThreadEngine&) = delete;
  ThreadEngine& operator=(const ThreadEngine&) = delete;

  std::string_view name() const override { return "threads"; }
  std::vector<int> fds() const override { return {shared_->doorbell.get()}; }
  void start(std::uint32_t token, const Io& io) override { add({.token = token, .io = io}); }
  void call(std::uint32_t token, std::function<int()> call) override {
    add({.token = token, .call = std::move(call)});
  }
  void cancel(std::uint32_t token) override {
    const std::lock_guard lock(shared_->mutex);
    if (std::erase_if(shared_->requests, [&](const auto& one) { return one.token == token; }) != 0)
      shared_->end(token, -ECANCELED);
  }
  bool next(EndedIo& ended) override {
    if (!shared_->any_ended.load(std::memory_order_relaxed)) return false;
    const std::lock_guard lock(shared_->mutex);
    ended = shared_->ended.front();
    shared_->ended.pop_front();
    if (!shared_->ended.empty()) return true;
    shared_->any_ended = false;
    std::uint64_t rings = 0;
    [[maybe_unused]] const auto heard = ::read(shared_->doorbell.get(), &rings, sizeof rings);
    return true;
  }

 private:
  void add(ThreadQueue::IoRequest request) {
    const std::lock_guard lock(shared_->mutex);
    const std::uint32_t token = request.token;
    shared_->requests.push_back(std::move(request));
    if (shared_->idle < shared_->requests.size() && threads_.size() < most_) addThread();
    if (threads_.empty()) {  // no thread could start, so this is the only request
      shared_->requests.clear();
      shared_->end(token, -EAGAIN);
    }
    shared_->wake();
  }
  void addThread() {
    const base::BlockedSignals none;
    try {
      threads_.emplace_back(serve, shared_);
    } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): see below
      // The limit of threads is reached. The other threads carry out all requests.
    }
  }

  const std::uint32_t most_;
  const std::shared_ptr<ThreadQueue> shared_ = std::make_shared<ThreadQueue>();
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<Engine>> openThreads(std::uint32_t depth) {
  base::Fd doorbell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell) return systemError(Code::kExhausted, "eventfd", errno);
  return std::unique_ptr<Engine>(std::make_unique<ThreadEngine>(depth, std::move(doorbell)));
}

}  // namespace viaduct::file
