// The pins that a peer has announced in its current session. Threads: under the agent's lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "agent/session/messages.h"
#include "base/budget.h"
#include "core/plan.h"

namespace viaduct::agent {

class AnnouncedPins {
 public:
  struct AnnouncedPin {
    PinInfo info = {};
    std::uint64_t generation = 0;  // counted here, because a peer could repeat its own numbers
    std::uint64_t owners_generation = 0;
    std::size_t cost = 0;
  };

  // `all` is the budget that all peers share. Null: the pins are the agent's own.
  explicit AnnouncedPins(base::Budget* all) : bytes_(kMaxPinsBytes, all) {}

  // Fails if a limit is exceeded.
  Status add(const PinMessage& message);
  void drop(std::uint32_t slot);
  void clear();

  const std::map<std::uint32_t, AnnouncedPin>& all() const { return pins_; }
  std::uint64_t generation(std::uint32_t slot) const;  // 0: not announced
  // Whether the peer has announced a pin whose label `such` accepts in this session. Of the pins
  // that it has withdrawn, the last kMostWithdrawn are known.
  bool hasAnnounced(const std::function<bool(std::string_view label)>& such) const;
  std::uint64_t version() const { return version_; }  // threads: any
  const core::PinMap& map();

 private:
  static constexpr std::size_t kMostWithdrawn = 32;

  std::map<std::uint32_t, AnnouncedPin> pins_;
  std::deque<std::string> withdrawn_;  // labels, the last one at the end
  base::Budget bytes_;
  std::uint64_t mapped_version_ = 0, last_generation_ = 0;
  std::atomic<std::uint64_t> version_{1};
  core::PinMap map_;
};

}  // namespace viaduct::agent
