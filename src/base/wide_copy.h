// Copies past the cache, for amounts that would only push other things out of it. Threads: any.
#pragma once

#include <cstddef>

namespace viaduct::base {

// Copies with the widest non-temporal stores of this processor (memcpy where there are none).
// What it wrote is ordered before later writes only by finishWide().
void copyWide(std::byte* to, const std::byte* from, std::size_t bytes);
void finishWide();

// "avx512", "avx2" or "memcpy": what copyWide uses here.
const char* wideCopyName();

}  // namespace viaduct::base
