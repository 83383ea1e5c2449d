#include "agent/session/grants.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "base/random.h"

namespace viaduct::agent {
namespace {

using base::Bytes;
using base::ByteSpan;
using std::chrono::milliseconds;

// A caveat is its kind, the length of its bytes in one byte, and these bytes.
enum class Caveat : std::uint8_t {
  kId = 1,      // begins a grant
  kPins = 2,    // the pattern; absent: "*"
  kAccess = 3,  // absent: both
  kUntil = 4,   // milliseconds since 1970
  kName = 5,    // of the holder
};

constexpr std::size_t kCaveatHead = 2;
// Limited, because a dialer without a secret makes the listener compute a key for each caveat,
// which takes about a microsecond.
constexpr std::size_t kMaxCaveats = kMaxGrants * 5;

void put(base::Writer& out, Caveat kind, ByteSpan bytes) {
  out.put(static_cast<std::uint8_t>(kind)).put(static_cast<std::uint8_t>(bytes.size())).raw(bytes);
}

std::uint64_t numberOf(WallTime time) {
  const auto since = std::chrono::duration_cast<milliseconds>(time.time_since_epoch()).count();
  return static_cast<std::uint64_t>(std::max<decltype(since)>(since, 0));
}

void put(base::Writer& out, const Grant& grant) {
  put(out, Caveat::kId, std::as_bytes(std::span(grant.id)));
  if (grant.pins != "*") put(out, Caveat::kPins, base::bytesOf(grant.pins));
  if (grant.access != CardAccess::kBoth)
    put(out, Caveat::kAccess, base::Writer().put(static_cast<std::uint8_t>(grant.access)).bytes());
  if (grant.until) put(out, Caveat::kUntil, base::Writer().put(numberOf(*grant.until)).bytes());
  if (!grant.name.empty()) put(out, Caveat::kName, base::bytesOf(grant.name));
}

struct CaveatView {
  std::uint8_t kind = 0;
  ByteSpan bytes = {};  // without kind and length
  ByteSpan all = {};
};

// Removes the first caveat of `rest` and returns it. None: the bytes are cut short.
std::optional<CaveatView> takeCaveat(ByteSpan& rest) {
  if (rest.size() < kCaveatHead) return std::nullopt;
  const std::size_t size = kCaveatHead + std::to_integer<std::size_t>(rest[1]);
  if (rest.size() < size) return std::nullopt;
  const ByteSpan all = rest.first(size);
  rest = rest.subspan(size);
  return CaveatView{std::to_integer<std::uint8_t>(all[0]), all.subspan(kCaveatHead), all};
}

Error malformed(std::string detail) {
  return {.code = Code::kProtocol,
          .operation = "read the grants of a Card",
          .detail = std::move(detail),
          .cause = "the Card was damaged, or made by another program",
          .remedy = "get a new Card from its owner"};
}

Error unknownCaveat(std::uint8_t kind) {
  return {
      .code = Code::kUnsupported,
      .operation = "read the grants of a Card",
      .detail = fmt::format("the Card has a restriction of kind {}, which this version does not "
                            "know",
                            kind),
      .cause = "it was narrowed by a newer release",
      .remedy = "narrow it without that restriction, or install the newer release at both ends"};
}

bool isLine(std::string_view text) {
  return !text.empty() && text.size() <= kMaxCaveatBytes && base::isPrintable(text);
}

// Sets the field of the caveat. False: the bytes are malformed, or say the same as an absent
// caveat.
bool set(Grant& grant, Caveat kind, ByteSpan bytes) {
  base::Reader in(bytes);
  const auto text = [&] { return std::string(base::textOf(in.raw(in.left()))); };
  switch (kind) {
    case Caveat::kId:
      grant.id = in.array<sizeof(CardId)>();
      return in.finished();
    case Caveat::kPins:
      grant.pins = text();
      return isLine(grant.pins) && grant.pins != "*";
    case Caveat::kAccess:
      grant.access = static_cast<CardAccess>(in.get<std::uint8_t>());
      return in.finished() &&
             (grant.access == CardAccess::kRead || grant.access == CardAccess::kWrite);
    case Caveat::kUntil: {
      const auto since = in.get<std::uint64_t>();
      if (!in.finished() || since > kLastMoment) return false;  // a later one would overflow
      grant.until = WallTime(milliseconds(since));
      return true;
    }
    case Caveat::kName:
      grant.name = text();
      return isLine(grant.name);
  }
  return false;
}

std::optional<base::Key> extended(base::Key key, ByteSpan caveats) {
  for (std::size_t taken = 0; !caveats.empty(); ++taken) {
    const auto caveat = takeCaveat(caveats);
    if (!caveat || taken == kMaxCaveats) return std::nullopt;
    key = base::deriveKey(key, "caveat of a card", caveat->all);
  }
  return key;
}

CardAccess allowed(std::span<const Grant> grants) {
  auto bits = static_cast<unsigned>(CardAccess::kBoth);
  for (const Grant& grant : grants) bits &= static_cast<unsigned>(grant.access);
  return static_cast<CardAccess>(bits);
}

const char* accessText(CardAccess access) {
  switch (access) {
    case CardAccess::kBoth:
      return ", reading and writing";
    case CardAccess::kRead:
      return ", reading";
    case CardAccess::kWrite:
      return ", writing";
  }
  return ", without access";
}

// The text before the first '*', and the text behind the last one.
std::string_view headOf(std::string_view pattern) { return pattern.substr(0, pattern.find('*')); }
std::string_view tailOf(std::string_view pattern) {
  const auto star = pattern.rfind('*');
  return star == std::string_view::npos ? pattern : pattern.substr(star + 1);
}

// False if certainly no label matches both.
bool mayMeet(std::string_view a, std::string_view b) {
  if (a.find('*') == std::string_view::npos) return matches(b, a);
  if (b.find('*') == std::string_view::npos) return matches(a, b);
  const auto head = headOf(a), other_head = headOf(b), tail = tailOf(a), other_tail = tailOf(b);
  return (head.starts_with(other_head) || other_head.starts_with(head)) &&
         (tail.ends_with(other_tail) || other_tail.ends_with(tail));
}

std::string timeText(WallTime time) {
  return fmt::format("{:%F %T} UTC", std::chrono::floor<std::chrono::seconds>(time));
}

Error grantsNothing(std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = "narrow a Card",
          .detail = std::move(detail),
          .cause = "it was narrowed too far",
          .remedy = std::move(remedy)};
}

// Fails if two patterns or two names exclude each other, or if neither reading nor writing is left.
Status leavesSomething(std::span<const Grant> grants) {
  if (static_cast<unsigned>(allowed(grants)) == 0)
    return grantsNothing("the Card would allow neither reading nor writing",
                         "narrow a card for reading to reading, and one for writing to writing");
  for (std::size_t i = 0; i < grants.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      if (!mayMeet(grants[i].pins, grants[k].pins))
        return grantsNothing(
            fmt::format("no label matches both {} and {}", grants[k].pins, grants[i].pins),
            fmt::format("narrow it to labels that match {}", grants[k].pins));
      if (!grants[i].name.empty() && !grants[k].name.empty() && grants[i].name != grants[k].name)
        return grantsNothing(
            fmt::format("no agent is called both {} and {}", grants[k].name, grants[i].name),
            "leave out the name, or repeat it");
    }
  return Ok{};
}

}  // namespace

Bytes claimOf(std::span<const Grant> grants) {
  base::Writer out;
  for (const Grant& grant : grants) put(out, grant);
  return out.take();
}

Result<std::vector<Grant>> decodeClaim(ByteSpan claim) {
  if (claim.size() > kMaxClaimBytes)
    return malformed(fmt::format("{} bytes exceed the limit of {}", claim.size(), kMaxClaimBytes));
  std::vector<Grant> out;
  std::uint8_t last = 0;
  while (!claim.empty()) {
    const auto caveat = takeCaveat(claim);
    if (!caveat) return malformed("a restriction is cut short");
    const auto kind = static_cast<Caveat>(caveat->kind);
    if (kind < Caveat::kId || kind > Caveat::kName) return unknownCaveat(caveat->kind);
    if (kind == Caveat::kId)
      out.emplace_back();
    else if (out.empty() || caveat->kind <= last)
      return malformed("its restrictions are not in order");
    last = caveat->kind;
    if (!set(out.back(), kind, caveat->bytes))
      return malformed(fmt::format("a restriction of kind {} is malformed", caveat->kind));
    if (out.size() > kMaxGrants)
      return malformed(fmt::format("it was narrowed more than {} times", kMaxGrants - 1));
  }
  return out;
}

std::optional<base::Key> keyOfClaim(const base::Key& root, ByteSpan claim) {
  if (claim.empty() || claim.size() > kMaxClaimBytes) return std::nullopt;
  if (std::to_integer<std::uint8_t>(claim[0]) != static_cast<std::uint8_t>(Caveat::kId))
    return std::nullopt;
  return extended(base::deriveKey(root, "cards"), claim);
}

std::optional<base::Key> narrowedKey(const base::Key& secret, ByteSpan caveats) {
  return extended(secret, caveats);
}

bool matches(std::string_view pattern, std::string_view label) {
  std::size_t p = 0, l = 0, star = std::string_view::npos, resume = 0;
  while (l < label.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = l;
    } else if (p < pattern.size() && pattern[p] == label[l]) {
      ++p;
      ++l;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      l = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

core::PinRight rightTo(std::string_view label, std::span<const Grant> grants) {
  for (const Grant& grant : grants)
    if (!matches(grant.pins, label)) return {};
  const auto bits = static_cast<unsigned>(allowed(grants));
  return {.read = (bits & static_cast<unsigned>(CardAccess::kRead)) != 0,
          .write = (bits & static_cast<unsigned>(CardAccess::kWrite)) != 0};
}

bool limit(PinInfo& pin, std::span<const Grant> grants) {
  const core::PinRight right = rightTo(pin.label, grants);
  const bool write = right.write && pin.access != MemoryAccess::kReadOnly;
  if (!write && !right.read) return false;
  if (!write) pin.access = MemoryAccess::kReadOnly;
  if (!right.read) pin.access = MemoryAccess::kWriteOnly;
  return true;
}

std::optional<WallTime> endOf(std::span<const Grant> grants) {
  std::optional<WallTime> end;
  for (const Grant& grant : grants)
    if (grant.until && (!end || *grant.until < *end)) end = grant.until;
  return end;
}

bool hasId(std::span<const Grant> grants, const CardId& id) {
  return std::ranges::find(grants, id, &Grant::id) != grants.end();
}

Status prepare(Grant& grant, WallTime now) {
  const auto bad = [](std::string detail, std::string remedy) {
    return Error{.code = Code::kInvalid,
                 .operation = "grant of a Card",
                 .detail = std::move(detail),
                 .remedy = std::move(remedy)};
  };
  if (!isLine(grant.pins))
    return bad(
        fmt::format("the pattern of labels has {} bytes, or control characters", grant.pins.size()),
        fmt::format("give 1 to {} bytes, such as kv/*", kMaxCaveatBytes));
  if (!grant.name.empty() && !isLine(grant.name))
    return bad("the name of the holder is no name of an agent", "give the holder's Settings::name");
  if (grant.access < CardAccess::kRead || grant.access > CardAccess::kBoth)
    return bad(fmt::format("no access has the number {}", static_cast<unsigned>(grant.access)),
               "use kRead, kWrite or kBoth");
  if (grant.until) {
    if (*grant.until <= now)
      return bad(fmt::format("the grant ends at {}, which is over", timeText(*grant.until)),
                 "give a later end");
    if (numberOf(*grant.until) > kLastMoment)
      return bad("the end of the grant is after the year 2255", "leave the end out");
    grant.until = WallTime(milliseconds(numberOf(*grant.until)));
  }
  return base::fillSecret(grant.id);
}

Status checkNarrowed(std::span<const Grant> grants) {
  VIADUCT_CHECK(leavesSomething(grants));
  const auto before = grants.first(grants.size() - 1);
  const Grant& last = grants.back();
  if (const auto end = endOf(before); last.until && end && *last.until > *end)
    return Error{.code = Code::kInvalid,
                 .operation = "narrow a Card",
                 .detail = fmt::format("the Card ends at {}, before {}", timeText(*end),
                                       timeText(*last.until)),
                 .cause = "a holder cannot grant more than it has",
                 .remedy = "give an earlier end, or ask the owner for another Card"};
  if (grants.size() > kMaxGrants || claimOf(grants).size() > kMaxClaimBytes)
    return Error{.code = Code::kExhausted,
                 .operation = "narrow a Card",
                 .detail = fmt::format("a Card has at most {} grants and {} bytes of them",
                                       kMaxGrants, kMaxClaimBytes),
                 .remedy = "narrow an earlier Card of the chain, or ask the owner for another"};
  return Ok{};
}

Status mayUse(std::span<const Grant> grants, std::string_view holder, WallTime now) {
  const auto denied = [](std::string detail, std::string cause, std::string remedy) {
    return Error{.code = Code::kDenied,
                 .operation = "connect",
                 .detail = std::move(detail),
                 .cause = std::move(cause),
                 .remedy = std::move(remedy)};
  };
  if (const auto end = endOf(grants); end && *end <= now)
    return denied(fmt::format("the Card has expired, at {}", timeText(*end)),
                  "its time is over by the clock of the owner's host",
                  "get a new Card from its owner");
  for (const Grant& grant : grants)
    if (!grant.name.empty() && grant.name != holder)
      return denied(fmt::format("the Card is for agent {}, not {}", grant.name, holder),
                    "another agent uses it, or Settings::name differs from the Card's",
                    "open the agent under that name, or get a Card of its own for it");
  if (auto something = leavesSomething(grants); !something) {
    Error why = std::move(something).error();
    why.code = Code::kDenied;
    why.operation = "connect";
    why.remedy = "use the Card from which this one was narrowed";
    return why;
  }
  return Ok{};
}

std::string textOf(std::span<const Grant> grants) {
  if (grants.empty()) return "all pins, reading and writing, as long as the agent lives";
  std::string out;
  for (const Grant& grant : grants)
    if (grant.pins != "*")
      out += fmt::format("{}{}", out.empty() ? "pins like " : " and ", grant.pins);
  if (out.empty()) out = "all pins";
  out += accessText(allowed(grants));
  if (const auto end = endOf(grants)) out += ", until " + timeText(*end);
  for (const Grant& grant : grants)
    if (!grant.name.empty()) return out + ", for agent " + grant.name;
  return out;
}

}  // namespace viaduct::agent
