#include <fmt/format.h>
#include <viaduct/mark_stream.h>

#include <functional>
#include <string>
#include <utility>

#include "agent/peers/peer_impl.h"

namespace viaduct {
namespace {

using agent::Basis;
using agent::MarkStreamImpl;

using Condition = std::function<bool()>;

// Waits for `done`. If `or_ended`, the end of the stream ends the wait too. `missing` says in words
// what has not happened.
Status waitFor(MarkStreamImpl& stream, const Condition& done, bool or_ended, Deadline until,
               const std::string& missing) {
  Basis& agent = stream.peer().basis();
  VIADUCT_CHECK(agent.ofThisProcess("wait for marks"));
  auto held = agent.hold();
  const auto given_up = [&] { return or_ended && stream.ended(); };
  const bool over = agent.engine().waitHeld([&] { return done() || given_up() || agent.closed(); },
                                            until.at(), &stream.watchers);
  if (done()) return Ok{};
  if (const auto& why = stream.ended(); or_ended && why) return *why;
  if (over) VIADUCT_CHECK(agent.usable("wait for marks"));
  return Error{.code = Code::kTimeout,
               .operation = "wait for marks",
               .detail = fmt::format("{}: {} of {} marks of stream {} have arrived", missing,
                                     stream.count(), stream.size(), stream.number()),
               .peer = stream.peer().name(),
               .cause = "the peer has not finished that part, or is slow",
               .remedy = "wait again, or end the stream"};
}

Error outOfRange(const MarkStreamImpl& stream, const char* what, std::uint32_t wanted) {
  return {.code = Code::kInvalid,
          .operation = "wait for marks",
          .detail = fmt::format("{} {} of stream {}, which has {} marks", what, wanted,
                                stream.number(), stream.size()),
          .peer = stream.peer().name()};
}

}  // namespace

MarkStream::MarkStream(std::shared_ptr<MarkStreamImpl> impl) : impl_(std::move(impl)) {}
MarkStream::MarkStream(MarkStream&&) noexcept = default;

MarkStream& MarkStream::operator=(MarkStream&& other) noexcept {
  MarkStream old(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

MarkStream::~MarkStream() {
  if (!impl_) return;
  const auto held = impl_->peer().basis().hold();
  impl_->peer().closeMarks(*impl_);
}

std::uint64_t MarkStream::number() const { return impl_->number(); }
bool MarkStream::has(std::uint32_t mark) const { return impl_->has(mark); }
std::uint32_t MarkStream::count() const { return impl_->count(); }

Status MarkStream::wait(std::uint32_t mark, Deadline until) const {
  const auto done = [&] { return impl_->has(mark); };
  if (done()) return Ok{};
  if (mark >= impl_->size()) return outOfRange(*impl_, "mark", mark);
  return waitFor(*impl_, done, true, until, fmt::format("mark {} is missing", mark));
}

Status MarkStream::waitCount(std::uint32_t count, Deadline until) const {
  const auto done = [&] { return impl_->count() >= count; };
  if (done()) return Ok{};
  if (count > impl_->size()) return outOfRange(*impl_, "count", count);
  return waitFor(*impl_, done, true, until, fmt::format("fewer than {} marks", count));
}

Status MarkStream::mark(std::uint32_t number) const {
  Basis& agent = impl_->peer().basis();
  VIADUCT_CHECK(agent.usable("mark"));
  const auto held = agent.hold();
  if (const auto& why = impl_->ended()) return *why;
  return impl_->peer().mark({.stream = impl_->number(), .number = number});
}

void MarkStream::end(Error why) const {
  const auto held = impl_->peer().basis().hold();
  impl_->peer().endMarks(*impl_, std::move(why));
}

Status MarkStream::ended() const {
  const auto held = impl_->peer().basis().hold();
  if (const auto& why = impl_->ended()) return *why;
  return Ok{};
}

Status MarkStream::over(Deadline until) const {
  const auto over = [&] { return impl_->peer_ended || !impl_->peer().holdsMarks(*impl_); };
  return waitFor(*impl_, over, false, until, "the peer has not ended the stream");
}

}  // namespace viaduct
