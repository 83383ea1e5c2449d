// Connection: the handshake of its ends, from the proof to the verdict.
#include <fmt/format.h>

#include <span>
#include <utility>

#include "agent/session/connection.h"
#include "core/setting_name.h"

namespace viaduct::agent {
namespace {

// `granted`: this end has shown the claim of a Card with a grant.
Error wrongSecret(bool granted) {
  if (granted)
    return {.code = Code::kDenied,
            .operation = "handshake",
            .detail = "the Card's secret does not belong to its grants at that agent",
            .cause =
                "the Card was changed, or belongs to another agent or to an earlier life of "
                "this one, or the agent has revoked all of its Cards",
            .remedy = "get a new Card from that agent"};
  return {
      .code = Code::kDenied,
      .operation = "handshake",
      .detail = "the secret does not match the other end's",
      .cause =
          "that agent restarted after it gave the Card, or the two have different group secrets",
      .remedy = fmt::format("pass a new Card of that agent, or give both ends the same secret: {}",
                            core::settingName("secret", "VIADUCT_SECRET"))};
}

}  // namespace

// Refuses the other end. Before there are keys, a refusal carries only a code.
void Connection::deny(Code code) {
  static_cast<void>(write(FrameType::kDeny, base::encode(code), {}, {}));
}

Result<base::Handshake::Step> Connection::takeProof(const Frame& frame) {
  if (typeOf(frame) == FrameType::kDeny) {
    if (!frame.payload.empty() && frame.payload[0] == static_cast<std::byte>(Code::kDenied))
      return wrongSecret(!config_.claim.empty());
    return protocolError("the other end could not read a frame");
  }
  const auto stage = static_cast<base::Handshake::Stage>(frame.type - numberOf(FrameType::kOpen));
  auto taken = proof_->take(stage, frame.payload, frame.minor);
  if (!taken && taken.error().code == Code::kDenied) return wrongSecret(!config_.claim.empty());
  return taken;
}

bool Connection::prove(const Frame& frame) {
  auto taken = takeProof(frame);
  if (!taken) {
    if (typeOf(frame) != FrameType::kDeny) deny(taken.error().code);
    return fail(std::move(taken).error());
  }
  const auto next = static_cast<FrameType>(frame.type + 1);
  if (!taken->reply.empty() && !say(next, taken->reply)) return false;
  if (!taken->proven) return true;
  if (const Status used = useKeys(); !used) return fail(used.error());
  if (role_ == Role::kDialer) return true;
  const auto hello = ourHello();
  return hello ? say(FrameType::kHello, *hello) : fail(hello.error());
}

Status Connection::useKeys() {
  // start() has set it.
  const base::Handshake proof = *std::exchange(proof_, std::nullopt);
  common_ = proof.common();
  claim_ = proof.claim();
  phase_ = ConnectionPhase::kMeeting;
  reader_.decoder().setLimit(kMaxHelloPayload);
  if (socket_facts_.is_unix) {
    reader_.acceptFds();
    return Ok{};
  }
  VIADUCT_CHECK(writer_.useKey(proof.sendingKey()));
  return reader_.decoder().useKey(proof.receivingKey());
}

bool Connection::meet(const Frame& frame) {
  if (typeOf(frame) == FrameType::kResume) return hearResume(frame);
  auto hello = base::decode<Hello>(frame.payload);
  if (!hello) return fail(hello.error());
  theirs_ = std::move(*hello);
  Result<Life> verdict = Life{};
  if (!tell([&] { verdict = user_.judge(theirs_); })) return false;
  return role_ == Role::kDialer ? introduce(verdict) : answer(verdict);
}

bool Connection::introduce(const Result<Life>& verdict) {
  if (!verdict) return fail(verdict.error());
  if (config_.resume && !say(FrameType::kResume, base::encode(resumeOf(*config_.resume))))
    return false;
  phase_ = ConnectionPhase::kAwaitingVerdict;
  return say(FrameType::kHello, std::exchange(hello_, {}));
}

bool Connection::answer(const Result<Life>& verdict) {
  if (!verdict)
    return say(FrameType::kRefuse, base::encode(RefuseMessage{verdict.error()})) &&
           fail(verdict.error());
  const auto life = resume_ ? base::encode(resumeOf(*verdict)) : base::encode(verdict->epoch);
  return say(FrameType::kAccept, life) && establish(verdict->epoch);
}

// At the listener: the dialer wants to resume a session.
bool Connection::hearResume(const Frame& frame) {
  if (role_ == Role::kDialer || resume_) return fail(protocolError("an unexpected resume"));
  auto message = base::decode<ResumeMessage>(frame.payload);
  if (!message) return fail(message.error());
  resume_ = *message;
  return true;
}

bool Connection::hearVerdict(const Frame& frame) {
  if (typeOf(frame) == FrameType::kRefuse) {
    auto refusal = base::decode<RefuseMessage>(frame.payload);
    return fail(refusal ? std::move(refusal->why) : std::move(refusal).error());
  }
  std::uint64_t epoch = 0;
  if (!hearLife(frame, epoch))
    return fail(protocolError("an acceptance of another session than the one asked for"));
  return establish(epoch);
}

bool Connection::hearLife(const Frame& accept, std::uint64_t& epoch) {
  if (!config_.resume) {
    if (accept.payload.size() != sizeof epoch) return false;
    epoch = base::loadLittle<std::uint64_t>(accept.payload.data());
    return epoch > last_epoch_ && epoch <= kMaxEpoch;
  }
  auto message = base::decode<ResumeMessage>(accept.payload);
  if (!message || message->epoch != config_.resume->epoch) return false;
  resume_ = *message;
  epoch = message->epoch;
  return proves(config_.resume->key);
}

// The proof covers the life's key and this connection's key. Neither an eavesdropper nor another
// agent with the secret can compute such a proof.
Key Connection::resumeProof(const Key& life, bool of_dialer) const {
  return base::deriveKey(life, of_dialer ? "resume of the dialer" : "resume of the listener",
                         std::as_bytes(std::span(common_)));
}

ResumeMessage Connection::resumeOf(const Life& life) const {
  return {.epoch = life.epoch,
          .heard = life.heard,
          .proof = resumeProof(life.key, role_ == Role::kDialer)};
}

bool Connection::proves(const Key& life) const {
  if (!resume_) return false;
  const Key expected = resumeProof(life, role_ == Role::kListener);
  return base::sameBytes(std::as_bytes(std::span(resume_->proof)),
                         std::as_bytes(std::span(expected)));
}

bool Connection::establish(std::uint64_t epoch) {
  poller_.forgetTimer(std::exchange(handshake_timer_, 0));
  reader_.decoder().setLimit(kMaxFramePayload);
  phase_ = ConnectionPhase::kReady;
  return tell([&] { user_.established(epoch); });
}

}  // namespace viaduct::agent
