// The notes that the two ends of `viaduct p2p` exchange before and after a measurement. Threads:
// plain values.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"
#include "measure/workload/spec.h"

namespace viaduct::measure::p2p {

// A request of the initiator. It sends one at a time and waits for the answer.
struct P2pRequest {
  enum class Verb : std::uint8_t {
    kGreet,  // the answer is the target's RunMember, as JSON of a report
    kRun,    // both ends now measure `spec`; the initiator is rank 0
    kLeave,  // the last request; it has no answer
  };
  Verb verb = Verb::kGreet;
  std::uint64_t number = 0;  // the answer carries the same number
  Spec spec = {};            // with one row
  friend bool operator==(const P2pRequest&, const P2pRequest&) = default;
};

struct P2pAnswer {
  std::uint64_t number = 0;
  Result<std::string> value = std::string();
};

base::Bytes encode(const P2pRequest& request);
base::Bytes encode(const P2pAnswer& answer);
// True if the note is a request or an answer of any version, and not a part of a measurement.
bool isRequest(std::span<const std::byte> note);
// The two functions below fail with kProtocol if the note is of another kind or version.
Result<P2pRequest> decodeRequest(std::span<const std::byte> note);
Result<P2pAnswer> decodeAnswer(std::span<const std::byte> note);

}  // namespace viaduct::measure::p2p
