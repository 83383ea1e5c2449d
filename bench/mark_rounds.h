// Rounds of writes whose end the destination, in a process of its own, learns from marks. Threads:
// one.
#pragma once

#include "harness/agents.h"

namespace viaduct::bench {

inline Settings settingsOfMarks(const char* name, const std::string& backend) {
  return {.name = name, .listen = {"127.0.0.1:0"}, .insecure = true, .backends = {backend}};
}

// The destination: calls each(target, round, stream) until a round has no marks. `Round` has the
// number of its stream and its marks.
template <class Round, class Do>
void receiveRounds(const std::string& backend, std::uint64_t bytes, const Channel& parent,
                   const Do& each) {
  Target target(settingsOfMarks("destination", backend), bytes);
  std::memset(target.memory.data(), 1, bytes);
  parent.send(target.agent.exportCard());
  parent.receive();  // the source is connected
  const Peer source = must(target.agent.peer("source"));
  must(source.ready(kLong));
  for (Round round; (round = parent.receiveValue<Round>()).marks != 0;) {
    const MarkStream stream =
        must(target.agent.openMarks(source, {.number = round.stream, .marks = round.marks}));
    parent.sendValue(true);
    each(target, round, stream);
  }
}

// The source of the rounds, in this process.
struct MarkSource : Source {
  MarkSource(const std::string& backend, std::uint64_t bytes, Channel& destination)
      : Source(settingsOfMarks("source", backend), bytes, destination.receive()),
        channel(destination) {
    std::memset(memory.data(), 2, bytes);
    channel.sendValue(true);
  }
  // Returns once the destination waits for the round.
  template <class Round>
  void begin(const Round& round) const {
    channel.sendValue(round);
    channel.receiveValue<bool>();
  }
  template <class Round>
  void finish() const {
    channel.sendValue(Round{});
  }

  Channel& channel;
};

}  // namespace viaduct::bench
