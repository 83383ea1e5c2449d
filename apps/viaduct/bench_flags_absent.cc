// The flags of nixlbench that viaduct does not support. The help of each says what it is for.
#include <array>

#include "viaduct/bench_options.h"

namespace viaduct::app {
namespace {

constexpr auto kStorage = "storage backends";
constexpr auto kGds = "GPUDirect Storage";
constexpr auto kGpunetio = "GPUNETIO";
constexpr auto kAzure = "Azure Blob";
constexpr auto kGusli = "GUSLI";

constexpr std::array kAbsent{
    BenchFlag{"worker_type", "nixl|nvshmem", "nixl", "NVSHMEM workers are not built in", nullptr},
    BenchFlag{"enable_vmm", "", "false", "CUDA memory is not built in", nullptr},
    BenchFlag{"use_device_api", "", "false", "transfers started by GPU kernels are not built in",
              nullptr},
};

constexpr std::array kOfOtherBackends{
    BenchFlag{"randomize_location_mode", "MODE", "none", kStorage, nullptr},
    BenchFlag{"randomize_location_mode_seed", "N", "0", kStorage, nullptr},
    BenchFlag{"gds_batch_pool_size", "N", "32", kGds, nullptr},
    BenchFlag{"gds_batch_limit", "N", "128", kGds, nullptr},
    BenchFlag{"gds_mt_num_threads", "N", "1", kGds, nullptr},
    BenchFlag{"gpunetio_device_list", "LIST", "0", kGpunetio, nullptr},
    BenchFlag{"gpunetio_oob_list", "LIST", "", kGpunetio, nullptr},
    BenchFlag{"azure_blob_account_url", "URL", "", kAzure, nullptr},
    BenchFlag{"azure_blob_container_name", "NAME", "", kAzure, nullptr},
    BenchFlag{"azure_blob_connection_string", "TEXT", "", kAzure, nullptr},
    BenchFlag{"infinia_config_file", "FILE", "", "INFINIA", nullptr},
    BenchFlag{"hf3fs_iopool_size", "N", "64", "HF3FS", nullptr},
    BenchFlag{"gusli_client_name", "NAME", "NIXLBench", kGusli, nullptr},
    BenchFlag{"gusli_max_simultaneous_requests", "N", "32", kGusli, nullptr},
    BenchFlag{"gusli_config_file", "FILE", "", kGusli, nullptr},
    BenchFlag{"gusli_device_byte_offsets", "LIST", "", kGusli, nullptr},
    BenchFlag{"gusli_device_security", "LIST", "", kGusli, nullptr},
    BenchFlag{"gusli_try_use_uring", "", "false", kGusli, nullptr},
};

}  // namespace

std::span<const BenchFlag> absentFlags() { return kAbsent; }
std::span<const BenchFlag> flagsOfOtherBackends() { return kOfOtherBackends; }

}  // namespace viaduct::app
