#include "base/poller.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/fd.h"

namespace viaduct::base {

struct Poller::State {
  struct Watch {
    int fd;
    std::shared_ptr<Handler> handler;  // shared, because a handler may forget itself while it runs
  };
  Fd epoll;
  Id last_watch = 0, last_timer = 0;
  std::unordered_map<Id, Watch> watches;
  std::map<std::pair<Clock::time_point, Id>, std::function<void()>> timers;
  std::unordered_map<Id, Clock::time_point> timer_times;
};

Poller::Poller(const MovableClock* clock) : clock_(clock), state_(std::make_unique<State>()) {}
Poller::~Poller() = default;

Result<std::unique_ptr<Poller>> Poller::open(const MovableClock* clock) {
  std::unique_ptr<Poller> poller(new Poller(clock));
  poller->state_->epoll.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!poller->state_->epoll) return systemError(Code::kExhausted, "epoll_create1", errno);
  return poller;
}

// The low half of the number is the descriptor, so that change() needs no table.
Result<Poller::Id> Poller::watch(int fd, std::uint32_t events, Handler handler) {
  const Id id = ++state_->last_watch << 32U | static_cast<std::uint32_t>(fd);
  epoll_event event{.events = events, .data = {.u64 = id}};
  if (::epoll_ctl(state_->epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return systemError(Code::kExhausted, "epoll_ctl(add)", errno);
  state_->watches.emplace(id, State::Watch{fd, std::make_shared<Handler>(std::move(handler))});
  return id;
}

Status Poller::change(Id id, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.u64 = id}};
  const auto fd = static_cast<int>(static_cast<std::uint32_t>(id));
  if (::epoll_ctl(state_->epoll.get(), EPOLL_CTL_MOD, fd, &event) != 0)
    return systemError(Code::kDevice, "epoll_ctl(mod)", errno);
  return Ok{};
}

void Poller::forget(Id id) {
  const auto found = state_->watches.find(id);
  if (found == state_->watches.end()) return;
  ::epoll_ctl(state_->epoll.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
  state_->watches.erase(found);
}

Poller::Id Poller::at(Clock::time_point when, std::function<void()> handler) {
  const Id id = ++state_->last_timer;
  state_->timers.emplace(std::pair{when, id}, std::move(handler));
  state_->timer_times.emplace(id, when);
  return id;
}

void Poller::forgetTimer(Id id) {
  const auto found = state_->timer_times.find(id);
  if (found == state_->timer_times.end()) return;
  state_->timers.erase({found->second, id});
  state_->timer_times.erase(found);
}

Clock::time_point Poller::nextTimer() const {
  return state_->timers.empty() ? Clock::time_point::max() : state_->timers.begin()->first.first;
}

int Poller::fd() const { return state_->epoll.get(); }

Clock::time_point Poller::moved(Clock::time_point at, int direction) const {
  const bool is_moment = at != Clock::time_point::max() && at != Clock::time_point::min();
  return clock_ != nullptr && is_moment ? at + direction * clock_->ahead() : at;
}

// Nothing wakes a poller when a test moves its clock, so such a poller looks each millisecond.
int Poller::waitFor(Clock::time_point until) const {
  if (until == Clock::time_point::min()) return 0;  // without reading the clock
  const auto at = now();
  if (until <= at) return 0;
  if (clock_ != nullptr) return 1;
  if (until == Clock::time_point::max()) return -1;
  return milliseconds(until - at);
}

int Poller::milliseconds(Duration left) {
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<std::int64_t>(rounded, 0, 1 << 30));
}

int Poller::block(Events& into, Clock::time_point until) const {
  const int wait_ms = waitFor(until);
  return std::max(
      0, ::epoll_wait(state_->epoll.get(), into.data(), static_cast<int>(into.size()), wait_ms));
}

bool Poller::handle(const Events& events, int count, Clock::time_point now) {
  bool ran = false;
  for (int i = 0; i < count; ++i) {
    // Copied, because the kernel's struct is packed and a reference into it would be misaligned.
    const Id id = events[static_cast<std::size_t>(i)].data.u64;
    const auto found = state_->watches.find(id);
    if (found == state_->watches.end()) continue;  // forgotten since the event came
    const auto handler = found->second.handler;
    if (!*handler) continue;
    (*handler)(events[static_cast<std::size_t>(i)].events);
    ran = true;
  }
  return runTimers(now) || ran;
}

bool Poller::runTimers(Clock::time_point now) {
  bool ran = false;
  while (nextTimer() <= now) {
    auto due = state_->timers.extract(state_->timers.begin());
    state_->timer_times.erase(due.key().second);
    due.mapped()();
    ran = true;
  }
  return ran;
}

}  // namespace viaduct::base
