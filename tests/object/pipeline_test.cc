// `viaduct pipeline` with objects at its ends.
#include <nlohmann/json.hpp>

#include "app/program.h"
#include "object/object_testing.h"
#include "support/paths.h"
#include "support/temporary_folder.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

class ObjectPipeline : public ObjectTest {
 protected:
  std::string file(const char* name) const { return "file:" + folder_.path() + "/" + name; }
  // Runs a short pipeline against the server. Returns its exit code.
  int run(const std::string& pipeline, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"pipeline",   pipeline, "--repeat", "1",
                                   "--duration", "1ms",    "--output", "json"};
    words = withFlags(std::move(words), more);
    Program program(words, {"AWS_ENDPOINT_URL=http://127.0.0.1:" + port_,
                            "AWS_ACCESS_KEY_ID=FAKEKEY", "AWS_SECRET_ACCESS_KEY=fakesecret",
                            std::string("VIADUCT_CUDA_LIBRARY=") + kFakeCuda});
    const int code = program.finish();
    out_ = program.out();
    err_ = program.err();
    return code;
  }
  std::string wayOf(std::size_t stage) const {
    return nlohmann::json::parse(out_)
        .at("rows")
        .at(stage)
        .at("pipeline")
        .at("stages")
        .at(0)
        .at("path");
  }
  TemporaryFolder folder_;
  std::string out_, err_;
};

TEST_F(ObjectPipeline, AnObjectIsLoadedAndStored) {
  tell("put kv a 5000000");
  ASSERT_EQ(run("object:kv/a,host,s3://kv/b", {"--overwrite"}), 0) << err_;
  EXPECT_TRUE(has(wayOf(0), "object/")) << out_;
  EXPECT_TRUE(has(wayOf(1), "object/")) << out_;
  EXPECT_EQ(tell("same kv b 5000000"), "yes");
}

TEST_F(ObjectPipeline, AnObjectGoesOverTheNetworkIntoAFileAndBack) {
  tell("put kv a 5000000");
  ASSERT_EQ(run("s3://kv/a,host,net,host," + file("b")), 0) << err_;
  EXPECT_TRUE(has(wayOf(0), "object/") && has(wayOf(1), "tcp/") && has(wayOf(2), "file/")) << out_;
  ASSERT_EQ(run("s3://kv/a,host,net,host,s3://kv/c", {"--overwrite"}), 0) << err_;
  EXPECT_EQ(tell("same kv c 5000000"), "yes");
  EXPECT_EQ(tell("uploads"), "0");
}

TEST_F(ObjectPipeline, AnObjectGoesThroughGpusIntoAFileAndIntoAnObject) {
  tell("put kv a 5000000");
  ASSERT_EQ(run("s3://kv/a,cuda0,net,cuda1," + file("b")), 0) << err_;
  EXPECT_TRUE(has(wayOf(0), "object/") && has(wayOf(0), "cuda/")) << out_;
  ASSERT_EQ(run("s3://kv/a,cuda0,net,cuda1,s3://kv/c", {"--overwrite"}), 0) << err_;
  EXPECT_EQ(tell("same kv c 5000000"), "yes");
}

TEST_F(ObjectPipeline, AMissingBucketAndAMissingObjectAreNamed) {
  EXPECT_EQ(run("s3://none/a,host"), 1);
  EXPECT_TRUE(has(err_, "none") && has(err_, "404")) << err_;
  EXPECT_EQ(run("s3://kv/none,host"), 1);
  EXPECT_TRUE(has(err_, "kv/none") && has(err_, "404")) << err_;
  EXPECT_EQ(run("host,s3://none/a", {"--overwrite", "--total-buffer-size", "1MiB"}), 1);
  EXPECT_TRUE(has(out_, "s3://none") && has(out_, "NoSuchBucket")) << out_ << err_;
}

TEST_F(ObjectPipeline, AnObjectIsNotWrittenUnlessAllowed) {
  EXPECT_EQ(run("host,s3://kv/b", {"--total-buffer-size", "1MiB"}), 1);
  EXPECT_TRUE(has(err_, "s3://kv/b") && has(err_, "--overwrite")) << err_;
  EXPECT_EQ(tell("count PUT"), "0");
}

}  // namespace
}  // namespace viaduct::testing
