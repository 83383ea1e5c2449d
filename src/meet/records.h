// The values of Viaduct's keys at a place that stores values. Any program with access may have
// written a key, so malformed bytes decode to nothing. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fields.h"

namespace viaduct::meet {

// This number changes with the meaning of any record. Processes with two numbers do not meet.
inline constexpr std::uint8_t kRecordVersion = 1;

// Each kind of record has a number, Record::kKind.
template <class Record>
std::string encodeRecord(const Record& record) {
  return base::packed(kRecordVersion, Record::kKind, record);
}
template <class Record>
std::optional<Record> decodeRecord(std::string_view bytes) {
  std::uint8_t version = 0, kind = 0;
  Record out;
  if (!base::unpack(bytes, version, kind, out) || version != kRecordVersion ||
      kind != Record::kKind)
    return std::nullopt;
  return out;
}

// The value of every key: the process that owns it, and bytes for the key's purpose.
struct Entry {
  static constexpr std::uint8_t kKind = 1;
  std::string identity = {};  // the owner's, see identity.h; empty: unknown
  std::string value = {};
  std::string owner = {};  // for people; not part of the record
};
auto fields(base::Is<Entry> auto& e) { return std::tie(e.identity, e.value); }

// Escapes a name, "a/b" as "a%2fb", because it is one part of a key.
std::string escaped(std::string_view name);
// The name of an escaped text.
std::string unescaped(std::string_view text);

}  // namespace viaduct::meet
