// One member's way through a group: joins, waits, gives values, says goodbye; leads where that
// falls to it. Threads: the loop's own, except what a line names.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meet/etcd/context.h"
#include "meet/etcd/keys.h"
#include "meet/etcd/leading.h"
#include "meet/etcd/messages.h"
#include "meet/etcd/watch.h"

namespace viaduct::meet::etcd {

class Membership {
 public:
  // What the caller's threads wait for. Any thread, under the board's lock.
  struct State {
    std::optional<Roster> roster = {};
    std::optional<Error> refused = {};  // there will be no roster
    std::optional<Error> trouble = {};  // after the roster: the end
    std::optional<std::uint32_t> stop_requested_by = {};
    std::uint64_t round = 0;  // the last whole one, and its values
    std::vector<std::string> values = {};
    std::optional<Error> missing = {};  // why the group, or the round asked about, is not whole
    bool finished = false;
    std::optional<Error> unfinished = {};
  };
  Board board;
  State state;

  Membership(EtcdContext& context, JoinRequest request, Clock::time_point until);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  void begin();
  void give(std::uint64_t round, std::string value);
  // Finds out who has not come yet, into `missing`, while the group forms.
  void askWhoIsMissing();
  // Finds out who has not given a value for that round, into `missing`.
  void askWhoIsMissing(std::uint64_t round, Clock::time_point until);
  void finish(Clock::time_point until);
  void requestStop();
  void abandon(const std::string& reason, std::function<void()> done);
  // Our last act. Whatever is still to be written goes on without us.
  void leave();

 private:
  void enter();
  void entered(Result<TxnReply> reply);
  void requestJoin(const KeyValue& head, const GroupHead& decoded);
  void joinRequested(Revision epoch, Result<TxnReply> reply);
  void takeBackDead(const KeyValue& head);
  void again();
  void watch(Revision from);
  void startLeading(Leader leader);
  std::string joinMessage() const;

  void heard(const WatchEvent& event);
  void heardLeader(const std::string& key, const std::string& value);
  void reread(const std::vector<KeyValue>& all);
  void answered(const AnswerMessage& answer);
  void led(const KeyValue& kv, const LeadMessage& lead);
  void called(const CallMessage& call);
  void leaderVanished();
  void troubled(const Error& why);
  void stopRequested(const StopMessage& stop);
  void part(PartMessage message);
  void whole(std::uint64_t round, const std::string& bytes);
  void roster(std::vector<LeasedMember> leased_members);

  void giveNext();
  void takeBackFounding();
  Error whyNotWhole(std::uint64_t round, const Result<TxnReply>& reply) const;
  void explainWaiting();
  Error whyNotFormed(const Result<TxnReply>& reply) const;
  void lost(Error why);  // the end, for the group as we see it
  void refuse(Error why);
  void sayGoodbye();
  bool saidBefore(const TxnReply& reply) const;
  std::string who() const;
  const Member& self() const;  // once the group is whole
  void send(const Txn& txn, Clock::time_point until, std::function<void(Result<TxnReply>)> done);

  enum class Phase { kEntering, kWaiting, kWhole, kOver };
  EtcdContext& context_;
  const JoinRequest request_;
  const Clock::time_point until_;
  MemberId id_;  // another one for each group that is tried
  Phase phase_ = Phase::kEntering;
  GroupKeys keys_;
  std::uint64_t instance_ = 0;
  Revision epoch_ = 0, proven_dead_ = 0;
  Revision lead_modified_ = 0;
  std::string leader_who_;
  MemberId leader_id_ = 0;
  bool welcome_ = false;        // the leader has given us a rank
  std::uint64_t answered_ = 0;  // the last call of the leader that we have answered
  // Etcd was asked to make our keys and has not said no: they are there, or may yet come.
  bool has_up_key_ = false, founds_ = false;
  std::unique_ptr<Watch> watch_;
  std::unique_ptr<Leading> leading_;
  std::vector<LeasedMember> leased_members_;
  struct Assembly {
    std::uint64_t round = 0;
    std::uint32_t parts = 0;
    std::map<std::uint32_t, std::string> have = {};
  };
  Assembly assembly_;
  std::optional<std::uint64_t> whole_round_ = {};
  Clock::time_point bye_until_ = {}, explain_at_ = {};
  bool bye_wanted_ = false, bye_said_ = false, bye_under_way_ = false;
  // A value that etcd has not answered yet may be sent again: what we say after it waits.
  bool giving_ = false;
  std::optional<ValueMessage> next_value_ = {};
  CurlLoop::Id timer_ = 0, loss_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace viaduct::meet::etcd
