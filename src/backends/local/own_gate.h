// The gate that one peer passes to reach memory of this process, from the owner's side. Threads:
// under the owner's lock; settled() by any once it is fenced.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "backends/local/cma.h"
#include "backends/local/gate.h"
#include "backends/local/live_table.h"
#include "backends/local/local_message.h"
#include "base/fd.h"
#include "base/shared_memory.h"

namespace viaduct::local {

class OwnGate {
 public:
  static Result<std::shared_ptr<OwnGate>> make(std::string peer, std::uint64_t epoch) {
    VIADUCT_TRY(base::SharedMemory page, base::SharedMemory::allocate(sizeof(Gate)));
    return std::make_shared<OwnGate>(std::move(peer), epoch, std::move(page));
  }
  OwnGate(std::string peer, std::uint64_t epoch, base::SharedMemory page)
      : peer_(std::move(peer)),
        epoch_(epoch),
        page_(std::move(page)),
        gate_(new(page_.data()) Gate) {}

  Gate& gate() const { return *gate_; }
  // The peer writes here, inside the gate, to see whether it can.
  Token& scratch() { return scratch_; }
  int fd() const { return page_.fd(); }  // until the peer has it
  void wasSent() { page_.closeFile(); }
  const std::string& peer() const { return peer_; }
  std::uint64_t epoch() const { return epoch_; }

  // Whose death settles everything.
  void setProcess(base::Fd pidfd) { pidfd_ = std::move(pidfd); }
  int process() const { return pidfd_.get(); }  // -1: not known

  // Memory has been withdrawn. The ticket is for left().
  using Ticket = std::uint64_t;
  Ticket withdraw();
  // True when every chunk that entered before the withdrawal has left, or the peer's process is
  // dead.
  bool left(Ticket ticket);
  // The session is over: nobody enters any more.
  void fence();
  // Whether no chunk can change memory that is withdrawn, or any memory behind the fence.
  bool settled();

  // A wait for the peer was in vain. It is stuck until one of its chunks has ended.
  void giveUp() { given_up_ = over_; }
  bool stuck() const { return given_up_ == over_; }

 private:
  bool dead() const { return processIsDead(pidfd_.get()); }
  void look();
  void turn();

  std::string peer_;
  std::uint64_t epoch_;
  base::SharedMemory page_;
  Gate* gate_;
  Token scratch_ = {};
  base::Fd pidfd_;
  bool fenced_ = false;
  // One turn of the gate at a time; a withdrawal during one is served by the next.
  std::uint64_t turns_ = 0, wanted_ = 0, over_ = 0;  // begun; asked for; ended
  Gate::Leaving leaving_ = 0;                        // from before the turn under way
  std::optional<std::uint64_t> given_up_;            // turns that had ended then
};

// A peer that is stopped inside may write into a gate's scratch when it goes on: keeps the gate
// until it cannot, or the process ends.
void keepUntilSettled(std::shared_ptr<OwnGate> gate);  // any thread

// For peers in the same process, where no fd needs to travel: what a LocalHello's token stands for.
struct Door {
  std::shared_ptr<OwnGate> gate;
  std::shared_ptr<LiveTable> live;
};
void offerDoor(const Token& token, Door door);  // any thread, as the next two
void withdrawDoor(const Token& token);
std::optional<Door> findDoor(const Token& token);

}  // namespace viaduct::local
