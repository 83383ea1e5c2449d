// Lists of devices or interfaces as NCCL_IB_HCA and NCCL_SOCKET_IFNAME hold them. Threads: pure
// functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace viaduct::diag {

// "mlx5_1:1,mlx5_2": NCCL takes all names that begin so. "=mlx5_1" takes that one, "^mlx5_1" all
// others.
struct NameList {
  bool excludes = false, exact = false;
  std::vector<std::string> names = {};  // without ports
  bool matches(std::string_view name) const;
  bool takes(std::string_view name) const { return matches(name) != excludes; }
};
NameList nameList(std::string_view text);

}  // namespace viaduct::diag
