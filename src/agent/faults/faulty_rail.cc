#include "agent/faults/faulty_rail.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <variant>

#include "agent/faults/faulty_link.h"
#include "base/log.h"

namespace viaduct::agent {
namespace {

std::byte* pointer(std::uint64_t address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a registered address of host memory
  return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
}

// Two agents with one seed may corrupt the same byte in two stages of a transfer. A second call
// therefore does not undo the first one.
std::byte wrongFor(std::byte right) {
  return static_cast<std::byte>(std::to_integer<unsigned>(right) + 1);
}

const core::SliceOf& sliceOf(const core::Completion& completion) {
  return std::visit([](const auto& done) -> const core::SliceOf& { return done.slice; },
                    completion);
}

}  // namespace

std::size_t FaultyRail::post(const core::Work& work) {
  auto& link = static_cast<FaultyLink&>(*work.link);
  core::Work left = work;
  left.link = &link.inner();
  while (!left.ops.empty()) {
    const std::size_t all = left.ops.size();
    if (isDown()) {
      failAsDown(altered_.emplace_back(left));
      return work.ops.size();
    }
    std::size_t some = source_.spared(all);
    core::Work part = left;
    // Works that write one object together (Work::whole) have to keep their sizes.
    if (some != 0 && (work.whole == 0 || some == all)) {
      part.ops = left.ops.first(some);
      const std::size_t took = handOn(part);
      left.ops = left.ops.subspan(took);
      if (took < some) break;
      continue;
    }
    if (work.whole != 0) source_.passed(some);
    some = work.whole != 0 ? all : 1;
    part.ops = left.ops.first(some);
    left.ops = left.ops.subspan(some);
    alter(part, link);
  }
  return work.ops.size() - left.ops.size();
}

std::size_t FaultyRail::handOn(core::Work work) {
  const std::size_t took = inner_.post(work);
  if (took == 0) return 0;
  source_.passed(took);
  plain_[work.slice].ops += took;
  return took;
}

void FaultyRail::alter(const core::Work& work, FaultyLink& link) {
  const OpFaults faults = source_.take();
  Altered& what = altered_.emplace_back(work);
  if (faults.kill_peer) {
    source_.count(FaultKind::kKillPeer);
    what.stopped = true;
    link.kill();
  }
  if (faults.stop) {
    source_.count(FaultKind::kStop);
    what.stopped = true;
  }
  if (faults.delay > Duration(0)) {
    source_.count(FaultKind::kDelay);
    what.ready = source_.clock().now() + faults.delay;
    source_.clock().at(what.ready, [] {});  // wakes the thread that polls
  }
  if (faults.corrupt && !what.stopped) corrupt(what);
  if (faults.drop_rail) return goDown(*faults.drop_rail);
  give(what);
}

void FaultyRail::corrupt(Altered& what) const {
  const core::Op op = what.work.ops.front();
  if (what.work.ops.size() != 1 || op.bytes == 0 || !host_pins_.contains(op.local_pin)) return;
  const std::uint64_t offset = source_.below(op.bytes);
  if (what.work.kind == OpKind::kRead)
    corruptRead(what, op, offset);
  else
    corruptWrite(what, op, offset);
}

void FaultyRail::corruptRead(Altered& what, const core::Op& op, std::uint64_t offset) const {
  what.corrupted = pointer(op.local + offset);
  source_.count(FaultKind::kCorrupt);
}

// The source memory belongs to the user, so one byte is sent from the scratch memory instead.
void FaultyRail::corruptWrite(Altered& what, const core::Op& op, std::uint64_t offset) const {
  const auto slot = source_.scratchSlot();
  if (!slot || !what.work.link->reaches(OpKind::kWrite, *slot, op.remote_pin)) return;
  what.scratch = source_.takeScratch();
  if (!what.scratch) return;
  std::byte& wrong = source_.scratch()[*what.scratch];
  wrong = wrongFor(*pointer(op.local + offset));
  const auto part = [&](std::uint64_t from, std::uint64_t bytes) {
    core::Op out = op;
    out.local += from;
    out.remote += from;
    out.bytes = bytes;
    return out;
  };
  if (offset != 0) what.pieces.push_back(part(0, offset));
  what.pieces.push_back(part(offset, 1));
  what.pieces.back().local = reinterpret_cast<std::uintptr_t>(&wrong);
  what.pieces.back().local_pin = *slot;
  if (offset + 1 != op.bytes) what.pieces.push_back(part(offset + 1, op.bytes - offset - 1));
  what.work.ops = what.pieces;
  source_.count(FaultKind::kCorrupt);
}

core::Failed FaultyRail::lost(const core::SliceOf& slice, std::uint64_t ops, OpKind kind) const {
  return {.slice = slice,
          .ops = ops,
          .why = {.code = Code::kDevice,
                  .operation = opKindName(kind),
                  .detail = "the rail is down",
                  .device = std::string(name()),
                  .cause = "drop-rail of VIADUCT_FAULTS"},
          .rail_lost = true};
}

void FaultyRail::failAsDown(Altered& what) {
  if (what.failure) return;
  what.failure = lost(what.slice, what.ops, what.work.kind);
  if (what.given != what.back) inner_.cancel(what);
}

// Ops in flight fail once the backend's rail has given them back.
void FaultyRail::goDown(Duration time) {
  source_.count(FaultKind::kDropRail);
  const auto now = source_.clock().now();
  const bool for_ever = time >= Clock::time_point::max() - now;
  down_until_ = for_ever ? Clock::time_point::max() : now + time;
  base::log(base::LogLevel::kWarning, "VIADUCT_FAULTS: rail {} is down", name());
  for (Altered& what : altered_) failAsDown(what);
  for (auto& [slice, plain] : plain_) {
    plain.dropped = true;
    inner_.cancel(*slice.sink);
  }
}

void FaultyRail::give(Altered& what) {
  if (!what.mayGive() || source_.clock().now() < what.ready) return;
  core::Work rest = what.work;
  rest.ops = rest.ops.subspan(what.given);
  what.given += inner_.post(rest);
}

void FaultyRail::finish(Altered& what, core::Completions& out) const {
  if (what.scratch) source_.giveScratch(*what.scratch);
  if (what.failure && what.total.ops != what.work.ops.size()) {
    out.emplace_back(*std::move(what.failure));
    return;
  }
  if (what.corrupted != nullptr) *what.corrupted = wrongFor(*what.corrupted);
  what.total.slice = what.slice;
  what.total.ops = what.ops;
  out.emplace_back(what.total);
}

void FaultyRail::Altered::moved(const core::Moved& some) {
  back += some.ops;
  total.ops += some.ops;
  total.bytes += some.bytes;
  total.injected += some.injected;
  total.batches += some.batches;
  total.by_kernel += some.by_kernel;
}

void FaultyRail::Altered::failed(core::Failed some) {
  back += some.ops;
  if (!failure) failure = core::Failed{slice, ops, std::move(some.why), some.rail_lost};
}

bool FaultyRail::isAltered(const core::Completion& one) const {
  return std::ranges::any_of(altered_,
                             [&](const Altered& any) { return &any == sliceOf(one).sink; });
}

void FaultyRail::takeBack(core::Completions& some) {
  std::erase_if(some, [this](core::Completion& one) {
    if (!isAltered(one)) return false;
    core::deliver(std::move(one));
    return true;
  });
  for (core::Completion& one : some) {
    const auto plain = plain_.find(sliceOf(one));
    if (plain == plain_.end()) continue;
    if (auto* const failed = std::get_if<core::Failed>(&one); failed && plain->second.dropped)
      *failed = lost(failed->slice, failed->ops, OpKind::kWrite);
    plain->second.ops -= core::endedOps(one);
    if (plain->second.ops == 0) plain_.erase(plain);
  }
}

void FaultyRail::endAltered(core::Completions& out) {
  for (auto what = altered_.begin(); what != altered_.end();) {
    give(*what);
    if (!what->isOver()) {
      ++what;
      continue;
    }
    finish(*what, out);
    what = altered_.erase(what);
  }
}

void FaultyRail::addTo(core::Completions& out) {
  takeBack(some_);
  std::ranges::move(some_, std::back_inserter(out));
  some_.clear();
  endAltered(out);
}

void FaultyRail::poll(core::Completions& out) {
  inner_.poll(some_);
  addTo(out);
}

void FaultyRail::collect(core::Completions& out) {
  inner_.collect(some_);
  addTo(out);
}

void FaultyRail::handleEvents(core::Completions& out) {
  inner_.handleEvents(some_);
  addTo(out);
}

void FaultyRail::cancel(const core::Sink& sink) {
  for (Altered& what : altered_) {
    if (what.slice.sink != &sink) continue;
    what.failure = core::Failed{
        what.slice, what.ops, {.code = Code::kCancelled, .operation = opKindName(what.work.kind)}};
    if (what.given != what.back) inner_.cancel(what);
  }
  for (auto& [slice, plain] : plain_)
    if (slice.sink == &sink) plain.dropped = false;
  inner_.cancel(sink);
}

bool FaultyRail::busy() const {
  const auto now = source_.clock().now();
  return inner_.busy() || std::ranges::any_of(altered_, [&](const Altered& what) {
           return what.isOver() || (what.mayGive() && what.ready <= now);
         });
}

void FaultyRail::drop(const core::Link& link, core::Completions& out) {
  for (auto what = altered_.begin(); what != altered_.end();) {
    if (what->work.link != &link) {
      ++what;
      continue;
    }
    if (!what->failure)
      what->failure = core::Failed{
          what->slice, what->ops, {.code = Code::kPeerLost, .device = std::string(name())}};
    finish(*what, out);
    what = altered_.erase(what);
  }
}

}  // namespace viaduct::agent
