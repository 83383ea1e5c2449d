#include "backends/ucx/ucx_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/ucx/choose.h"
#include "backends/ucx/ucx_link.h"
#include "backends/ucx/ucx_rail.h"
#include "base/log.h"

namespace viaduct::ucx {

Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context) {
  auto backend = std::make_unique<UcxBackend>(context);
  VIADUCT_CHECK(backend->open(context.settings));
  return std::unique_ptr<core::Backend>(std::move(backend));
}

UcxBackend::UcxBackend(const core::BackendContext& context)
    : poller_(context.poller), detect_(context.settings.detect), spin_(context.settings.spin) {}

UcxBackend::~UcxBackend() = default;

Status UcxBackend::open(const Settings& settings) {
  VIADUCT_TRY(Chosen chosen, choose(settings));
  if (chosen.names.size() > kMaxRails)
    return Error{
        .code = Code::kInvalid,
        .operation = "open ucx",
        .detail = fmt::format("{} rails; {} are possible", chosen.names.size(), kMaxRails)};
  const Library& ucx = chosen.contexts.front()->ucx();
  for (std::size_t i = 0; i < chosen.names.size(); ++i)
    VIADUCT_CHECK(addRail(std::move(chosen.names[i]), std::move(chosen.contexts[i])));
  can_ = {.name = "ucx",
          .memory = {MemoryKind::kHost},
          .rdma = chosen.rdma,
          .tcp = !chosen.rdma,
          .preference = chosen.rdma ? 21 : 35};
  describe(ucx);
  return Ok{};
}

Status UcxBackend::addRail(std::string name, std::unique_ptr<Context> context) {
  Ground ground;
  ground.context = std::move(context);
  ground.word = std::make_unique<std::uint64_t>(0);
  const auto address = reinterpret_cast<std::uintptr_t>(ground.word.get());
  VIADUCT_TRY(auto registered, Registration::make(*ground.context, address, sizeof(std::uint64_t)));
  ground.probe = {.address = address, .key = registered.key()};
  ground.word_registered = std::make_unique<Registration>(std::move(registered));
  grounds_.push_back(std::move(ground));
  auto rail = std::make_unique<UcxRail>(std::move(name), rails_.size());
  ucx_rails_.push_back(rail.get());
  rails_.push_back(std::move(rail));
  return Ok{};
}

void UcxBackend::describe(const Library& ucx) {
  std::vector<Transport> there;
  for (const Ground& ground : grounds_)
    for (const Transport& one : ground.context->resources())
      if (realmOf(one.name) != Realm::kMemory) there.push_back(one);
  const std::string set = environmentText();
  description_ =
      fmt::format("UCX {} over {}{}{}", ucx.version, listText(there), set.empty() ? "" : "; ", set);
  base::log(base::LogLevel::kInfo, "backend ucx: {}", description_);
  if (!can_.rdma)
    base::log(
        base::LogLevel::kWarning,
        "backend ucx runs over TCP, where anybody who reaches its ports can read and write this "
        "process's memory, and a peer that dies while it writes can end it; tcp has neither");
}

core::Bytes UcxBackend::address() const {
  return encodeGreeting({.rails = static_cast<std::uint32_t>(rails_.size())});
}

std::unique_ptr<core::Link> UcxBackend::link(core::LinkSeed seed, core::LinkHost& host) {
  auto link = std::make_unique<UcxLink>(*this, std::move(seed), host);
  links_.push_back(link.get());
  return link;
}

void UcxBackend::forget(const UcxLink& link) { std::erase(links_, &link); }

ChannelSeed UcxBackend::channelSeed(std::size_t rail, std::size_t key, std::uint32_t index,
                                    RemotePins& remote) const {
  const Ground& ground = grounds_[rail];
  return {.context = *ground.context,
          .own = pins_,
          .remote = remote,
          .poller = poller_,
          .probe = ground.probe,
          .opening = std::max<Duration>(detect_, std::chrono::milliseconds(1500)),
          .spin = spin_,
          .index = index,
          .rail = rail,
          .key = key};
}

Result<core::Bytes> UcxBackend::pin(std::uint32_t slot, const Segment& memory) {
  if (memory.kind != MemoryKind::kHost)
    return Error{.code = Code::kUnsupported,
                 .operation = "pin",
                 .detail = "host memory only",
                 .device = "ucx"};
  std::vector<Registration> registered;
  for (const Ground& ground : grounds_) {
    VIADUCT_TRY(auto one, Registration::make(*ground.context, memory.address, memory.bytes));
    registered.push_back(std::move(one));
  }
  const auto generation = pins_.add(slot, memory.address, memory.bytes, std::move(registered));
  if (generation == 0)
    return Error{.code = Code::kExhausted, .operation = "pin", .detail = "too many pins"};
  return encodePinKey(generation);
}

// UCX does not look at what is registered when bytes come in over TCP, and keeps registrations of
// RDMA memory for later: only a worker that is gone is sure to write nothing.
Status UcxBackend::unpin(std::uint32_t slot) {
  for (UcxRail* rail : ucx_rails_)
    for (Channel* channel : rail->dropSlot(slot)) UcxLink::of(*channel).fence(*channel);
  for (UcxLink* link : links_) link->withdraw(slot);
  pins_.drop(slot);
  return Ok{};
}

}  // namespace viaduct::ucx
