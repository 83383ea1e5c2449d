// Copies past the cache, for amounts that would only evict other data from it. Threads: any.
#pragma once

#include <cstddef>

namespace viaduct::base {

// Copies with the widest non-temporal stores of this processor, or memcpy if it has none. Only
// finishWide() orders the written bytes before later writes.
void copyWide(std::byte* to, const std::byte* from, std::size_t bytes);
void finishWide();

// The kind of stores that copyWide uses here: "avx512", "avx2" or "memcpy".
const char* wideCopyName();

}  // namespace viaduct::base
