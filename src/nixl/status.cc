#include "nixl/status.h"

#include <fmt/format.h>

#include "base/lists.h"

namespace viaduct::nixl {
namespace {

// The outcome of an error's code. Every other code gives kBackend.
using CodeOutcome = std::pair<Code, Outcome>;
constexpr std::array kOutcomes{CodeOutcome{Code::kInvalid, Outcome::kInvalid},
                               CodeOutcome{Code::kNotFound, Outcome::kNotFound},
                               CodeOutcome{Code::kUnsupported, Outcome::kNotSupported},
                               CodeOutcome{Code::kDenied, Outcome::kNotAllowed},
                               CodeOutcome{Code::kCancelled, Outcome::kCancelled},
                               CodeOutcome{Code::kPeerLost, Outcome::kRemoteDisconnect}};

}  // namespace

Failure::Failure(Outcome outcome, const std::string& text)
    : std::runtime_error(fmt::format(
          "{}: {}", base::firstWith(kOutcomeNames, &OutcomeName::outcome, outcome)->text, text)),
      outcome_(outcome) {}

void fail(Outcome outcome, const std::string& text) { throw Failure(outcome, text); }

void fail(const Error& error) {
  const auto* const known = base::firstWith(kOutcomes, &CodeOutcome::first, error.code);
  fail(known == nullptr ? Outcome::kBackend : known->second, error.text());
}

}  // namespace viaduct::nixl
