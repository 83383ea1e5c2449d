#include "meet/etcd/keys.h"

#include <fmt/format.h>
#include <viaduct/deadline.h>

#include <array>
#include <charconv>
#include <cstring>

#include "base/random.h"

namespace viaduct::meet::etcd {
namespace {

constexpr std::string_view kHere = "/here";

}  // namespace

std::string escaped(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.';
    if (plain)
      out += c;
    else
      out += fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

std::uint64_t uniqueNumber() {
  std::array<std::uint8_t, 8> bytes{};
  // It fails only where the kernel has no getrandom(); the clock then is as good as anything.
  if (!base::fillSecret(bytes))
    return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
  std::uint64_t out = 0;
  std::memcpy(&out, bytes.data(), sizeof(out));
  return out;
}

std::string Space::withdrawn(std::uint64_t claim) const {
  return fmt::format("{}/not/{:016x}", root, claim);
}

GroupKeys::GroupKeys(const Space& space, std::string_view group, std::uint64_t instance)
    : head_(space.head(group)), base_(fmt::format("{}{:016x}/", space.group(group), instance)) {}

std::string GroupKeys::up(MemberId id) const { return fmt::format("{}up/{:016x}", base_, id); }

std::string GroupKeys::here(MemberId id) const { return up(id) + std::string(kHere); }

std::string GroupKeys::answer(MemberId id) const { return fmt::format("{}to/{:016x}", base_, id); }

std::string GroupKeys::gaveUp(MemberId id) const { return fmt::format("{}not/{:016x}", base_, id); }

std::string GroupKeys::part(std::uint32_t number) const {
  return fmt::format("{}down/part/{:06}", base_, number);
}

std::optional<MemberId> GroupKeys::memberOf(std::string_view key) const {
  const KeyRange range = up();
  if (!key.starts_with(range.key)) return std::nullopt;
  key.remove_prefix(range.key.size());
  MemberId id = 0;
  const auto parsed = std::from_chars(key.data(), key.data() + key.size(), id, 16);
  if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size()) return std::nullopt;
  return id;
}

std::optional<MemberId> GroupKeys::answererOf(std::string_view key) const {
  if (!key.ends_with(kHere)) return std::nullopt;
  return memberOf(key.substr(0, key.size() - kHere.size()));
}

}  // namespace viaduct::meet::etcd
