// The objects behind the handles of the C interface. Threads: any.
#pragma once

#include <viaduct/agent.h>

#include <deque>
#include <optional>
#include <utility>

#include "base/guarded.h"

namespace viaduct::agent::c {

struct AgentObject {
  explicit AgentObject(Agent opened) : agent(std::move(opened)) {}

  // Notes that did not fit into the buffer of viaduct_note_receive.
  std::optional<Note> takeKept();
  void keep(Note note);

  Agent agent;
  base::Guarded<std::deque<Note>> kept;
};

}  // namespace viaduct::agent::c
