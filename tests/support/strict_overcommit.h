// Lets a process believe that its host counts memory strictly. Threads: any.
#pragma once

#include <sched.h>
#include <sys/mount.h>

#include "support/temporary_folder.h"

namespace viaduct::testing {

// From now on this process and its children read 2 from vm.overcommit_memory. False: the process
// may not mount files. Call it in a child process.
inline bool pretendStrictOvercommit() {
  if (::unshare(CLONE_NEWNS) != 0) return false;
  const TemporaryFolder folder;
  folder.write("/overcommit_memory", "2\n");
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount((folder.path() + "/overcommit_memory").c_str(), "/proc/sys/vm/overcommit_memory",
                 nullptr, MS_BIND, nullptr) == 0;
}

}  // namespace viaduct::testing
