// A ring of io_uring and its registered memory, by system calls: neither the build nor the machine
// needs a library. All functions return 0 or an errno. Threads: one at a time for each ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/fd.h"

struct io_uring_params;  // NOLINT(readability-identifier-naming): the kernel's name

namespace viaduct::host {

// Opens a ring that any thread may use. Its completions appear without a system call, because it
// has neither IORING_SETUP_DEFER_TASKRUN nor COOP_TASKRUN.
// ENOSYS: the kernel or this build has no io_uring, or an io_uring older than Linux 5.5.
int openRing(unsigned entries, io_uring_params& params, base::Fd& ring);

// Reserves `count` table entries for registered memory. EINVAL: the kernel is older than 5.19.
int reserveBuffers(int ring, std::uint32_t count);
// Registers memory in the table entry `place`. Empty memory ends the registration in that entry.
// ENOMEM: the limit of locked memory.
int registerBuffer(int ring, std::uint32_t place, std::span<std::byte> memory);

// The errno of each step; 0: the step works. A step after a failed one is not tried, and has 0.
struct RingTrial {
  int open = 0, reserve = 0, registration = 0;  // of one page
};
RingTrial tryRing();

}  // namespace viaduct::host
