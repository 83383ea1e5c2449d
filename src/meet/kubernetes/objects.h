// The objects of Kubernetes' API that this place needs, as types. Any program with the right may
// have written a Lease, so malformed texts are errors, never a crash. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meet/kubernetes/times.h"

namespace viaduct::meet::kubernetes {

// The limit of Kubernetes for all annotations of an object, with their keys.
inline constexpr std::size_t kMostAnnotations = std::size_t{256} << 10U;

// The Lease of one published name.
struct Lease {
  std::string name = {}, kube_namespace = {};
  std::string uid = {}, version = {};  // the server's; empty: not created yet
  std::string group_label = {}, name_label = {};
  std::string pod_name = {}, pod_uid = {};  // the owner; empty: unknown
  std::string agent = {};                   // the true name; empty: the Lease is foreign
  std::optional<std::string> value = {};    // nothing: truncated, or from another version
  std::string holder = {};                  // the process that renews it
  std::string identity = {};                // of that process, see meet/identity.h; empty: unknown
  std::uint32_t seconds = 0;                // a name that was not renewed for so long is dead
  std::uint32_t takeovers = 0;
  WallTime acquired = {};
  std::optional<WallTime> renewed = {};
};

// The body of a POST or PUT. An error if the annotations exceed Kubernetes' limit.
Result<std::string> leaseJson(const Lease& lease);
Result<Lease> parseLease(std::string_view body);

// The body of a DELETE, which deletes only this object in this state.
std::string deleteJson(const Lease& lease);

// A name and version, for objects whose change alone matters.
struct Seen {
  std::string name = {}, version = {};
};
struct LeasePage {
  std::string version = {};  // of the whole list: where a watch begins
  std::string next = {};     // for `continue`; empty: the last page
  std::vector<Seen> leases = {};
};
Result<LeasePage> parsePage(std::string_view body);

// An API server's refusal.
struct Refusal {
  long code = 0;
  std::string reason = {}, message = {};  // printable
  std::string kind = {};                  // of the object that is missing: "namespaces"
  std::uint32_t retry_after = 0;          // seconds; 0: not said
};
// Reads a refusal from the body of an answer that is not 2xx. Nothing for a body of another kind.
std::optional<Refusal> parseRefusal(std::string_view body);

// One line of a watch.
struct WatchEvent {
  bool deleted = false, bookmark = false;
  Seen lease = {};                      // of a bookmark: only the version
  std::optional<Refusal> refusal = {};  // the watch ends with it
};
Result<WatchEvent> parseEvent(std::string_view line);

}  // namespace viaduct::meet::kubernetes
