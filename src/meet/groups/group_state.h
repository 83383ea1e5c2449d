// The state of one group: its members, the members that wait to join, and gathered values. It opens
// no sockets: calls bring messages, and MemberConnections sends them. Threads: the server's thread.
// A roll call pings all members before a decision that a dead member could block. It runs before
// the group forms, and before a joining member is refused because of another member. A member that
// does not answer is found dead by its silence, and its rank is free.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/budget.h"
#include "meet/groups/member_connections.h"

namespace viaduct::meet::groups {

class GroupState {
 public:
  // The most bytes of one round of gather(). They are held once here, and once by every member.
  static constexpr std::size_t kMaxRoundBytes = std::size_t{256} << 20U;

  // `epochs` and `memory` belong to the server. Each group that forms takes the next epoch. `once`:
  // after a group has formed and ended, no other one forms here. Waiting members are refused with
  // kPeerLost, because the next group has a server of its own.
  GroupState(std::string group, MemberConnections& connections, std::uint64_t& epochs,
             base::Budget& memory, bool once = false)
      : group_(std::move(group)),
        connections_(connections),
        epochs_(epochs),
        once_(once),
        values_(kMaxRoundBytes, &memory) {}

  void join(GuestId guest, const JoinRequest& request);
  // Ignores a guest that is not or no longer a member. An error means that a member violates the
  // protocol.
  Status gather(GuestId guest, GatherMessage message);
  void requestStop(GuestId guest);
  void abandon(GuestId guest, const std::string& reason);
  void finish(GuestId guest);
  void ask(GuestId guest);
  void pong(GuestId guest, std::uint64_t number);
  void gone(GuestId guest, const std::string& how);

  // Ends the group. If it is still forming, refuses its members.
  void close(const Error& why);
  bool over() const { return over_; }  // only with `once`: the group has ended

  bool empty() const { return joined_.empty() && waiting_.empty(); }
  bool live() const { return live_; }

 private:
  struct JoinedMember {
    JoinRequest request = {};
    std::uint64_t order = 0;         // position in the order of joining
    std::uint64_t expects_pong = 0;  // 0: none
    std::uint32_t rank = 0;          // valid once the group is live
    bool finished = false, given = false;
    std::string value = {};
  };
  struct WaitingMember {
    GuestId guest;
    JoinRequest request;
    // The first roll call that shows whether the members that block this one are alive.
    std::uint64_t needs_call;
  };
  enum class Admission : std::uint8_t { kWelcome, kWait, kInTheWay };

  void reconsider();
  bool admitOne();
  Admission judge(const WaitingMember& waiting) const;
  Error refusal(const WaitingMember& waiting) const;
  void admit(GuestId guest, const JoinRequest& request);
  void callIfNeeded();
  void answered();
  bool full() const { return !joined_.empty() && joined_.size() == size_; }
  void form();
  void assignRanks();
  void finishRound();
  void end(Error why);
  void clear();
  void sendAway(GuestId guest);
  std::string nameOf(const JoinedMember& member) const;
  // Names the members for which `which` is true; without `which`, all members.
  std::string list(const std::function<bool(const JoinedMember&)>& which = {}) const;
  std::string missing() const;

  std::string group_;
  MemberConnections& connections_;
  std::uint64_t& epochs_;
  const bool once_;
  bool over_ = false;
  std::unordered_map<GuestId, JoinedMember> joined_;
  std::deque<WaitingMember> waiting_;

  std::uint32_t size_ = 0;
  std::uint64_t coming_ = 0;
  std::unordered_map<std::uint32_t, GuestId> asked_;  // the requested ranks
  bool live_ = false;
  std::uint64_t epoch_ = 0, round_ = 0;
  std::vector<GuestId> ranks_;
  std::size_t given_ = 0, finished_ = 0;
  base::Budget values_;  // the bytes of the current round's values
  Clock::time_point formed_ = {};

  std::uint64_t calls_ = 0;      // roll calls that have begun
  std::uint64_t answered_ = 0;   // the last roll call that all have answered
  std::uint64_t form_call_ = 0;  // the roll call that may form the group; 0: not full
  std::size_t unanswered_ = 0;   // members that still owe an answer to the current roll call
};

}  // namespace viaduct::meet::groups
