// The gate that one peer passes to reach memory of this process, from the owner's side. Threads:
// under the owner's lock.
#pragma once

#include <viaduct/result.h>

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "backends/local/cma.h"
#include "backends/local/gate.h"
#include "backends/local/live_table.h"
#include "backends/local/message.h"
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
  int fd() const { return page_.fd(); }  // until the peer has it
  void wasSent() { page_.closeFile(); }
  const std::string& peer() const { return peer_; }
  std::uint64_t epoch() const { return epoch_; }

  // Whose death settles everything.
  void setProcess(base::Fd pidfd) { pidfd_ = std::move(pidfd); }
  int process() const { return pidfd_.get(); }  // -1: not known
  bool dead() const { return processIsDead(pidfd_.get()); }
  // Nobody is inside, or whoever was is dead.
  bool settled() const { return gate_->empty() || dead(); }

  // Whether a wait for this peer has been in vain: nobody waits for it again until it has left.
  bool waitedInVain() const { return waited_in_vain_; }
  void setWaitedInVain(bool yes) { waited_in_vain_ = yes; }

 private:
  std::string peer_;
  std::uint64_t epoch_;
  base::SharedMemory page_;
  Gate* gate_;
  base::Fd pidfd_;
  bool waited_in_vain_ = false;
};

// For peers in the same process, where no fd needs to travel: what a Hello's token stands for.
struct Door {
  std::shared_ptr<OwnGate> gate;
  std::shared_ptr<LiveTable> live;
};
void offerDoor(const Token& token, Door door);  // any thread, as the next two
void withdrawDoor(const Token& token);
std::optional<Door> findDoor(const Token& token);

}  // namespace viaduct::local
