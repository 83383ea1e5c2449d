#include "backends/ofi/ofi_endpoint.h"

#include <fmt/format.h>

#include <array>
#include <chrono>

namespace viaduct::ofi {

using move::Flush;
using move::Piece;
using move::Posted;
using move::RemoteKey;

namespace {

// Marks our addresses, which contain a libfabric address.
constexpr std::uint32_t kAddressMark = 0x31614f56;  // "VOa1"
// Completions that one fi_cq_read reads.
constexpr std::size_t kEntries = 64;
// An endpoint that was connected, and accepts no request for this long, counts as disconnected.
constexpr Duration kDeaf = std::chrono::milliseconds(500);
// Once the endpoint accepts requests, connection events are read only in every 32nd idle
// progress(), because that needs a system call.
constexpr int kLookEvery = 32;

}  // namespace

Result<std::unique_ptr<OfiEndpoint>> OfiEndpoint::open(const OfiDomain& ofi_domain) {
  std::unique_ptr<OfiEndpoint> out(new OfiEndpoint(ofi_domain));
  VIADUCT_TRY(out->domain_, ofi_domain.domain());
  VIADUCT_TRY(out->queue_, CompletionQueue::open(ofi_domain, *out->domain_));
  VIADUCT_TRY(out->raw_, RawEndpoint::open(ofi_domain, *out->domain_, out->queue_->get()));
  VIADUCT_CHECK(out->queue_->sleepOnThese(out->raw_->events()));
  out->address_ = base::Writer()
                      .put(kAddressMark)
                      .text(ofi_domain.provider())
                      .put(static_cast<std::uint32_t>(ofi_domain.info().ep_attr->type))
                      .put(ofi_domain.info().addr_format)
                      .sized(out->raw_->name())
                      .take();
  return out;
}

Status OfiEndpoint::join(const Bytes& peer) {
  base::Reader in(peer);
  const bool ours = in.get<std::uint32_t>() == kAddressMark;
  const std::string provider = in.text();
  const auto type = in.get<std::uint32_t>(), format = in.get<std::uint32_t>();
  const auto name = in.sized();
  if (!ours || !in.finished()) return refusedName(ofi_domain_, "the peer's address is invalid");
  if (provider != ofi_domain_.provider())
    return refusedName(ofi_domain_, fmt::format("the peer uses the provider {:.64}", provider));
  if (type != ofi_domain_.info().ep_attr->type || format != ofi_domain_.info().addr_format)
    return otherKind(ofi_domain_);
  VIADUCT_CHECK(raw_->join(name));
  look();
  return Ok{};
}

void OfiEndpoint::look() {
  unlooked_ = 0;
  if (auto well = raw_->look(); !well) return breakWith(std::move(well).error());
  if (fid_ep* const ready = raw_->ready(); !work_requests_ && ready != nullptr)
    work_requests_ = std::make_unique<WorkRequests>(ofi_domain_.profile(), *ready, raw_->peer());
}

RemoteKey OfiEndpoint::keyOf(std::uint32_t generation, const Bytes& packed) {
  if (const auto known = keys_.find(generation); known != keys_.end()) return &known->second;
  const auto key = unpacked(packed);
  return key ? &keys_.emplace(generation, *key).first->second : nullptr;
}

Posted OfiEndpoint::post(OpKind kind, std::span<const Piece> pieces, RemoteKey key) {
  if (broken_ || !work_requests_) return {};
  const Posted out = work_requests_->post(kind, pieces, *static_cast<const RemoteMemory*>(key));
  seeRefusal();
  if (out.pieces == 0 && connected_ && work_requests_->idle() && !broken_)
    judgeDeaf();
  else
    deaf_since_ = {};
  return out;
}

// While nothing is in flight, libfabric does not report to an addressed endpoint that the peer has
// gone. Our endpoint then accepts no more requests, although its queue is empty.
void OfiEndpoint::judgeDeaf() {
  const auto now = Clock::now();
  if (deaf_since_ == Clock::time_point{}) deaf_since_ = now;
  if (now - deaf_since_ < kDeaf) return;
  Error why = ofiError(Code::kPeerLost, "libfabric endpoint", -FI_EAGAIN, ofi_domain_.device());
  why.detail += " (it accepts no work requests, although none is in flight)";
  why.cause = kGone;
  breakWith(std::move(why));
}

void OfiEndpoint::seeRefusal() {
  if (work_requests_ && work_requests_->refusal() != 0)
    breakWith(ofiError(Code::kPeerLost, "fi_writemsg or fi_readmsg", work_requests_->refusal(),
                       ofi_domain_.device()));
}

bool OfiEndpoint::ended(Flush& flush) {
  if (broken_ || (work_requests_ && !work_requests_->over(flush))) return false;
  letGo(flush);
  return true;
}

bool OfiEndpoint::progress() {
  if (broken_) return false;
  std::array<fi_cq_entry, kEntries> entries;
  const std::int64_t got = fi_cq_read(&queue_->get(), entries.data(), entries.size());
  for (std::int64_t i = 0; i < got; ++i)
    work_requests_->ended(entries.at(static_cast<std::size_t>(i)).op_context);
  connected_ = connected_ || got > 0;
  if (got == -FI_EAVAIL)
    readError();
  else if (got < 0 && got != -FI_EAGAIN)
    breakWith(ofiError(Code::kDevice, "fi_cq_read", got, ofi_domain_.device()));
  // Reads connection events only when no completion is left, because completions from before the
  // end of the connection count.
  if (got == -FI_EAGAIN && (!work_requests_ || ++unlooked_ >= kLookEvery)) look();
  if (!broken_ && work_requests_) work_requests_->settle();
  seeRefusal();
  return got > 0 || broken_;
}

void OfiEndpoint::readError() {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(&queue_->get(), &entry, 0) != 1) return;
  Error why = ofiError(Code::kPeerLost, "libfabric endpoint", -entry.err, ofi_domain_.device());
  std::array<char, 128> text{};
  const char* const said =
      fi_cq_strerror(&queue_->get(), entry.prov_errno, entry.err_data, text.data(), text.size());
  if (said != nullptr && *said != '\0' && why.detail != said)
    why.detail += fmt::format(" ({})", said);
  why.cause = kGone;
  breakWith(std::move(why));
}

void OfiEndpoint::breakWith(Error why) {
  if (!broken_) broken_ = std::move(why);
}

bool OfiEndpoint::arm() {
  if (broken_ || (work_requests_ && !work_requests_->settle())) return false;
  return queue_->arm(raw_->events());
}

}  // namespace viaduct::ofi
