// The messages between members and the embedded server. Threads: plain values.
#pragma once

#include <viaduct/result.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "meet/embedded/frame.h"
#include "meet/meeting.h"

namespace viaduct::meet::embedded {

inline constexpr std::uint16_t kMajor = 1, kMinor = 0;

struct OpenMessage {
  static constexpr std::string_view kName = "opening";
  std::uint16_t major = kMajor, minor = kMinor;
  Key nonce = {};
  void encode(base::Writer& out) const;
  void decode(base::Reader& in);
};

struct ChallengeMessage {
  static constexpr std::string_view kName = "challenge";
  Key nonce = {};
};
auto fields(base::Is<ChallengeMessage> auto& m) { return std::tie(m.nonce); }

struct ProofMessage {
  static constexpr std::string_view kName = "proof";
  base::Digest proof = {};
};
auto fields(base::Is<ProofMessage> auto& m) { return std::tie(m.proof); }

struct WelcomeMessage {
  static constexpr std::string_view kName = "welcome";
  base::Digest proof = {};
  std::uint32_t detect_ms = 0;
};
auto fields(base::Is<WelcomeMessage> auto& m) { return std::tie(m.proof, m.detect_ms); }

// A code that only a newer server knows is read as kProtocol.
template <class T>
struct KnownCode {
  T& code;
  void encode(base::Writer& out) const { base::Fields::put(out, code); }
  void decode(base::Reader& in) {
    base::Fields::get(in, code);
    code = std::min(code, Code::kProtocol);
  }
};
template <class T>
KnownCode<T> knownCode(T& code) {
  return {code};
}

// The payload of kDeny, kRefused and kTrouble.
struct ErrorMessage {
  static constexpr std::string_view kName = "error";
  Error error = {};
};
auto fields(base::Is<ErrorMessage> auto& m) {
  return base::list(
      knownCode(m.error.code), m.error.os_errno, base::cutTo(kMaxReasonBytes, m.error.operation),
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
