// The messages between members and the embedded server. Threads: plain values.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meet/embedded/frame.h"
#include "meet/meeting.h"

namespace viaduct::meet::embedded {

inline constexpr std::uint16_t kMajor = 1, kMinor = 0;

struct OpenMessage {
  std::uint16_t major = kMajor, minor = kMinor;
  Key nonce = {};
  Bytes encode() const;
  static Result<OpenMessage> decode(ByteSpan payload);
};

struct ChallengeMessage {
  Key nonce = {};
  Bytes encode() const;
  static Result<ChallengeMessage> decode(ByteSpan payload);
};

struct ProofMessage {
  base::Digest proof = {};
  Bytes encode() const;
  static Result<ProofMessage> decode(ByteSpan payload);
};

struct WelcomeMessage {
  base::Digest proof = {};
  std::uint32_t detect_ms = 0;
  Bytes encode() const;
  static Result<WelcomeMessage> decode(ByteSpan payload);
};

// The payload of kDeny, kRefused and kTrouble.
struct ErrorMessage {
  Error error = {};
  Bytes encode() const;
  static Result<ErrorMessage> decode(ByteSpan payload);
};

struct JoinMessage {
  std::string name_space = {};
  JoinRequest request = {};
  Bytes encode() const;
  static Result<JoinMessage> decode(ByteSpan payload);
};

struct GatherMessage {
  std::uint64_t round = 0;
  std::string value = {};
  Bytes encode() const;
  static Result<GatherMessage> decode(ByteSpan payload);
};

// The payload of kAbandon and kStatus.
struct TextMessage {
  std::string text = {};
  Bytes encode() const;
  static Result<TextMessage> decode(ByteSpan payload);
};

// The payload of several types. kRank: a rank. kPing, kPong: a number. kWithdraw, kForget: the
// number of a request.
struct NumberMessage {
  std::uint64_t number = 0;
  Bytes encode() const;
  static Result<NumberMessage> decode(ByteSpan payload);
};

// The payload of kPublish, and of kFind, which has no value.
struct NameMessage {
  std::uint32_t request = 0;
  std::string name_space = {}, name = {}, value = {};
  std::string owner = {};  // for people
  Bytes encode() const;
  static Result<NameMessage> decode(ByteSpan payload);
};

struct FormedMessage {
  std::uint64_t epoch = 0;
  std::vector<Member> members = {};  // by rank
  Bytes encode() const;
  static Result<FormedMessage> decode(ByteSpan payload);
};

struct ValuesMessage {
  std::uint64_t round = 0;
  std::vector<std::string> values = {};  // by rank
  Bytes encode() const;
  static Result<ValuesMessage> decode(ByteSpan payload);
};

struct AnswerMessage {
  std::uint32_t request = 0;
  std::optional<Error> error = {};
  std::string value = {};
  Bytes encode() const;
  static Result<AnswerMessage> decode(ByteSpan payload);
};

}  // namespace viaduct::meet::embedded
