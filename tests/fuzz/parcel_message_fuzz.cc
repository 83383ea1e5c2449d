// Any bytes as a message of a parcel: a decoded message is within the limits, its encoding decodes
// again, and both ends of a fetch take it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <variant>
#include <vector>

#include "agent/parcels/parcel_owner.h"
#include "agent/parcels/parcel_taker.h"
#include "fuzz/samples.h"

using namespace viaduct::agent;
using viaduct::kMaxParcelParts;

namespace {

ParcelSpec spec() {
  return {.name = "a", .version = 1, .parts = {{.rank = 0, .component = 1}, {.rank = 1}}};
}

bool isWithinLimits(const ParcelMessage& message) {
  if (const auto* const want = std::get_if<WantMessage>(&message))
    return want->parts.size() <= kMaxParcelParts && want->rank < want->size;
  if (const auto* const offer = std::get_if<OfferMessage>(&message))
    return offer->parts.size() <= kMaxParcelParts;
  if (const auto* const add = std::get_if<AddMessage>(&message))
    return add->spec.parts.size() <= kMaxParcelParts;
  return true;
}

// An owner with a parcel that waits for its second part.
void hearAsOwner(const ParcelMessage& message) {
  ParcelOwner owner;
  const auto parcel = owner.publish(spec());
  if (!parcel || !owner.ready(*parcel, {.rank = 0, .component = 1})) std::abort();
  static_cast<void>(owner.want(1, {.number = 1, .name = "a"}));
  for (int i = 0; i < 2; ++i) {
    if (const auto* const want = std::get_if<WantMessage>(&message))
      static_cast<void>(owner.want(1, *want));
    else if (const auto* const report = std::get_if<ReportMessage>(&message))
      static_cast<void>(owner.report(1, *report));
    else if (const auto* const add = std::get_if<AddMessage>(&message))
      static_cast<void>(owner.publish(add->spec));
  }
  if (owner.takers() > 3 || owner.parcels() > 2) std::abort();
  owner.sessionOver(1, {});
}

void hearAsTaker(const ParcelMessage& message) {
  ParcelTaker taker({.number = 1, .name = "a"});
  taker.offered({.number = 1, .version = 1, .parts = spec().parts});
  for (int i = 0; i < 2; ++i) {
    if (const auto* const offer = std::get_if<OfferMessage>(&message))
      taker.offered(*offer);
    else if (const auto* const ready = std::get_if<ReadyMessage>(&message))
      taker.ready(*ready);
    else if (const auto* const verdict = std::get_if<VerdictMessage>(&message))
      taker.heardVerdict(verdict->end);
  }
  taker.ownerLost({});
  if (taker.end() && taker.end()->outcome == viaduct::ParcelOutcome::kWhole) std::abort();
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  const ParcelEnd failed{.outcome = ParcelOutcome::kFailed,
                         .part = ParcelPart{.rank = 1},
                         .why = Error{.detail = "no room"}};
  const std::vector<ParcelMessage> all{
      WantMessage{.number = 2, .name = "a", .group = "g", .size = 2, .rank = 1, .parts = {{}}},
      OfferMessage{.number = 1, .version = 1, .parts = {{.rank = 1}}},
      ReadyMessage{.number = 1, .part = {.rank = 0, .component = 1}, .ticket = base::Bytes(9)},
      ReportMessage{1, failed},
      VerdictMessage{1, failed},
      AddMessage{1, spec()},
      HasMessage{1, {.rank = 1}},
      LendMessage{.number = 1, .taker = {1, 1}, .consumer = "c"},
      LentMessage{.number = 1, .taker = {1, 1}, .ticket = base::Bytes(9)},
      CutMessage{1, {1, 1}},
      FreedMessage{.number = 1, .taker = {1, 1}},
      CloseMessage{true, 1, failed}};
  std::vector<Sample> out;
  for (const ParcelMessage& message : all) out.push_back(sampleOf(encodeParcel(message)));
  return out;
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message = decodeParcel(std::as_bytes(std::span(data, size)));
  if (!message) return 0;
  if (!isWithinLimits(*message)) std::abort();
  if (!decodeParcel(encodeParcel(*message))) std::abort();
  hearAsOwner(*message);
  hearAsTaker(*message);
  return 0;
}
