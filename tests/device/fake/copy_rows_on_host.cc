// Runs the product's copy kernel on the aliases of device addresses.
#include <cstring>

#include "device/fake/kernel_run.h"
#include "device/kernel_on_host.h"
// kernel_on_host.h, which compiles the kernel for the host, has to come first.
#include "backends/cuda/kernel/copy_rows.cu"

namespace viaduct::fakegpu {
namespace {

CUresult runRows(World& world, const Context& context, const Launch& launch) {
  struct {
    std::uint64_t rows, count;
  } given;
  std::memcpy(&given, launch.arguments.data(), sizeof given);
  return runOnHost(world, context, [&] {
    testing::runKernel(
        launch.groups, launch.threads, viaduct_copy_rows,
        reinterpret_cast<const cuda::Row*>(tableAt(given.rows, given.count * sizeof(cuda::Row))),
        static_cast<std::uint32_t>(given.count));
  });
}

}  // namespace

const Kernel* copyRowsKernel() {
  static const Kernel kernel{"viaduct_copy_rows", {8, 4}, &runRows};
  return &kernel;
}

}  // namespace viaduct::fakegpu
