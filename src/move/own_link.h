// The link of an agent to itself, over a backend that moves between the agent's memory and its own
// storage. Such a link has one end: there are no messages, and the backend has the pins of both
// sides. Threads: under the agent's lock.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/backend.h"

namespace viaduct::move {

class OwnLink : public core::Link {
 public:
  // `ways`: the text of the link's state.
  explicit OwnLink(std::string ways) : state_{core::LinkState::Phase::kReady, std::move(ways)} {}
  core::LinkState state() const final { return state_; }
  void receive(std::span<const std::byte>, std::vector<core::Fd>) final {}
  void addPin(const core::RemotePin&) final {}
  void dropPin(std::uint32_t) final {}
  bool servedBy(const core::Rail&) const final { return true; }

 private:
  const core::LinkState state_;
};

}  // namespace viaduct::move
