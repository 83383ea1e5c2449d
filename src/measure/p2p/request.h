// What the two ends of `viaduct p2p` say to each other, as notes. Threads: plain values.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/bytes.h"

namespace viaduct::measure::p2p {

// What the initiator asks of the target, one at a time; each is answered.
struct Request {
  enum class Verb : std::uint8_t {
    kGreet,    // answer: the target's Member, as a report's JSON
    kPrepare,  // memory of `bytes`, pinned as `label`
    kVerify,   // answer: what is wrong with the contents, or nothing
    kBefore,   // of the part that is timed
    kAfter,    // answer: what the target's devices carried, and its CPU time
    kLeave,    // last; not answered
  };
  Verb verb = Verb::kGreet;
  std::uint64_t number = 0;  // the answer has the same
  std::uint64_t bytes = 0;
  std::string label = {};
  std::uint64_t seed = 0, epoch = 0;
  friend bool operator==(const Request&, const Request&) = default;
};

struct Answer {
  std::uint64_t number = 0;
  Result<std::string> value = std::string();
};

base::Bytes encode(const Request& request);
base::Bytes encode(const Answer& answer);
// kProtocol: it is something else, or of another version.
Result<Request> decodeRequest(std::span<const std::byte> note);
Result<Answer> decodeAnswer(std::span<const std::byte> note);

}  // namespace viaduct::measure::p2p
