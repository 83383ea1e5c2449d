#include "measure/result/nixlbench.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

Row someRow() {
  return {.block_size = 65536,
          .batch_size = 4,
          .gb_per_s = 10.5,
          .prep_us = MeanP99{45.04, 62},
          .post_us = MeanP99{2.75, 3},
          .tx_us = MeanP99{11.44, 18}};
}

const std::string kRule = std::string(160, '-') + "\n";

TEST(NixlbenchOutput, TheUsualTable) {
  EXPECT_EQ(nixlbenchHead(NixlbenchColumns::kUsual),
            "Block Size (B)      Batch Size     B/W (GB/Sec)   Avg Lat. (us)  Avg Prep (us)  "
            "P99 Prep (us)  Avg Post (us)  P99 Post (us)  Avg Tx (us)    P99 Tx (us)    \n" +
                kRule);
  EXPECT_EQ(nixlbenchLine(someRow(), NixlbenchColumns::kUsual),
            "65536               4              10.500000      6.2            45.0           "
            "62.0           2.8            3.0            11.4           18.0           \n");
}

TEST(NixlbenchOutput, TheLineOfABadRowEndsWithItsVerdict) {
  Row row = someRow();
  row.verdict = Verdict::kCorrupt;
  EXPECT_TRUE(nixlbenchLine(row, NixlbenchColumns::kUsual).ends_with("18.0           CORRUPT\n"));
  row.verdict = Verdict::kUnproven;
  EXPECT_TRUE(nixlbenchLine(row, NixlbenchColumns::kUsual).ends_with("18.0           \n"));
}

TEST(NixlbenchOutput, TheTableOfManyPairs) {
  EXPECT_EQ(nixlbenchHead(NixlbenchColumns::kManyPairs),
            "Block Size (B)      Batch Size     B/W (GB/Sec)   Aggregate B/W (GB/Sec)   "
            "Network Util (%)    Avg Lat. (us)  Avg Prep (us)  P99 Prep (us)  Avg Post (us)  "
            "P99 Post (us)  Avg Tx (us)    P99 Tx (us)    \n" +
                kRule);
  Row row = someRow();
  row.initiators = row.targets = 2;
  row.ceiling = Ceiling{"link", 12.5, 84};
  EXPECT_EQ(nixlbenchLine(row, NixlbenchColumns::kManyPairs),
            "65536               4              5.250000       10.500000                "
            "84.000000           12.5           45.0           62.0           2.8            "
            "3.0            11.4           18.0           \n");
  row.pairs = {{.initiator = 1, .target = 3, .gb_per_s = 4.5},
               {.initiator = 0, .target = 2, .gb_per_s = 6}};
  EXPECT_EQ(nixlbenchLine(row, NixlbenchColumns::kManyPairs).substr(35, 8), "6.000000");
}

TEST(NixlbenchOutput, MissingFiguresAreNan) {
  const std::string line =
      nixlbenchLine({.block_size = 1, .gb_per_s = 1}, NixlbenchColumns::kManyPairs);
  EXPECT_EQ(line.substr(50, 40), "1.000000                 nan            ");
  EXPECT_NE(line.find("0.0            nan            nan "), std::string::npos) << line;
  EXPECT_EQ(nixlbenchLine({.verdict = Verdict::kFailed}, NixlbenchColumns::kUsual), "");
}

Row carriedBy(const std::string& backend, const std::string& way, Proven proven) {
  Row row = someRow();
  row.path = {
      {.backend = backend, .way = way, .device = "eth0", .bytes = 1, .ops = 1, .proven = proven}};
  return row;
}

TEST(NixlbenchOutput, TheLineUnderTheTableNamesTheCarrier) {
  EXPECT_EQ(nixlbenchCarrier({carriedBy("tcp", "socket", Proven::kYes),
                              carriedBy("tcp", "socket", Proven::kYes)}),
            "Carried by tcp/socket on eth0, proven (TCP, no RDMA)\n");
  EXPECT_EQ(nixlbenchCarrier({carriedBy("local", "mapped", Proven::kUnproven)}),
            "Carried by local/mapped on eth0, unproven\n");
  EXPECT_EQ(nixlbenchCarrier({carriedBy("tcp", "socket", Proven::kYes), Row{},
                              carriedBy("tcp", "socket", Proven::kNo)}),
            "Carried by tcp/socket on eth0, proven (TCP, no RDMA) in 1 row; "
            "tcp/socket on eth0, DISPROVEN (TCP, no RDMA) in 1 row\n");
  EXPECT_EQ(nixlbenchCarrier({Row{}}), "");
}

TEST(NixlbenchOutput, TheBanner) {
  const std::string text = nixlbenchBanner({{"backend", "LIBFABRIC"},
                                            {"num_iter", "1008"},
                                            {"etcd_endpoints", "http://localhost:2379"}});
  const std::string stars(160, '*');
  EXPECT_EQ(text.rfind(stars + "\nNIXLBench Configuration\n" + stars + "\n", 0), 0U) << text;
  for (const char* line :
       {"\nRuntime (--runtime_type=[ETCD,ASIO])                        : ETCD\n",
        "\nETCD Endpoint                                               : http://localhost:2379\n",
        "\nBackend (--backend=[UCX,GDS,GDS_MT,POSIX,Mooncake,HF3FS,OBJ,AZURE_BLOB]): LIBFABRIC\n",
        "\nPrepared xfer (prep+make) (--prepared_xfer=[0,1])           : 0\n",
        "\nNum iter (--num_iter=N)                                     : 1008\n",
        "\nLarge block iter factor (--large_blk_iter_ftr=N)            : 16\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line;
  EXPECT_TRUE(text.ends_with("\n" + kRule + "\n"));
  for (const char* absent : {"ASIO Address", "POSIX API type", "OBJ S3", "filepath", "num_files"})
    EXPECT_EQ(text.find(absent), std::string::npos) << text;
  const std::string met = nixlbenchBanner(
      {{"runtime_type", "ASIO"}, {"asio_address", "10.0.0.1"}, {"asio_port", "12345"}});
  EXPECT_NE(
      met.find(": ASIO\nASIO Address (--asio_address)                               : 10.0.0.1\n"
               "ASIO Port (--asio_port)                                     : 12345\nWorker type"),
      std::string::npos)
      << met;
}

TEST(NixlbenchOutput, TheBannerOfStorage) {
  const std::string files = nixlbenchBanner({{"use_hugepages", "1"},
                                             {"posix_api_type", "URING"},
                                             {"filepath", "/data"},
                                             {"num_files", "4"},
                                             {"storage_enable_direct", "1"}});
  EXPECT_NE(files.find("(--use_hugepages=[0,1])                       : 1\n"
                       "POSIX API type (--posix_api_type=[AIO,URING,POSIXAIO])      : URING\n"
                       "filepath (--filepath=path)                                  : /data\n"
                       "Number of files (--num_files=N)                             : 4\n"
                       "Storage enable direct (--storage_enable_direct=[0,1])       : 1\n"
                       "Initiator seg type"),
            std::string::npos)
      << files;
  const std::string objects = nixlbenchBanner({{"obj_bucket_name", "kv"}, {"obj_region", "here"}});
  EXPECT_NE(objects.find("OBJ S3 bucket name (--obj_bucket_name=nixlbench-bucket)     : kv\n"
                         "OBJ S3 region (--obj_region=region)                         : here\n"
                         "Initiator seg type"),
            std::string::npos)
      << objects;
}

}  // namespace
}  // namespace viaduct::measure
