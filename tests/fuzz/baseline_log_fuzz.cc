// Any bytes as the output of a raw tool: no crash, and the result is a valid result file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fuzz/samples.h"
#include "measure/result/report.h"
#include "measure/result/result_files.h"
#include "measure/result/row_testing.h"

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const std::string_view text :
       {" RDMA_Write BW Test\n Device         : mlx5_3\n Number of qps   : 2\n"
        " #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n"
        " 65536 5000 23330.12 23306.62 0.372906\n",
        "| Test: put latency |\n| Message size: 8 |\n| Test | # iterations | 50.0%ile |  overall  "
        "|\n"
        " 20000 1.5 1.7 1.6 4.8 4.8 4550 3868\n",
        "$ fi_rma_bw -o read\nbytes iters total time MB/sec usec/xfer Mxfers/sec\n"
        "64k 10k 625m 0.06s 10922.67 6.00 0.17\n",
        "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
        "1024 256 float sum -1 35.49 0.03 0.05 0 33.42 0.03 0.06 N/A\n",
        R"({"start":{"version":"iperf 3.12","test_start":{"protocol":"TCP","num_streams":4,)"
        R"("blksize":131072}},"intervals":[{"sum":{"seconds":1,"bits_per_second":8e9}}],)"
        R"("end":{"sum_received":{"seconds":1,"bits_per_second":8e9}}})"})
    out.emplace_back(text.begin(), text.end());
  return out;
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace viaduct::measure;
  const auto reports = reportsFrom(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!reports) return 0;
  for (const Report& one : *reports)
    if (!reportFromJson(toJson(one), "fuzz")) std::abort();
  return 0;
}
