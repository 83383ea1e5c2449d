// The first messages on a data socket. With them each end proves that it knows the key of this
// session. Threads: pure functions over values.
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
inline constexpr std::uint32_t kMaxSockets = 64;  // most sockets of one link

struct SocketHello {
  LinkId link = {};
  std::uint64_t epoch = 0;
  std::uint32_t index = 0;  // index of this socket in its link
  std::uint32_t count = 0;  // number of sockets of the link
  std::uint32_t life = 0;   // number of sockets with this index that were lost before
  friend bool operator==(const SocketHello&, const SocketHello&) = default;
};

// Derives the link's id from its key. Without the key the id looks random, and it reveals nothing
// about the key.
LinkId linkId(const LinkKey& key);

std::array<std::byte, kHelloBytes> encodeHello(const SocketHello& hello, const LinkKey& key);
// Reads a hello. It checks only the form; helloIsGenuine() checks the proof.
std::optional<SocketHello> decodeHello(std::span<const std::byte, kHelloBytes> from);
bool helloIsGenuine(std::span<const std::byte, kHelloBytes> from, const LinkKey& key);

std::array<std::byte, kWelcomeBytes> encodeWelcome(const SocketHello& hello, const LinkKey& key);
bool welcomeIsGenuine(std::span<const std::byte, kWelcomeBytes> from, const SocketHello& hello,
                      const LinkKey& key);

}  // namespace viaduct::tcp
