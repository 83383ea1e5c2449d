#include "meet/etcd/messages.h"

#include <algorithm>
#include <utility>

#include "base/bytes.h"

namespace viaduct::meet::etcd {
namespace {

using base::Reader;
using base::Writer;

// Another one when the meaning of any message changes: members of the two do not mix.
constexpr std::uint8_t kVersion = 2;

enum class Kind : std::uint8_t {
  kHead = 1,
  kJoin,
  kValue,
  kBye,
  kAnswer,
  kLead,
  kTrouble,
  kPart,
  kSeats,
  kValues,
  kEntry,
  kCall,
  kStop,
};

Writer start(Kind kind) {
  Writer out;
  out.put(kVersion).put(static_cast<std::uint8_t>(kind));
  return out;
}

std::string finish(const Writer& writer) {
  const auto& bytes = writer.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Reader readerOf(std::string_view bytes) { return Reader(std::as_bytes(std::span(bytes))); }

bool opens(Reader& in, Kind kind) {
  return in.get<std::uint8_t>() == kVersion &&
         in.get<std::uint8_t>() == static_cast<std::uint8_t>(kind) && in.ok();
}

// A list's length that the bytes left can hold, at `least` bytes each.
std::optional<std::uint32_t> count(Reader& in, std::size_t least) {
  const auto out = in.get<std::uint32_t>();
  if (!in.ok() || out > in.left() / least) return std::nullopt;
  return out;
}

void put(Writer& out, const Error& error) {
  out.put(static_cast<std::uint8_t>(error.code)).text(error.operation).text(error.detail);
  out.text(error.peer).text(error.cause).text(error.remedy);
}

std::optional<Error> getError(Reader& in) {
  const auto code = in.get<std::uint8_t>();
  if (code > static_cast<std::uint8_t>(Code::kProtocol)) return std::nullopt;
  Error out{.code = static_cast<Code>(code)};
  out.operation = in.text();
  out.detail = in.text();
  out.peer = in.text();
  out.cause = in.text();
  out.remedy = in.text();
  return out;
}

std::optional<UpMessage> getJoin(Reader& in) {
  JoinMessage out;
  out.size = in.get<std::uint32_t>();
  const auto asked = in.get<std::uint8_t>();
  const auto rank = in.get<std::uint32_t>();
  if (asked > 1 || (asked == 0 && rank != 0)) return std::nullopt;
  if (asked == 1) out.rank = rank;
  out.proof = in.array<sizeof(base::Digest)>();
  out.name = in.text();
  out.about = in.text();
  return out;
}

template <class T>
std::optional<T> whole(const Reader& in, T value) {
  return in.finished() ? std::optional<T>(std::move(value)) : std::nullopt;
}

}  // namespace

std::string encode(const GroupHead& head) {
  return finish(start(Kind::kHead).put(head.instance).text(head.identity).text(head.who));
}

std::optional<GroupHead> decodeHead(std::string_view bytes) {
  Reader in = readerOf(bytes);
  if (!opens(in, Kind::kHead)) return std::nullopt;
  GroupHead out;
  out.instance = in.get<std::uint64_t>();
  out.identity = in.text();
  out.who = in.text();
  return whole(in, std::move(out));
}

std::string encode(const UpMessage& message) {
  if (const auto* join = std::get_if<JoinMessage>(&message)) {
    Writer out = start(Kind::kJoin);
    out.put(join->size).put(std::uint8_t{join->rank.has_value()}).put(join->rank.value_or(0));
    out.raw(std::as_bytes(std::span(join->proof))).text(join->name).text(join->about);
    return finish(out);
  }
  if (const auto* value = std::get_if<ValueMessage>(&message))
    return finish(start(Kind::kValue).put(value->round).text(value->value));
  return finish(start(Kind::kBye));
}

std::optional<UpMessage> decodeUp(std::string_view bytes) {
  Reader in = readerOf(bytes);
  if (in.get<std::uint8_t>() != kVersion) return std::nullopt;
  std::optional<UpMessage> out;
  switch (static_cast<Kind>(in.get<std::uint8_t>())) {
    case Kind::kJoin:
      out = getJoin(in);
      break;
    case Kind::kValue: {
      ValueMessage value;
      value.round = in.get<std::uint64_t>();
      value.value = in.text();
      out = std::move(value);
      break;
    }
    case Kind::kBye:
      out = ByeMessage{};
      break;
    default:
      break;
  }
  return in.finished() ? out : std::nullopt;
}

std::string encode(const AnswerMessage& message) {
  Writer out = start(Kind::kAnswer);
  out.put(std::uint8_t{message.refused.has_value()});
  if (message.refused) put(out, *message.refused);
  return finish(out);
}

std::optional<AnswerMessage> decodeAnswer(std::string_view bytes) {
  Reader in = readerOf(bytes);
  if (!opens(in, Kind::kAnswer)) return std::nullopt;
  AnswerMessage out;
  if (in.get<std::uint8_t>() != 0) {
    out.refused = getError(in);
    if (!out.refused) return std::nullopt;
  }
  return whole(in, std::move(out));
}

std::string encode(const LeadMessage& message) {
  Writer out = start(Kind::kLead);
  out.put(std::uint8_t{message.over}).put(message.leader);
  out.put(static_cast<std::uint64_t>(message.seen)).put(message.rounds);
  out.put(static_cast<std::uint32_t>(message.gone.size()));
  for (const MemberId id : message.gone) out.put(id);
  return finish(out);
}

std::optional<LeadMessage> decodeLead(std::string_view bytes) {
  Reader in = readerOf(bytes);
  if (!opens(in, Kind::kLead)) return std::nullopt;
  LeadMessage out;
  out.over = in.get<std::uint8_t>() != 0;
  out.leader = in.get<std::uint64_t>();
  out.seen = static_cast<Revision>(in.get<std::uint64_t>());
  out.rounds = in.get<std::uint64_t>();
  const auto gone = count(in, sizeof(MemberId));
  if (!gone) return std::nullopt;
  for (std::uint32_t i = 0; i < *gone; ++i) out.gone.push_back(in.get<std::uint64_t>());
  return whole(in, std::move(out));
}

std::string encode(const CallMessage& message) {
  return finish(start(Kind::kCall).put(message.number));
}

std::optional<CallMessage> decodeCall(std::string_view bytes) {
  Reader in = readerOf(bytes);
  if (!opens(in, Kind::kCall)) return std::nullopt;
  const CallMessage out{in.get<std::uint64_t>()};
  return whole(in, out);
}

std::string encode(const StopMessage& message) {
  return finish(start(Kind::kStop).put(message.rank));
}

std::optional<StopMessage> decodeStop(std::string_view bytes) {
  Reader in = readerOf(bytes);
  if (!opens(in, Kind::kStop)) return std::nullopt;
  const StopMessage out{in.get<std::uint32_t>()};
  return whole(in, out);
}

std::string encode(const Error& trouble) {
  Writer out = start(Kind::kTrouble);
  put(out, trouble);
  return finish(out);
}

std::optional<Error> decodeTrouble(std::string_view bytes) {
  Reader in = readerOf(bytes);
  if (!opens(in, Kind::kTrouble)) return std::nullopt;
  auto out = getError(in);
  return in.finished() ? out : std::nullopt;
}

std::string encode(const PartMessage& message) {
  Writer out = start(Kind::kPart);
  out.put(message.round).put(message.part).put(message.parts).text(message.bytes);
  return finish(out);
}

std::optional<PartMessage> decodePart(std::string_view bytes) {
  Reader in = readerOf(bytes);
  if (!opens(in, Kind::kPart)) return std::nullopt;
  PartMessage out;
  out.round = in.get<std::uint64_t>();
  out.part = in.get<std::uint32_t>();
  out.parts = in.get<std::uint32_t>();
  out.bytes = in.text();
  // As many as the values of the largest group can fill.
  constexpr std::size_t kMostParts = kMaxMembers * kMaxValueBytes / kPartBytes + 2;
  if (out.part >= out.parts || out.parts > kMostParts) return std::nullopt;
  return whole(in, std::move(out));
}

std::vector<PartMessage> cut(std::uint64_t round, std::string_view bytes) {
  const auto parts = static_cast<std::uint32_t>(
      std::max<std::size_t>(1, (bytes.size() + kPartBytes - 1) / kPartBytes));
  std::vector<PartMessage> out;
  out.reserve(parts);
  for (std::uint32_t part = 0; part < parts; ++part)
    out.push_back({round, part, parts, std::string(bytes.substr(part * kPartBytes, kPartBytes))});
  return out;
}

std::string encodeRoster(const std::vector<LeasedMember>& leased_members) {
  Writer out = start(Kind::kSeats);
  out.put(static_cast<std::uint32_t>(leased_members.size()));
  for (const LeasedMember& leased : leased_members) {
    out.put(leased.id).put(static_cast<std::uint64_t>(leased.lease)).put(leased.member.rank);
    out.text(leased.member.name).text(leased.member.about);
  }
  return finish(out);
}

std::optional<std::vector<LeasedMember>> decodeRoster(std::string_view bytes) {
  Reader in = readerOf(bytes);
  if (!opens(in, Kind::kSeats)) return std::nullopt;
  const auto leased_members = count(in, 28);
  if (!leased_members) return std::nullopt;
  std::vector<LeasedMember> out(*leased_members);
  for (std::uint32_t i = 0; i < *leased_members; ++i) {
    LeasedMember& leased = out[i];
    leased.id = in.get<std::uint64_t>();
    leased.lease = static_cast<LeaseId>(in.get<std::uint64_t>());
    leased.member.rank = in.get<std::uint32_t>();
    leased.member.name = in.text();
    leased.member.about = in.text();
    if (leased.member.rank != i) return std::nullopt;
  }
  return whole(in, std::move(out));
}

std::string encodeValues(const std::vector<std::string_view>& values) {
  Writer out = start(Kind::kValues);
  out.put(static_cast<std::uint32_t>(values.size()));
  for (const std::string_view value : values) out.text(value);
  return finish(out);
}

std::optional<std::vector<std::string>> decodeValues(std::string_view bytes) {
  Reader in = readerOf(bytes);
  if (!opens(in, Kind::kValues)) return std::nullopt;
  const auto values = count(in, 4);
  if (!values) return std::nullopt;
  std::vector<std::string> out(*values);
  for (std::string& value : out) value = in.text();
  return whole(in, std::move(out));
}

std::string encode(const EntryMessage& message) {
  return finish(start(Kind::kEntry).text(message.identity).text(message.value));
}

std::optional<EntryMessage> decodeEntry(std::string_view bytes) {
  Reader in = readerOf(bytes);
  if (!opens(in, Kind::kEntry)) return std::nullopt;
  EntryMessage out;
  out.identity = in.text();
  out.value = in.text();
  return whole(in, std::move(out));
}

}  // namespace viaduct::meet::etcd
