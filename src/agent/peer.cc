#include <fmt/format.h>
#include <viaduct/peer.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "agent/peers/peer_impl.h"
#include "agent/session/grants.h"

namespace viaduct {
namespace {

using agent::Basis;
using agent::PeerImpl;

// A peer that was dialed by address may be one that was known already.
PeerImpl& real(const std::shared_ptr<PeerImpl>& impl) {
  PeerImpl* it = impl.get();
  while (it->same_as) it = it->same_as.get();
  return *it;
}

// Waits until `done`, or until the agent closes, since nothing about its peers changes after that.
bool waitFor(const std::shared_ptr<PeerImpl>& impl, const std::function<bool()>& done,
             Deadline until) {
  Basis& agent = impl->basis();
  const auto held = agent.hold();
  return agent.engine().waitHeld([&] { return done() || agent.closed(); }, until.at(),
                                 &real(impl).watchers());
}

// Says what the Card grants, because the peer does not announce pins that the Card hides.
std::string whyHidden(const std::shared_ptr<PeerImpl>& impl) {
  const auto held = impl->basis().hold();
  const auto& grants = real(impl).redialer().theirs();
  return grants.empty() ? "" : "the Card grants " + agent::textOf(grants);
}

}  // namespace

Peer::Peer(std::shared_ptr<agent::PeerImpl> impl) : impl_(std::move(impl)) {}

std::string Peer::name() const {
  const auto held = impl_->basis().hold();
  return real(impl_).name();
}

PeerState Peer::state() const {
  const auto held = impl_->basis().hold();
  return real(impl_).state();
}

std::uint64_t Peer::epoch() const {
  const auto held = impl_->basis().hold();
  return real(impl_).epoch();
}

bool Peer::settled() const {
  const auto held = impl_->basis().hold();
  return real(impl_).settled();
}

Status Peer::ready(Deadline until) const {
  VIADUCT_CHECK(impl_->basis().usable("ready"));
  const auto final = [this] { return real(impl_).drains() || real(impl_).hopeless(); };
  const auto over = [&] { return real(impl_).state() == PeerState::kReady || final(); };
  for (;;) {
    const bool in_time = waitFor(impl_, over, until);
    VIADUCT_CHECK(impl_->basis().usable("ready"));
    const auto held = impl_->basis().hold();
    if (real(impl_).state() == PeerState::kReady) return Ok{};
    // The peer was ready, and that session has ended since. Waits for the next session, with the
    // same deadline.
    if (!in_time || final()) return real(impl_).notReady("ready");
  }
}

Status Peer::over(std::uint64_t epoch, Deadline until) const {
  VIADUCT_CHECK(impl_->basis().usable("over"));
  const auto over = [this, epoch] { return real(impl_).endedEpoch() >= epoch; };
  if (waitFor(impl_, over, until)) {
    const auto held = impl_->basis().hold();
    return over() ? Status(Ok{}) : impl_->basis().usable("over");
  }
  return Error{.code = Code::kTimeout,
               .operation = "over",
               .detail = fmt::format("the session of epoch {} continues", epoch),
               .peer = name()};
}

std::vector<PinInfo> Peer::pins() const {
  const auto held = impl_->basis().hold();
  std::vector<PinInfo> out;
  for (const auto& [slot, pin] : real(impl_).pins().all()) out.push_back(pin.info);
  return out;
}

Result<PinInfo> Peer::waitPin(const std::string& label, Deadline until) const {
  VIADUCT_CHECK(impl_->basis().usable("waitPin"));
  std::optional<PinInfo> found;
  const auto there = [&] {
    for (const auto& [slot, pin] : real(impl_).pins().all())
      if (pin.info.label == label) found = pin.info;
    return found.has_value();
  };
  waitFor(impl_, there, until);
  if (found) return *std::move(found);
  VIADUCT_CHECK(impl_->basis().usable("waitPin"));
  return Error{.code = Code::kTimeout,
               .operation = "waitPin",
               .detail = fmt::format("the peer has registered nothing labelled {}", label),
               .peer = name(),
               .cause = whyHidden(impl_),
               .remedy = "Peer::pins() lists the labels; their owner chooses them at pin()"};
}

std::vector<PeerWay> Peer::ways() const {
  const auto held = impl_->basis().hold();
  return real(impl_).ways();
}

Status Peer::note(std::span<const std::byte> bytes) const {
  VIADUCT_CHECK(impl_->basis().usable("note"));
  const auto held = impl_->basis().hold();
  return real(impl_).note(bytes);
}

Status Peer::note(std::span<const std::byte> bytes, Deadline reach) const {
  VIADUCT_CHECK(impl_->basis().usable("note"));
  const auto held = impl_->basis().hold();
  return real(impl_).noteOnceReady(bytes, impl_->basis().engine().poller().fromSteady(reach.at()));
}

Status Peer::note(std::string_view text) const { return note(std::as_bytes(std::span(text))); }

void Peer::forget() const {
  if (!impl_->basis().usable("forget")) return;
  const auto held = impl_->basis().hold();
  real(impl_).forget();
}

}  // namespace viaduct
