// A peer's memory as those who copy see it. Threads: find(), gate(), live() and cma() by any while
// a copy is in flight; the rest under the agent's lock.
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

// One registration of the peer; never changed once it can be found.
struct RemoteView {
  enum class Method : std::uint8_t { kDirect, kMapped, kCma };
  std::uint64_t address = 0;  // as the peer sees it
  std::uint64_t bytes = 0;
  std::uint64_t generation = 0;  // what the peer's live table says while it lives
  std::uint64_t born = 0;        // when we heard of it; ops posted before do not mean it
  Method method = Method::kCma;
  std::uint64_t shift = 0;  // added to the peer's address gives ours; not for kCma
  std::shared_ptr<const base::SharedMemory> mapping = nullptr;  // what keeps it valid
};

class PeerMemory {
 public:
  explicit PeerMemory(std::string peer) : peer_(std::move(peer)), table_(grown(nullptr, 0)) {}
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  // From then on copies may be made. The owners keep both alive as long as this object.
  void attach(Gate* gate, const LiveTable* live) { gate_ = gate, live_ = live; }
  void attachCma(CmaTarget target) { cma_ = target; }
  bool attached() const { return gate_ != nullptr; }

  const std::string& peer() const { return peer_; }
  Gate& gate() const { return *gate_; }
  const LiveTable& live() const { return *live_; }
  const CmaTarget& cma() const { return cma_; }

  // Null: nothing is registered there that we can reach. Valid for the chunk that asked.
  const RemoteView* find(std::uint32_t slot) const {
    const Table* table = table_.load(std::memory_order_acquire);
    return slot < table->size ? table->views[slot].load(std::memory_order_acquire) : nullptr;
  }

 private:
  struct Table {
    std::uint32_t size = 0;
    std::unique_ptr<std::atomic<const RemoteView*>[]> views;
  };

 public:
  // What was replaced; to be kept until the chunks in the making are over.
  struct Old {
    std::unique_ptr<const RemoteView> view;
    std::unique_ptr<const Table> table;
    explicit operator bool() const { return view != nullptr || table != nullptr; }
  };
  [[nodiscard]] Old put(std::uint32_t slot, RemoteView view);  // slot < kSlots
  [[nodiscard]] Old drop(std::uint32_t slot);

 private:
  static const Table* grown(const Table* from, std::uint32_t slot);

  std::string peer_;
  Gate* gate_ = nullptr;
  const LiveTable* live_ = nullptr;
  CmaTarget cma_ = {};
  std::atomic<const Table*> table_;
};

}  // namespace viaduct::local
