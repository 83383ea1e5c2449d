#include "backends/tcp/tcp_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "backends/tcp/socket.h"
#include "backends/tcp/tcp_link.h"

namespace viaduct::tcp {

Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context) {
  auto backend = std::make_unique<TcpBackend>(context);
  VIADUCT_CHECK(backend->open(context.settings, context.until));
  return std::unique_ptr<core::Backend>(std::move(backend));
}

TcpBackend::TcpBackend(const core::BackendContext& context)
    : shared_{.poller = context.poller,
              .detect = context.settings.detect,
              .spin = context.settings.spin,
              .offer = {.wish = context.settings.privacy, .fast_aes = base::hasFastAes()}},
      acceptor_(context.poller, context.settings.detect,
                [this](const SocketHello& hello, const Acceptor::HelloBytes& bytes, base::Fd& fd) {
                  return offer(hello, bytes, fd);
                }) {}

TcpBackend::~TcpBackend() = default;

Status TcpBackend::open(const Settings& settings, Clock::time_point until) {
  // Reads the interfaces only if rails name them, because that takes longer than the rest of this
  // function.
  const auto here = settings.rails.empty() ? std::vector<LocalInterface>{} : interfaces();
  for (const std::string& text : settings.rails) {
    VIADUCT_TRY(RailSource source, sourceOf(text, here));
    sources_.push_back(std::move(source));
  }
  if (sources_.empty()) sources_.push_back({"any", std::nullopt, ""});
  sockets_ = std::max<std::size_t>(settings.sockets, 1);
  if (sources_.size() * sockets_ > kMaxSockets)
    return Error{.code = Code::kInvalid,
                 .operation = "open tcp",
                 .detail = std::to_string(sources_.size() * sockets_) + " sockets per peer; " +
                           std::to_string(kMaxSockets) + " are possible"};
  for (std::size_t i = 0; i < sources_.size() * sockets_; ++i) {
    std::string name = sources_[i / sockets_].name;
    if (sockets_ > 1) name += "#" + std::to_string(i % sockets_);
    sealing_.emplace_back();
    VIADUCT_TRY(shared_.buffers.emplace_back().copy, base::CheckedCopy::open());
    auto rail = std::make_unique<move::ChannelRail>(std::move(name), i, shared_.poller);
    channel_rails_.push_back(rail.get());
    rails_.push_back(std::move(rail));
  }
  std::vector<base::SocketAddress> bound;
  for (const std::string& text : settings.listen) {
    VIADUCT_TRY(const std::vector<base::SocketAddress> at, listenAddresses(text, until));
    for (const base::SocketAddress& one : at) {
      const auto same = [&](const base::SocketAddress& other) { return other.sameHost(one); };
      if (std::any_of(bound.begin(), bound.end(), same)) continue;
      VIADUCT_CHECK(listen(one, settings.tcp_ports));
      bound.push_back(one);
    }
  }
  return Ok{};
}

// Listens at the first free port of the range.
Status TcpBackend::listen(const base::SocketAddress& at, const PortRange& ports) {
  for (std::uint32_t port = ports.first; port <= ports.last; ++port) {
    auto listening = acceptor_.listen(at.withPort(static_cast<std::uint16_t>(port)));
    if (listening || listening.error().os_errno != EADDRINUSE) return listening;
  }
  const bool one = ports.first == ports.last;
  return Error{
      .code = Code::kBusy,
      .operation = "open tcp",
      .detail = fmt::format("{} of {} is in use", one ? "the port" : "every port",
                            one ? fmt::format("VIADUCT_TCP_PORTS={}", ports.first)
                                : fmt::format("VIADUCT_TCP_PORTS={}-{}", ports.first, ports.last)),
      .cause = "each agent on this host takes one of these ports",
      .remedy = "widen VIADUCT_TCP_PORTS; `ss -ltnp` shows which processes hold these ports"};
}

const core::Capabilities& TcpBackend::can() const {
  static const core::Capabilities facts{.name = "tcp",
                                        .memory = {MemoryKind::kHost},
                                        .tcp = true,
                                        .side_by_side = true,
                                        .checks_rights = true,
                                        .preference = 30};
  return facts;
}

std::vector<SocketStatistics> TcpBackend::sockets() const {
  std::vector<SocketStatistics> out = closed_;
  out.resize(rails_.size());
  for (const TcpLink* link : links_) link->addTo(out);
  for (std::size_t i = 0; i < out.size(); ++i) out[i].sealing = sealing_[i].total();
  return out;
}

core::Bytes TcpBackend::address() const {
  return encodeAddress({.addresses = acceptor_.addresses(), .offer = shared_.offer});
}

std::unique_ptr<core::Link> TcpBackend::link(core::LinkSeed seed, core::LinkHost& host) {
  auto link = std::make_unique<TcpLink>(*this, std::move(seed), host);
  links_.push_back(link.get());
  if (link->accepts()) acceptor_.linkAdded();
  return link;
}

move::LinkContext TcpBackend::linkContext() {
  return {.backend = can().name,
          .rails = channel_rails_,
          .poller = shared_.poller,
          .retry = {.first = std::chrono::milliseconds(250), .last = std::chrono::seconds(2)},
          .ends_with_last = true};
}

Acceptor::HelloVerdict TcpBackend::offer(const SocketHello& hello,
                                         const Acceptor::HelloBytes& bytes, base::Fd& fd) {
  const auto found = std::find_if(links_.begin(), links_.end(), [&](const TcpLink* link) {
    return link->accepts() && link->id() == hello.link;
  });
  return found == links_.end() ? Acceptor::HelloVerdict::kUnknown
                               : (*found)->offer(hello, bytes, fd);
}

std::size_t TcpBackend::railFor(std::size_t index, const base::SocketAddress& local) const {
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (const auto& address = sources_[i].address; address && address->sameHost(local))
      return i * sockets_ + index % sockets_;
  return index % rails_.size();
}

void TcpBackend::addClosed(std::size_t rail, int fd) {
  closed_.resize(rails_.size());
  SocketStatistics& counts = closed_[rail];
  tcp::add(counts, fd);
  counts.sockets = 0;
  counts.round_trip = {};
  counts.segment_bytes = counts.path_mtu = 0;
}

void TcpBackend::forget(const TcpLink& link) { std::erase(links_, &link); }

Result<core::Bytes> TcpBackend::pinFor(const core::Audience& audience, std::uint32_t slot,
                                       const Segment& memory) {
  if (memory.kind != MemoryKind::kHost) return core::Bytes{};
  const std::uint32_t generation =
      shared_.pins.add(slot, memory.address, memory.bytes, memory.access, audience);
  if (generation == 0)
    return Error{.code = Code::kExhausted, .operation = "pin", .detail = "too many pins"};
  return base::Writer().put(generation).take();
}

Status TcpBackend::unpin(std::uint32_t slot) {
  shared_.pins.drop(slot);
  for (TcpLink* link : links_) link->dropSlot(slot);
  for (move::ChannelRail* rail : channel_rails_) rail->jobs().dropSlot(slot);
  return Ok{};
}

}  // namespace viaduct::tcp
