// A peer's memory, as the copying threads see it. Threads: find(), gate(), live() and cma() by any
// while a copy is in flight; the rest under the agent's lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "backends/local/cma.h"
#include "backends/local/gate.h"
#include "backends/local/live_table.h"
#include "base/shared_memory.h"

namespace viaduct::local {

// One registration of the peer; immutable once find() can return it.
struct RemoteView {
  enum class Method : std::uint8_t { kNone, kDirect, kMapped, kCma };
  Method method(OpKind kind) const { return kind == OpKind::kWrite ? write : read; }

  std::uint64_t address = 0;  // in the peer's address space
  std::uint64_t bytes = 0;
  std::uint64_t generation = 0;  // the entry in the peer's live table while the pin lives
  std::uint64_t born = 0;        // LocalBackend::now() when announced; earlier posts cannot use it
  Method read = Method::kNone, write = Method::kNone;  // not both kNone
  std::uint64_t shift = 0;                             // our address minus the peer's; not for kCma
  std::shared_ptr<const base::SharedMemory> mapping = nullptr;  // keeps the addresses valid
};

class PeerMemory {
 public:
  explicit PeerMemory(std::string peer) : peer_(std::move(peer)), table_(grown(nullptr, 0)) {}
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // Allows copies from now on. The owners keep both objects alive as long as this one.
  void attach(Gate* gate, const LiveTable* live) { gate_ = gate, live_ = live; }
  void attachCma(CmaTarget target) { cma_ = target; }
  bool attached() const { return gate_ != nullptr; }

  const std::string& peer() const { return peer_; }
  Gate& gate() const { return *gate_; }
  const LiveTable& live() const { return *live_; }
  const CmaTarget& cma() const { return cma_; }

  // Null: the slot has no registration that we can reach. Valid for the chunk that asked.
  const RemoteView* find(std::uint32_t slot) const {
    const ViewTable* table = table_.load(std::memory_order_acquire);
    return slot < table->size ? table->views[slot].load(std::memory_order_acquire) : nullptr;
  }

 private:
  struct ViewTable {
    std::uint32_t size = 0;
    std::unique_ptr<std::atomic<const RemoteView*>[]> views;
  };

 public:
  // Replaced objects; keep them until the present chunks have ended.
  struct Old {
    std::unique_ptr<const RemoteView> view;
    std::unique_ptr<const ViewTable> table;
    explicit operator bool() const { return view != nullptr || table != nullptr; }
  };
  [[nodiscard]] Old put(std::uint32_t slot, RemoteView view);  // slot < kSlots
  [[nodiscard]] Old drop(std::uint32_t slot);

 private:
  static const ViewTable* grown(const ViewTable* from, std::uint32_t slot);

  std::string peer_;
  Gate* gate_ = nullptr;
  const LiveTable* live_ = nullptr;
  CmaTarget cma_ = {};
  std::atomic<const ViewTable*> table_;
};

}  // namespace viaduct::local
