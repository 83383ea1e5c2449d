#include "backends/fake/fake_rail.h"

#include <algorithm>
#include <utility>

namespace viaduct::fake {

namespace {
constexpr auto kRepair = std::chrono::milliseconds(2);
}  // namespace

std::size_t FakeRail::post(const core::Work& work) {
  const std::size_t taken = std::min(kRoom - queue_.size(), work.ops.size());
  const auto now = clock_.now();
  for (std::size_t i = 0; i < taken; ++i) {
    core::Work one = work;
    one.ops = work.ops.subspan(i, 1);
    QueuedOp& queued = jobs_.add<QueuedOp>(one, this);
    queued.next_op = queued.outstanding = 1;
    const auto late = dice_.below(static_cast<std::uint64_t>(weather_.delay.count()) + 1);
    queued.left = one.ops.front();
    queued.ready = now + std::chrono::microseconds(late);
    queued.hangs = dice_.chance(weather_.hang);
    harm(queued);
    queue_.push_back(&queued);
    if (queue_.size() > 1 && dice_.chance(weather_.reorder))
      std::swap(queue_.back(), queue_[queue_.size() - 2]);
  }
  return taken;
}

void FakeRail::poll(core::Completions& out) {
  if (busy()) pollers.with([](auto& threads) { threads.insert(std::this_thread::get_id()); });
  if (const Interruption interrupt = interruption.with([](auto& one) { return one; });
      interrupt && !interrupt())
    return;
  const auto now = clock_.now();
  std::uint64_t carried = 0;
  for (std::size_t ops = queue_.size(); ops > 0 && carried < 4 * kStep; --ops) {
    QueuedOp& queued = *queue_.front();
    queue_.pop_front();
    if (queued.hangs || (!queued.why && queued.ready > now)) {
      queue_.push_back(&queued);
      continue;
    }
    if (breaks(queued)) {
      breakDown();
      break;
    }
    const std::uint64_t before = queued.left.bytes;
    Status advanced = advance(queued);
    carried += before - queued.left.bytes;
    if (advanced && queued.left.bytes != 0) {
      queue_.push_front(&queued);
      continue;
    }
    queued.outstanding = 0;
    queued.moved.bytes = queued.work.ops.front().bytes;
    if (!advanced) jobs_.stop(queued, std::move(advanced).error());
    jobs_.settle(queued);
  }
  jobs_.takeReports(out);
}

bool FakeRail::breaks(QueuedOp& queued) {
  if (out()) return true;
  return !queued.why && !queued.begun && dice_.chance(weather_.lose_rail);
}

core::DirectMover::Outcome FakeRail::moveNow(const core::Work&, Progress& so_far,
                                             const std::atomic<bool>& pause) {
  return direct_move.with([](auto& move) { return move; })(so_far, pause);
}

// Breaks the rail for kRepair. All its ops fail, and half-copied ops stay half-copied.
void FakeRail::breakDown() {
  out_until_ = clock_.now() + kRepair;
  queue_.clear();
  jobs_.giveBack(*this, {.code = Code::kDevice,
                         .operation = "transfer",
                         .detail = "the rail broke",
                         .device = name_});
}

Status FakeRail::advance(QueuedOp& queued) {
  if (queued.why) return *queued.why;
  const core::Work& work = queued.work;
  const bool begins = !std::exchange(queued.begun, true);
  if (begins && dice_.chance(weather_.kill_peer)) kill_(*work.link);
  if (work.link->state().phase != core::LinkState::Phase::kReady)
    return Error{.code = Code::kPeerLost,
                 .operation = opKindName(work.kind),
                 .detail = "the peer died",
                 .device = name_};
  core::Op step = queued.left;
  step.bytes = std::min(step.bytes, kStep);
  VIADUCT_CHECK(carry_(*work.link, step, work.kind));
  queued.left.local += step.bytes;
  queued.left.remote += step.bytes;
  queued.left.bytes -= step.bytes;
  if (queued.left.bytes == 0) queued.left = std::exchange(queued.after, core::Op{});
  return Ok{};
}

// Injects harm: changes the copy of the op, but not its completion.
void FakeRail::harm(QueuedOp& queued) {
  constexpr std::uint64_t kWord = 8;
  const core::Op whole = queued.left;
  const std::uint64_t half = whole.bytes / 2 / kWord * kWord;
  if (half == 0) return;
  const auto part = [&](std::uint64_t from, std::uint64_t into, std::uint64_t bytes) {
    core::Op op = whole;
    const bool writes = queued.work.kind == OpKind::kWrite;
    op.local += writes ? from : into;
    op.remote += writes ? into : from;
    op.bytes = bytes;
    return op;
  };
  if (dice_.chance(weather_.stale)) {
    queued.left.bytes = 0;
  } else if (dice_.chance(weather_.shift)) {
    queued.left = part(kWord, 0, whole.bytes - kWord);
  } else if (dice_.chance(weather_.swap)) {
    queued.left = part(half, 0, half);
    queued.after = part(0, half, half);
  } else if (dice_.chance(weather_.corrupt)) {
    queued.after = part(0, half, kWord);
  }
}

void FakeRail::drop(const core::Link& link, core::Completions& out) {
  std::erase_if(queue_, [&](const QueuedOp* queued) { return queued->work.link == &link; });
  jobs_.take(link, {.code = Code::kPeerLost, .operation = "transfer", .device = name_}, out);
}

}  // namespace viaduct::fake
