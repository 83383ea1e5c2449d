#include "base/net/lookup.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <thread>
#include <utility>

#include "base/blocked_signals.h"
#include "base/guarded.h"
#include "base/poller.h"

namespace viaduct::base {

struct Lookup::Shared {
  Fd bell;
  Guarded<std::optional<Result<std::vector<SocketAddress>>>> answer;
};

namespace {

template <class Work>
Status startThread(Work work) {
  const BlockedSignals blocked;
  try {
    std::thread(std::move(work)).detach();
  } catch (const std::system_error& failed) {
    return systemError(Code::kExhausted, "thread", failed.code().value());
  }
  return Ok{};
}

}  // namespace

Lookup::Lookup(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
Lookup::~Lookup() = default;
int Lookup::fd() const { return shared_->bell.get(); }

Result<std::unique_ptr<Lookup>> Lookup::start(const HostPort& where) {
  auto shared = std::make_shared<Shared>();
  shared->bell.reset(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!shared->bell) return systemError(Code::kExhausted, "eventfd", errno);
  VIADUCT_CHECK(startThread([shared, where] {
    auto found = resolve(where);
    shared->answer.with([&](auto& answer) { answer = std::move(found); });
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto rung = ::write(shared->bell.get(), &one, sizeof one);
  }));
  return std::unique_ptr<Lookup>(new Lookup(std::move(shared)));
}

std::optional<Result<std::vector<SocketAddress>>> Lookup::answer() {
  return shared_->answer.with([](auto& answer) { return std::move(answer); });
}

Result<std::vector<SocketAddress>> resolve(const HostPort& where, Clock::time_point until) {
  if (isLiteral(where)) return resolve(where);
  VIADUCT_TRY(const auto lookup, Lookup::start(where));
  pollfd wait{.fd = lookup->fd(), .events = POLLIN, .revents = 0};
  while (true) {
    const int ready = ::poll(&wait, 1, Poller::milliseconds(until - Clock::now()));
    if (auto answer = lookup->answer()) return *std::move(answer);
    if (ready != 0) continue;  // a signal interrupted poll()
    Error why = lookupTimeout();
    why.detail = hostPortText(where.host, where.port) + ": " + why.detail;
    return why;
  }
}

Error lookupTimeout() {
  return {.code = Code::kTimeout,
          .operation = "resolve",
          .detail = "the name was not found in time",
          .cause = "the name server is slow or cannot be reached",
          .remedy = "check /etc/resolv.conf, or use a numeric IP address"};
}

}  // namespace viaduct::base
