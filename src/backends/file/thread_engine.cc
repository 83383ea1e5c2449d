// Reads and writes files on a pool of threads, for systems that refuse io_uring.
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "backends/file/engine.h"

namespace viaduct::file {
namespace {

constexpr std::uint32_t kMostThreads = 32;

// The state that the threads share. A thread that is stuck in the kernel may outlive the engine.
struct Shared {
  struct Request {
    std::uint32_t token;
    Io io;
  };
  std::mutex mutex;
  std::condition_variable work, news;
  std::vector<Request> requests;  // the next one is at the front
  std::vector<Engine::Ended> ended;
  bool woken = false, over = false;
  std::uint32_t idle = 0;
};

int perform(const Io& io) {
  const iovec memory{io.memory, io.bytes};
  const auto offset = static_cast<off_t>(io.offset);
  const ssize_t moved =
      io.write ? ::pwritev2(io.fd, &memory, 1, offset, 0) : ::preadv2(io.fd, &memory, 1, offset, 0);
  return moved < 0 ? -errno : static_cast<int>(moved);
}

void serve(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    ++shared->idle;
    shared->work.wait(lock, [&] { return shared->over || !shared->requests.empty(); });
    --shared->idle;
    if (shared->over) return;
    const Shared::Request request = shared->requests.front();
    shared->requests.erase(shared->requests.begin());
    lock.unlock();
    const int result = perform(request.io);
    lock.lock();
    shared->ended.push_back({request.token, result});
    shared->news.notify_one();
  }
}

class ThreadEngine final : public Engine {
 public:
  explicit ThreadEngine(std::uint32_t depth) : most_(std::min(depth, kMostThreads)) {
    shared_->requests.reserve(depth);
    shared_->ended.reserve(depth);
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
  void start(std::uint32_t token, const Io& io) override {
    const std::lock_guard lock(shared_->mutex);
    shared_->requests.push_back({token, io});
    if (shared_->idle < shared_->requests.size() && threads_.size() < most_) addThread();
    if (threads_.empty()) {  // so it is the only request
      shared_->requests.clear();
      shared_->ended.push_back({token, -EAGAIN});
    }
    shared_->work.notify_one();
  }
  // Only a request that no thread has taken can end early.
  void cancel(std::uint32_t token) override {
    const std::lock_guard lock(shared_->mutex);
    if (std::erase_if(shared_->requests, [&](const auto& one) { return one.token == token; }) != 0)
      shared_->ended.push_back({token, -ECANCELED});
  }
  void wait(bool block, std::vector<Ended>& ended) override {
    std::unique_lock lock(shared_->mutex);
    if (block) shared_->news.wait(lock, [&] { return shared_->woken || !shared_->ended.empty(); });
    shared_->woken = false;
    ended.insert(ended.end(), shared_->ended.begin(), shared_->ended.end());
    shared_->ended.clear();
  }
  void wake() override {
    const std::lock_guard lock(shared_->mutex);
    shared_->woken = true;
    shared_->news.notify_one();
  }

 private:
  void addThread() {
    try {
      threads_.emplace_back(serve, shared_);
    } catch (const std::system_error&) {
      // The limit of threads is reached. The other threads carry out all requests.
    }
  }

  const std::uint32_t most_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Engine> openThreads(std::uint32_t depth) {
  return std::make_unique<ThreadEngine>(depth);
}

}  // namespace viaduct::file
