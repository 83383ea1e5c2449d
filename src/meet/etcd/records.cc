#include "meet/etcd/records.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "base/bytes.h"

namespace viaduct::meet::etcd {
namespace {

using base::Reader;
using base::Writer;

// Changes with the meaning of any record: processes of two versions do not meet.
constexpr std::uint8_t kVersion = 3;
constexpr std::uint8_t kEntry = 1, kServer = 2;

std::string textOf(const Writer& writer) {
  const auto& bytes = writer.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool opens(Reader& in, std::uint8_t kind) {
  return in.get<std::uint8_t>() == kVersion && in.get<std::uint8_t>() == kind;
}

}  // namespace

std::string encode(const Entry& entry) {
  return textOf(Writer().put(kVersion).put(kEntry).text(entry.identity).text(entry.value));
}

std::optional<Entry> decodeEntry(std::string_view bytes) {
  Reader in(base::bytesOf(bytes));
  if (!opens(in, kEntry)) return std::nullopt;
  Entry out;
  out.identity = in.text();
  out.value = in.text();
  return in.finished() ? std::optional(std::move(out)) : std::nullopt;
}

std::string encode(const ServerRecord& record) {
  Writer out;
  out.put(kVersion).put(kServer).raw(std::as_bytes(std::span(record.secret))).text(record.name);
  out.put(static_cast<std::uint32_t>(record.addresses.size()));
  for (const std::string& address : record.addresses) out.text(address);
  return textOf(out);
}

std::optional<ServerRecord> decodeServer(std::string_view bytes) {
  Reader in(base::bytesOf(bytes));
  if (!opens(in, kServer)) return std::nullopt;
  ServerRecord out;
  out.secret = in.array<sizeof(base::Key)>();
  out.name = in.text();
  const auto count = in.get<std::uint32_t>();
  if (count > kMaxAddresses) return std::nullopt;
  for (std::uint32_t i = 0; i < count; ++i) out.addresses.push_back(in.text());
  return in.finished() ? std::optional(std::move(out)) : std::nullopt;
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
