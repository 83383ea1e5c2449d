// Hints to the processor about memory that a copy reads or writes soon. The addresses of many
// pieces are known, but the hardware finds each piece only when the copy gets there. The hardware
// then looks up the page and starts its own prefetching again (docs/measured/kv.md). Threads: pure
// functions.
#pragma once

namespace viaduct::base {

// Any address may be passed: a hint never faults.
inline void willRead(const void* piece) { __builtin_prefetch(piece, 0); }
inline void willWrite(const void* piece) { __builtin_prefetch(piece, 1); }

}  // namespace viaduct::base
