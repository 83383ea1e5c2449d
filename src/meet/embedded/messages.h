// The messages between members and the embedded server. Threads: plain values.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "meet/embedded/frame.h"
#include "meet/meeting.h"

namespace viaduct::meet::embedded {

// The error that an end reports when the other end's proof is wrong.
Error wrongToken();

struct WelcomeMessage {
  static constexpr std::string_view kName = "welcome";
  std::uint32_t detect_ms = 0;
};
auto fields(base::Is<WelcomeMessage> auto& m) { return std::tie(m.detect_ms); }

// The payload of kDeny from the server, of kRefused and kTrouble.
struct ErrorMessage {
  static constexpr std::string_view kName = "error";
  Error error = {};
};
auto fields(base::Is<ErrorMessage> auto& m) {
  return base::list(
      base::atMost(kLastCode, m.error.code), m.error.os_errno,
      base::cutTo(kMaxReasonBytes, m.error.operation), base::cutTo(kMaxReasonBytes, m.error.detail),
      base::cutTo(kMaxReasonBytes, m.error.peer), base::cutTo(kMaxReasonBytes, m.error.cause),
      base::cutTo(kMaxReasonBytes, m.error.remedy));
}

// The payload of several types. kRank: a rank. kPing, kPong: a number. kWithdraw, kForget: the
// number of a request.
struct NumberMessage {
  static constexpr std::string_view kName = "number";
  std::uint64_t number = 0;
};
auto fields(base::Is<NumberMessage> auto& m) { return std::tie(m.number); }

// The payload of kPublish, and of kFind, which has no value.
struct NameMessage {
  static constexpr std::string_view kName = "name";
  std::uint32_t request = 0;
  std::string name_space = {}, name = {}, value = {};
  std::string owner = {};  // for people
};
auto fields(base::Is<NameMessage> auto& m) {
  return base::list(m.request, base::atMost(kMaxNameBytes, m.name_space),
                    base::atMost(kMaxNameBytes, m.name), base::atMost(kMaxValueBytes, m.value),
                    base::atMost(kMaxNameBytes, m.owner));
}

struct AnswerMessage {
  static constexpr std::string_view kName = "answer";
  std::uint32_t request = 0;
  std::optional<Error> error = {};
  std::string value = {};  // without an error
  void encode(base::Writer& out) const;
  void decode(base::Reader& in);
};

}  // namespace viaduct::meet::embedded
