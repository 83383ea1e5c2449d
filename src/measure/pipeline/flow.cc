#include "measure/pipeline/flow.h"

#include <fmt/format.h>

#include <utility>

namespace viaduct::measure::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 20ms;  // how often a waiting flow checks `cancel`
constexpr auto kAnnounced = 10min;

Result<Selection> allOf(const PinInfo& pin) {
  VIADUCT_TRY(Blocks blocks,
              Blocks::strided({.base = pin.address, .bytes = pin.bytes, .count = 1}));
  return Selection{.blocks = std::move(blocks)};
}

}  // namespace

Result<Flow> Flow::plan(Agent& agent, const Peer& peer, const PinInfo& from, const PinInfo& into) {
  VIADUCT_TRY(const Selection local, allOf(from));
  VIADUCT_TRY(const Selection remote, allOf(into));
  VIADUCT_TRY(Transfer transfer, agent.plan(OpKind::kWrite, peer, local, remote));
  return Flow(std::move(transfer));
}

Status Flow::once(const std::atomic<bool>& cancel) {
  VIADUCT_CHECK(transfer_.post({.deadline = Deadline::never()}));
  for (;;) {
    auto ended = transfer_.wait(kLook);
    if (transfer_.state() != TransferState::kRunning) return ended ? ended : transfer_.wait();
    if (cancel.load()) transfer_.cancel();
  }
}

Status Flow::run(const std::atomic<bool>& enough, std::atomic<bool>& moved,
                 const std::atomic<bool>& cancel) {
  times_ = 0;
  const auto start = Clock::now();
  do {
    auto ended = once(cancel);
    took_ = Clock::now() - start;
    if (!ended) return ended;
    ++times_;
    moved.store(true);
  } while (!enough.load() && !cancel.load());
  return Ok{};
}

std::string wayOf(const Path& path) {
  std::string out;
  for (const PathShare& share : path.shares) {
    const std::string way = share.backend + "/" + share.way;
    if (out.find(way) == std::string::npos) out += (out.empty() ? "" : ", ") + way;
  }
  return out;
}

Result<std::vector<std::byte>> readObject(Agent& agent, const std::string& url,
                                          std::uint64_t bytes) {
  // A label of its own: a released Pin stays announced for a while.
  static std::atomic<std::uint64_t> reads{0};
  const std::string label = fmt::format("pipeline check {}", ++reads);
  std::vector<std::byte> memory(bytes);
  VIADUCT_TRY(const Pin object, agent.pin(Segment::object(url, {.bytes = bytes})));
  VIADUCT_TRY(const Pin host, agent.pin(Segment::host(memory.data(), bytes), label));
  VIADUCT_TRY(const Peer self, agent.self());
  VIADUCT_CHECK(self.ready(kAnnounced));
  VIADUCT_TRY(const PinInfo into, self.waitPin(label, kAnnounced));
  VIADUCT_TRY(Flow flow, Flow::plan(agent, self, object.info(), into));
  std::atomic<bool> enough{true}, moved{false}, cancel{false};
  VIADUCT_CHECK(flow.run(enough, moved, cancel));
  return memory;
}

}  // namespace viaduct::measure::pipeline
