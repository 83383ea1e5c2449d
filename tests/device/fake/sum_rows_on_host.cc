// Runs the product's sum kernel on the aliases of device addresses.
#include <cstring>

#include "device/fake/kernel_run.h"
#include "device/kernel_on_host.h"
// kernel_on_host.h, which compiles the kernel for the host, has to come first.
#include "backends/cuda/kernel/sum_rows.cu"

namespace viaduct::fakegpu {
namespace {

CUresult runSums(World& world, const Context& context, const Launch& launch) {
  struct {
    std::uint64_t rows, sums, count;
  } given;
  std::memcpy(&given, launch.arguments.data(), sizeof given);
  return runOnHost(world, context, [&] {
    testing::runKernel(launch.groups, launch.threads, viaduct_sum_rows,
                       reinterpret_cast<const cuda::SumRow*>(
                           tableAt(given.rows, given.count * sizeof(cuda::SumRow))),
                       reinterpret_cast<ulonglong2*>(given.sums),
                       static_cast<std::uint32_t>(given.count));
  });
}

}  // namespace

const Kernel* sumRowsKernel() {
  static const Kernel kernel{"viaduct_sum_rows", {8, 8, 4}, &runSums};
  return &kernel;
}

}  // namespace viaduct::fakegpu
