#include "nixl_metadata.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdlib>
#include <span>
#include <utility>

#include "agent/session/limits.h"
#include "base/bytes.h"
#include "base/lists.h"
#include "base/net/checksum.h"

namespace viaduct::python::nixl {
namespace {

using agent::LimitedReader;
using base::bytesOf;

constexpr std::string_view kMagic = "VIADNIXL";
constexpr std::string_view kRealNixl = "nixlSerDes|";
constexpr std::uint32_t kVersion = 1;
// The blob holds magic, version, length of the body, the body, and a checksum over these parts.
constexpr std::size_t kHeadBytes = kMagic.size() + 4 + 4;
constexpr std::size_t kSumBytes = 8;
constexpr std::size_t kRegionBytes = 1 + 3 * 8 + 4;
constexpr std::size_t kMostCardBytes = std::size_t{1} << 16U;

Error refuse(std::string detail, std::string cause, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = "add_remote_agent",
          .detail = std::move(detail),
          .cause = std::move(cause),
          .remedy = std::move(remedy)};
}

Error truncated(std::size_t have, std::size_t want) {
  return refuse(fmt::format("the metadata is cut short: {} bytes of {}", have, want),
                "the transport truncated the metadata",
                "pass all bytes that get_agent_metadata() returned");
}

Error corrupted(std::string detail) {
  return refuse(std::move(detail), "the transport changed the metadata",
                "pass exactly the bytes that get_agent_metadata() returned");
}

Error foreign(std::string_view blob) {
  // Other systems put text before their own magic, so search the first 256 bytes.
  if (blob.substr(0, 256).find(kRealNixl) != std::string_view::npos)
    return refuse("this is metadata of the real NIXL, not of Viaduct",
                  "the other process runs NVIDIA's nixl package",
                  "run both ends over Viaduct, or both over NIXL: they cannot talk to each other");
  return refuse("these bytes are not metadata of Viaduct", "the caller passed other bytes",
                "pass the bytes that the other agent's get_agent_metadata() returned");
}

// Checks the magic, version, length and checksum, and returns the body between them.
Result<std::span<const std::byte>> unwrap(std::string_view text) {
  if (text.substr(0, kMagic.size()) != kMagic.substr(0, text.size())) return foreign(text);
  const auto blob = bytesOf(text);
  if (blob.size() < kHeadBytes) return truncated(blob.size(), kHeadBytes + kSumBytes);
  base::Reader head(blob.subspan(kMagic.size()));
  const auto version = head.get<std::uint32_t>();
  const std::uint64_t length = head.get<std::uint32_t>();
  if (version != kVersion)
    return refuse(fmt::format("the metadata has version {}; this release reads version {}", version,
                              kVersion),
                  "the other agent runs another release of Viaduct",
                  "install the same release at both ends");
  const std::uint64_t whole = kHeadBytes + length + kSumBytes;
  if (blob.size() < whole) return truncated(blob.size(), whole);
  if (blob.size() > whole) return corrupted("the metadata is longer than its header says");
  const auto sum = base::loadLittle<std::uint64_t>(&blob[kHeadBytes + length]);
  if (sum != base::Checksum().add(blob.first(kHeadBytes + length)).value())
    return corrupted("the metadata is corrupted: its checksum is wrong");
  return blob.subspan(kHeadBytes, length);
}

void encodeRegion(base::Writer& out, const Region& region) {
  out.put(static_cast<std::uint8_t>(region.memory)).put(region.device);
  out.put(region.address).put(region.bytes).put(region.serial);
}

Region decodeRegion(LimitedReader& in) {
  Region region;
  const auto memory = in.raw().get<std::uint8_t>();
  if (memory > static_cast<std::uint8_t>(Memory::kFile)) in.refuse();
  region.memory = static_cast<Memory>(memory);
  region.device = in.raw().get<std::uint64_t>();
  region.address = in.raw().get<std::uint64_t>();
  region.bytes = in.raw().get<std::uint64_t>();
  region.serial = in.raw().get<std::uint32_t>();
  std::uint64_t end = 0;
  if (__builtin_add_overflow(region.address, region.bytes, &end)) in.refuse();
  return region;
}

}  // namespace

std::string labelPrefix(const AgentId& agent) {
  return fmt::format("nixl-{:02x}-", fmt::join(std::span(agent).first(8), ""));
}

std::string labelOf(const AgentId& agent, std::uint32_t serial) {
  return fmt::format("{}{}", labelPrefix(agent), serial);
}

AgentId agentOf(const PinInfo& pin) {
  AgentId agent{};
  for (std::size_t i = 0; i < 8 && pin.label.size() >= labelPrefix(agent).size(); ++i)
    agent[i] = static_cast<std::uint8_t>(
        std::strtoul(pin.label.substr(5 + 2 * i, 2).c_str(), nullptr, 16));
  return agent;
}

Memory memoryOf(MemoryKind kind) {
  using Kinds = std::pair<MemoryKind, Memory>;
  constexpr std::array kAll{
      Kinds{MemoryKind::kHost, Memory::kDram}, Kinds{MemoryKind::kDevice, Memory::kVram},
      Kinds{MemoryKind::kFile, Memory::kFile}, Kinds{MemoryKind::kBlock, Memory::kBlock},
      Kinds{MemoryKind::kObject, Memory::kObject}};
  const Kinds* const known = base::firstWith(kAll, &Kinds::first, kind);
  return known == nullptr ? Memory::kDram : known->second;
}

std::optional<Region> regionOf(const PinInfo& pin) {
  const auto dash = pin.label.rfind('-');
  if (!pin.label.starts_with("nixl-") || dash == std::string::npos) return std::nullopt;
  const unsigned long serial = std::strtoul(pin.label.c_str() + dash + 1, nullptr, 10);
  return Region{.memory = memoryOf(pin.kind),
                .device = pin.device,
                .address = pin.address,
                .bytes = pin.bytes,
                .serial = static_cast<std::uint32_t>(serial)};
}

core::PinMap hostMemory(const std::vector<Region>& regions) {
  std::vector<core::PinRange> ranges;
  ranges.reserve(regions.size());
  for (const Region& region : regions)
    if (region.memory == Memory::kDram)
      ranges.push_back({.address = region.address, .bytes = region.bytes, .slot = region.serial});
  return core::PinMap(std::move(ranges));
}

std::string Metadata::encode() const {
  base::Writer body;
  body.text(name).raw(std::as_bytes(std::span(agent)));
  body.put(std::uint8_t{card.has_value()}).put(std::uint8_t{partial});
  if (card) body.sized(card->encode());
  body.put(static_cast<std::uint32_t>(regions.size()));
  for (const Region& region : regions) encodeRegion(body, region);

  base::Writer blob;
  blob.raw(bytesOf(kMagic)).put(kVersion).sized(body.bytes());
  blob.put(base::Checksum().add(blob.bytes()).value());
  const auto& bytes = blob.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view Metadata::nameOf(std::string_view blob) {
  if (blob.size() < kHeadBytes) return {};
  base::Reader in(bytesOf(blob.substr(kHeadBytes)));
  const auto name = in.sized();
  return {reinterpret_cast<const char*>(name.data()), name.size()};
}

Result<Metadata> Metadata::decode(std::string_view blob) {
  VIADUCT_TRY(const auto body, unwrap(blob));
  LimitedReader in(body);
  Metadata metadata;
  metadata.name = in.text(agent::kMaxNameBytes);
  metadata.agent = in.raw().array<16>();
  const bool has_card = in.raw().get<std::uint8_t>() != 0;
  metadata.partial = in.raw().get<std::uint8_t>() != 0;
  if (has_card) {
    VIADUCT_TRY(metadata.card, Card::decode(in.sized(kMostCardBytes)));
    if (metadata.card->name != metadata.name || metadata.card->agent != metadata.agent)
      return corrupted("the metadata names two agents");
  }
  // The claimed count may be wrong or hostile, so the received bytes limit it before allocation.
  const std::uint32_t regions = in.count(in.raw().left() / kRegionBytes);
  metadata.regions.reserve(regions);
  for (std::uint32_t i = 0; i < regions && in.ok(); ++i)
    metadata.regions.push_back(decodeRegion(in));
  if (!in.finished()) return corrupted(in.error("the metadata's content").detail);
  return metadata;
}

}  // namespace viaduct::python::nixl
