#include "meet/embedded/messages.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/bytes.h"

namespace viaduct::meet::embedded {
namespace {

constexpr std::string_view kMagic = "VDCTMEET";
// The limits of texts and values that members have encrypted.
constexpr std::size_t kMaxSealedAbout = kMaxAboutBytes + base::kSealBytes;
constexpr std::size_t kMaxSealedValue = kMaxValueBytes + base::kSealBytes;
// An unknown code of a newer server is read as this.
constexpr Code kUnknownCode = Code::kProtocol;

using base::Reader;
using base::Writer;

Error bad(std::string_view what) {
  return {.code = Code::kProtocol,
          .operation = "decode",
          .detail = std::string(what) + ": truncated, too long, or out of range"};
}

// Reads texts, each with its own limit.
class Texts {
 public:
  explicit Texts(Reader& in) : in_(in) {}
  std::string take(std::size_t limit) {
    std::string text = in_.text();
    if (text.size() > limit) ok_ = false;
    return text;
  }
  std::string takeLike(std::string_view before, std::size_t limit) {
    const std::size_t common = in_.get<std::uint8_t>();
    const auto rest = in_.raw(in_.get<std::uint16_t>());
    if (common > before.size() || common + rest.size() > limit) ok_ = false;
    std::string text(before.substr(0, common));
    text.append(reinterpret_cast<const char*>(rest.data()), rest.size());
    return text;
  }
  bool finished() const { return ok_ && in_.finished(); }

 private:
  Reader& in_;
  bool ok_ = true;
};

std::string_view cut(const std::string& text) {
  return std::string_view(text).substr(0, kMaxAboutBytes);
}

void write(Writer& out, const Error& error) {
  out.put(static_cast<std::uint8_t>(error.code));
  out.put(static_cast<std::uint32_t>(error.os_errno));
  for (const std::string* text :
       {&error.operation, &error.detail, &error.peer, &error.cause, &error.remedy})
    out.text(cut(*text));
}

Error readError(Reader& in, Texts& texts) {
  Error error;
  const auto code = in.get<std::uint8_t>();
  error.code =
      code <= static_cast<std::uint8_t>(Code::kProtocol) ? static_cast<Code>(code) : kUnknownCode;
  error.os_errno = static_cast<int>(in.get<std::uint32_t>());
  for (std::string* text :
       {&error.operation, &error.detail, &error.peer, &error.cause, &error.remedy})
    *text = texts.take(kMaxAboutBytes);
  return error;
}

// Each member gets the roster, whose texts resemble each other. So each text is stored as the
// number of bytes that it shares with the text before, and the rest.
constexpr std::size_t kMostInCommon = 255;
constexpr std::size_t kLeastOfText = 3;  // one byte for the shared length, two for the rest's

void writeLike(Writer& out, std::string_view before, std::string_view text) {
  const std::size_t limit = std::min({kMostInCommon, before.size(), text.size()});
  const auto [differ, ignored] = std::mismatch(text.begin(), text.begin() + limit, before.begin());
  const auto common = static_cast<std::size_t>(differ - text.begin());
  const std::string_view rest = text.substr(common);
  out.put(static_cast<std::uint8_t>(common)).put(static_cast<std::uint16_t>(rest.size()));
  out.raw(std::as_bytes(std::span(rest)));
}

template <std::size_t N>
ByteSpan span(const std::array<std::uint8_t, N>& bytes) {
  return std::as_bytes(std::span(bytes));
}

}  // namespace

Bytes OpenMessage::encode() const {
  return Writer()
      .raw(std::as_bytes(std::span(kMagic)))
      .put(major)
      .put(minor)
      .raw(span(nonce))
      .take();
}

Result<OpenMessage> OpenMessage::decode(ByteSpan payload) {
  Reader in(payload);
  OpenMessage out;
  const auto magic = in.raw(kMagic.size());
  if (!base::sameBytes(magic, std::as_bytes(std::span(kMagic)))) return bad("opening");
  out.major = in.get<std::uint16_t>();
  out.minor = in.get<std::uint16_t>();
  // The message of another version may be longer or shorter, so the caller checks the version
  // first.
  if (in.ok() && out.major != kMajor) return out;
  out.nonce = in.array<sizeof(Key)>();
  if (!in.finished()) return bad("opening");
  return out;
}

Bytes ChallengeMessage::encode() const { return Writer().raw(span(nonce)).take(); }
Result<ChallengeMessage> ChallengeMessage::decode(ByteSpan payload) {
  Reader in(payload);
  ChallengeMessage out{.nonce = in.array<sizeof(Key)>()};
  if (!in.finished()) return bad("challenge");
  return out;
}

Bytes ProofMessage::encode() const { return Writer().raw(span(proof)).take(); }
Result<ProofMessage> ProofMessage::decode(ByteSpan payload) {
  Reader in(payload);
  ProofMessage out{.proof = in.array<sizeof(base::Digest)>()};
  if (!in.finished()) return bad("proof");
  return out;
}

Bytes WelcomeMessage::encode() const { return Writer().raw(span(proof)).put(detect_ms).take(); }
Result<WelcomeMessage> WelcomeMessage::decode(ByteSpan payload) {
  Reader in(payload);
  WelcomeMessage out{.proof = in.array<sizeof(base::Digest)>()};
  out.detect_ms = in.get<std::uint32_t>();
  if (!in.finished()) return bad("welcome");
  return out;
}

Bytes ErrorMessage::encode() const {
  Writer out;
  write(out, error);
  return out.take();
}
Result<ErrorMessage> ErrorMessage::decode(ByteSpan payload) {
  Reader in(payload);
  Texts texts(in);
  ErrorMessage out{readError(in, texts)};
  if (!texts.finished()) return bad("error");
  return out;
}

Bytes JoinMessage::encode() const {
  Writer out;
  out.text(name_space).text(request.group).put(request.size);
  out.put(static_cast<std::uint8_t>(request.rank ? 1 : 0)).put(request.rank.value_or(0));
  return out.text(request.name).text(request.about).take();
}
Result<JoinMessage> JoinMessage::decode(ByteSpan payload) {
  Reader in(payload);
  Texts texts(in);
  JoinMessage out;
  out.name_space = texts.take(kMaxNameBytes);
  out.request.group = texts.take(kMaxNameBytes);
  out.request.size = in.get<std::uint32_t>();
  const bool ranked = in.get<std::uint8_t>() != 0;
  const auto rank = in.get<std::uint32_t>();
  if (ranked) out.request.rank = rank;
  out.request.name = texts.take(kMaxNameBytes);
  out.request.about = texts.take(kMaxSealedAbout);
  if (!texts.finished()) return bad("join");
  return out;
}

Bytes GatherMessage::encode() const { return Writer().put(round).text(value).take(); }
Result<GatherMessage> GatherMessage::decode(ByteSpan payload) {
  Reader in(payload);
  Texts texts(in);
  GatherMessage out{.round = in.get<std::uint64_t>()};
  out.value = texts.take(kMaxSealedValue);
  if (!texts.finished()) return bad("gather");
  return out;
}

Bytes TextMessage::encode() const { return Writer().text(cut(text)).take(); }
Result<TextMessage> TextMessage::decode(ByteSpan payload) {
  Reader in(payload);
  Texts texts(in);
  TextMessage out{texts.take(kMaxAboutBytes)};
  if (!texts.finished()) return bad("text");
  return out;
}

Bytes NumberMessage::encode() const { return Writer().put(number).take(); }
Result<NumberMessage> NumberMessage::decode(ByteSpan payload) {
  Reader in(payload);
  NumberMessage out{in.get<std::uint64_t>()};
  if (!in.finished()) return bad("number");
  return out;
}

Bytes NameMessage::encode() const {
  return Writer().put(request).text(name_space).text(name).text(value).text(owner).take();
}
Result<NameMessage> NameMessage::decode(ByteSpan payload) {
  Reader in(payload);
  Texts texts(in);
  NameMessage out{.request = in.get<std::uint32_t>()};
  out.name_space = texts.take(kMaxNameBytes);
  out.name = texts.take(kMaxNameBytes);
  out.value = texts.take(kMaxValueBytes);
  out.owner = texts.take(kMaxNameBytes);
  if (!texts.finished()) return bad("name");
  return out;
}

Bytes FormedMessage::encode() const {
  Writer out;
  out.put(epoch).put(static_cast<std::uint32_t>(members.size()));
  const Member none;
  const Member* before = &none;
  for (const Member& member : members) {
    writeLike(out, before->name, member.name);
    writeLike(out, before->about, member.about);
    before = &member;
  }
  return out.take();
}
Result<FormedMessage> FormedMessage::decode(ByteSpan payload) {
  Reader in(payload);
  Texts texts(in);
  FormedMessage out{.epoch = in.get<std::uint64_t>()};
  const auto count = in.get<std::uint32_t>();
  // The bytes for `count` members have to be there before memory is reserved for them.
  if (count > kMaxMembers || count > in.left() / (2 * kLeastOfText)) return bad("roster");
  out.members.resize(count);
  const Member none;
  const Member* before = &none;
  for (Member& member : out.members) {
    member.rank = static_cast<std::uint32_t>(&member - out.members.data());
    member.name = texts.takeLike(before->name, kMaxNameBytes);
    member.about = texts.takeLike(before->about, kMaxSealedAbout);
    before = &member;
  }
  if (!texts.finished()) return bad("roster");
  return out;
}

// A barrier's values are all empty, so only their number is sent.
Bytes ValuesMessage::encode() const {
  Writer out;
  const bool empty = std::all_of(values.begin(), values.end(), [](auto& v) { return v.empty(); });
  out.put(round).put(static_cast<std::uint32_t>(values.size()));
  out.put(static_cast<std::uint8_t>(empty ? 1 : 0));
  if (!empty)
    for (const std::string& value : values) out.text(value);
  return out.take();
}
Result<ValuesMessage> ValuesMessage::decode(ByteSpan payload) {
  Reader in(payload);
  Texts texts(in);
  ValuesMessage out{.round = in.get<std::uint64_t>()};
  const auto count = in.get<std::uint32_t>();
  const bool empty = in.get<std::uint8_t>() != 0;
  if (count > kMaxMembers || (!empty && count > in.left() / 4)) return bad("values");
  out.values.resize(count);
  if (!empty)
    for (std::string& value : out.values) value = texts.take(kMaxSealedValue);
  if (!texts.finished()) return bad("values");
  return out;
}

Bytes AnswerMessage::encode() const {
  Writer out;
  out.put(request).put(static_cast<std::uint8_t>(error ? 1 : 0));
  if (error)
    write(out, *error);
  else
    out.text(value);
  return out.take();
}
Result<AnswerMessage> AnswerMessage::decode(ByteSpan payload) {
  Reader in(payload);
  Texts texts(in);
  AnswerMessage out{.request = in.get<std::uint32_t>()};
  if (in.get<std::uint8_t>() != 0)
    out.error = readError(in, texts);
  else
    out.value = texts.take(kMaxValueBytes);
  if (!texts.finished()) return bad("answer");
  return out;
}

}  // namespace viaduct::meet::embedded
