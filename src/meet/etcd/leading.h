// A leader at work: hears what members write, and writes what it decides. Threads: the loop's own.
#pragma once

#include <deque>
#include <functional>
#include <memory>

#include "meet/etcd/context.h"
#include "meet/etcd/keys.h"
#include "meet/etcd/leader.h"

namespace viaduct::meet::etcd {

class Leading {
 public:
  struct Hooks {
    std::function<void()> left;         // another one leads now, or nobody has to
    std::function<void(Error)> failed;  // etcd does not take what we write
  };
  struct LedGroup {
    GroupKeys keys = {};
    std::uint64_t instance = 0;
    Revision epoch = 0;  // the head's creation
    MemberId self = 0;
    std::string who = {};  // for people
  };
  Leading(EtcdContext& context, LedGroup place, Leader leader, Hooks hooks);
  ~Leading() = default;
  Leading(const Leading&) = delete;
  Leading& operator=(const Leading&) = delete;

  void heard(const WatchEvent& event);            // of a member's key
  void reread(const std::vector<KeyValue>& all);  // every key of the group
  // Writes the head anew, as the one who has taken over.
  void announce();
  // The group is at its end: those who come from here on form another one. `also` goes with it.
  void end(std::vector<TxnOp> also);

 private:
  void collect();
  void flush();
  void handOver();
  void dissolve();
  void write(const Txn& txn, std::function<void(const TxnReply&)> done);

  EtcdContext& context_;
  LedGroup group_;
  Leader leader_;
  Hooks hooks_;
  std::deque<TxnOp> ops_;
  bool busy_ = false, ended_ = false;
  bool stuck_ = false;      // the heir has written something that we have not heard yet
  std::uint64_t news_ = 0;  // that we have heard
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace viaduct::meet::etcd
