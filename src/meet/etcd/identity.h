// Which process this is, so that one that is dead for certain need not be waited for. Threads: any.
#pragma once

#include <string>

namespace viaduct::meet::etcd {

// The kernel's boot, its namespaces, and the process: the same text is never another process.
// Empty where the system does not say enough.
const std::string& ownIdentity();
// True only when `identity` is of this boot and these namespaces and its process is no more.
// Everything that cannot be proven is false: another host's process may well be alive.
bool isProvablyDead(const std::string& identity);

}  // namespace viaduct::meet::etcd
