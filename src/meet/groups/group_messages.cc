#include "meet/groups/group_messages.h"

#include <algorithm>

namespace viaduct::meet::groups {
namespace {

constexpr std::size_t kMostInCommon = 255;
constexpr std::size_t kLeastOfText = 3;  // one byte: the shared length; two: that of the rest

void writeLike(base::Writer& out, std::string_view before, std::string_view text) {
  const std::size_t limit = std::min({kMostInCommon, before.size(), text.size()});
  const auto [differ, ignored] = std::mismatch(text.begin(), text.begin() + limit, before.begin());
  const auto common = static_cast<std::size_t>(differ - text.begin());
  const std::string_view rest = text.substr(common);
  out.put(static_cast<std::uint8_t>(common)).put(static_cast<std::uint16_t>(rest.size()));
  out.raw(base::bytesOf(rest));
}

std::string readLike(base::Reader& in, std::string_view before, std::size_t limit) {
  const std::size_t common = in.get<std::uint8_t>();
  const auto rest = base::textOf(in.raw(in.get<std::uint16_t>()));
  if (common > before.size() || common + rest.size() > limit) in.refuse();
  return std::string(before.substr(0, common)).append(rest);
}

}  // namespace

void FormedMessage::encode(base::Writer& out) const {
  base::Fields::put(out, epoch, static_cast<std::uint32_t>(members.size()));
  const Member none;
  const Member* before = &none;
  for (const Member& member : members) {
    writeLike(out, before->name, member.name);
    writeLike(out, before->about, member.about);
    before = &member;
  }
}

void FormedMessage::decode(base::Reader& in) {
  std::uint32_t count = 0;
  base::Fields::get(in, epoch, count);
  // The bytes for `count` members have to be there before memory is reserved for them.
  if (count > kMaxMembers || count > in.left() / (2 * kLeastOfText)) return in.refuse();
  members.resize(count);
  const Member none;
  const Member* before = &none;
  for (Member& member : members) {
    member.rank = static_cast<std::uint32_t>(&member - members.data());
    member.name = readLike(in, before->name, kMaxNameBytes);
    member.about = readLike(in, before->about, kMaxSealedAbout);
    before = &member;
  }
}

void ValuesMessage::encode(base::Writer& out) const {
  const bool empty = std::all_of(values.begin(), values.end(), [](auto& v) { return v.empty(); });
  base::Fields::put(out, round, static_cast<std::uint32_t>(values.size()), empty);
  if (!empty)
    for (const std::string& value : values) out.text(value);
}

void ValuesMessage::decode(base::Reader& in) {
  std::uint32_t count = 0;
  bool empty = false;
  base::Fields::get(in, round, count, empty);
  if (count > kMaxMembers || (!empty && count > in.left() / 4)) return in.refuse();
  values.resize(count);
  if (!empty)
    for (std::string& value : values) base::Fields::get(in, base::atMost(kMaxSealedValue, value));
}

}  // namespace viaduct::meet::groups
