// Agents with memory, in this process or in another one, and transfers between them. Threads: those
// of agents.
#pragma once

#include <viaduct/viaduct.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "harness/processes.h"

namespace viaduct::bench {

inline constexpr auto kLong = std::chrono::seconds(60);
inline constexpr const char* kMemory = "memory";  // the label of a target's memory

inline Selection blocks(const Run& run, Indices indices = {}) {
  return {must(Blocks::strided(run)), std::move(indices)};
}

template <class Number>
void shuffle(std::vector<Number>& numbers, std::uint64_t seed) {
  base::Random random(seed);
  for (std::size_t i = numbers.size(); i > 1; --i)
    std::swap(numbers[i - 1], numbers[random.below(i)]);
}
// The numbers below `count` in random order; the same seed gives the same order.
inline Indices shuffled(std::size_t count, std::uint64_t seed) {
  Indices out(count);
  std::iota(out.begin(), out.end(), 0U);
  shuffle(out, seed);
  return out;
}

inline void postAndPoll(Transfer& transfer) {
  must(transfer.post());
  TransferState state = transfer.poll();
  while (state == TransferState::kRunning) state = transfer.poll();
  if (state != TransferState::kDone) die(transfer.end().error->text());
}
inline void postAndWait(Transfer& transfer, const PostOptions& options = {}) {
  must(transfer.post(options));
  must(transfer.wait());
}

// An agent, and memory of it that its peers find by its label.
struct Target {
  Target(const Settings& settings, std::uint64_t bytes)
      : agent(must(Agent::open(settings))),
        memory(must(agent.allocate(bytes, {.label = kMemory}))) {}
  Target(const Settings& settings, const Segment& segment)
      : agent(must(Agent::open(settings))), memory(must(agent.pin(segment, kMemory))) {}
  std::uint64_t here() const { return memory.info().address; }

  Agent agent;
  Pin memory;
};

// An agent that is connected to a target, with memory of its own.
struct Source : Target {
  template <class Memory>  // a size in bytes, or a Segment
  Source(const Settings& settings, const Memory& mine, std::span<const std::byte> card)
      : Target(settings, mine), peer(must(agent.importCard(card))), there([this] {
          must(peer.ready(kLong));
          return must(peer.waitPin(kMemory, kLong)).address;
        }()) {}
  // Plans a copy of the blocks of `run`, which lie at the same offsets in both memories. `from` and
  // `into` give their orders. `run.base` counts from the begin of the memory.
  Transfer plan(OpKind kind, const Run& run, TransferOptions options = {}, const Indices& from = {},
                const Indices& into = {}) {
    const auto in = [&](std::uint64_t begin, const Indices& indices) {
      return blocks({begin + run.base, run.stride, run.bytes, run.count}, indices);
    };
    return must(agent.plan(kind, peer, in(here(), from), in(there, into), std::move(options)));
  }

  Peer peer;
  std::uint64_t there;
};

// A target and a source, both in this process.
struct Pair {
  Pair(Settings settings, std::uint64_t bytes)
      : target(named(settings, "target"), bytes),
        source(named(settings, "source"), bytes, target.agent.exportCard()) {}
  static const Settings& named(Settings& settings, const char* name) {
    settings.name = name;
    return settings;
  }

  Target target;
  Source source;
};

// A target in a process of its own, which ends with this object. A source needs the target's card.
struct TargetProcess {
  TargetProcess(const Settings& settings, std::uint64_t bytes, const std::string& network = {})
      : process([&](Channel& parent) {
          if (!network.empty()) enterNetwork(network);
          const Target target(settings, bytes);
          parent.send(target.agent.exportCard());
          parent.receive();
        }),
        card(process.receive()) {}

  Child process;
  std::vector<std::byte> card;
};

}  // namespace viaduct::bench
