#include "meet/etcd/records.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/fields.h"

namespace viaduct::meet::etcd {
namespace {

// Changes with the meaning of any record: processes of two versions do not meet.
constexpr std::uint8_t kVersion = 3;
constexpr std::uint8_t kEntry = 1, kServer = 2;

template <class Record>
std::optional<Record> decoded(std::string_view bytes, std::uint8_t kind) {
  std::uint8_t version = 0, its_kind = 0;
  Record out;
  if (!base::unpack(bytes, version, its_kind, out) || version != kVersion || its_kind != kind)
    return std::nullopt;
  return out;
}

}  // namespace

auto fields(base::Is<Entry> auto& e) { return std::tie(e.identity, e.value); }
auto fields(base::Is<ServerRecord> auto& r) {
  return base::list(r.secret, r.name, base::atMost(kMaxAddresses, r.addresses));
}

std::string encode(const Entry& entry) { return base::packed(kVersion, kEntry, entry); }
std::optional<Entry> decodeEntry(std::string_view bytes) { return decoded<Entry>(bytes, kEntry); }

std::string encode(const ServerRecord& record) { return base::packed(kVersion, kServer, record); }
std::optional<ServerRecord> decodeServer(std::string_view bytes) {
  return decoded<ServerRecord>(bytes, kServer);
}

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

}  // namespace viaduct::meet::etcd
