#include "measure/run/background.h"

#include <viaduct/agent.h>

#include <algorithm>
#include <utility>

#include "measure/proof/lane.h"

namespace viaduct::measure {
namespace {

Failure failureOf(Status done) { return done ? Failure() : std::move(done).error(); }

}  // namespace

Status Background::add(Agent& agent, const Ends& ends, std::uint64_t bytes,
                       const std::string& require) {
  Flow& flow = flows_.emplace_back();
  flow.claim = ends.claim;
  flow.bytes = bytes;
  for (std::uint64_t i = 0; i < kBackgroundDepth; ++i) {
    const auto block_of = [&](std::uint64_t base) {
      return Blocks::strided({.base = base + i * bytes, .bytes = bytes, .count = 1});
    };
    VIADUCT_TRY(Blocks here, block_of(ends.here));
    VIADUCT_TRY(Blocks there, block_of(ends.there));
    VIADUCT_TRY(
        Transfer transfer,
        agent.plan(ends.claim.op, ends.peer, {std::move(here), {0}}, {std::move(there), {0}},
                   {.require = require, .priority = Priority::kBackground}));
    flow.transfers.push_back(std::move(transfer));
  }
  return Ok{};
}

void Background::start() {
  stopped_ = false;
  for (Flow& flow : flows_) flow.thread = std::thread([this, &flow] { run(flow); });
}

Failure Background::stop() {
  stopped_ = true;
  for (Flow& flow : flows_) flow.thread.join();
  for (const Flow& flow : flows_)
    if (flow.failure) return flow.failure;
  return {};
}

// Keeps kBackgroundDepth transfers in flight: posts each again after it has ended, in turn.
void Background::run(Flow& flow) const {
  const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
  const auto start = Clock::now();
  auto last = start;
  std::uint64_t posted = 0, ended = 0, counted = 0;
  while (!flow.failure && (!stopped_ || ended < posted)) {
    if (!stopped_ && posted - ended < kBackgroundDepth) {
      flow.failure = failureOf(flow.transfers[posted++ % kBackgroundDepth].post());
      continue;
    }
    // No timeout is needed, because the transfer's own deadline ends the wait.
    flow.failure = failureOf(flow.transfers[ended++ % kBackgroundDepth].wait());
    const auto now = Clock::now();
    flow.longest_gap_s = std::max(flow.longest_gap_s, seconds(now - last));
    if (!stopped_) ++counted;  // after stop(), fewer are in flight, so their rate does not count
    if (!stopped_ || counted == 0) last = now;
  }
  flow.ended += ended;
  flow.counted += counted;
  flow.seconds += seconds(last - start);
}

void Background::mark() {
  for (Flow& flow : flows_) {
    flow.before = carriedBy(flow.transfers);
    flow.ended = flow.counted = 0;
    flow.seconds = flow.longest_gap_s = 0;
  }
}

std::vector<proof::Claim> Background::claims() const {
  std::vector<proof::Claim> out;
  for (const Flow& flow : flows_) {
    out.push_back(flow.claim);
    out.back().path = carriedBy(flow.transfers).since(flow.before);
  }
  return out;
}

BackgroundShare Background::figures() const {
  BackgroundShare out;
  for (const Flow& flow : flows_) {
    out.transfers += flow.ended;
    if (flow.seconds > 0)
      out.gb_per_s += static_cast<double>(flow.counted * flow.bytes) / flow.seconds * 1e-9;
    out.longest_gap_s = std::max(out.longest_gap_s, flow.longest_gap_s);
  }
  return out;
}

}  // namespace viaduct::measure
