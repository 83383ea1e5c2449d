#include <viaduct/kv_stream.h>

#include <utility>

#include "kv/stream/layer_stream.h"

namespace viaduct {
namespace {

using kv::LayerStream;

Result<std::shared_ptr<LayerStream>> openPlanned(const kv::Role& role, OpKind kind, Agent& agent,
                                                 const Peer& peer, const KvLayers& layers,
                                                 std::span<const KvBlocks> blocks,
                                                 KvRequest request) {
  VIADUCT_TRY(auto impl, LayerStream::open(role, agent, peer, layers.layers(), std::move(request)));
  VIADUCT_CHECK(impl->plan(kind, agent, peer, layers, blocks));
  return impl;
}

void assign(std::shared_ptr<LayerStream>& to, std::shared_ptr<LayerStream>& from) {
  if (const auto old = std::exchange(to, std::move(from))) old->close();
}

void close(const std::shared_ptr<LayerStream>& impl) {
  if (impl) impl->close();
}

}  // namespace

Result<KvPush> KvPush::open(Agent& agent, const Peer& destination, const KvLayers& layers,
                            std::span<const KvBlocks> blocks, KvRequest request) {
  VIADUCT_TRY(auto impl, openPlanned(kv::kPush, OpKind::kWrite, agent, destination, layers, blocks,
                                     std::move(request)));
  return KvPush(std::move(impl));
}
KvPush::KvPush(std::shared_ptr<LayerStream> impl) : impl_(std::move(impl)) {}
KvPush::KvPush(KvPush&&) noexcept = default;
KvPush& KvPush::operator=(KvPush&& other) noexcept {
  assign(impl_, other.impl_);
  return *this;
}
KvPush::~KvPush() { close(impl_); }

Status KvPush::ready(std::uint32_t layer) {
  VIADUCT_TRY(const std::uint32_t index, impl_->indexOf(layer));
  return impl_->post(index, true);
}
Status KvPush::wait(Deadline until) { return impl_->waitPosted(until); }
void KvPush::cancel(std::string_view why) { impl_->cancel(why); }

Result<KvArrival> KvArrival::open(Agent& agent, const Peer& source,
                                  const std::vector<std::uint32_t>& layers, KvRequest request) {
  VIADUCT_TRY(auto impl,
              LayerStream::open(kv::kArrival, agent, source, layers, std::move(request)));
  return KvArrival(std::move(impl));
}
KvArrival::KvArrival(std::shared_ptr<LayerStream> impl) : impl_(std::move(impl)) {}
KvArrival::KvArrival(KvArrival&&) noexcept = default;
KvArrival& KvArrival::operator=(KvArrival&& other) noexcept {
  assign(impl_, other.impl_);
  return *this;
}
KvArrival::~KvArrival() { close(impl_); }

Status KvArrival::waitLayer(std::uint32_t layer, Deadline until) const {
  VIADUCT_TRY(const std::uint32_t index, impl_->indexOf(layer));
  return impl_->waitMark(index, until);
}
Status KvArrival::waitCount(std::uint32_t count, Deadline until) const {
  return impl_->waitMarks(count, until);
}
Status KvArrival::waitAll(Deadline until) const {
  return impl_->waitMarks(static_cast<std::uint32_t>(impl_->count()), until);
}
bool KvArrival::has(std::uint32_t layer) const { return impl_->has(layer); }
std::uint32_t KvArrival::count() const { return impl_->marks().count(); }
Status KvArrival::cancel(std::string_view why, Deadline until) {
  impl_->cancel(why);
  return impl_->over(until);
}

Result<KvOffer> KvOffer::open(Agent& agent, const Peer& destination,
                              const std::vector<std::uint32_t>& layers, KvRequest request) {
  VIADUCT_TRY(auto impl,
              LayerStream::open(kv::kOffer, agent, destination, layers, std::move(request)));
  return KvOffer(std::move(impl));
}
KvOffer::KvOffer(std::shared_ptr<LayerStream> impl) : impl_(std::move(impl)) {}
KvOffer::KvOffer(KvOffer&&) noexcept = default;
KvOffer& KvOffer::operator=(KvOffer&& other) noexcept {
  assign(impl_, other.impl_);
  return *this;
}
KvOffer::~KvOffer() { close(impl_); }

Status KvOffer::ready(std::uint32_t layer) {
  VIADUCT_TRY(const std::uint32_t index, impl_->indexOf(layer));
  return impl_->mark(index);
}
Status KvOffer::waitRead(Deadline until) const {
  return impl_->waitMarks(static_cast<std::uint32_t>(impl_->count()), until);
}
Status KvOffer::cancel(std::string_view why, Deadline until) {
  impl_->cancel(why);
  return impl_->over(until);
}

Result<KvPull> KvPull::open(Agent& agent, const Peer& source, const KvLayers& layers,
                            std::span<const KvBlocks> blocks, KvRequest request) {
  VIADUCT_TRY(auto impl, openPlanned(kv::kPull, OpKind::kRead, agent, source, layers, blocks,
                                     std::move(request)));
  return KvPull(std::move(impl));
}
KvPull::KvPull(std::shared_ptr<LayerStream> impl) : impl_(std::move(impl)) {}
KvPull::KvPull(KvPull&&) noexcept = default;
KvPull& KvPull::operator=(KvPull&& other) noexcept {
  assign(impl_, other.impl_);
  return *this;
}
KvPull::~KvPull() { close(impl_); }

Status KvPull::readAll() { return impl_->postAll(); }
Status KvPull::waitLayer(std::uint32_t layer, Deadline until) {
  VIADUCT_TRY(const std::uint32_t index, impl_->indexOf(layer));
  return impl_->waitRead(index, until);
}
Status KvPull::waitAll(Deadline until) {
  for (std::uint32_t i = 0; i < impl_->count(); ++i) VIADUCT_CHECK(impl_->waitRead(i, until));
  return Ok{};
}
void KvPull::cancel(std::string_view why) { impl_->cancel(why); }

}  // namespace viaduct
