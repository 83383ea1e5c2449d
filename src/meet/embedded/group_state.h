// One group name: its members, those that wait to join, and their values. Pure: messages in,
// messages out. Threads: the server's.
//
// Nothing is decided over the head of a member that may be dead without our knowing it. Before the
// group is whole, and before a joining member is refused because of another, the server pings all
// members. A member that does not answer is found dead by its silence, and its place is free.
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
#include "meet/embedded/member_connections.h"
#include "meet/embedded/messages.h"

namespace viaduct::meet::embedded {

class GroupState {
 public:
  // What one round may gather: it is held once here, and once by every member.
  static constexpr std::size_t kMaxRoundBytes = std::size_t{256} << 20U;

  // `epochs` is the server's: every group that forms there takes the next one. So is `memory`.
  // `once`: when a group has formed and ended, no other one forms here. Waiting members are sent
  // away with kPeerLost: the next group has a server of its own.
  GroupState(std::string group, MemberConnections& connections, std::uint64_t& epochs,
             base::Budget& memory, bool once = false)
      : group_(std::move(group)),
        connections_(connections),
        epochs_(epochs),
        once_(once),
        values_(kMaxRoundBytes, &memory) {}

  void join(GuestId guest, const JoinRequest& request);
  // A guest that is not a member (any more) is ignored. An error means that a member does not keep
  // to the protocol.
  Status gather(GuestId guest, GatherMessage message);
  void requestStop(GuestId guest);
  void abandon(GuestId guest, const std::string& reason);
  void finish(GuestId guest);
  void ask(GuestId guest);
  void pong(GuestId guest, std::uint64_t number);
  void gone(GuestId guest, const std::string& how);

  // Ends the group. While it forms, its members are sent away instead.
  void close(const Error& why);
  bool over() const { return over_; }  // only with `once`

  bool empty() const { return joined_.empty() && waiting_.empty(); }
  bool live() const { return live_; }

 private:
  struct JoinedMember {
    JoinRequest request = {};
    std::uint64_t order = 0;         // of coming
    std::uint64_t expects_pong = 0;  // 0: none
    std::uint32_t rank = 0;          // once live
    bool finished = false, given = false;
    std::string value = {};
  };
  struct WaitingMember {
    GuestId guest;
    JoinRequest request;
    std::uint64_t needs_call;  // the first roll call that says something about those in its way
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
  std::string list(const std::function<bool(const JoinedMember&)>& which) const;
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
  std::unordered_map<std::uint32_t, GuestId> asked_;  // ranks
  bool live_ = false;
  std::uint64_t epoch_ = 0, round_ = 0;
  std::vector<GuestId> ranks_;
  std::size_t given_ = 0, finished_ = 0;
  base::Budget values_;  // of this round
  Clock::time_point formed_ = {};

  std::uint64_t calls_ = 0;      // roll calls begun
  std::uint64_t answered_ = 0;   // the last that all have answered
  std::uint64_t form_call_ = 0;  // the one that may form the group; 0: not full
  std::size_t unanswered_ = 0;   // of the call under way
};

}  // namespace viaduct::meet::embedded
