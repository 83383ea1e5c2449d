#include "nixl/exchange.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <viaduct/deadline.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <deque>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/net/address.h"
#include "base/net/crypto.h"
#include "base/net/dialer.h"
#include "base/net/listener.h"
#include "base/poller.h"
#include "base/random.h"
#include "nixl/agent.h"
#include "nixl/status.h"

namespace viaduct::nixl {
namespace {

using base::ByteSpan;

constexpr std::string_view kGreeting = "VIADMETA1";
constexpr std::size_t kNonceBytes = 16, kHeadBytes = 5;
constexpr std::size_t kMostContent = std::size_t{8} << 20U;
constexpr int kMostCallers = 64;
constexpr std::chrono::seconds kAnswerWithin{5};
constexpr std::chrono::milliseconds kTryEvery{50};

// The callers send the first three kinds, and the listener answers with the others.
enum class FrameKind : std::uint8_t { kTake = 1, kFetch, kForget, kDone, kRefused };
using Nonce = std::array<std::uint8_t, kNonceBytes>;

struct MetadataFrame {
  FrameKind kind = FrameKind::kDone;
  std::string content = {};
};

[[noreturn]] void broken(std::string_view how) {
  fail({.code = Code::kProtocol, .operation = "exchange metadata", .detail = std::string(how)});
}

std::string secret() { return base::variableText("VIADUCT_SECRET"); }

// A connected socket whose calls end by `until`.
class Wire {
 public:
  Wire(base::Fd fd, Deadline until) : fd_(std::move(fd)), until_(until) {}

  void send(ByteSpan bytes) {
    while (!bytes.empty()) {
      await(POLLOUT);
      const auto sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
      if (sent < 0 && errno != EAGAIN && errno != EINTR)
        fail(systemError(Code::kDevice, "send", errno));
    }
  }
  // The sender is not proven yet. So memory grows with the received bytes, not with the claimed
  // size.
  std::string receive(std::size_t bytes) {
    std::string all;
    while (all.size() < bytes) {
      std::array<char, std::size_t{1} << 16U> part;
      await(POLLIN);
      const auto got =
          ::recv(fd_.get(), part.data(), std::min(part.size(), bytes - all.size()), MSG_DONTWAIT);
      if (got == 0) broken("the other side closed the connection before the end of a frame");
      if (got > 0) all.append(part.data(), static_cast<std::size_t>(got));
      if (got < 0 && errno != EAGAIN && errno != EINTR)
        fail(systemError(Code::kDevice, "recv", errno));
    }
    return all;
  }
  void sendFrame(const Nonce& nonce, FrameKind kind, std::string_view content) {
    base::Writer out;
    out.put(static_cast<std::uint8_t>(kind)).put(static_cast<std::uint32_t>(content.size()));
    const auto proven = proof(nonce, out.bytes(), base::bytesOf(content));
    out.raw(base::bytesOf(content)).raw(std::as_bytes(std::span(proven)));
    send(out.bytes());
  }
  MetadataFrame receiveFrame(const Nonce& nonce) {
    const std::string head = receive(kHeadBytes);
    base::Reader in(base::bytesOf(head));
    const auto kind = in.get<std::uint8_t>();
    const auto bytes = in.get<std::uint32_t>();
    if (bytes > kMostContent || kind < static_cast<std::uint8_t>(FrameKind::kTake) ||
        kind > static_cast<std::uint8_t>(FrameKind::kRefused))
      broken("the other side does not speak the listener protocol of Viaduct");
    std::string content = receive(bytes);
    const std::string given = receive(sizeof(base::Sha256Digest));
    const auto right = proof(nonce, base::bytesOf(head), base::bytesOf(content));
    if (!base::sameBytes(base::bytesOf(given), std::as_bytes(std::span(right))))
      broken("the other side has another VIADUCT_SECRET; set one on all sides");
    return {static_cast<FrameKind>(kind), std::move(content)};
  }

 private:
  static base::Sha256Digest proof(const Nonce& nonce, ByteSpan head, ByteSpan content) {
    return base::Hmac(base::bytesOf(secret())).of({std::as_bytes(std::span(nonce)), head, content});
  }
  void await(short events) const {
    const int left = base::Poller::milliseconds(until_.at() - Clock::now());
    pollfd one{.fd = fd_.get(), .events = events, .revents = 0};
    if (left == 0 || ::poll(&one, 1, left) == 0)
      broken("the other side did not send or take a whole frame in time");
  }

  const base::Fd fd_;
  const Deadline until_;
};

// Retries until the time `until`, because the listener may start later.
base::Fd dial(const std::string& host, std::uint16_t port, Deadline until) {
  for (;;) {
    auto connected = base::dial(base::hostPortText(host, port), until.at());
    if (connected) return *std::move(connected);
    if (connected.error().os_errno != ECONNREFUSED || Clock::now() + kTryEvery >= until.at())
      fail(connected.error());
    std::this_thread::sleep_for(kTryEvery);
  }
}

std::string callListener(const std::string& host, std::uint16_t port, FrameKind kind,
                         std::string_view content) {
  const Deadline until = kAnswerWithin;
  Wire wire(dial(host, port, until), until);
  const std::string greeting = wire.receive(kGreeting.size() + kNonceBytes);
  if (!greeting.starts_with(kGreeting)) broken("no listener of Viaduct's NIXL answers there");
  Nonce nonce;
  std::copy(greeting.begin() + kGreeting.size(), greeting.end(), nonce.begin());
  wire.sendFrame(nonce, kind, content);
  MetadataFrame answer = wire.receiveFrame(nonce);
  if (answer.kind == FrameKind::kRefused) broken(answer.content);
  return std::move(answer.content);
}

std::string answerOf(const AgentCaller& with, MetadataFrame asked) {
  std::string answer;
  with([&](NixlAgent& agent) {
    switch (asked.kind) {
      case FrameKind::kTake:
        answer = agent.addRemote(std::move(asked.content));
        break;
      case FrameKind::kFetch:
        answer = *agent.metadata();
        break;
      case FrameKind::kForget:
        agent.removeRemote(asked.content);
        break;
      default:
        broken("a caller must not send a frame of this kind");
    }
  });
  return answer;
}

void serve(const AgentCaller& agent, base::Fd socket) {
  Nonce nonce;
  check(base::fillSecret(nonce));
  Wire wire(std::move(socket), kAnswerWithin);
  base::Writer greeting;
  greeting.raw(base::bytesOf(kGreeting)).raw(std::as_bytes(std::span(nonce)));
  wire.send(greeting.bytes());
  MetadataFrame asked = wire.receiveFrame(nonce);
  MetadataFrame answer;
  try {
    answer.content = answerOf(agent, std::move(asked));
  } catch (const Failure& failure) {  // the caller gets its text
    answer = {FrameKind::kRefused, failure.what()};
  }
  wire.sendFrame(nonce, answer.kind, answer.content);
}

}  // namespace

// Runs jobs one after another on a thread of its own, which ends when no job is left.
class JobQueue : public std::enable_shared_from_this<JobQueue> {
 public:
  void add(std::string what, std::function<void()> job) {
    const std::lock_guard held(mutex_);
    // If no thread can start, this throws before the job is queued.
    if (jobs_.empty()) std::thread([self = shared_from_this()] { self->run(); }).detach();
    jobs_.emplace_back(std::move(what), std::move(job));
  }

 private:
  void run() {
    std::unique_lock held(mutex_);
    while (!jobs_.empty()) {
      const auto& [what, job] = jobs_.front();
      held.unlock();
      try {
        job();
      } catch (const std::exception& failed) {  // only the log can tell: the call has returned
        base::log(base::LogLevel::kWarning, "{}: {}", what, failed.what());
      }
      held.lock();
      jobs_.pop_front();
    }
  }

  std::mutex mutex_;
  std::deque<std::pair<std::string, std::function<void()>>> jobs_;  // the first one runs
};

struct Exchange::Shared {
  explicit Shared(AgentCaller of) : agent(std::move(of)) {}

  const AgentCaller agent;
  base::Fd listening = {};
  std::atomic<bool> closed = false;
  std::atomic<int> callers = 0;

  void acceptOne(base::Fd socket, const std::shared_ptr<Shared>& self) {
    if (!socket) {
      base::log(base::LogLevel::kWarning, "accept: {}", std::system_category().message(errno));
      std::this_thread::sleep_for(kTryEvery);  // the process is out of descriptors: do not spin
      return;
    }
    if (callers >= kMostCallers) return;  // agents do not make this many calls at once
    ++callers;
    std::thread([self, socket = std::move(socket)]() mutable {
      try {
        serve(self->agent, std::move(socket));
      } catch (const std::exception& failed) {
        base::log(base::LogLevel::kDebug, "a caller of the metadata listener: {}", failed.what());
      }
      --self->callers;
    }).detach();
  }
};

Exchange::Exchange(AgentCaller agent) : shared_(std::make_shared<Shared>(std::move(agent))) {}

Exchange::~Exchange() {
  shared_->closed = true;
  if (shared_->listening) ::shutdown(shared_->listening.get(), SHUT_RDWR);  // ends accept()
}

Result<std::uint16_t> Exchange::listen(std::uint16_t port) {
  VIADUCT_TRY(shared_->listening, base::listenEverywhere(port));
  ::fcntl(shared_->listening.get(), F_SETFL, 0);  // accept() waits
  VIADUCT_TRY(const base::SocketAddress bound, base::localAddress(shared_->listening.get()));
  if (secret().empty())
    base::log(base::LogLevel::kWarning,
              "any host that reaches port {} gets this agent's metadata, and with it access to the "
              "agent's memory; set VIADUCT_SECRET on all sides",
              bound.port());
  std::thread([shared = shared_] {
    while (!shared->closed) {
      base::Fd socket(::accept4(shared->listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (shared->closed) break;
      try {
        shared->acceptOne(std::move(socket), shared);
      } catch (const std::system_error& failed) {  // no more threads: the caller may try again
        --shared->callers;
        base::log(base::LogLevel::kWarning, "accept: {}", failed.what());
      }
    }
  }).detach();
  return bound.port();
}

void Exchange::run(std::string what, const std::string& host, std::uint16_t port,
                   std::function<void()> job) {
  const std::lock_guard held(mutex_);
  auto& queue = jobs_[{host, port}];
  if (queue == nullptr) queue = std::make_shared<JobQueue>();
  queue->add(std::move(what), std::move(job));
}

void Exchange::send(const std::string& host, std::uint16_t port, const std::string& blob) {
  run(fmt::format("send metadata to {}:{}", host, port), host, port,
      [=] { callListener(host, port, FrameKind::kTake, blob); });
}

void Exchange::fetch(const std::string& host, std::uint16_t port) {
  run(fmt::format("fetch metadata from {}:{}", host, port), host, port, [=, shared = shared_] {
    const std::string blob = callListener(host, port, FrameKind::kFetch, {});
    shared->agent([&](NixlAgent& agent) { agent.addRemote(blob); });
  });
}

void Exchange::invalidate(const std::string& host, std::uint16_t port, const std::string& name) {
  run(fmt::format("invalidate metadata at {}:{}", host, port), host, port,
      [=] { callListener(host, port, FrameKind::kForget, name); });
}

void Exchange::find(const std::string& name, const std::string& label) {
  run(fmt::format("find agent {}", name), {}, 0, [=, shared = shared_] {
    shared->agent([&](NixlAgent& agent) { agent.findRemote(name, label); });
  });
}

}  // namespace viaduct::nixl
