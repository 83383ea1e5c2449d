#include "measure/p2p/ask.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace viaduct::measure::p2p {
namespace {

constexpr std::chrono::milliseconds kTurn{50};  // how often ask() checks the peer and `stop`

}  // namespace

Result<std::string> Asker::ask(P2pRequest request, Deadline until) {
  request.number = ++last_;
  const auto life = peer_.epoch();
  VIADUCT_CHECK(peer_.note(encode(request)));
  while (!until.passed()) {
    if (stop_.load()) return Error{.code = Code::kCancelled, .operation = "p2p"};
    const auto note = agent_.waitNote(std::min(until.at(), Clock::now() + kTurn));
    if (note && isRequest(note->bytes)) {
      VIADUCT_TRY(P2pAnswer answer, decodeAnswer(note->bytes));
      if (answer.number == last_) return std::move(answer.value);
      continue;  // the answer to an abandoned request
    }
    // A changed epoch means that the session has ended meanwhile, perhaps with the request.
    if (peer_.state() != PeerState::kReady || peer_.epoch() != life)
      return Error{.code = Code::kPeerLost,
                   .operation = "p2p",
                   .detail = "the target ended or became unreachable"};
  }
  return Error{.code = Code::kTimeout, .operation = "p2p", .detail = "the target does not answer"};
}

void Asker::leave() {
  static_cast<void>(
      peer_.note(encode(P2pRequest{.verb = P2pRequest::Verb::kLeave, .number = ++last_})));
}

}  // namespace viaduct::measure::p2p
