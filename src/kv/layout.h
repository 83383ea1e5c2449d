// Sizes in a layout, and the checks that need no places. Threads: pure functions.
#pragma once

#include <viaduct/kv.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace viaduct::kv {

// The bytes of one head of one token.
std::uint64_t entryBytes(const KvCache& cache);
// The number of entries that one head has in a page.
std::uint64_t entriesOf(const KvGroup& group, const KvCache& cache);
// The number of places that a group has.
std::size_t placesOf(const KvGroup& group);

Error bad(std::string operation, std::string detail, std::string remedy);
// Checks everything but blocks and places. `side` begins the error: "source ", or nothing.
Status checkShape(const KvLayout& layout, const char* operation, const std::string& side);
// Checks blocks and places, of a layout whose shape is right.
Status checkPlaces(const KvLayout& layout, const char* operation, const std::string& side);

}  // namespace viaduct::kv
