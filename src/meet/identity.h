// Identifies processes, so that no wait is needed for a process that is certainly dead. Threads:
// any.
#pragma once

#include <string>

namespace viaduct::meet {

// A text that names the kernel's boot, the namespaces and the process. No other process ever has
// the same text. Empty if the system does not tell enough.
const std::string& ownIdentity();
// True only if `identity` has this boot and these namespaces, and its process has ended. Without
// proof it is false, since a process on another host may well be alive.
bool isProvablyDead(const std::string& identity);

}  // namespace viaduct::meet
