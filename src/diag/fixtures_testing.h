// Whole nodes as folders, for tests of all topics. All but openShiftBefore() are healthy: no topic
// finds anything above info there. A test takes one, plants a fault, and looks for its code:
//   auto folder = roceNode();
//   folder.rewrite("/sys/class/infiniband/mlx5_3/ports/1/rate", "100 Gb/sec (1X NDR)");
// Threads: the test's.
#pragma once

#include <span>
#include <string>

#include "diag/node_testing.h"

namespace viaduct::diag::testing {

// A folder that fills itself where it is constructed, because it cannot move.
class Fixture : public NodeFolder {
 public:
  explicit Fixture(void (*fill)(NodeFolder&)) { fill(*this); }

  // Resolves the links in a path, because write() and remove() follow none.
  std::string place(const std::string& path) const;
  // Rewrites a file behind links: "/sys/class/infiniband/mlx5_3/ports/1/rate".
  void rewrite(const std::string& path, const std::string& text) const;
  void erase(const std::string& path) const;
};

// Pods on EKS with 8 GPUs each. `rdmap79s0` and its three neighbours come before the GPU
// 0000:53:00.0.
Fixture p5();      // p5.48xlarge: 32 EFA devices of 100 Gb/s, from rdmap79s0 to rdmap201s0
Fixture p5en();    // p5en.48xlarge: 16 EFA devices of 200 Gb/s, from rdmap85s0
Fixture p6b200();  // p6-b200.48xlarge: 8 EFA devices of 400 Gb/s, and two mlx5 devices

// A pod with four virtual functions of RoCE on OpenShift: mlx5_6, mlx5_7, mlx5_10, mlx5_11.
Fixture openShiftBefore();  // the IOMMU translates, and memlock is 8 MiB
Fixture openShiftAfter();   // iommu=pt, and the pod is privileged

Fixture aksNd();     // a pod on AKS: mlx5_ib0 to mlx5_ib7, InfiniBand of 400 Gb/s, 8 GPUs
Fixture roceNode();  // bare metal: mlx5_0 to mlx5_7, RoCE of 400 Gb/s on rail0 to rail7, 8 GPUs
Fixture gb200();     // bare metal, arm64: mlx5_0 to mlx5_3, InfiniBand of 400 Gb/s, 4 GPUs
Fixture laptop();    // no RDMA, an IOMMU that translates, the limits of a desktop
Fixture smallVm();   // no RDMA, no PCI, cgroup v1 with v2 beside it

struct HealthyNode {
  const char* name;
  Fixture (*make)();
};
std::span<const HealthyNode> healthyNodes();

// Texts that no kernel writes. fillAll() writes one into all files of the node's devices.
std::span<const std::string> garbageTexts();
void fillAll(const Fixture& folder, const std::string& text);

}  // namespace viaduct::diag::testing
