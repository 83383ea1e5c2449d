#include "kv/stream/layer_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace viaduct::kv {
namespace {

// Layers that run at once: at least so many, and more while they have fewer bytes.
constexpr std::uint64_t kEnoughLayers = 2, kEnoughBytes = std::uint64_t{32} << 20U;

}  // namespace

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
  layer_states_.resize(transfers_.size());
  opened_ = true;
  changed();
  return Ok{};
}

void LayerStream::close() {
  if (allDone()) return;
  cancel("its owner closed it before all layers were moved");
  for (Transfer& transfer : transfers_)
    if (transfer.state() == TransferState::kRunning) static_cast<void>(transfer.wait());
  settle();  // the callbacks of these transfers may come after the destructor
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
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return named(*failure_, what(role_.verb, index));
    if (layer_states_[index] != Layer::kIdle) {
      if (!once) return Ok{};
      return Error{.code = Code::kInvalid,
                   .operation = what(role_.verb, index),
                   .detail = "the layer was ready before"};
    }
    layer_states_[index] = Layer::kQueued;
    queue_.push_back(index);
    postQueued();
    if (!failure_) return Ok{};
  }
  settle();
  return *failure();
}

// Under mutex_. Transfers that run at once share the rails, so that all would end late. The first
// layers are to end first, so only as many run as keep the rails busy.
void LayerStream::postQueued() {
  while (!queue_.empty() && !failure_ &&
         (running_ < kEnoughLayers || running_bytes_ < kEnoughBytes)) {
    const std::uint32_t index = queue_.front();
    queue_.pop_front();
    auto posted =
        transfers_[index].post({.mark = Mark{.stream = marks_->number(), .number = index}});
    if (posted) {
      layer_states_[index] = Layer::kPosted;
      ++running_;
      running_bytes_ += transfers_[index].bytes();
    } else {
      failure_ = named(std::move(posted).error(), what(role_.verb, index));
    }
    changed_.notify_all();
    watchers_.tell();
  }
}

bool LayerStream::isAsked(std::uint32_t index) const {
  const std::lock_guard lock(mutex_);
  return layer_states_[index] != Layer::kIdle;
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
  if (!isAsked(index)) {
    VIADUCT_CHECK(waitMark(index, until));
    VIADUCT_CHECK(post(index, false));  // the callback may not have run yet
  }
  return waitTransfer(index, until);
}

void LayerStream::waitChanged(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done,
                              Deadline until) {
  if (until.at() == Clock::time_point::max())
    changed_.wait(lock, done);
  else
    changed_.wait_until(lock, until.at(), done);
}

Status LayerStream::waitTransfer(std::uint32_t index, Deadline until) {
  {
    std::unique_lock lock(mutex_);
    const auto posted = [&] { return layer_states_[index] == Layer::kPosted || failure_; };
    if (!posted() && !base::Attempt::refuses(watchers_)) waitChanged(lock, posted, until);
    if (layer_states_[index] != Layer::kPosted)
      return failure_.value_or(Error{.code = Code::kTimeout,
                                     .operation = what(role_.verb, index),
                                     .detail = "earlier layers are still running"});
  }
  auto moved = transfers_[index].wait(until);
  if (moved) return Ok{};
  if (auto why = failure(); why && moved.error().code == Code::kCancelled) return *std::move(why);
  return named(std::move(moved).error(), what(role_.verb, index));
}

Status LayerStream::waitPosted(Deadline until) {
  for (std::uint32_t i = 0; i < count(); ++i)
    if (isAsked(i)) VIADUCT_CHECK(waitTransfer(i, until));
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
  {
    const std::lock_guard lock(mutex_);
    --running_;
    running_bytes_ -= transfers_[index].bytes();
    if (end.state == TransferState::kFailed && end.error && !failure_)
      failure_ = named(*end.error, what(role_.verb, index));
    postQueued();
    if (!failure_) return;
  }
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
    watchers_.tell();
  }
  changed_.notify_all();
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
