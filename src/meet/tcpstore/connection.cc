#include "meet/tcpstore/connection.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/net/dialer.h"
#include "base/poller.h"

namespace viaduct::meet::tcpstore {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{50};
// A probe is answered within this time, or the other end is no TCPStore that works.
constexpr milliseconds kProbeTime{3000};
// A connection over which the other host sends nothing any more counts as lost after this time.
constexpr int kQuietSeconds = 3, kProbes = 3;

bool goesOn(const Limits& limits) { return !limits.goes_on || limits.goes_on(); }

Error cancelled() {
  return {.code = Code::kCancelled, .operation = "TCPStore", .detail = "asked to stop"};
}

Error closed(std::string detail) {
  return {.code = Code::kPeerLost,
          .operation = "TCPStore",
          .detail = std::move(detail),
          .cause = "the process of torch.distributed's master has ended, or restarts",
          .remedy = "check that the master (rank 0, or the process with the TCPStore) runs"};
}

Error noAnswer(Clock::time_point since) {
  const auto waited = std::chrono::duration<double>(Clock::now() - since).count();
  return {
      .code = Code::kTimeout,
      .operation = "TCPStore",
      .detail = fmt::format("it accepted the connection and did not answer in {:.1f} s", waited),
      .cause = "the master is frozen or overloaded, or another program listens there",
      .remedy = "find the process with that port: ss -ltnp"};
}

// The system's keepalive finds a host that is gone, so that an idle connection needs no queries.
void watchHost(int socket) {
  const auto set = [socket](int option, int value) {
    static_cast<void>(::setsockopt(socket, IPPROTO_TCP, option, &value, sizeof value));
  };
  set(TCP_KEEPIDLE, kQuietSeconds);
  set(TCP_KEEPINTVL, 1);
  set(TCP_KEEPCNT, kProbes);
  set(TCP_USER_TIMEOUT, 1000 * (kQuietSeconds + kProbes));
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::dial(const std::string& where, Dialect dialect,
                                                     const Limits& limits) {
  VIADUCT_TRY(base::Fd socket, base::dial(where, limits.until, limits.goes_on));
  watchHost(socket.get());
  return std::unique_ptr<Connection>(new Connection(std::move(socket), dialect));
}

Result<std::unique_ptr<Connection>> Connection::open(const std::string& where,
                                                     std::optional<Dialect> known,
                                                     const Limits& limits) {
  VIADUCT_TRY(auto out, dial(where, known.value_or(Dialect::kSecond), limits));
  if (known == Dialect::kFirst) return out;
  if (known) {
    VIADUCT_CHECK(out->send(greeting(), limits));
    return out;
  }
  Limits probing = limits;
  probing.until = std::min(limits.until, Clock::now() + kProbeTime);
  Result<Answer> echo = out->ask(probe(), Form::kNumber, probing);
  for (int more = 1; echo && more < kProbeQueries; ++more)
    echo = out->receive(Form::kNumber, probing);
  if (echo) return out;
  if (!out->refused(echo)) return std::move(echo).error();
  VIADUCT_TRY(out, dial(where, Dialect::kFirst, limits));
  probing.until = std::min(limits.until, Clock::now() + kProbeTime);
  echo = out->ask(countKeysQuery(Dialect::kFirst), Form::kNumber, probing);
  if (echo) return out;
  if (!out->refused(echo)) return std::move(echo).error();
  return Error{.code = Code::kUnsupported,
               .operation = "TCPStore",
               .detail = "it closed the connection at the greetings of torch 2.x and of torch 1.x",
               .cause = "another program listens there, or a TCPStore of an unknown version",
               .remedy = "give the host and port of torch.distributed's master"};
}

Result<Answer> Connection::ask(std::string_view queries, Form form, const Limits& limits) {
  VIADUCT_CHECK(send(queries, limits));
  return receive(form, limits);
}

Status Connection::send(std::string_view bytes, const Limits& limits) {
  const bool fresh = std::exchange(usable_, false);
  if (!fresh) return closed("the connection has failed before");
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0)
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    else
      VIADUCT_CHECK(waitAfter("send", POLLOUT, limits));
  }
  usable_ = true;
  return Ok{};
}

Result<Answer> Connection::receive(Form form, const Limits& limits) {
  if (!std::exchange(usable_, false)) return closed("the connection has failed before");
  for (;;) {
    VIADUCT_TRY(auto answer, parseAnswer(form, received_));
    if (answer) {
      received_.erase(0, answer->size);
      usable_ = true;
      return *std::move(answer);
    }
    std::array<char, 16384> part;
    const ssize_t got = ::recv(socket_.get(), part.data(), part.size(), 0);
    if (got > 0)
      received_.append(part.data(), static_cast<std::size_t>(got));
    else if (got == 0 && !received_.empty())
      return closed(
          fmt::format("it closed the connection after {} bytes of an answer", received_.size()));
    else if (got == 0)
      return closed("it closed the connection");
    else
      VIADUCT_CHECK(waitAfter("receive", POLLIN, limits));
  }
}

// Waits after a call that has failed for lack of bytes or of room. Another failure is an error.
Status Connection::waitAfter(const char* call, short events, const Limits& limits) const {
  if (errno == EINTR) return Ok{};
  if (errno != EAGAIN && errno != EWOULDBLOCK)
    return closed(fmt::format("{}: {}", call, systemError(Code::kPeerLost, "", errno).detail));
  const auto begun = Clock::now();
  std::array<pollfd, 2> waits{{{socket_.get(), events, 0}, {limits.wake, POLLIN, 0}}};
  for (;;) {
    if (!goesOn(limits)) return cancelled();
    const auto now = Clock::now();
    if (now >= limits.until) return noAnswer(begun);
    const auto next = limits.goes_on ? std::min(limits.until, now + kLook) : limits.until;
    const int ready = ::poll(waits.data(), waits.size(), base::Poller::milliseconds(next - now));
    if (ready > 0 && waits[1].revents != 0) return cancelled();
    if (ready > 0) return Ok{};
  }
}

}  // namespace viaduct::meet::tcpstore
