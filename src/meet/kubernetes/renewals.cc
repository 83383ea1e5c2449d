#include "meet/kubernetes/renewals.h"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "base/blocked_signals.h"

namespace viaduct::meet::kubernetes {

Renewals::~Renewals() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status Renewals::add(Renewable& one, Clock::time_point when) {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) {
    const base::BlockedSignals blocked;
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& error) {
      return systemError(Code::kExhausted, "start kubernetes' thread", error.code().value());
    }
  }
  due_.emplace(when, &one);
  changed_.notify_all();
  return Ok{};
}

void Renewals::remove(const Renewable& one) {
  std::unique_lock lock(mutex_);
  std::erase_if(due_, [&](const auto& entry) { return entry.second == &one; });
  if (current_ != &one) return;
  removed_ = true;
  changed_.wait(lock, [&] { return current_ != &one; });
}

void Renewals::run() {
  pthread_setname_np(pthread_self(), "viaduct-lease");
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (due_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto first = due_.begin();
    if (const auto when = first->first; when > Clock::now()) {
      changed_.wait_until(lock, when);
      continue;
    }
    Renewable* const one = first->second;
    due_.erase(first);
    current_ = one;
    lock.unlock();
    const auto next = one->renew();
    lock.lock();
    if (!std::exchange(removed_, false)) due_.emplace(next, one);
    current_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace viaduct::meet::kubernetes
