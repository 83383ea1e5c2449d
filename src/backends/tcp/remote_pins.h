// The generations of one peer's pins, which entries of frames name. Threads: generation()
// while rails run, several at once; all else while they are stopped.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace viaduct::tcp {

class RemotePins {
 public:
  void add(std::uint32_t slot, std::uint32_t generation) { pins_[slot] = generation; }
  void drop(std::uint32_t slot) { pins_.erase(slot); }
  // The slot's generation, or 0 if the slot has no pin.
  std::uint32_t generation(std::uint32_t slot) const {
    const auto found = pins_.find(slot);
    return found == pins_.end() ? 0 : found->second;
  }

 private:
  std::unordered_map<std::uint32_t, std::uint32_t> pins_;
};

}  // namespace viaduct::tcp
