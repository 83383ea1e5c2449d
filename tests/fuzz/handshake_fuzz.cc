// A stranger sends any bytes in a handshake, to a dialer and to a listener. Nothing crashes and no
// session begins. The connection closes once, at the latest when the stranger leaves.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "agent/session/connection.h"
#include "base/poller.h"
#include "fuzz/samples.h"

namespace {

using namespace viaduct::agent;
using viaduct::Clock;
using viaduct::base::Fd;
using viaduct::base::Poller;

// No stranger without the secret gets this far.
struct Unreached final : ConnectionUser {
  viaduct::Result<Life> judge(const Hello&) override { std::abort(); }
  void established(std::uint64_t) override { std::abort(); }
  void frame(FrameType, ByteSpan, std::vector<Fd>) override { std::abort(); }
  void closed(const viaduct::Error&) override {
    if (closes++ > 0) std::abort();
  }
  int closes = 0;
};

void turn(Poller& poller) {
  Poller::Events events;
  const int count = poller.block(events, Clock::time_point{});
  poller.handle(events, count, Clock::now());
}

void tryRole(Connection::Role role, ByteSpan bytes) {
  static const auto poller = std::move(*Poller::open());
  std::array<int, 2> both{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both.data()) != 0)
    return;
  Fd stranger(both[1]);
  Unreached user;
  ConnectionConfig config;
  config.secret = viaduct::base::secretFromText("a secret that no input holds");
  config.mine = [] { return Hello{.name = "us"}; };
  config.handshake_until = Clock::time_point::max();
  const auto opened = Connection::open(Fd(both[0]), role, std::move(config), *poller, user);
  if (!opened) std::abort();
  static_cast<void>(::send(stranger.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  for (int i = 0; i < 3; ++i) turn(*poller);
  stranger.reset();
  for (int i = 0; i < 8 && user.closes == 0; ++i) turn(*poller);
  if (user.closes != 1) std::abort();
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  const auto framed = [](const std::vector<std::pair<FrameType, std::size_t>>& frames) {
    base::Writer stream;
    FrameSealer sealer{kSessionFrames};
    for (const auto& [type, size] : frames) {
      const base::Bytes payload(size, std::byte{0x41});
      stream.raw(sealer.seal(numberOf(type), payload, {}, 0)).raw(payload);
    }
    return sampleOf(stream.bytes());
  };
  // This open frame has a valid claim. The open frame below has none, because all its bytes are
  // 0x41.
  base::Writer open;
  FrameSealer sealer{kSessionFrames};
  const auto payload = base::encode(Key{9}, base::Bytes(4, std::byte{0x41}));
  open.raw(sealer.seal(numberOf(FrameType::kOpen), payload, {}, 0)).raw(payload);
  const base::Bytes proof(sizeof(Key), std::byte{0x41});
  open.raw(sealer.seal(numberOf(FrameType::kProof), proof, {}, 0)).raw(proof);
  return {sampleOf(open.bytes()),
          framed({{FrameType::kOpen, 36}, {FrameType::kDeny, 1}}),
          framed({{FrameType::kChallenge, 32}, {FrameType::kConfirm, 32}}),
          framed({{FrameType::kDeny, 1}}),
          framed({{FrameType::kHello, 60}}),
          framed({{FrameType::kResume, 48}})};
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  tryRole(Connection::Role::kListener, bytes);
  tryRole(Connection::Role::kDialer, bytes);
  return 0;
}
