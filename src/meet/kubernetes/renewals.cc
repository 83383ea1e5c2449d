#include "meet/kubernetes/renewals.h"

#include <pthread.h>

#include <algorithm>
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

void Renewals::hurry(const Renewable& one) {
  const std::lock_guard lock(mutex_);
  if (current_ == &one) hurried_ = true;
  const auto at = std::ranges::find_if(due_, [&](const auto& due) { return due.second == &one; });
  if (at == due_.end()) return;
  auto due = due_.extract(at);
  due.key() = Clock::now();
  due_.insert(std::move(due));
  changed_.notify_all();
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
    const bool again = std::exchange(hurried_, false);
    if (!std::exchange(removed_, false)) due_.emplace(again ? Clock::now() : next, one);
    current_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace viaduct::meet::kubernetes
