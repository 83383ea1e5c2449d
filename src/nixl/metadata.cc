#include "nixl/metadata.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <span>
#include <utility>

#include "base/fields.h"
#include "base/net/checked_blob.h"

namespace viaduct::nixl {

auto fields(base::Is<Region> auto& r) {
  return base::list(base::atMost(Memory::kFile, r.memory), r.device, r.address, r.bytes, r.serial,
                    base::noOverflow(r.address, r.bytes));
}

namespace {

using base::bytesOf;

constexpr std::size_t kMaxNameBytes = 255;  // of an agent
constexpr std::string_view kRealNixl = "nixlSerDes|";
constexpr base::BlobKind kMetadata{.magic = "VIADNIXL",
                                   .version = 1,
                                   .name = "metadata",
                                   .maker = "get_agent_metadata()",
                                   .taker = "add_remote_agent"};

Error refuse(std::string detail, std::string cause, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = "add_remote_agent",
          .detail = std::move(detail),
          .cause = std::move(cause),
          .remedy = std::move(remedy)};
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

std::optional<std::uint32_t> serialOf(std::string_view label) {
  const auto dash = label.rfind('-');
  if (!label.starts_with("nixl-") || dash == std::string_view::npos) return std::nullopt;
  std::uint32_t serial = 0;
  const auto [end, error] =
      std::from_chars(label.data() + dash + 1, label.data() + label.size(), serial);
  return error == std::errc{} ? std::optional(serial) : std::nullopt;
}

std::optional<Region> regionOf(const PinInfo& pin) {
  const auto serial = serialOf(pin.label);
  if (!serial || isStorage(pin.kind)) return std::nullopt;
  return Region{{memoryOf(pin.kind), pin.device, pin.address, pin.bytes}, *serial};
}

Segment segmentOf(const Region& region) {
  if (region.memory == Memory::kVram) {
    // Clamps larger numbers, because no host has a GPU with such a number.
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    const auto device = static_cast<std::uint32_t>(std::min(region.device, kMost));
    return Segment::gpu(device, region.address, region.bytes);
  }
  return {.address = region.address, .bytes = region.bytes};
}

core::PinMap mapOf(const std::vector<Region>& regions) {
  std::vector<core::PinRange> ranges;
  ranges.reserve(regions.size());
  for (const Region& region : regions)
    if (hasAddresses(region.memory))
      ranges.push_back({.address = region.address, .bytes = region.bytes, .slot = region.serial});
  return core::PinMap(std::move(ranges));
}

std::string Metadata::encode() const {
  base::Writer body;
  base::Fields::put(body, name, agent, card.has_value(), partial);
  if (card) body.sized(card->encode());
  base::Fields::put(body, regions);
  return std::string(base::textOf(base::wrapBlob(kMetadata, body.bytes())));
}

std::string_view Metadata::nameOf(std::string_view blob) {
  if (blob.size() < base::kBlobHeadBytes) return {};
  return base::textOf(base::Reader(bytesOf(blob.substr(base::kBlobHeadBytes))).sized());
}

Result<Metadata> Metadata::decode(std::string_view blob) {
  if (!kMetadata.magic.starts_with(blob.substr(0, kMetadata.magic.size()))) return foreign(blob);
  auto body = base::unwrapBlob(kMetadata, bytesOf(blob));
  if (!body) {
    Error why = std::move(body).error();
    why.code = Code::kInvalid;  // as NIXL answers bytes that it cannot read
    return why;
  }
  base::Reader in(*body);
  Metadata metadata;
  bool has_card = false;
  base::Fields::get(in, base::line(kMaxNameBytes, metadata.name), metadata.agent, has_card,
                    metadata.partial);
  if (has_card) {
    VIADUCT_TRY(metadata.card, Card::decode(in.sized()));
    if (metadata.card->name != metadata.name || metadata.card->agent != metadata.agent)
      return base::corruptedBlob(kMetadata, "the metadata names two agents");
  }
  base::Fields::get(in, metadata.regions);
  if (!in.finished())
    return base::corruptedBlob(kMetadata, fmt::format("the metadata's content: {}", in.fault()));
  return metadata;
}

}  // namespace viaduct::nixl
