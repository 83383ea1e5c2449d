// What the two ends of `viaduct p2p` say to each other before and after a measurement, as notes.
// Threads: plain values.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "measure/load/spec.h"

namespace viaduct::measure::p2p {

// What the initiator asks of the target, one at a time; each is answered.
struct P2pRequest {
  enum class Verb : std::uint8_t {
    kGreet,  // answer: the target's RunMember, as a report's JSON
    kRun,    // both ends now run `spec`, the initiator as rank 0
    kLeave,  // last; not answered
  };
  Verb verb = Verb::kGreet;
  std::uint64_t number = 0;  // the answer has the same
  Spec spec = {};            // of one row
  friend bool operator==(const P2pRequest&, const P2pRequest&) = default;
};

struct P2pAnswer {
  std::uint64_t number = 0;
  Result<std::string> value = std::string();
};

base::Bytes encode(const P2pRequest& request);
base::Bytes encode(const P2pAnswer& answer);
// Whether a note is one of these, of whatever version, and not a part of a measurement.
bool isRequest(std::span<const std::byte> note);
// kProtocol: it is something else, or of another version.
Result<P2pRequest> decodeRequest(std::span<const std::byte> note);
Result<P2pAnswer> decodeAnswer(std::span<const std::byte> note);

}  // namespace viaduct::measure::p2p
