// The messages about groups between members and the embedded server. Threads: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/crypto.h"
#include "meet/embedded/messages.h"
#include "meet/groups/group.h"

namespace viaduct::meet::groups {

using embedded::AnswerMessage, embedded::Bytes, embedded::ByteSpan, embedded::ErrorMessage,
    embedded::makePacket, embedded::NameMessage, embedded::NumberMessage, embedded::PacketPtr,
    embedded::Type;

// The limits of texts and values that members have encrypted.
inline constexpr std::size_t kMaxSealedAbout = kMaxAboutBytes + base::kSealBytes;
inline constexpr std::size_t kMaxSealedValue = kMaxValueBytes + base::kSealBytes;

// An optional rank. Without one, its four bytes are zeros.
template <class T>
struct WantedRank {
  T& rank;
  void encode(base::Writer& out) const {
    base::Fields::put(out, rank.has_value(), rank.value_or(0));
  }
  void decode(base::Reader& in) {
    bool wanted = false;
    base::Fields::get(in, wanted, rank.emplace());
    if (!wanted) rank.reset();
  }
};
template <class T>
WantedRank<T> wantedRank(T& rank) {
  return {rank};
}

struct JoinMessage {
  static constexpr std::string_view kName = "join";
  std::string name_space = {};
  JoinRequest request = {};
};
auto fields(base::Is<JoinMessage> auto& m) {
  return base::list(base::atMost(kMaxNameBytes, m.name_space),
                    base::atMost(kMaxNameBytes, m.request.group), m.request.size,
                    wantedRank(m.request.rank), base::atMost(kMaxNameBytes, m.request.name),
                    base::atMost(kMaxSealedAbout, m.request.about));
}

struct GatherMessage {
  static constexpr std::string_view kName = "gather";
  std::uint64_t round = 0;
  std::string value = {};
};
auto fields(base::Is<GatherMessage> auto& m) {
  return base::list(m.round, base::atMost(kMaxSealedValue, m.value));
}

// The payload of kAbandon and kStatus.
struct TextMessage {
  static constexpr std::string_view kName = "text";
  std::string text = {};
};
auto fields(base::Is<TextMessage> auto& m) {
  return base::list(base::cutTo(kMaxReasonBytes, m.text));
}

// Each member gets the roster, whose texts resemble each other. So each text is sent as the number
// of bytes that it shares with the text before, and the rest.
struct FormedMessage {
  static constexpr std::string_view kName = "roster";
  std::uint64_t epoch = 0;
  std::vector<Member> members = {};  // by rank
  void encode(base::Writer& out) const;
  void decode(base::Reader& in);
};

// A barrier's values are all empty, so only their number is sent.
struct ValuesMessage {
  static constexpr std::string_view kName = "values";
  std::uint64_t round = 0;
  std::vector<std::string> values = {};  // by rank
  void encode(base::Writer& out) const;
  void decode(base::Reader& in);
};

}  // namespace viaduct::meet::groups
