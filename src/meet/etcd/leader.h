// What a group's leader decides: who is a member, at which rank, when a round is whole, who died.
// A group is whole when all its ranks are taken and each member has answered a call that was made
// after the last one joined. Nobody is refused because of another member that has not answered a
// call made after the newcomer came. A member that does not answer loses its key with its lease:
// vanished(). Knows nothing of etcd; what it wants said lies in its output. Threads: one at a time.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meet/etcd/messages.h"

namespace viaduct::meet::etcd {

// What proves to a group that one knows its token.
base::Digest proofOf(const std::string& token, const std::string& group, std::uint64_t instance);

class Leader {
 public:
  struct Terms {
    std::string group = {};
    std::uint32_t size = 0;
    base::Digest proof = {};
    MemberId self = 0;  // who leads
  };
  struct LeaderOutput {
    std::vector<std::pair<MemberId, AnswerMessage>> answers = {};
    std::optional<std::vector<LeasedMember>> roster = {};            // the group is whole
    std::vector<std::pair<std::uint64_t, std::string>> rounds = {};  // encoded values
    std::optional<std::uint64_t> call = {};  // all who are there answer with that number
    std::optional<Error> trouble = {};       // the end
  };

  explicit Leader(Terms terms);
  // Takes over a group that is whole: `lead.gone` have said goodbye, and what members said up to
  // `lead.seen` is settled.
  Leader(Terms terms, const std::vector<LeasedMember>& leased_members, const LeadMessage& lead);

  // A member's key was written, or is no more.
  void said(MemberId id, LeaseId lease, Revision when, const UpMessage& message);
  void vanished(MemberId id);
  // A member has answered that call, so it was alive after the call was made.
  void answered(MemberId id, std::uint64_t call);
  LeaderOutput take() { return std::exchange(output_, {}); }

  // Those who could lead after us.
  std::vector<LeasedMember> heirs() const;
  std::vector<MemberId> gone() const;
  std::vector<MemberId> members() const;
  bool saidGoodbye(MemberId id) const;
  Revision seen() const { return seen_; }  // what members said up to here is settled
  std::uint64_t roundsDone() const { return rounds_done_; }

 private:
  struct Known {
    LeasedMember leased = {};
    std::optional<std::uint32_t> asked = {};
    std::uint64_t arrival = 0;
    bool gone = false;
    std::uint64_t sat = 0, answered = 0;  // the last call when it came, and that it answered
    std::uint64_t next_round = 1;         // the first that we have not had a value for
    std::deque<std::string> values = {};  // of rounds_done_ + 1 and later
  };

  // Who came and cannot be seated now, nor refused over the head of one that may be dead.
  struct JoiningMember {
    MemberId id = 0;
    LeaseId lease = 0;
    JoinMessage message = {};
    std::uint64_t call = 0;  // those in its way have to answer this one, or a later one
  };

  void join(MemberId id, LeaseId lease, const JoinMessage& message);
  void settle();
  void settleForming();
  void settleWhole();
  // False when the newcomer has to wait on.
  bool decide(const JoiningMember& one);
  void admit(const JoiningMember& one);
  bool callIsOpen() const;
  void call();
  void value(Known& from, const ValueMessage& message);
  void goodbye(Known& from);
  void form();
  void finishRounds();
  void refuse(MemberId id, Code code, std::string detail, std::string remedy);
  void end(Error trouble);
  std::string whoIsThere() const;
  std::string nameOf(const Known& known) const;

  Terms terms_;
  std::map<MemberId, Known> known_;
  std::uint64_t arrivals_ = 0, rounds_done_ = 0;
  std::uint64_t calls_ = 0;
  std::uint64_t roll_ =
      0;  // the call that was made to all members of now, when all ranks are taken
  std::vector<JoiningMember> waiting_;
  std::size_t ready_ = 0;  // members that have given a value for the next round
  Revision seen_ = 0;
  bool formed_ = false, over_ = false, someone_gone_ = false;
  LeaderOutput output_;
};

}  // namespace viaduct::meet::etcd
