#include "backends/cuda/pinned_memory.h"

#include <unordered_map>

#include "base/guarded.h"

namespace viaduct::cuda {
namespace {

struct Published {
  std::uint64_t last = 0;
  std::unordered_map<std::uint64_t, std::weak_ptr<PinnedMemory>> pins = {};
};
base::Guarded<Published>& published() {
  static base::Guarded<Published> all;
  return all;
}

}  // namespace

void publish(const std::shared_ptr<PinnedMemory>& memory) {
  published().with([&](Published& all) {
    memory->number = ++all.last;
    all.pins.emplace(memory->number, memory);
  });
}

void retract(const PinnedMemory& memory) {
  published().with([&](Published& all) { all.pins.erase(memory.number); });
}

std::shared_ptr<PinnedMemory> findPinned(std::uint64_t number) {
  return published().with([&](Published& all) {
    const auto found = all.pins.find(number);
    return found == all.pins.end() ? nullptr : found->second.lock();
  });
}

}  // namespace viaduct::cuda
