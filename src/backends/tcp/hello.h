// How a data socket begins: the dialer proves that it belongs to this life of the session, the
// accepting end proves the same. Threads: pure functions over values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace viaduct::tcp {

using LinkKey = std::array<std::uint8_t, 32>;
using LinkId = std::array<std::uint8_t, 16>;

inline constexpr std::size_t kHelloBytes = 76;
inline constexpr std::size_t kWelcomeBytes = 48;
inline constexpr std::uint32_t kMaxSockets = 64;  // of one link

struct SocketHello {
  LinkId link = {};
  std::uint64_t epoch = 0;
  std::uint32_t index = 0;  // of this socket...
  std::uint32_t count = 0;  // ...among the link's
  std::uint32_t life = 0;   // how often a socket of this index was lost before
  friend bool operator==(const SocketHello&, const SocketHello&) = default;
};

// Which link is meant: random to everyone who does not hold the key, and tells nothing about it.
LinkId linkId(const LinkKey& key);

std::array<std::byte, kHelloBytes> encodeHello(const SocketHello& hello, const LinkKey& key);
// What it says, if it has the right shape; whether to believe it is the next question.
std::optional<SocketHello> decodeHello(std::span<const std::byte, kHelloBytes> from);
bool helloIsGenuine(std::span<const std::byte, kHelloBytes> from, const LinkKey& key);

std::array<std::byte, kWelcomeBytes> encodeWelcome(const SocketHello& hello, const LinkKey& key);
bool welcomeIsGenuine(std::span<const std::byte, kWelcomeBytes> from, const SocketHello& hello,
                      const LinkKey& key);

}  // namespace viaduct::tcp
