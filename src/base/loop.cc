#include "base/loop.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/blocked_signals.h"

namespace viaduct::base {

Result<std::unique_ptr<Loop>> Loop::start(const char* name, std::function<void()> after_turn,
                                          const MovableClock* clock) {
  std::unique_ptr<Loop> loop(new Loop);
  loop->after_turn_ = std::move(after_turn);
  VIADUCT_CHECK(loop->open(clock));
  const BlockedSignals blocked;
  try {
    loop->thread_ = std::thread([self = loop.get()] { self->run(); });
    ::pthread_setname_np(loop->thread_.native_handle(), name);
  } catch (const std::system_error& failed) {
    return systemError(Code::kExhausted, "thread", failed.code().value());
  }
  return loop;
}

Status Loop::open(const MovableClock* clock) {
  VIADUCT_TRY(poller_, Poller::open(clock));
  bell_.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell_) return systemError(Code::kExhausted, "eventfd", errno);
  VIADUCT_CHECK(poller_->watch(bell_.get(), EPOLLIN, [this](std::uint32_t) {
    std::uint64_t rings = 0;
    [[maybe_unused]] const auto got = ::read(bell_.get(), &rings, sizeof rings);
  }));
  return Ok{};
}

void Loop::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto rung = ::write(bell_.get(), &one, sizeof one);
}

void Loop::stop() {
  if (!thread_.joinable()) return;
  {
    const Held held = hold();
    stopping_ = true;
  }
  wake();
  thread_.join();
}

void Loop::run() {
  Poller::Events events;
  Held held = hold();
  while (!stopping_) {
    const auto until = poller_->nextTimer();
    held.unlock();
    const int count = poller_->block(events, until);
    held.lock();
    if (stopping_) return;
    if (poller_->handle(events, count, poller_->now()) && after_turn_) after_turn_();
  }
}

}  // namespace viaduct::base
