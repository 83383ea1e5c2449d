#include "backends/fake/fake_rail.h"

#include <algorithm>
#include <utility>

namespace viaduct::fake {

std::size_t FakeRail::post(const core::Work& work) {
  const std::size_t taken = std::min(kRoom - queue_.size(), work.ops.size());
  for (std::size_t i = 0; i < taken; ++i) {
    core::Work one = work;
    one.ops = work.ops.subspan(i, 1);
    QueuedOp& queued = jobs_.add<QueuedOp>(one, this);
    queued.next_op = queued.outstanding = 1;
    queued.left = one.ops.front();
    if (lie_ != Lie::kNone) falsify(queued);
    queue_.push_back(&queued);
  }
  return taken;
}

void FakeRail::poll(core::Completions& out) {
  if (busy()) pollers.with([](auto& threads) { threads.insert(std::this_thread::get_id()); });
  if (const Interruption interrupt = interruption.with([](auto& one) { return one; });
      interrupt && !interrupt())
    return;
  if (this->out()) breakDown();
  std::uint64_t carried = 0;
  while (!queue_.empty() && carried < 4 * kStep) {
    QueuedOp& queued = *queue_.front();
    queue_.pop_front();
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

core::DirectMover::Outcome FakeRail::moveNow(const core::Work&, Progress& so_far,
                                             const std::atomic<bool>& pause) {
  return direct_move.with([](auto& move) { return move; })(so_far, pause);
}

// All ops of a broken rail fail, and half-copied ops stay half-copied.
void FakeRail::breakDown() {
  queue_.clear();
  jobs_.giveBack(*this, {.code = Code::kDevice,
                         .operation = "transfer",
                         .detail = "the rail broke",
                         .device = name_});
}

Status FakeRail::advance(QueuedOp& queued) {
  if (queued.why) return *queued.why;
  const core::Work& work = queued.work;
  core::Op step = queued.left;
  step.bytes = std::min(step.bytes, kStep);
  VIADUCT_CHECK(carry_(*work.link, step, work.kind));
  queued.left.local += step.bytes;
  queued.left.remote += step.bytes;
  queued.left.bytes -= step.bytes;
  if (queued.left.bytes == 0) queued.left = std::exchange(queued.after, core::Op{});
  return Ok{};
}

// Changes the copy of the op, but not its completion.
void FakeRail::falsify(QueuedOp& queued) const {
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
  if (lie_ == Lie::kStale) {
    queued.left.bytes = 0;
  } else if (lie_ == Lie::kShift) {
    queued.left = part(kWord, 0, whole.bytes - kWord);
  } else if (lie_ == Lie::kSwap) {
    queued.left = part(half, 0, half);
    queued.after = part(0, half, half);
  } else {
    queued.after = part(0, half, kWord);
  }
}

void FakeRail::drop(const core::Link& link, core::Completions& out) {
  std::erase_if(queue_, [&](const QueuedOp* queued) { return queued->work.link == &link; });
  jobs_.take(link, {.code = Code::kPeerLost, .operation = "transfer", .device = name_}, out);
}

}  // namespace viaduct::fake
