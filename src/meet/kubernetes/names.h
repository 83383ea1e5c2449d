// The names of groups and agents as Kubernetes allows them, and the selectors of requests. Threads:
// pure functions.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <string_view>
#include <vector>

namespace viaduct::meet::kubernetes {

inline constexpr const char* kGroupLabel = "viaduct/group";
inline constexpr const char* kNameLabel = "viaduct/name";

// A place, as users write it after "kubernetes:": "[NAMESPACE/]GROUP".
struct PlaceName {
  std::string kube_namespace = {};  // empty: that of the credentials
  std::string group = {};
};
Result<PlaceName> parsePlaceName(std::string_view where);

// The value of a label, which is also part of an object's name: the text itself if it is one label
// of a DNS name, or else "x-" and a hash of it.
std::string labelOf(std::string_view text);
// A key of a place as its Lease shows it. A published name has its own label. All other keys have a
// label that no name has.
struct LeaseTitle {
  std::string agent = {}, label = {};
};
LeaseTitle titleOf(std::string_view names, std::string_view key);
// The label of a group. Groups of two namespaces of Viaduct have different labels.
std::string groupLabel(std::string_view name_space, std::string_view group);
// The name of the Lease of one agent.
std::string leaseName(std::string_view group_label, std::string_view name_label);

// The most names that a selector lists. For more names, it selects the whole group.
inline constexpr std::size_t kMostSelected = 16;
// The part of a query that selects the Leases of these labels, or of the whole group.
std::string selectorOf(std::string_view group_label, const std::vector<std::string>& name_labels);

// Escapes a part of a query, "a=b" as "a%3Db".
std::string escaped(std::string_view text);

}  // namespace viaduct::meet::kubernetes
