#include "measure/p2p/target.h"

#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <utility>

#include "host/facts.h"
#include "host/processors.h"
#include "measure/load/pattern.h"
#include "measure/result/report.h"

namespace viaduct::measure::p2p {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookAround = 50ms;  // how often `stop` and the guest are looked at
// A guest who was let in without a secret must not take all that this host has.
constexpr std::uint64_t kPartOfMemory = 4;

}  // namespace

Target::Target(Agent& agent, std::vector<std::string> rails, Told told)
    : agent_(agent), told_(std::move(told)), observer_(std::move(rails)) {}

void Target::serve(const StopFlag& stop) {
  while (!stop.load()) {
    if (const auto note = agent_.waitNote(kLookAround)) take(*note);
    lookAfterGuest();
  }
  dismiss("was here when the target ended");
}

void Target::take(const Note& note) {
  auto peer = agent_.peer(note.from);
  if (!peer) return;  // gone again
  const auto request = decodeRequest(note.bytes);
  if (!request) {
    told_(fmt::format("{} was not understood: {}", note.from, request.error().text()));
    return;
  }
  if (request->verb == Request::Verb::kLeave) {
    if (note.from == guest_name_) dismiss("has left");
    return;
  }
  Answer reply{.number = request->number};
  if (guest_ && guest_name_ != note.from) {
    reply.value = Error{.code = Code::kBusy,
                        .operation = "p2p",
                        .detail = fmt::format("the target is busy with {}", guest_name_)};
  } else {
    if (!guest_) {
      guest_ = *peer;
      guest_name_ = note.from;
      told_(fmt::format("{} is here", guest_name_));
    }
    reply.value = answer(*request);
  }
  // A guest who cannot be answered is gone: that is noticed by itself.
  static_cast<void>(peer->note(encode(reply)));
}

Result<std::string> Target::answer(const Request& request) {
  switch (request.verb) {
    case Request::Verb::kGreet:
      return greet();
    case Request::Verb::kPrepare:
      return prepare(request);
    case Request::Verb::kVerify:
      return verify(request);
    case Request::Verb::kBefore:
      observer_.before();
      cpu_before_ = host::ownProcessorSeconds();
      return std::string();
    case Request::Verb::kAfter:
      return after();
    case Request::Verb::kLeave:
      break;
  }
  return std::string();
}

Result<std::string> Target::greet() {
  Report about;
  about.environment.members = {
      {.rank = 1, .name = agent_.name(), .role = "target", .host = host::facts()}};
  return toJson(about);
}

Result<std::string> Target::prepare(const Request& request) {
  memory_.reset();
  const std::uint64_t most = host::facts().memory / kPartOfMemory;
  if (request.bytes == 0 || (most != 0 && request.bytes > most))
    return Error{.code = Code::kExhausted,
                 .operation = "p2p",
                 .detail = fmt::format("a buffer of {} bytes; the target gives up to {}, a quarter "
                                       "of its memory",
                                       request.bytes, most),
                 .remedy = "ask for smaller --buffer_sizes"};
  VIADUCT_TRY(memory_, agent_.allocate(request.bytes, {.label = request.label}));
  return std::string();
}

Result<std::string> Target::verify(const Request& request) {
  if (!memory_)
    return Error{.code = Code::kInvalid, .operation = "p2p", .detail = "no memory was prepared"};
  // Orders what the agent's own thread has written before what is read here.
  agent_.poll();
  const Pattern pattern{
      .seed = request.seed, .block_bytes = memory_->size(), .blocks = 1, .epoch = request.epoch};
  const auto wrong = pattern.verify(memory_->bytes(), 0);
  if (!wrong) return std::string();
  return fmt::format("wrong from offset {}: {}", wrong->offset, wrong->text);
}

std::string Target::after() {
  observer_.after({});
  base::Writer out;
  out.put(std::bit_cast<std::uint64_t>(host::ownProcessorSeconds() - cpu_before_))
      .text(observer_.encoded());
  const base::Bytes bytes = out.take();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void Target::lookAfterGuest() {
  if (!guest_) return;
  const PeerState state = guest_->state();
  if (state == PeerState::kLost) dismiss("was lost");
  if (state == PeerState::kGone) dismiss("has left");
}

void Target::dismiss(const std::string& why) {
  if (!guest_) return;
  told_(fmt::format("{} {}", guest_name_, why));
  memory_.reset();
  guest_->forget();
  guest_.reset();
  guest_name_.clear();
}

}  // namespace viaduct::measure::p2p
