// The messages between members and the embedded server. Threads: plain values.
#pragma once

#include <viaduct/result.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "base/net/handshake.h"
#include "meet/embedded/frame.h"
#include "meet/meeting.h"

namespace viaduct::meet::embedded {

// Both ends prove the token by base::Handshake. The server denies a member of another major
// version.
inline constexpr base::Handshake::Version kVersion{.major = 1, .minor = 0};
inline constexpr const char* kBinding = "meeting place";

// From the member. A view: copies nothing.
struct OpenMessage {
  static constexpr std::string_view kName = "opening";
  static constexpr std::array<std::uint8_t, 8> kMagic{'V', 'D', 'C', 'T', 'M', 'E', 'E', 'T'};
  std::array<std::uint8_t, 8> magic = kMagic;
  std::uint16_t major = kVersion.major, minor = kVersion.minor;
  ByteSpan handshake = {};
};
auto fields(base::Is<OpenMessage> auto& m) {
  return base::list(m.magic, base::must([&m] { return m.magic == OpenMessage::kMagic; }), m.major,
                    m.minor, base::rest(m.handshake));
}

// From the server. A view: copies nothing.
struct ChallengeMessage {
  static constexpr std::string_view kName = "challenge";
  std::uint16_t minor = kVersion.minor;
  ByteSpan handshake = {};
};
auto fields(base::Is<ChallengeMessage> auto& m) {
  return base::list(m.minor, base::rest(m.handshake));
}

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
      base::atMost(Code::kStale, m.error.code), m.error.os_errno,
      base::cutTo(kMaxReasonBytes, m.error.operation),
      base::cutTo(kMaxReasonBytes, m.error.detail), base::cutTo(kMaxReasonBytes, m.error.peer),
      base::cutTo(kMaxReasonBytes, m.error.cause), base::cutTo(kMaxReasonBytes, m.error.remedy));
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
