// The pins of one peer, and the keys to them that the peer has sent. Threads: find() const
// while rails run, several at once; all else while they are stopped.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "move/fabric_message.h"

namespace viaduct::move {

struct PeerPin {
  enum class KeyState : std::uint8_t { kUnasked, kAsked, kHere, kRefused };
  std::uint32_t generation = 0;
  std::uint64_t address = 0, bytes = 0;
  KeyState state = KeyState::kUnasked;
  std::vector<Bytes> keys = {};  // one for each rail of the peer
};

class PeerPins {
 public:
  void add(std::uint32_t slot, PeerPin pin) { pins_[slot] = std::move(pin); }
  void drop(std::uint32_t slot) { pins_.erase(slot); }
  PeerPin* find(std::uint32_t slot) {
    const auto found = pins_.find(slot);
    return found == pins_.end() ? nullptr : &found->second;
  }
  const PeerPin* find(std::uint32_t slot) const {
    const auto found = pins_.find(slot);
    return found == pins_.end() ? nullptr : &found->second;
  }
  // The peer's keys are no longer valid, and have to be requested again.
  void forgetKeys() {
    for (auto& [slot, pin] : pins_) {
      pin.state = PeerPin::KeyState::kUnasked;
      pin.keys.clear();
    }
  }

 private:
  std::unordered_map<std::uint32_t, PeerPin> pins_;
};

}  // namespace viaduct::move
