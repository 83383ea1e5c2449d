#include "measure/run/flow.h"

#include <map>
#include <utility>

#include "measure/proof/lane.h"

namespace viaduct::measure::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 20ms;  // how often a waiting flow checks `cancel`

Result<Selection> selectionOf(const FlowSide& side, const Chunk& chunk) {
  VIADUCT_TRY(Blocks blocks,
              Blocks::strided({.base = side.pin.address + (side.ring ? chunk.in_ring : chunk.at),
                               .bytes = chunk.bytes,
                               .count = 1}));
  return Selection{.blocks = std::move(blocks)};
}

}  // namespace

RingGate::Turn Neighbours::turn(std::uint64_t end, std::chrono::nanoseconds patience) const {
  const auto turn = before == nullptr ? RingGate::Turn::kNow : before->toEmpty(end, patience);
  if (turn != RingGate::Turn::kNow || after == nullptr) return turn;
  return after->toFill(end, patience);
}

void Neighbours::moved(std::uint64_t end) const {
  if (before != nullptr) before->empty(end);
  if (after != nullptr) after->fill(end);
}

void Neighbours::leave(bool complete) const {
  if (after != nullptr && complete) after->complete();
  if (after != nullptr && !complete) after->fail();
  if (before != nullptr && !complete) before->fail();
}

Result<Flow> Flow::plan(Agent& agent, const Peer& peer, const FlowOptions& options,
                        const FlowSide& from, const FlowSide& into) {
  Flow out(options.bytes, options.chunks.ring_chunks, options.chunks.countOf(options.bytes));
  const Chunking whole{.chunk_bytes = options.bytes};
  const Chunking& cut = from.ring || into.ring ? options.chunks : whole;
  for (std::uint64_t i = 0; i < cut.countOf(options.bytes); ++i) {
    const Chunk chunk = cut.chunk(options.bytes, i);
    VIADUCT_TRY(const Selection local, selectionOf(from, chunk));
    VIADUCT_TRY(const Selection remote, selectionOf(into, chunk));
    VIADUCT_TRY(Transfer transfer,
                agent.plan(OpKind::kWrite, peer, local, remote, {.require = options.require}));
    out.transfers_.push_back(std::move(transfer));
  }
  return out;
}

// Returns the number of chunks, over all passes, that this transfer and those before it move.
std::uint64_t Flow::chunksUpTo(std::size_t transfer) const {
  const std::uint64_t each = chunks_ / transfers_.size();  // 1 chunk, or all chunks
  return times_ * chunks_ + (transfer + 1) * each;
}

// One pass through all transfers of a flow. In a ring, a chunk is posted after the earlier chunk in
// the same place of the ring has ended.
class Flow::Pass {
 public:
  Pass(Flow& flow, const std::atomic<bool>& cancel, const Neighbours& neighbours)
      : flow_(flow), cancel_(cancel), neighbours_(neighbours) {}

  // Moves all bytes, and returns kNow. Returns kComplete or kBroken if a neighbour ended the pass.
  Result<RingGate::Turn> run() {
    while (goesOn()) postOrEnd();
    while (inFlight() > 0) end();
    VIADUCT_CHECK(first_failure_);
    if (posted_ == flow_.transfers_.size()) return RingGate::Turn::kNow;
    if (isOver()) return turn_;
    return Error{.code = Code::kCancelled, .operation = "pipeline"};
  }

 private:
  std::size_t inFlight() const { return posted_ - ended_; }
  bool isOver() const {
    return turn_ == RingGate::Turn::kComplete || turn_ == RingGate::Turn::kBroken;
  }
  bool goesOn() const {
    return posted_ < flow_.transfers_.size() && !isOver() && first_failure_ && !cancel_.load();
  }
  void postOrEnd() {
    turn_ = RingGate::Turn::kLater;
    if (inFlight() < flow_.at_once_)
      turn_ = neighbours_.turn(flow_.chunksUpTo(posted_), inFlight() > 0 ? 0ms : kLook);
    if (turn_ == RingGate::Turn::kNow)
      post();
    else if (inFlight() > 0)
      end();
  }
  void post() {
    if (inFlight() == 0) busy_since_ = Clock::now();
    auto started = flow_.transfers_[posted_].post({.deadline = Deadline::never()});
    if (started)
      ++posted_;
    else
      first_failure_ = std::move(started);
  }
  void end() {
    auto done = await(flow_.transfers_[ended_]);
    if (done)
      neighbours_.moved(flow_.chunksUpTo(ended_));
    else if (first_failure_)
      first_failure_ = std::move(done);
    ++ended_;
    if (inFlight() == 0) flow_.busy_ += Clock::now() - busy_since_;
  }
  Status await(Transfer& transfer) const {
    for (;;) {
      auto ended = transfer.wait(kLook);
      if (transfer.state() != TransferState::kRunning) return ended ? ended : transfer.wait();
      if (cancel_.load()) transfer.cancel();
    }
  }

  Flow& flow_;
  const std::atomic<bool>& cancel_;
  const Neighbours& neighbours_;
  Status first_failure_ = Ok{};
  std::size_t posted_ = 0, ended_ = 0;
  Clock::time_point busy_since_;
  RingGate::Turn turn_ = RingGate::Turn::kNow;  // whether the next transfer may be posted
};

Path Flow::path() const { return carriedBy(transfers_).since(before_); }

Status Flow::run(const std::atomic<bool>& enough, const std::atomic<bool>& cancel,
                 const std::function<void()>& moved, const Neighbours& neighbours) {
  times_ = 0;
  busy_ = {};
  before_ = carriedBy(transfers_);
  began_ = Clock::now();
  const auto goes_on = [&] {
    return !cancel.load() && (neighbours.before != nullptr || !enough.load());
  };
  auto turn = RingGate::Turn::kNow;
  do {
    const auto ended = Pass(*this, cancel, neighbours).run();
    turn = ended ? *ended : RingGate::Turn::kBroken;
    if (turn == RingGate::Turn::kNow) {
      took_ = Clock::now() - began_;
      all_times_->fetch_add(1, std::memory_order_relaxed);
      if (++times_ == 1) moved();
    }
    if (!ended) {
      neighbours.leave(false);
      return ended.error();
    }
  } while (turn == RingGate::Turn::kNow && goes_on());
  neighbours.leave(turn != RingGate::Turn::kBroken);
  return Ok{};
}

std::vector<std::uint64_t> busyTimes(const Path& path) {
  std::map<std::uint32_t, std::uint64_t> by_stage;
  for (const PathShare& share : path.shares)
    if (share.stage != 0) by_stage[share.stage] += share.busy_ns;
  std::vector<std::uint64_t> out;
  out.reserve(by_stage.size());
  for (const auto& [stage, busy] : by_stage) out.push_back(busy);
  return out;
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
  std::vector<std::byte> memory(bytes);
  VIADUCT_TRY(const Pin object, agent.pin(Segment::object(url, {.bytes = bytes})));
  VIADUCT_TRY(const Pin host, agent.pin(Segment::host(memory.data(), bytes)));
  VIADUCT_TRY(const Peer self, agent.self());
  VIADUCT_TRY(Flow flow, Flow::plan(agent, self, {.bytes = bytes}, {object.info()}, {host.info()}));
  const std::atomic<bool> enough{true}, cancel{false};
  VIADUCT_CHECK(flow.run(enough, cancel, [] {}));
  return memory;
}

}  // namespace viaduct::measure::pipeline
