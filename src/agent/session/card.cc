#include <fmt/format.h>
#include <viaduct/card.h>

#include <algorithm>

#include "agent/session/pin_wire.h"
#include "base/net/checksum.h"

namespace viaduct {
namespace {

using agent::LimitedReader;

constexpr std::array<std::byte, 8> kMagic{std::byte{'V'}, std::byte{'I'}, std::byte{'A'},
                                          std::byte{'D'}, std::byte{'C'}, std::byte{'A'},
                                          std::byte{'R'}, std::byte{'D'}};
constexpr std::uint32_t kVersion = 1;
// A Card has magic, version and length of the body, then the body, then a checksum of all these
// bytes.
constexpr std::size_t kHeadBytes = kMagic.size() + 4 + 4;
constexpr std::size_t kSumBytes = 8;

Error refuse(Code code, std::string detail, std::string cause, std::string remedy) {
  return {.code = code,
          .operation = "importCard",
          .detail = std::move(detail),
          .cause = std::move(cause),
          .remedy = std::move(remedy)};
}

Error truncated(std::size_t have, std::size_t want) {
  return refuse(Code::kInvalid, fmt::format("the Card is cut short: {} bytes of {}", have, want),
                "the Card was truncated on its way", "pass all bytes that exportCard() returned");
}

Error corrupted(std::string detail) {
  return refuse(Code::kInvalid, std::move(detail), "the Card was changed on its way",
                "pass exactly the bytes that exportCard() returned");
}

// Returns the body, if magic, version, length and checksum are right.
Result<std::span<const std::byte>> unwrap(std::span<const std::byte> blob) {
  const std::size_t seen = std::min(blob.size(), kMagic.size());
  if (!std::equal(kMagic.begin(), kMagic.begin() + static_cast<std::ptrdiff_t>(seen), blob.begin()))
    return refuse(Code::kInvalid, "these bytes are not a Card", "the caller passed other bytes",
                  "pass the bytes that the other agent's exportCard() returned");
  if (blob.size() < kHeadBytes) return truncated(blob.size(), kHeadBytes);
  base::Reader head(blob.subspan(kMagic.size()));
  const auto version = head.get<std::uint32_t>();
  const std::uint64_t length = head.get<std::uint32_t>();
  if (version != kVersion)
    return refuse(
        Code::kUnsupported,
        fmt::format("the Card has version {}; this agent reads version {}", version, kVersion),
        "the agent that made it runs another release of Viaduct",
        "install the same release at both ends");
  const std::uint64_t whole = kHeadBytes + length + kSumBytes;
  if (blob.size() < whole) return truncated(blob.size(), whole);
  if (blob.size() > whole) return corrupted("the Card is longer than its header says");
  const auto sum = base::loadLittle<std::uint64_t>(&blob[kHeadBytes + length]);
  if (sum != base::Checksum().add(blob.first(kHeadBytes + length)).value())
    return corrupted("the Card is corrupted: its checksum is wrong");
  return blob.subspan(kHeadBytes, length);
}

}  // namespace

std::vector<std::byte> Card::encode() const {
  base::Writer body;
  body.text(name).raw(std::as_bytes(std::span(agent))).text(boot).text(unix_name);
  body.put(static_cast<std::uint32_t>(addresses.size()));
  for (const std::string& address : addresses) body.text(address);
  body.raw(std::as_bytes(std::span(secret)));
  body.put(static_cast<std::uint32_t>(pins.size()));
  for (const PinInfo& pin : pins) agent::writePin(body, pin);

  base::Writer blob;
  blob.raw(kMagic).put(kVersion).sized(body.bytes());
  blob.put(base::Checksum().add(blob.bytes()).value());
  return blob.take();
}

Result<Card> Card::decode(std::span<const std::byte> blob) {
  VIADUCT_TRY(const auto body, unwrap(blob));
  LimitedReader in(body);
  Card card;
  card.name = in.text(agent::kMaxNameBytes);
  card.agent = in.raw().array<16>();
  card.boot = in.text(agent::kMaxNameBytes);
  card.unix_name = in.text(agent::kMaxNameBytes);
  const std::uint32_t addresses = in.count(agent::kMaxAddresses);
  for (std::uint32_t i = 0; i < addresses && in.ok(); ++i)
    card.addresses.push_back(in.text(agent::kMaxNameBytes));
  card.secret = in.raw().array<32>();
  // The limit is the number of bytes, so that a false count allocates no memory.
  const std::uint32_t pins = in.count(body.size());
  for (std::uint32_t i = 0; i < pins && in.ok(); ++i) card.pins.push_back(agent::readPin(in));
  if (!in.finished()) return corrupted(in.error("the Card's content").detail);
  return card;
}

}  // namespace viaduct
