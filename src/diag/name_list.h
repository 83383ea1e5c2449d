// Parses lists of devices or interfaces in the form of NCCL_IB_HCA and NCCL_SOCKET_IFNAME. Threads:
// pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace viaduct::diag {

// "mlx5_1:1,mlx5_2" takes all names with one of these prefixes. "=mlx5_1" takes exactly that name,
// "^mlx5_1" all other names.
struct NameList {
  bool excludes = false, exact = false;
  std::vector<std::string> names = {};  // without ports
  bool matches(std::string_view name) const;
  bool takes(std::string_view name) const { return matches(name) != excludes; }
};
NameList nameList(std::string_view text);

}  // namespace viaduct::diag
