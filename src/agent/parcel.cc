#include <fmt/format.h>
#include <viaduct/parcel.h>

#include <utility>

#include "agent/parcels/parcels.h"
#include "agent/peers/peer_impl.h"
#include "base/log.h"
#include "base/words.h"

namespace viaduct {
namespace {

using agent::Basis, agent::Fetching, agent::Publication;

constexpr base::Words<ParcelOutcome, 6> kOutcomes{{{"whole", ParcelOutcome::kWhole},
                                                   {"failed", ParcelOutcome::kFailed},
                                                   {"superseded", ParcelOutcome::kSuperseded},
                                                   {"expired", ParcelOutcome::kExpired},
                                                   {"cancelled", ParcelOutcome::kCancelled},
                                                   {"lost", ParcelOutcome::kLost}}};

Error notYet(const char* operation, const char* detail) {
  return {.code = Code::kTimeout,
          .operation = operation,
          .detail = detail,
          .remedy = "wait again; missing() lists the parts that have not come"};
}

// Waits until `over`, for a caller that holds the lock. An error at `until`, and if the agent
// closes.
Status waitUntil(Basis& basis, const std::function<bool()>& over, Deadline until,
                 base::Watchers& watchers, const char* operation, const char* detail) {
  const auto done = [&] { return over() || basis.closed(); };
  if (!basis.engine().waitHeld(done, until.at(), &watchers)) return notYet(operation, detail);
  if (over()) return Ok{};
  return basis.usable(operation);
}

// Waits like waitUntil() until `end` is set, and returns it.
Result<ParcelEnd> waitForEnd(Basis& basis, const std::optional<ParcelEnd>& end, Deadline until,
                             base::Watchers& watchers, const char* operation, const char* detail) {
  const Status waited =
      waitUntil(basis, [&] { return end.has_value(); }, until, watchers, operation, detail);
  if (waited && end) return *end;
  return waited.error();
}

// Nobody shall find a parcel that is about to end.
void retract(Publication& publication) {
  std::function<void()> gone;
  {
    const auto held = publication.basis().hold();
    if (held) gone = std::exchange(publication.retract, {});
  }
  if (gone) gone();
}

Status withdrawn(Publication& publication) {
  retract(publication);
  Basis& basis = publication.basis();
  const auto held = basis.hold();
  if (!held) return Ok{};  // in a fork()ed child the parcel belongs to the parent
  const auto over = [&] { return publication.end.has_value() || basis.closed(); };
  if (over()) return Ok{};
  publication.parcels().withdraw(publication,
                                 {.outcome = ParcelOutcome::kCancelled,
                                  .why = Error{.code = Code::kCancelled,
                                               .operation = "parcel",
                                               .detail = "its publisher has withdrawn it"}});
  const auto until = Clock::now() + 2 * basis.settings().grace;
  if (basis.engine().waitHeld(over, until, &publication.watchers)) return Ok{};
  return Error{.code = Code::kPeerLost,
               .operation = "withdraw",
               .detail = "a consumer was stopped inside a copy, which it may still finish",
               .remedy = "leave the blocks alone until wait() returns"};
}

void ended(Fetching& fetching) {
  Basis& basis = fetching.basis();
  const auto held = basis.hold();
  if (!held || fetching.end || basis.closed()) return;
  fetching.parcels().giveUp(fetching, ParcelOutcome::kCancelled,
                            {.code = Code::kCancelled,
                             .operation = "fetch",
                             .detail = "its handle was destroyed before its end"});
  // The transfers of the fetch end within the grace; then the memory is the caller's.
  basis.engine().waitHeld([&] { return fetching.reads.empty(); }, Clock::time_point::max(),
                          &fetching.watchers);
}

}  // namespace

const char* parcelOutcomeName(ParcelOutcome outcome) { return base::wordOf(kOutcomes, outcome); }

PublishedParcel::PublishedParcel(std::shared_ptr<Publication> impl) : impl_(std::move(impl)) {}
PublishedParcel::PublishedParcel(PublishedParcel&&) noexcept = default;

PublishedParcel& PublishedParcel::operator=(PublishedParcel&& other) noexcept {
  PublishedParcel old(std::move(*this));
  impl_ = std::move(other.impl_);
  closed_ = other.closed_;
  return *this;
}

PublishedParcel::~PublishedParcel() {
  if (const Status free = close(); !free)
    base::log(base::LogLevel::kError, "{}", free.error().text());
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the signature of the public header
Status PublishedParcel::ready(PublishedPart part) {
  VIADUCT_TRY(auto held_part, agent::heldPart(*impl_, part.blocks));
  const auto held = impl_->basis().hold();
  VIADUCT_CHECK(impl_->basis().usable("parcel"));
  return impl_->parcels().makeReady(impl_, part.part, std::move(held_part));
}

std::vector<ParcelPart> PublishedParcel::missing() const {
  const auto held = impl_->basis().hold();
  return impl_->parcels().missing(*impl_);
}

std::uint64_t PublishedParcel::taken() const {
  const auto held = impl_->basis().hold();
  return impl_->taken;
}

Result<ParcelEnd> PublishedParcel::wait(Deadline until) const {
  VIADUCT_CHECK(impl_->basis().ofThisProcess("wait"));
  const auto held = impl_->basis().hold();
  return waitForEnd(impl_->basis(), impl_->end, until, impl_->watchers, "wait",
                    "not all groups have taken the parcel");
}

Status PublishedParcel::withdraw() { return withdrawn(*impl_); }

Status PublishedParcel::close() {
  if (!impl_ || std::exchange(closed_, true)) return Ok{};
  {
    const auto held = impl_->basis().hold();
    if (held && --impl_->handles != 0) return Ok{};
  }
  return withdrawn(*impl_);
}

ParcelFetch::ParcelFetch(std::shared_ptr<Fetching> impl) : impl_(std::move(impl)) {}
ParcelFetch::ParcelFetch(ParcelFetch&&) noexcept = default;

ParcelFetch& ParcelFetch::operator=(ParcelFetch&& other) noexcept {
  ParcelFetch old(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

ParcelFetch::~ParcelFetch() {
  if (impl_) ended(*impl_);
}

Status ParcelFetch::wait(Deadline until) const {
  VIADUCT_CHECK(impl_->basis().ofThisProcess("fetch"));
  const auto held = impl_->basis().hold();
  VIADUCT_TRY(const ParcelEnd end, waitForEnd(impl_->basis(), impl_->end, until, impl_->watchers,
                                              "fetch", "the parcel has not arrived"));
  if (end.outcome == ParcelOutcome::kWhole) return Ok{};
  return agent::errorOf(end, impl_->taker.want().name);
}

Status ParcelFetch::waitPart(ParcelPart part, Deadline until) const {
  VIADUCT_CHECK(impl_->basis().ofThisProcess("fetch"));
  const auto held = impl_->basis().hold();
  const auto over = [&] { return impl_->taker.has(part) || impl_->end.has_value(); };
  VIADUCT_CHECK(
      waitUntil(impl_->basis(), over, until, impl_->watchers, "fetch", "the part has not arrived"));
  if (impl_->taker.has(part)) return Ok{};
  // Without the part, over() has seen the end.
  return agent::errorOf(*impl_->end, impl_->taker.want().name);
}

std::optional<ParcelEnd> ParcelFetch::end() const {
  const auto held = impl_->basis().hold();
  return impl_->end;
}

std::vector<ParcelPart> ParcelFetch::missing() const {
  const auto held = impl_->basis().hold();
  return impl_->taker.missing();
}

void ParcelFetch::cancel(std::string_view why) {
  const auto held = impl_->basis().hold();
  if (!impl_->basis().usable("cancel")) return;
  impl_->parcels().giveUp(*impl_, ParcelOutcome::kCancelled,
                          {.code = Code::kCancelled,
                           .operation = fmt::format("fetch parcel {}", impl_->taker.want().name),
                           .detail = std::string(why)});
}

}  // namespace viaduct
