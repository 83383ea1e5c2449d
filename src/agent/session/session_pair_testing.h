// For tests: a ConnectionUser that records its callbacks, and two connected connections.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/session/connection.h"
#include "base/bytes.h"
#include "base/manual_poller_testing.h"
#include "base/net/address.h"
#include "base/poller.h"

namespace viaduct::agent {

using base::bytesOf;
using base::ManualPoller;

inline std::string textOf(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Recorder final : ConnectionUser {
  Result<Life> judge(const Hello& theirs) override {
    ++judged;
    hello = theirs;
    if (on_judge) on_judge();
    return verdict;
  }
  void established(std::uint64_t e) override {
    epoch = e;
    if (on_established) on_established();
  }
  void frame(FrameType type, ByteSpan payload, std::vector<base::Fd> fds_in) override {
    types.push_back(type);
    if (keep) frames.push_back(textOf(payload));
    bytes += payload.size();
    for (auto& fd : fds_in) fds.push_back(std::move(fd));
    if (on_frame) on_frame();
  }
  void closed(const Error& why) override {
    ++closes;
    error = why;
    if (on_closed) on_closed();
  }
  Code code() const { return error ? error->code : Code::kInvalid; }

  Result<Life> verdict = Life{.epoch = 7};
  int judged = 0, closes = 0;
  std::optional<std::uint64_t> epoch;
  Hello hello;
  bool keep = true;
  std::size_t bytes = 0;
  std::vector<FrameType> types;
  std::vector<std::string> frames;
  std::vector<base::Fd> fds;
  std::optional<Error> error;
  std::function<void()> on_judge, on_established, on_frame, on_closed;
};

enum class Kind { kTcp, kUnix };

// Two connected sockets: TCP over the loopback interface, or a Unix socket pair.
inline std::pair<base::Fd, base::Fd> socketPair(Kind kind) {
  if (kind == Kind::kUnix) {
    std::array<int, 2> both{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both.data()), 0);
    return {base::Fd(both[0]), base::Fd(both[1])};
  }
  const base::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  base::SocketAddress at = base::resolve({.host = "127.0.0.1"})->front();
  EXPECT_EQ(::bind(listener.get(), at.get(), at.size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  at = *base::localAddress(listener.get());
  base::Fd a(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(a.get(), at.get(), at.size), 0);
  base::Fd b(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(base::tuneSocket(a.get()));
  EXPECT_TRUE(base::tuneSocket(b.get()));
  return {std::move(a), std::move(b)};
}

inline Hello helloOf(std::string name) {
  return {.name = std::move(name),
          .agent = {1, 2, 3},
          .boot = "boot",
          .unix_name = "viaduct-test",
          .addresses = {"127.0.0.1:1", "[::1]:2"},
          .last_epoch = 3,
          .detect_ms = 2000,
          .backends = {{"tcp", {std::byte{9}}}, {"local", {}}}};
}

inline ConnectionConfig configOf(const Hello& mine, std::string_view secret = "secret") {
  return {.secret = base::secretFromText(secret),
          .mine = [mine] { return mine; },
          .handshake_until = Clock::now() + std::chrono::seconds(20),
          .max_unsent = std::size_t{1} << 20U};
}
inline ConnectionConfig configOf(std::string name, std::string_view secret = "secret") {
  return configOf(helloOf(std::move(name)), secret);
}

// A dialer and a listener that are connected by a socket.
struct SessionPair {
  explicit SessionPair(Kind kind, ManualPoller& manual, ConnectionConfig a = configOf("dialer"),
                       ConnectionConfig b = configOf("listener")) {
    auto [left, right] = socketPair(kind);
    raw_dialer = left.get();
    raw_listener = right.get();
    dialer = std::move(*Connection::open(std::move(left), Connection::Role::kDialer, std::move(a),
                                         manual.poller(), at_dialer));
    listener = std::move(*Connection::open(std::move(right), Connection::Role::kListener,
                                           std::move(b), manual.poller(), at_listener));
  }
  bool ready() const { return at_dialer.epoch && at_listener.epoch; }

  Recorder at_dialer, at_listener;
  std::unique_ptr<Connection> dialer, listener;
  int raw_dialer = -1, raw_listener = -1;  // the fds, for tests that disturb the connections
};

}  // namespace viaduct::agent
