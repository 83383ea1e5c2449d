// The owner's side of a gate through which one peer reaches memory of this process. Threads: under
// the owner's lock; after fence(), settled() by any.
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
    VIADUCT_TRY(base::SharedMemory page,
                base::SharedMemory::allocate(sizeof(Gate), {.control = true}));
    return std::make_shared<OwnGate>(std::move(peer), epoch, std::move(page));
  }
  OwnGate(std::string peer, std::uint64_t epoch, base::SharedMemory page)
      : peer_(std::move(peer)),
        epoch_(epoch),
        page_(std::move(page)),
        gate_(new(page_.data()) Gate) {}

  Gate& gate() const { return *gate_; }
  // The peer writes here, inside the gate, to test whether it can write.
  Token& scratch() { return scratch_; }
  int fd() const { return page_.fd(); }  // valid until wasSent()
  void wasSent() { page_.closeFile(); }
  const std::string& peer() const { return peer_; }
  std::uint64_t epoch() const { return epoch_; }

  // The peer's process, whose death settles everything.
  void setProcess(base::Fd pidfd) { pidfd_ = std::move(pidfd); }
  int process() const { return pidfd_.get(); }  // -1: unknown

  // Begins a withdrawal of memory. Pass the number to left().
  using TurnNumber = std::uint64_t;
  TurnNumber withdraw();
  // True once every chunk that entered before the withdrawal has left, or the peer's process is
  // dead.
  bool left(TurnNumber turn);
  // Ends the session: no thread enters any more.
  void fence();
  // True if no chunk can change withdrawn memory or, after fence(), any memory.
  bool settled();

  // Records that a withdrawal timed out. The peer then counts as stuck until all chunks that
  // entered before the current turn have left. Withdrawals wait only a short time for stuck peers.
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
  // The gate makes one turn at a time. A withdrawal during a turn is served by the next turn.
  std::uint64_t turns_ = 0, wanted_ = 0, over_ = 0;  // turns begun, asked for, and ended
  Gate::Leaving leaving_ = 0;                        // entries from before the current turn
  std::optional<std::uint64_t> given_up_;            // value of `over_` at giveUp()
};

// Keeps a gate alive while the peer may still write to its scratch: a peer that was stopped inside
// does so once it continues. Later calls free the gates that have settled.
void keepUntilSettled(std::shared_ptr<OwnGate> gate);  // callable from any thread

// The objects that a LocalHello's token names for a peer in the same process, where no descriptors
// have to be sent.
struct Door {
  std::shared_ptr<OwnGate> gate;
  std::shared_ptr<LiveTable> live;
};
void offerDoor(const Token& token, Door door);  // any thread; also the next two functions
void withdrawDoor(const Token& token);
std::optional<Door> findDoor(const Token& token);

}  // namespace viaduct::local
