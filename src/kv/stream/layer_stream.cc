#include "kv/stream/layer_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace viaduct::kv {

Result<std::shared_ptr<LayerStream>> LayerStream::open(const Role& role, Agent& agent,
                                                       const Peer& peer,
                                                       std::vector<std::uint32_t> layers,
                                                       KvRequest request) {
  std::shared_ptr<LayerStream> out(new LayerStream(role, std::move(layers), std::move(request)));
  MarkStreamOptions options{.number = out->request_.stream,
                            .marks = role.has_marks ? static_cast<std::uint32_t>(out->count()) : 0};
  if (role.moves)
    options.on_change = [weak = std::weak_ptr(out)] {
      if (const auto self = weak.lock()) self->changed();
    };
  auto marks = agent.openMarks(peer, std::move(options));
  if (!marks) return named(std::move(marks).error(), fmt::format("open {}", out->request()));
  out->marks_ = *std::move(marks);
  return out;
}

Status LayerStream::plan(OpKind kind, Agent& agent, const Peer& peer, const KvLayers& layers,
                         std::span<const KvBlocks> blocks) {
  const auto failed = [&](Error why, std::string operation) -> Status {
    why = named(std::move(why), std::move(operation));
    fail(why);
    return why;
  };
  auto selections = layers.select(blocks);
  if (!selections)
    return failed(std::move(selections).error(), fmt::format("select {}", request()));
  for (std::uint32_t i = 0; i < selections->size(); ++i) {
    auto& [source, destination] = (*selections)[i];
    const auto on_end = [weak = weak_from_this(), i](const TransferEnd& end) {
      if (const auto self = weak.lock()) self->ended(i, end);
    };
    const bool write = kind == OpKind::kWrite;
    auto transfer =
        agent.plan(kind, peer, write ? source : destination, write ? destination : source,
                   {.require = request_.require, .on_end = on_end});
    if (!transfer) return failed(std::move(transfer).error(), what("plan", i));
    transfers_.push_back(*std::move(transfer));
  }
  posted_.resize(transfers_.size());
  opened_ = true;
  changed();
  return Ok{};
}

void LayerStream::close() {
  if (!allDone()) cancel("its owner closed it before all layers were moved");
  for (Transfer& transfer : transfers_)
    if (transfer.state() == TransferState::kRunning) static_cast<void>(transfer.wait());
}

bool LayerStream::allDone() const {
  if (!role_.moves) return marks_->count() == count();
  return std::ranges::all_of(transfers_, [](const Transfer& transfer) {
    return transfer.state() == TransferState::kDone;
  });
}

Result<std::uint32_t> LayerStream::indexOf(std::uint32_t layer) const {
  const auto found = std::lower_bound(layers_.begin(), layers_.end(), layer);
  if (found != layers_.end() && *found == layer)
    return static_cast<std::uint32_t>(found - layers_.begin());
  return Error{.code = Code::kInvalid,
               .operation = fmt::format("{} layer {} of {}", role_.verb, layer, request()),
               .detail = "the plan has no such layer",
               .remedy = "KvLayers::layers() lists them"};
}

bool LayerStream::has(std::uint32_t layer) const {
  const auto index = indexOf(layer);
  return index && marks_->has(*index);
}

Status LayerStream::post(std::uint32_t index, bool once) {
  Error why;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return named(*failure_, what(role_.verb, index));
    if (posted_[index] && once)
      return Error{.code = Code::kInvalid,
                   .operation = what(role_.verb, index),
                   .detail = "the layer was ready before"};
    if (posted_[index]) return Ok{};
    auto posted =
        transfers_[index].post({.mark = Mark{.stream = marks_->number(), .number = index}});
    posted_[index] = posted.has_value();
    if (posted) return Ok{};
    why = named(std::move(posted).error(), what(role_.verb, index));
  }
  fail(why);
  return why;
}

bool LayerStream::isPosted(std::uint32_t index) const {
  const std::lock_guard lock(mutex_);
  return posted_[index];
}

Status LayerStream::postAll() {
  for (std::uint32_t i = 0; i < count(); ++i) VIADUCT_CHECK(post(i, false));
  return Ok{};
}

Status LayerStream::mark(std::uint32_t index) {
  auto sent = marks_->mark(index);
  if (sent) return Ok{};
  return named(std::move(sent).error(), what(role_.verb, index));
}

Status LayerStream::waitMark(std::uint32_t index, Deadline until) const {
  auto arrived = marks_->wait(index, until);
  if (arrived) return Ok{};
  return named(std::move(arrived).error(), what(role_.verb, index));
}

Status LayerStream::waitMarks(std::uint32_t count, Deadline until) const {
  auto arrived = marks_->waitCount(count, until);
  if (arrived) return Ok{};
  // Names the first layer that is missing.
  std::uint32_t missing = 0;
  while (missing + 1 < this->count() && marks_->has(missing)) ++missing;
  return named(std::move(arrived).error(), what("wait for", missing));
}

Status LayerStream::waitRead(std::uint32_t index, Deadline until) {
  if (!isPosted(index)) {
    VIADUCT_CHECK(waitMark(index, until));
    VIADUCT_CHECK(post(index, false));  // the callback may not have run yet
  }
  return waitTransfer(index, until);
}

Status LayerStream::waitTransfer(std::uint32_t index, Deadline until) {
  auto moved = transfers_[index].wait(until);
  if (moved) return Ok{};
  if (auto why = failure(); why && moved.error().code == Code::kCancelled) return *std::move(why);
  return named(std::move(moved).error(), what(role_.verb, index));
}

Status LayerStream::waitPosted(Deadline until) {
  for (std::uint32_t i = 0; i < count(); ++i)
    if (isPosted(i)) VIADUCT_CHECK(waitTransfer(i, until));
  if (auto why = failure()) return *std::move(why);
  return Ok{};
}

void LayerStream::cancel(std::string_view why) {
  fail({.code = Code::kCancelled,
        .operation = fmt::format("{} {}", role_.verb, request()),
        .detail = std::string(why)});
}

Status LayerStream::over(Deadline until) const {
  auto over = marks_->over(until);
  if (over) return Ok{};
  return named(std::move(over).error(), fmt::format("end {}", request()));
}

// Runs after marks have arrived or the stream has ended.
void LayerStream::changed() {
  if (!opened_) return;
  if (const Status ended = marks_->ended(); !ended) return fail(ended.error());
  if (!role_.has_marks) return;
  for (std::uint32_t i = 0; i < count(); ++i)
    if (marks_->has(i)) static_cast<void>(post(i, false));
}

void LayerStream::ended(std::uint32_t index, const TransferEnd& end) {
  if (end.state == TransferState::kFailed && end.error)
    fail(named(*end.error, what(role_.verb, index)));
  else if (failure())
    settle();
}

std::optional<Error> LayerStream::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

// The first error ends the request.
void LayerStream::fail(const Error& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = why;
  }
  settle();
}

// Ends the stream once no transfer runs: the other end then knows that its memory is left alone.
void LayerStream::settle() {
  bool running = false;
  for (Transfer& transfer : transfers_) {
    if (transfer.state() == TransferState::kRunning) transfer.cancel();
    running = running || transfer.state() == TransferState::kRunning;
  }
  if (!running) marks_->end(*failure());
}

std::string LayerStream::request() const {
  return request_.name.empty() ? fmt::format("request {}", request_.stream)
                               : fmt::format("request {}", request_.name);
}

std::string LayerStream::what(const char* verb, std::uint32_t index) const {
  return fmt::format("{} layer {} of {}", verb, layers_[index], request());
}

// Keeps the first operation in the detail.
Error LayerStream::named(Error why, std::string operation) {
  if (!why.operation.empty())
    why.detail = fmt::format("{}: {}", std::exchange(why.operation, {}), why.detail);
  why.operation = std::move(operation);
  return why;
}

}  // namespace viaduct::kv
