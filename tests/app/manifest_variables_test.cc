// The variables that nixlbench's manifests set.
#include <gtest/gtest.h>

#include "app/program.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Words = std::vector<std::string>;

struct Ran {
  int code = 0;
  std::string out = {}, err = {};
};
Ran benchWith(Words more, const Words& variables) {
  Words words{"bench", "--block-sizes", "4096", "--iterations", "16", "--output", "csv"};
  words = withFlags(std::move(words), more);
  Program program(words, variables);
  const int code = program.finish();
  return {code, program.out(), program.err()};
}

TEST(ManifestVariables, ChooseTheBackendUnlessAFlagDoes) {
  const Ran taken = benchWith({}, {"NIXL_BACKEND=tcp"});
  EXPECT_EQ(taken.code, 0) << taken.err;
  EXPECT_TRUE(has(taken.err, "NIXL_BACKEND is set: taken as --backend tcp")) << taken.err;
  EXPECT_TRUE(has(taken.out, "tcp") && !has(taken.out, "local")) << taken.out;
  const Ran typed = benchWith({"--backend", "local"}, {"NIXL_BACKEND=tcp"});
  EXPECT_EQ(typed.code, 0) << typed.err;
  EXPECT_FALSE(has(typed.err, "NIXL_BACKEND")) << typed.err;
  EXPECT_TRUE(has(typed.out, "local")) << typed.out;
  Program theirs({"--local_workers=2", "--backend=tcp", "--max_block_size=4096", "--num_iter=16",
                  "--total_buffer_size=1M"},
                 {"NIXL_WORKER_TYPE=native"}, "nixlbench");
  EXPECT_EQ(theirs.finish(), 0) << theirs.err();
  EXPECT_TRUE(has(theirs.err(), "NIXL_WORKER_TYPE is set")) << theirs.err();
}

TEST(ManifestVariables, RdmaMeansHostMemoryOverRdma) {
  const Ran ran = benchWith({"--backend", "tcp"}, {"NIXL_TARGET_SEG_TYPE=RDMA"});
  EXPECT_TRUE(has(ran.err, "taken as --target_seg_type DRAM --require rdma")) << ran.err;
  EXPECT_NE(ran.code, 0);
  EXPECT_EQ(benchWith({"--backend", "tcp"}, {"NIXL_TARGET_SEG_TYPE=DRAM"}).code, 0);
  const Ran wrong = benchWith({"--backend", "tcp"}, {"NIXL_TARGET_SEG_TYPE=tape"});
  EXPECT_EQ(wrong.code, 2) << wrong.err;
}

TEST(ManifestVariables, NameTheEtcdAndTheLevelOfMessages) {
  Program meets({"--start_block_size", "4096"}, {"ETCD_ENDPOINTS=http://user:word@:x"},
                "nixlbench");
  EXPECT_EQ(meets.finish(), 2);
  EXPECT_TRUE(has(meets.err(), "etcd endpoints")) << meets.err();
  const Ran quiet = benchWith({"--backend", "tcp"}, {"ETCD_ENDPOINTS=http://etcd:2379"});
  EXPECT_EQ(quiet.code, 0) << "bench without --meet does not meet there" << quiet.err;
  const Ran loud = benchWith({"--backend", "tcp"}, {"NIXL_LOG_LEVEL=DEBUG"});
  EXPECT_TRUE(has(loud.err, "debug:")) << loud.err;
  EXPECT_TRUE(has(benchWith({}, {"ETCD_CPP_API_DISABLE_URI_VALIDATION=1"}).err, "not needed"));
}

}  // namespace
}  // namespace viaduct::testing
