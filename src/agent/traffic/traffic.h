// The running postings of an agent: their deadlines, and what peers tell them. Threads: with the
// agent's lock held.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "agent/basis/basis.h"
#include "agent/peers/transfers.h"
#include "agent/traffic/hooked_list.h"
#include "agent/traffic/posting.h"
#include "base/poller.h"

namespace viaduct::agent {

class TransferImpl;

class Traffic final : public Transfers {
 public:
  explicit Traffic(Basis& basis) : basis_(basis) {}
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;
  ~Traffic() override = default;

  Basis& basis() { return basis_; }
  void enter(Posting& posting) { running_.add(posting); }     // the posting begins to run
  void leave(Posting& posting) { running_.remove(posting); }  // the posting has ended
  bool empty() const { return running_.empty(); }
  template <class Visit>
  void forEach(Visit visit) {
    running_.forEach(visit);
  }
  template <class Such>
  bool none(Such such) const {
    return running_.none(such);
  }
  // At `due`, calls overdue() of postings whose deadline has passed.
  void expectBy(Clock::time_point due);
  // Transfers that wait for their peer (TransferOptions::reach).
  void addReaching(TransferImpl& transfer) { reaching_.push_back(&transfer); }
  void removeReaching(TransferImpl& transfer) { std::erase(reaching_, &transfer); }

  void goOnReaching() override;
  void endReaching(const PeerImpl* peer, const Error& why) override;
  void abortUnder(const HeldLease& lease, const Error& why) override;
  void failUsing(const PeerImpl& peer, std::uint32_t remote_slot) override;
  RunningTransfers runningWith(const PeerImpl& peer) override;
  void failTransfersOf(const PeerImpl& peer, const Error& why) override;

 private:
  std::vector<std::shared_ptr<TransferImpl>> reachingTransfers() const;
  void tellOverdue();

  Basis& basis_;
  // Transfer handles and staging own the postings. A handle's destructor waits for the transfer's
  // end, and takes the lock once, before it frees the transfer. Shared pointers here would cost
  // four atomic operations a post.
  HookedList<Posting, &Posting::running_hook> running_;
  // No later than the first deadline of a running posting.
  Clock::time_point due_ = Clock::time_point::max();
  base::Poller::Id due_timer_ = 0;
  std::vector<TransferImpl*> reaching_;
  bool reaches_again_ = false;  // transfers of reaching_ are about to try again
};

}  // namespace viaduct::agent
