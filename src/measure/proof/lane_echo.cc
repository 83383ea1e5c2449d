// Runs a ping-pong: a write with a note, and its echo with another note.
#include <algorithm>

#include "base/bytes.h"
#include "measure/proof/lane.h"

namespace viaduct::measure {
namespace {

using base::bytesOf;
using Seconds = std::chrono::duration<double>;

constexpr std::string_view kBall = "b", kOver = "o";

}  // namespace

Result<Note> Lane::waitNote(const Orders& orders) {
  for (;;) {
    auto note = seed_.notes(kLaneSlice);
    if (note || note.error().code != Code::kTimeout) return note;
    if (orders.load() == Order::kCancel)
      return Error{.code = Code::kCancelled, .operation = "bench"};
    if (seed_.peer.state() == PeerState::kLost)
      return Error{.code = Code::kPeerLost,
                   .operation = "bench",
                   .detail = "the other end of the ping-pong is lost",
                   .peer = seed_.peer.name()};
  }
}

// Makes one write with a note, and waits until the write has ended at this end.
Status Lane::bounce(std::uint64_t number, const Orders& orders) {
  if (seed_.marks != nullptr) seed_.marks->posting(number, setOf(number));
  VIADUCT_CHECK(transfer(number).post({.note = bytesOf(kBall)}));
  for (;;) {
    auto done = wait(number, kLaneSlice);
    if (done) countTransfer();
    if (done || done.error().code != Code::kTimeout) return done;
    if (orders.load() == Order::kCancel)
      return Error{.code = Code::kCancelled, .operation = "bench"};
  }
}

Result<LaneTimes> Lane::pingPong(const Goal& goal, const Orders& orders) {
  LaneTimes out;
  auto start = Clock::now(), now = start;
  out.start = start;
  while (orders.load(std::memory_order_relaxed) != Order::kFinish &&
         (out.transfers < goal.lead + goal.iterations || now - start < goal.time)) {
    const auto begin = now;
    const std::uint64_t number = begun_++;
    VIADUCT_CHECK(bounce(number, orders));
    VIADUCT_TRY(const Note back, waitNote(orders));
    if (seed_.marks != nullptr) seed_.marks->ended(number);
    now = Clock::now();
    if (++out.transfers == goal.lead) start = out.start = now;
    if (out.transfers <= goal.lead) continue;
    const auto half = std::chrono::nanoseconds(now - begin).count() / 2;
    if (goal.timed) counts_.latency.record(static_cast<std::uint64_t>(half));
    ++out.iterations;
  }
  // Counts the bytes of both directions, because the echo carries as many.
  out.parts.push_back({2 * out.iterations * seed_.row.bytes(), Seconds(now - start).count()});
  VIADUCT_CHECK(seed_.peer.note(kOver));
  return out;
}

Result<LaneTimes> Lane::echo(const Orders& orders) {
  LaneTimes out;
  for (;;) {
    VIADUCT_TRY(const Note note, waitNote(orders));
    if (note.text() == kOver) return out;
    VIADUCT_CHECK(bounce(begun_++, orders));
    ++out.iterations;
  }
}

}  // namespace viaduct::measure
