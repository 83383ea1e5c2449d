#include "move/fabric_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/sizes.h"
#include "host/nearness.h"
#include "move/fabric_link.h"

namespace viaduct::move {
namespace {

// The value that every probe writes.
constexpr std::uint64_t kProbeWord = 0x5649414455435421U;

}  // namespace

Result<std::unique_ptr<core::Backend>> FabricBackend::open(const core::BackendContext& context,
                                                           Fabric fabric) {
  auto backend = std::make_unique<FabricBackend>(context, std::move(fabric));
  VIADUCT_CHECK(backend->openRails());
  base::log(base::LogLevel::kInfo, "backend {}: {}", backend->can().name, backend->description());
  return std::unique_ptr<core::Backend>(std::move(backend));
}

FabricBackend::FabricBackend(const core::BackendContext& context, Fabric fabric)
    : poller_(context.poller),
      detect_(context.settings.detect),
      spin_(context.settings.spin),
      is_private_(context.settings.fabric_is_private),
      fabric_(std::move(fabric)) {
  if (fabric_.near.differ())
    fabric_.description += "; a transfer uses the rails nearest to its memory";
}

FabricBackend::~FabricBackend() = default;

Status FabricBackend::openRails() {
  if (fabric_.domains.size() > kMaxRails)
    return Error{
        .code = Code::kInvalid,
        .operation = fmt::format("open {}", can().name),
        .detail = fmt::format("{} rails; {} are possible", fabric_.domains.size(), kMaxRails)};
  for (std::size_t i = 0; i < fabric_.domains.size(); ++i) {
    ProbeWord word;
    word.words = std::make_unique<ProbeWord::Pair>(ProbeWord::Pair{0, kProbeWord});
    VIADUCT_TRY(
        word.registered,
        fabric_.domains[i]->add({.address = reinterpret_cast<std::uintptr_t>(word.words->data()),
                                 .bytes = sizeof(ProbeWord::Pair)}));
    words_.push_back(std::move(word));
    scratch_.emplace_back(Poster::kBatchPieces);
    auto rail = std::make_unique<ChannelRail>(fabric_.names[i], i, poller_);
    channel_rails_.push_back(rail.get());
    rails_.push_back(std::move(rail));
  }
  return Ok{};
}

Bytes FabricBackend::address() const {
  return encodeGreeting({.rails = static_cast<std::uint32_t>(rails_.size()), .kind = kind()});
}

std::unique_ptr<core::Link> FabricBackend::link(core::LinkSeed seed, core::LinkHost& host) {
  auto link = std::make_unique<FabricLink>(*this, std::move(seed), host);
  links_.push_back(link.get());
  return link;
}

void FabricBackend::forget(const FabricLink& link) { std::erase(links_, &link); }

LinkContext FabricBackend::linkContext() {
  return {.backend = can().name,
          .rails = channel_rails_,
          .poller = poller_,
          .retry = {.first = std::chrono::milliseconds(40),
                    .last = std::chrono::seconds(1),
                    .worked = std::chrono::seconds(2)},
          .most_breaks = 3};
}

FabricChannelSeed FabricBackend::channelSeed(const Channel::Position& place, std::size_t key,
                                             PeerPins& remote) {
  return {.domain = *fabric_.domains[place.rail],
          .poller = poller_,
          .word = words_[place.rail],
          .opening = std::max<Duration>(detect_, std::chrono::milliseconds(1500)),
          .spin = spin_,
          .place = place,
          .poster = {.device = can().name,
                     .poller = poller_,
                     .own = pins_,
                     .remote = remote,
                     .rail = place.rail,
                     .key = key,
                     .scratch = scratch_[place.rail]}};
}

Result<Bytes> FabricBackend::pinFor(const core::Audience& audience, std::uint32_t slot,
                                    const Segment& memory) {
  if (memory.kind != MemoryKind::kHost)
    return Error{.code = Code::kUnsupported,
                 .operation = "pin",
                 .detail = "host memory only",
                 .device = std::string(can().name)};
  VIADUCT_TRY(auto registered, registerAt({.address = memory.address,
                                           .bytes = memory.bytes,
                                           .remote_write = memory.access != MemoryAccess::kReadOnly,
                                           .writable = memory.access != MemoryAccess::kReadOnly}));
  const auto generation = pins_.add(slot, {{.address = memory.address, .bytes = memory.bytes},
                                           std::move(registered),
                                           memory.access,
                                           nearestTo(memory),
                                           audience});
  if (generation == 0)
    return Error{.code = Code::kExhausted, .operation = "pin", .detail = "too many pins"};
  return encodePinKey(generation);
}

Result<Registrations> FabricBackend::registerAt(const MemoryRange& range) const {
  Registrations out;
  for (const auto& domain : fabric_.domains) {
    VIADUCT_TRY(auto one, domain->add(range));
    out.push_back(std::move(one));
  }
  return out;
}

Result<Registrations> FabricBackend::registerFor(const OwnPin& pin,
                                                 const core::PinRight& right) const {
  const bool writable = pin.access != MemoryAccess::kReadOnly;
  if (!right.read && !writable)
    return Error{.code = Code::kDenied,
                 .operation = "register",
                 .detail = "the pin is read-only, and the peer's Card grants writing only"};
  return registerAt({.address = pin.address,
                     .bytes = pin.bytes,
                     .remote_read = right.read,
                     .remote_write = right.write && writable,
                     .writable = writable});
}

// Call it after the registration: RDMA has then put all pages in place, and they do not move.
core::RailMask FabricBackend::nearestTo(const Segment& memory) const {
  if (!fabric_.near.differ()) return core::kAllRails;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel is asked about it
  const auto* const start = reinterpret_cast<const void*>(memory.address);
  const int node = host::nodeOfMemory(start, memory.bytes);
  base::log(base::LogLevel::kDebug, "backend {}: {} at {:#x}: {}", can().name,
            base::roundedSize(memory.bytes), memory.address,
            node < 0 ? "its NUMA node is unknown" : fmt::format("on node {}", node));
  return fabric_.near.to({.node = node});
}

core::RailMask FabricBackend::near(std::uint32_t slot) const {
  const OwnPin* const pin = pins_.find(slot);
  return pin == nullptr ? core::kAllRails : pin->near;
}

// Fences the channels before it unregisters the memory. Over TCP, libraries do not check the
// registration again while bytes arrive. Over RDMA they cache registrations. Only a closed endpoint
// certainly writes nothing.
Status FabricBackend::unpin(std::uint32_t slot) {
  for (ChannelRail* rail : channel_rails_)
    for (Carrier* carrier : rail->jobs().dropSlot(slot)) {
      auto& channel = static_cast<Channel&>(*carrier);
      static_cast<FabricLink&>(channel.host()).fence(channel);
    }
  for (FabricLink* link : links_) link->withdraw(slot);
  pins_.drop(slot);
  return Ok{};
}

}  // namespace viaduct::move
