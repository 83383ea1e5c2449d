#include "measure/result/nixlbench.h"

#include <fmt/format.h>
#include <viaduct/backend.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

constexpr std::size_t kLine = 160;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct Label {
  std::string_view text;
  std::string_view flag;
  std::string_view fallback;  // empty: the line appears only with the flag
};
constexpr std::array kLabels{
    Label{"Runtime (--runtime_type=[ETCD,ASIO])", "runtime_type", "ETCD"},
    Label{"ETCD Endpoint ", "etcd_endpoints", ""},
    Label{"ASIO Address (--asio_address) ", "asio_address", ""},
    Label{"ASIO Port (--asio_port) ", "asio_port", ""},
    Label{"Worker type (--worker_type=[nixl,nvshmem])", "worker_type", "nixl"},
    Label{"Backend (--backend=[UCX,GDS,GDS_MT,POSIX,Mooncake,HF3FS,OBJ,AZURE_BLOB])", "backend",
          "UCX"},
    Label{"Enable pt (--enable_pt=[0,1])", "enable_pt", "0"},
    Label{"Progress threads (--progress_threads=N)", "progress_threads", "0"},
    Label{"Device list (--device_list=dev1,dev2,...)", "device_list", "all"},
    Label{"Enable VMM (--enable_vmm=[0,1])", "enable_vmm", "0"},
    Label{"Recreate xfer each iteration (--recreate_xfer=[0,1])", "recreate_xfer", "0"},
    Label{"Re-register memory each iteration (--reregister_mem=[0,1])", "reregister_mem", "0"},
    Label{"Prepared xfer (prep+make) (--prepared_xfer=[0,1])", "prepared_xfer", "0"},
    Label{"Pipeline depth (--pipeline_depth=N)", "pipeline_depth", "1"},
    Label{"Use hugepages (--use_hugepages=[0,1])", "use_hugepages", "0"},
    Label{"POSIX API type (--posix_api_type=[AIO,URING,POSIXAIO])", "posix_api_type", ""},
    Label{"POSIX IO pool size (--posix_ios_pool_size=N)", "posix_ios_pool_size", ""},
    Label{"POSIX kernel queue size (--posix_kernel_queue_size=N)", "posix_kernel_queue_size", ""},
    Label{"OBJ S3 bucket name (--obj_bucket_name=nixlbench-bucket)", "obj_bucket_name", ""},
    Label{"OBJ S3 scheme (--obj_scheme=[http, https])", "obj_scheme", ""},
    Label{"OBJ S3 region (--obj_region=region)", "obj_region", ""},
    Label{"OBJ S3 use virtual addressing (--obj_use_virtual_addressing=[0,1])",
          "obj_use_virtual_addressing", ""},
    Label{"OBJ S3 endpoint override (--obj_endpoint_override=endpoint)", "obj_endpoint_override",
          ""},
    Label{"OBJ S3 required checksum (--obj_req_checksum=[supported, required])", "obj_req_checksum",
          ""},
    Label{"OBJ S3 CA bundle (--obj_ca_bundle=cert-path)", "obj_ca_bundle", ""},
    Label{"filepath (--filepath=path)", "filepath", ""},
    Label{"filenames (--filenames=filename1,filename2,...)", "filenames", ""},
    Label{"Number of files (--num_files=N)", "num_files", ""},
    Label{"Storage enable direct (--storage_enable_direct=[0,1])", "storage_enable_direct", ""},
    Label{"Initiator seg type (--initiator_seg_type=[DRAM,VRAM])", "initiator_seg_type", "DRAM"},
    Label{"Target seg type (--target_seg_type=[DRAM,VRAM])", "target_seg_type", "DRAM"},
    Label{"Scheme (--scheme=[pairwise,manytoone,onetomany,tp])", "scheme", "pairwise"},
    Label{"Mode (--mode=[SG,MG])", "mode", "SG"},
    Label{"Op type (--op_type=[READ,WRITE])", "op_type", "WRITE"},
    Label{"Check consistency (--check_consistency=[0,1])", "check_consistency", "0"},
    Label{"Total buffer size (--total_buffer_size=N)", "total_buffer_size", "8589934592"},
    Label{"Num initiator dev (--num_initiator_dev=N)", "num_initiator_dev", "1"},
    Label{"Num target dev (--num_target_dev=N)", "num_target_dev", "1"},
    Label{"Start block size (--start_block_size=N)", "start_block_size", "4096"},
    Label{"Max block size (--max_block_size=N)", "max_block_size", "67108864"},
    Label{"Start batch size (--start_batch_size=N)", "start_batch_size", "1"},
    Label{"Max batch size (--max_batch_size=N)", "max_batch_size", "1"},
    Label{"Num iter (--num_iter=N)", "num_iter", "1000"},
    Label{"Warmup iter (--warmup_iter=N)", "warmup_iter", "100"},
    Label{"Large block iter factor (--large_blk_iter_ftr=N)", "large_blk_iter_ftr", "16"},
    Label{"Num threads (--num_threads=N)", "num_threads", "1"},
    Label{"Use Device API (--use_device_api=[0,1])", "use_device_api", "0"},
};

std::string rule(char c) {
  std::string out(kLine, c);
  out += '\n';
  return out;
}

std::string cell(std::string_view text, std::size_t width) {
  return fmt::format("{:<{}}", text, width);
}

std::string cell(double value, int decimals, std::size_t width) {
  return cell(fmt::format("{:.{}f}", value, decimals), width);
}

std::string times(const std::optional<MeanP99>& us) {
  return cell(us ? us->mean : kUnknown, 1, 15) + cell(us ? us->p99 : kUnknown, 1, 15);
}

double ofRankZero(const Row& row, double total) {
  for (const PairResult& pair : row.pairs)
    if (pair.initiator == 0 && pair.gb_per_s) return *pair.gb_per_s;
  return total / std::max(1U, row.initiators);
}

// Says whether RDMA or TCP carried the row. Backends such as LIBFABRIC and UCX work with and
// without RDMA, and their names do not tell which.
std::string networkWords(const Row& row) {
  bool rdma = false, sockets = false;
  for (const ProvenShare& share : row.path) {
    const BackendFacts* const facts = backendFacts(share.backend);
    if (facts == nullptr || facts->storage) continue;
    const Realm realm = facts->realm(share.way);
    rdma = rdma || realm == Realm::kRdma;
    sockets = sockets || realm == Realm::kSockets;
  }
  if (sockets) return rdma ? " (RDMA and TCP)" : " (TCP, no RDMA)";
  return rdma ? " (RDMA)" : "";
}

}  // namespace

std::string nixlbenchBanner(const std::vector<Option>& flags) {
  std::string out = rule('*') + "NIXLBench Configuration\n" + rule('*');
  for (const Label& label : kLabels) {
    const std::string* given = valueOf(flags, label.flag);
    const std::string_view value = given == nullptr ? label.fallback : *given;
    if (!value.empty()) out += fmt::format("{:<60}: {}\n", label.text, value);
  }
  return out + rule('-') + "\n";
}

std::string nixlbenchHead(NixlbenchColumns columns) {
  std::string out = cell("Block Size (B)", 20) + cell("Batch Size", 15) + cell("B/W (GB/Sec)", 15);
  if (columns == NixlbenchColumns::kManyPairs)
    out += cell("Aggregate B/W (GB/Sec)", 25) + cell("Network Util (%)", 20);
  for (const char* title : {"Avg Lat. (us)", "Avg Prep (us)", "P99 Prep (us)", "Avg Post (us)",
                            "P99 Post (us)", "Avg Tx (us)", "P99 Tx (us)"})
    out += cell(title, 15);
  return out + "\n" + rule('-');
}

std::string nixlbenchLine(const Row& row, NixlbenchColumns columns) {
  if (row.verdict == Verdict::kFailed) return {};
  const double total = row.gb_per_s.value_or(kUnknown);
  std::string out =
      cell(fmt::to_string(row.block_size), 20) + cell(fmt::to_string(row.batch_size), 15);
  if (columns == NixlbenchColumns::kManyPairs) {
    out += cell(ofRankZero(row, total), 6, 15) + cell(total, 6, 25);
    out += cell(row.ceiling ? row.ceiling->percent : kUnknown, 6, 20);
  } else {
    out += cell(total, 6, 15);
  }
  const double side_by_side = static_cast<double>(row.threads) * row.initiators;
  const double us_per_block = static_cast<double>(row.block_size) * side_by_side / (total * 1e3);
  return out + cell(us_per_block, 1, 15) + times(row.prep_us) + times(row.post_us) +
         times(row.tx_us) + (isGood(row.verdict) ? "" : loudName(row.verdict)) + "\n";
}

std::string nixlbenchCarrier(const std::vector<Row>& rows) {
  std::vector<std::pair<std::string, std::size_t>> paths;  // with the number of rows on each path
  for (const Row& row : rows) {
    const std::string path = pathWords(row);
    if (path.empty()) continue;
    const std::string words = path + networkWords(row);
    const auto known = std::ranges::find(paths, words, &decltype(paths)::value_type::first);
    if (known == paths.end())
      paths.emplace_back(words, 1);
    else
      ++known->second;
  }
  std::string out;
  for (const auto& [words, count] : paths)
    out += fmt::format("{}{}{}", out.empty() ? "Carried by " : "; ", words,
                       paths.size() == 1 ? "" : " in " + counted(count, "row"));
  return out.empty() ? out : out + "\n";
}

}  // namespace viaduct::measure
