#include "backends/tcp/hello.h"

#include <cstring>
#include <string_view>

#include "base/bytes.h"
#include "base/net/crypto.h"

namespace viaduct::tcp {

namespace {

constexpr std::uint32_t kHelloMagic = 0x31484456;    // "VDH1"
constexpr std::uint32_t kWelcomeMagic = 0x31574456;  // "VDW1"
constexpr std::uint32_t kHelloVersion = 1;
constexpr std::size_t kSaid = kHelloBytes - sizeof(base::Sha256Digest);
constexpr std::size_t kAnswered = kWelcomeBytes - sizeof(base::Sha256Digest);

// The label separates the uses of the key, so that a MAC of one message is not valid for another.
base::Sha256Digest macOf(const LinkKey& key, std::string_view label,
                         std::span<const std::byte> said) {
  base::Writer text;
  text.text(label).raw(said);
  return base::Hmac(key).of({text.bytes()});
}

bool same(const base::Sha256Digest& mac, std::span<const std::byte> claimed) {
  return base::sameBytes(std::as_bytes(std::span(mac)), claimed);
}

base::Sha256Digest welcomeMac(const SocketHello& hello, const LinkKey& key,
                              std::span<const std::byte> said) {
  base::Writer both;
  both.raw(said).raw(std::as_bytes(std::span(hello.link)));
  both.put(hello.epoch).put(hello.count).put(hello.life);
  return macOf(key, "viaduct tcp welcome", both.bytes());
}

}  // namespace

LinkId linkId(const LinkKey& key) {
  const base::Sha256Digest mac = macOf(key, "viaduct tcp link", {});
  LinkId id{};
  std::memcpy(id.data(), mac.data(), id.size());
  return id;
}

std::array<std::byte, kHelloBytes> encodeHello(const SocketHello& hello, const LinkKey& key) {
  base::Writer out;
  out.put(kHelloMagic).put(kHelloVersion);
  out.raw(std::as_bytes(std::span(hello.link)));
  out.put(hello.epoch).put(hello.index).put(hello.count).put(hello.life);
  const base::Sha256Digest mac = macOf(key, "viaduct tcp hello", out.bytes());
  out.raw(std::as_bytes(std::span(mac)));
  std::array<std::byte, kHelloBytes> bytes{};
  std::memcpy(bytes.data(), out.bytes().data(), bytes.size());
  return bytes;
}

std::optional<SocketHello> decodeHello(std::span<const std::byte, kHelloBytes> from) {
  base::Reader in(from);
  const auto magic = in.get<std::uint32_t>();
  const auto version = in.get<std::uint32_t>();
  SocketHello hello;
  hello.link = in.array<sizeof(LinkId)>();
  hello.epoch = in.get<std::uint64_t>();
  hello.index = in.get<std::uint32_t>();
  hello.count = in.get<std::uint32_t>();
  hello.life = in.get<std::uint32_t>();
  const bool fits = magic == kHelloMagic && version == kHelloVersion &&
                    hello.count <= kMaxSockets && hello.index < hello.count;
  if (!fits) return std::nullopt;
  return hello;
}

bool helloIsGenuine(std::span<const std::byte, kHelloBytes> from, const LinkKey& key) {
  return same(macOf(key, "viaduct tcp hello", from.first(kSaid)), from.subspan(kSaid));
}

std::array<std::byte, kWelcomeBytes> encodeWelcome(const SocketHello& hello, const LinkKey& key) {
  base::Writer out;
  out.put(kWelcomeMagic).put(kHelloVersion).put(hello.index).put(std::uint32_t{0});
  const base::Sha256Digest mac = welcomeMac(hello, key, out.bytes());
  out.raw(std::as_bytes(std::span(mac)));
  std::array<std::byte, kWelcomeBytes> bytes{};
  std::memcpy(bytes.data(), out.bytes().data(), bytes.size());
  return bytes;
}

bool welcomeIsGenuine(std::span<const std::byte, kWelcomeBytes> from, const SocketHello& hello,
                      const LinkKey& key) {
  const auto genuine = encodeWelcome(hello, key);
  return base::sameBytes(from.first(kAnswered), std::span(genuine).first(kAnswered)) &&
         same(welcomeMac(hello, key, from.first(kAnswered)), from.subspan(kAnswered));
}

}  // namespace viaduct::tcp
