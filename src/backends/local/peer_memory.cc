#include "backends/local/peer_memory.h"

#include <algorithm>
#include <utility>

namespace viaduct::local {

constexpr std::uint32_t kFirstTable = 16;

PeerMemory::~PeerMemory() {
  const std::unique_ptr<const ViewTable> table(table_.load());
  for (std::uint32_t i = 0; i < table->size; ++i) delete table->views[i].load();
}

const PeerMemory::ViewTable* PeerMemory::grown(const ViewTable* from, std::uint32_t slot) {
  auto table = std::make_unique<ViewTable>();
  table->size = from != nullptr ? from->size : kFirstTable;
  while (table->size <= slot) table->size *= 2;
  table->views = std::make_unique<std::atomic<const RemoteView*>[]>(table->size);
  for (std::uint32_t i = 0; from != nullptr && i < from->size; ++i)
    table->views[i].store(from->views[i].load());
  return table.release();
}

PeerMemory::Old PeerMemory::put(std::uint32_t slot, RemoteView view) {
  Old old;
  const ViewTable* table = table_.load();
  if (slot >= table->size) {
    old.table.reset(table);
    table = grown(table, slot);
    table_.store(table, std::memory_order_release);
  }
  const auto* fresh = std::make_unique<const RemoteView>(std::move(view)).release();
  old.view.reset(table->views[slot].exchange(fresh, std::memory_order_acq_rel));
  return old;
}

PeerMemory::Old PeerMemory::drop(std::uint32_t slot) {
  Old old;
  const ViewTable* table = table_.load();
  if (slot < table->size)
    old.view.reset(table->views[slot].exchange(nullptr, std::memory_order_acq_rel));
  return old;
}

}  // namespace viaduct::local
