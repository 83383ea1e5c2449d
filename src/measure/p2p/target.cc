#include "measure/p2p/target.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "host/facts.h"
#include "measure/p2p/pair_group.h"
#include "measure/p2p/request.h"
#include "measure/result/report.h"
#include "measure/run/worker.h"

namespace viaduct::measure::p2p {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookAround = 50ms;  // how often the target checks `stop` and the guest
// A guest, which is the served initiator, may take at most 1 / kPartOfMemory of the host's memory.
// If the target has no secret, any process can be a guest.
constexpr std::uint64_t kPartOfMemory = 4;

class Target {
 public:
  Target(Agent& agent, const Settings& settings, std::optional<std::uint32_t> gpu, P2pTold told,
         Build build)
      : agent_(agent),
        settings_(settings),
        gpu_(gpu),
        told_(std::move(told)),
        build_(std::move(build)) {}

  void serve(const base::StopFlag& stop) {
    while (!stop.load()) {
      if (const auto note = agent_.waitNote(kLookAround)) take(*note);
      if (asked_) run(stop);
      lookAfterGuest();
    }
    if (guest_) told_(fmt::format("{} was connected when the target ended", guest_name_));
  }

 private:
  void take(const Note& note) {
    auto peer = agent_.peer(note.from);
    if (!peer) return;  // the sender has left again
    const auto request = decodeRequest(note.bytes);
    if (!request) {
      told_(fmt::format("{} sent a malformed request: {}", note.from, request.error().text()));
      return;
    }
    if (request->verb == P2pRequest::Verb::kLeave) {
      if (note.from == guest_name_) left_ = true;
      return;
    }
    P2pAnswer reply{.number = request->number};
    if (guest_ && guest_name_ != note.from) {
      reply.value = Error{.code = Code::kBusy,
                          .operation = "p2p",
                          .detail = fmt::format("the target is busy with {}", guest_name_)};
    } else {
      if (!guest_) {
        guest_ = *peer;
        guest_name_ = note.from;
        told_(fmt::format("{} connected", guest_name_));
      }
      reply.value = answer(*request);
    }
    // If the answer cannot be sent, the guest is gone, which lookAfterGuest() notices.
    static_cast<void>(peer->note(encode(reply)));
  }

  Result<std::string> answer(const P2pRequest& request) {
    if (request.verb == P2pRequest::Verb::kGreet) return greet();
    VIADUCT_CHECK(prepare(request.spec));
    asked_ = request.spec;
    asked_->target_gpu = gpu_;
    return std::string();
  }

  Result<std::string> greet() {
    Report about;
    about.environment.members = {{.rank = 1,
                                  .name = agent_.name(),
                                  .role = "target",
                                  .host = host::facts(),
                                  .build = build_}};
    return toJson(about);
  }

  Status prepare(const Spec& spec) const {
    VIADUCT_TRY(const DeviceBytes bytes, deviceBytes(spec));
    const std::uint64_t most = host::facts().memory / kPartOfMemory;
    if (spec.rows.size() == 1 && (most == 0 || bytes.target <= most)) return Ok{};
    return Error{
        .code = Code::kExhausted,
        .operation = "p2p",
        .detail = fmt::format(
            "a buffer of {} bytes exceeds the target's limit of {}, a quarter of its memory",
            bytes.target, most),
        .remedy = "use smaller --buffer_sizes"};
  }

  // Runs this end's part of the measurement that the guest, the present initiator, asked for.
  void run(const base::StopFlag& stop) {
    const Spec spec = *std::exchange(asked_, std::nullopt);
    const NoteSource notes = [this](Deadline until) { return nextOfGuest(until); };
    PairGroup group(1, *guest_, notes, [this] { return left_.load(); });
    Worker worker(spec, agent_, group, settings_, stop, {}, group.notes());
    worker.know(0, *guest_);
    auto done = worker.open();
    if (done) {
      const auto measured = worker.measure({&spec.rows.front(), 1});
      if (!measured) done = measured.error();
    }
    // The initiator reports errors itself, unless it is gone.
    if (!done && !left_ && !stop.load() && group.trouble()) told_(done.error().text());
  }

  // Returns the guest's next note about the measurement. While waiting, answers other initiators.
  Result<Note> nextOfGuest(Deadline until) {
    for (;;) {
      VIADUCT_TRY(Note note, agent_.waitNote(until));
      if (note.from == guest_name_ && !isRequest(note.bytes)) return note;
      take(note);
      if (left_) return Error{.code = Code::kTimeout, .operation = "p2p"};
    }
  }

  // Dismisses a guest that has died or left, so that the next one is served.
  void lookAfterGuest() {
    if (!guest_) return;
    if (left_) return dismiss("disconnected");
    const PeerState state = guest_->state();
    if (state == PeerState::kLost) dismiss("was lost");
    if (state == PeerState::kGone) dismiss("disconnected");
  }

  void dismiss(const std::string& why) {
    if (!guest_) return;
    told_(fmt::format("{} {}", guest_name_, why));
    left_ = false;
    guest_->forget();
    guest_.reset();
    guest_name_.clear();
  }

  Agent& agent_;
  const Settings& settings_;
  const std::optional<std::uint32_t> gpu_;
  const P2pTold told_;
  const Build build_;
  std::optional<Peer> guest_;
  std::string guest_name_;
  std::optional<Spec> asked_;  // the requested measurement, before it begins
  std::atomic<bool> left_{false};
};

}  // namespace

void serveP2p(Agent& agent, const Settings& settings, std::optional<std::uint32_t> gpu,
              P2pTold told, const base::StopFlag& stop, Build build) {
  Target(agent, settings, gpu, std::move(told), std::move(build)).serve(stop);
}

}  // namespace viaduct::measure::p2p
