// The messages of parcels between the owner, its holders and its consumers. A frame of type
// `parcel` has one of them. Threads: plain values.
#pragma once

#include <viaduct/parcel.h>
#include <viaduct/result.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/fields.h"

namespace viaduct {

auto fields(base::Is<ParcelPart> auto& p) { return std::tie(p.rank, p.component); }

auto fields(base::Is<ParcelEnd> auto& e) {
  return base::list(base::atMost(ParcelOutcome::kLost, e.outcome), e.version, e.part, e.consumer,
                    e.why, base::atMost(kMaxParcelParts, e.ranks));
}

}  // namespace viaduct

namespace viaduct::agent {

using AgentIdBytes = std::array<std::uint8_t, 16>;

// One rank that fetches: the number of its session at the owner, and the number of its fetch in
// that session.
struct TakerId {
  std::uint64_t session = 0, number = 0;
  friend auto operator<=>(const TakerId&, const TakerId&) = default;
};
auto fields(base::Is<TakerId> auto& t) { return std::tie(t.session, t.number); }

// The declaration of a parcel, alike at all publishing ranks.
struct ParcelSpec {
  std::string name = {};
  std::uint64_t version = 0, layout = 0;
  std::vector<ParcelPart> parts = {};  // ascending
  std::uint32_t takers = 0;            // 0: any number
  friend bool operator==(const ParcelSpec&, const ParcelSpec&) = default;
};
auto fields(base::Is<ParcelSpec> auto& s) {
  return base::list(base::line(kMaxParcelName, s.name), s.version, s.layout,
                    base::atMost(kMaxParcelParts, s.parts), s.takers);
}

// A consumer rank asks for a parcel. The numbers of a session's fetches ascend from 1.
struct WantMessage {
  std::uint64_t number = 0;
  std::string name = {};
  std::uint64_t version = 0, layout = 0;
  bool exact = false;
  std::optional<AgentIdBytes> owner = {};
  std::string group = {};
  std::uint32_t size = 1, rank = 0, at_least = 0;
  std::vector<ParcelPart> parts = {};  // empty: all
};
auto fields(base::Is<WantMessage> auto& m) {
  return base::list(m.number, base::line(kMaxParcelName, m.name), m.version, m.layout, m.exact,
                    m.owner, base::line(kMaxParcelName, m.group),
                    base::atMost(std::uint32_t{kMaxParcelParts}, m.size), m.rank, m.at_least,
                    base::atMost(kMaxParcelParts, m.parts),
                    base::must([&m] { return m.rank < m.size && m.at_least <= m.size; }));
}

// The owner's answer: the version that the rank gets, and all its parts.
struct OfferMessage {
  std::uint64_t number = 0, version = 0, layout = 0;
  std::vector<ParcelPart> parts = {};
};
auto fields(base::Is<OfferMessage> auto& m) {
  return base::list(m.number, m.version, m.layout, base::atMost(kMaxParcelParts, m.parts));
}

// A part can be read under this lease.
struct ReadyMessage {
  std::uint64_t number = 0;
  ParcelPart part = {};
  std::string holder = {};  // the agent that lends it; empty: the owner
  base::Bytes ticket = {}, digests = {};
};
auto fields(base::Is<ReadyMessage> auto& m) {
  return base::list(m.number, m.part, base::line(kMaxParcelName, m.holder), m.ticket, m.digests);
}

// The rank has read its parts, or gives up. `decided`: its fetch has ended as `end` says. Otherwise
// it waits for the verdict.
struct ReportMessage {
  std::uint64_t number = 0;
  ParcelEnd end = {};
  bool decided = false;
};
// The owner's verdict about a group. To a rank that decides by itself it is a request to end, which
// the rank answers with a report.
struct VerdictMessage {
  std::uint64_t number = 0;
  ParcelEnd end = {};
};
auto fields(base::Is<ReportMessage> auto& m) { return std::tie(m.number, m.end, m.decided); }
auto fields(base::Is<VerdictMessage> auto& m) { return std::tie(m.number, m.end); }

// A publishing rank has parts of a parcel. `number` ascends from 1 in a session.
struct AddMessage {
  std::uint64_t number = 0;
  ParcelSpec spec = {};
};
// A part of the parcel with this number is ready.
struct HasMessage {
  std::uint64_t number = 0;
  ParcelPart part = {};
};
// The owner asks a publishing rank to lend a part to that consumer.
struct LendMessage {
  std::uint64_t number = 0;
  ParcelPart part = {};
  TakerId taker = {};
  std::string consumer = {};  // the name of its agent
};
// The rank has lent the part, or says why it cannot.
struct LentMessage {
  std::uint64_t number = 0;
  ParcelPart part = {};
  TakerId taker = {};
  base::Bytes ticket = {}, digests = {};
  std::optional<Error> why = {};
};
// The owner asks a publishing rank to end its leases to that consumer.
struct CutMessage {
  std::uint64_t number = 0;
  TakerId taker = {};
};
// A lease of the rank has ended.
struct FreedMessage {
  std::uint64_t number = 0;
  ParcelPart part = {};
  TakerId taker = {};
};
// From a rank: it withdraws the parcel. From the owner: nobody reads the parcel any more.
struct CloseMessage {
  bool by_owner = false;
  std::uint64_t number = 0;
  ParcelEnd end = {};
};
auto fields(base::Is<AddMessage> auto& m) { return std::tie(m.number, m.spec); }
auto fields(base::Is<HasMessage> auto& m) { return std::tie(m.number, m.part); }
auto fields(base::Is<LendMessage> auto& m) {
  return base::list(m.number, m.part, m.taker, base::line(kMaxParcelName, m.consumer));
}
auto fields(base::Is<LentMessage> auto& m) {
  return std::tie(m.number, m.part, m.taker, m.ticket, m.digests, m.why);
}
auto fields(base::Is<CutMessage> auto& m) { return std::tie(m.number, m.taker); }
auto fields(base::Is<FreedMessage> auto& m) { return std::tie(m.number, m.part, m.taker); }
auto fields(base::Is<CloseMessage> auto& m) { return std::tie(m.by_owner, m.number, m.end); }

using ParcelMessage =
    std::variant<WantMessage, OfferMessage, ReadyMessage, ReportMessage, VerdictMessage, AddMessage,
                 HasMessage, LendMessage, LentMessage, CutMessage, FreedMessage, CloseMessage>;

base::Bytes encodeParcel(const ParcelMessage& message);
Result<ParcelMessage> decodeParcel(std::span<const std::byte> payload);

}  // namespace viaduct::agent
