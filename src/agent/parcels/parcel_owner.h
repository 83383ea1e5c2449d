// The decisions of an agent about its parcels and about the groups that fetch them: who gets which
// version, and each verdict. No I/O: an event changes the state and leaves actions.
// docs/design/0069-parcels.md has the table. Threads: one at a time.
#pragma once

#include <viaduct/parcel.h>
#include <viaduct/result.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/parcels/parcel_messages.h"

namespace viaduct::agent {

// A holder of parts by its session's number; 0: this agent.
using Holder = std::uint64_t;

struct TellTaker {
  std::uint64_t session = 0;
  ParcelMessage message = {};
};
// The holder has to lend the part to the taker. lent() or lendFailed() follows, then leaseEnded().
struct LendPart {
  Holder holder = 0;
  std::uint64_t parcel = 0;
  ParcelPart part = {};
  TakerId taker = {};
};
// The holder has to end all its leases to this taker.
struct CutTaker {
  Holder holder = 0;
  std::uint64_t parcel = 0;
  TakerId taker = {};
};
// No rank of the group reads any more.
struct GroupOver {
  std::uint64_t parcel = 0;
  std::string group = {};
  ParcelEnd end = {};
};
// Nobody reads the parcel any more, and nobody will.
struct ParcelOver {
  std::uint64_t parcel = 0;
  std::vector<Holder> holders = {};  // holders at other agents
  std::size_t parts = 0;
  ParcelEnd end = {};
};
using OwnerAction = std::variant<TellTaker, LendPart, CutTaker, GroupOver, ParcelOver>;

class ParcelOwner {
 public:
  static constexpr std::size_t kMaxParcels = std::size_t{1} << 16U;
  static constexpr std::size_t kMaxTakers = 4096;      // of one session
  static constexpr std::size_t kMaxIncomplete = 1024;  // groups with a verdict that lack ranks
  static constexpr std::size_t kRemembered = 1024;     // parcels that have ended

  // Returns the parcel's number. The same declaration again gets the same number.
  Result<std::uint64_t> publish(ParcelSpec spec);
  // Another agent has parts of the parcel.
  void addHolder(std::uint64_t parcel, Holder holder);
  Status ready(std::uint64_t parcel, ParcelPart part, Holder holder = 0);
  // Another rank declares this version in another way. The parcel fails unless it is whole.
  void conflict(const ParcelSpec& spec, const Error& why);
  // Ends a parcel that was withdrawn, has expired or has a failed part.
  void end(std::uint64_t parcel, ParcelEnd end);

  // An error: the peer broke a rule, so its session has to end. `refusal`: why this agent may not
  // take up the fetch.
  Status want(std::uint64_t session, WantMessage want, std::optional<Error> refusal = {});
  Status report(std::uint64_t session, const ReportMessage& report);
  void refuseWaiting(const Error& why);
  void lendFailed(TakerId taker, ParcelPart part, Error why);
  void leaseEnded(TakerId taker, ParcelPart part);
  void sessionOver(std::uint64_t session, const Error& why);

  std::vector<OwnerAction> takeActions() { return std::exchange(actions_, {}); }

  const ParcelSpec* find(std::uint64_t parcel) const;
  // How that version ended, if it has ended and is not published anew. Null: it has not.
  const ParcelEnd* endOf(const std::string& name, std::uint64_t version);
  // The takers of a session that have a version, and whose groups have no verdict.
  std::uint64_t running(std::uint64_t session) const;
  // Whether that holder lends the part to the taker, or has been asked to.
  bool isLent(TakerId taker, ParcelPart part, Holder holder) const;
  std::vector<ParcelPart> missing(std::uint64_t parcel) const;
  std::uint64_t taken(std::uint64_t parcel) const;
  // Whether all groups that may take the parcel have asked.
  bool isFull(std::uint64_t parcel) const;
  std::size_t parcels() const { return parcels_.size(); }
  std::size_t groups() const { return groups_.size(); }
  std::size_t takers() const { return takers_.size(); }
  std::uint64_t late() const { return late_; }

 private:
  struct PartState {
    bool ready = false;
    Holder holder = 0;
  };
  struct Taker {
    TakerId id = {};
    std::uint32_t rank = 0;
    std::vector<ParcelPart> parts = {};  // empty: all
    bool read = false, lost = false;
    std::map<ParcelPart, Holder> lent = {};
  };
  struct GroupKey {
    std::string parcel = {}, group = {};
    TakerId alone = {};  // the rank, if it has no group
    friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
  };
  struct Parcel;
  struct TakingGroup {
    GroupKey key = {};
    WantMessage first = {};
    Parcel* parcel = nullptr;  // null: waits for a version
    std::vector<Taker> takers = {};
    bool decides = false;               // its one rank takes every part, and decides by itself
    std::optional<ParcelEnd> cut = {};  // the end that such a rank was asked to report
    std::optional<ParcelEnd> verdict = {};
    bool counted = false;
  };
  struct Parcel {
    std::uint64_t id = 0;
    ParcelSpec spec = {};
    std::map<ParcelPart, PartState> parts = {};
    std::size_t unready = 0;
    std::set<Holder> holders = {};  // holders at other agents
    std::set<TakingGroup*> groups = {};
    std::uint32_t admitted = 0;
    std::uint64_t taken = 0;
    std::optional<ParcelEnd> closing = {};
    bool whole() const { return unready == 0; }
    bool isFull() const { return spec.takers != 0 && admitted >= spec.takers; }
  };

  struct SessionTakers {
    std::uint64_t last = 0;  // the highest number of its fetches
    std::size_t open = 0;
  };

  Status checkSpec(const ParcelSpec& spec) const;
  std::vector<Parcel*> versionsOf(const std::string& name);  // the newest first
  void placeWaiting(const std::string& name);
  void place(TakingGroup& group);
  const ParcelEnd* recentEnd(const std::string& name, std::uint64_t version) const;
  std::optional<ParcelEnd> absence(const WantMessage& want, bool full, bool older) const;
  void attach(TakingGroup& group, Parcel& parcel);
  void admit(TakingGroup& group, Taker& taker);
  void lend(TakingGroup& group, Taker& taker, ParcelPart part, Holder holder);
  std::optional<Error> objection(const TakingGroup& group, const WantMessage& want) const;
  void join(TakingGroup& group, TakerId id, WantMessage want, std::optional<Error> refusal);
  TakingGroup& groupOf(const GroupKey& key, const WantMessage& want);
  Status begins(TakerId id);
  void refuse(TakerId id, Error why);
  void decide(TakingGroup& group, ParcelEnd end);
  void settle(TakingGroup& group, ParcelEnd end);
  void cutOff(const TakingGroup& group, const Taker& taker);
  void decideIfRead(TakingGroup& group);
  void lose(TakingGroup& group, Taker& taker, const Error& why);
  // The next three may forget the group, and the parcel with it.
  void finish(TakingGroup& group);
  void finish(Parcel& parcel);
  void forget(TakingGroup& group);
  void supersedeOlder(const Parcel& parcel);
  void holderOver(std::uint64_t parcel, Holder holder, const Error& why);
  std::vector<GroupKey> keysOf(const Parcel& parcel) const;
  Taker* find(TakerId id, TakingGroup*& group);
  void tell(const Taker& taker, ParcelMessage message);

  std::uint64_t last_parcel_ = 0, late_ = 0;
  std::map<std::uint64_t, Parcel> parcels_;
  std::map<std::string, std::set<std::uint64_t>> by_name_;
  std::map<GroupKey, TakingGroup> groups_;
  std::map<TakerId, TakingGroup*> takers_;
  std::map<std::uint64_t, SessionTakers> sessions_;
  std::deque<GroupKey> incomplete_;
  struct EndedParcel {
    std::string name;
    std::uint64_t version;
    ParcelEnd end;
  };
  std::deque<EndedParcel> recent_;  // the last parcels that have ended
  std::vector<OwnerAction> actions_;
};

}  // namespace viaduct::agent
