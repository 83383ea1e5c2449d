// `viaduct bench` and nixlbench with files and with objects of an S3 store.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "app/program.h"
#include "process/process.h"
#include "support/paths.h"
#include "support/temporary_folder.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

std::string contentOf(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

class BenchStorage : public ::testing::Test {
 protected:
  ~BenchStorage() override { EXPECT_EQ(filesLeft(), user_files_) << "the run left files behind"; }

  std::size_t filesLeft() const {
    const std::filesystem::directory_iterator files(folder_.path());
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }
  static Words bench(Words more) {
    Words words{"bench", "--block-sizes", "64K", "--batch", "3", "--iterations", "100"};
    return withFlags(std::move(words), more);
  }
  Words files(Words more) const {
    more.insert(more.end(), {"--backend", "file", "--filepath", folder_.path()});
    return bench(std::move(more));
  }
  // Runs to a good end and returns the results.
  static Json results(Words words, const std::string& name = kProgram) {
    words.insert(words.end(), {"--output", "json"});
    Program run(words, {}, name);
    EXPECT_EQ(run.finish(), 0) << run.out() << run.err();
    return Json::parse(run.out(), nullptr, false);
  }
  static void expectRefused(const Words& words, const Words& said,
                            const std::string& name = kProgram) {
    Program run(words, {}, name);
    EXPECT_EQ(run.finish(), 2) << said.front();
    for (const std::string& one : said) EXPECT_TRUE(has(run.err(), one)) << run.err();
    EXPECT_EQ(run.out(), "");
  }
  // Makes a user's file, each block of which has different bytes.
  std::string userFile(std::uint64_t bytes) {
    ++user_files_;
    std::string name = folder_.path() + "/user.bin";
    std::string content(bytes, 0);
    for (std::uint64_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(i * 7 / 4096 + i);
    std::ofstream(name, std::ios::binary) << content;
    return name;
  }

  TemporaryFolder folder_;
  std::size_t user_files_ = 0;
};

void expectGoodRow(const Json& row, const std::string& backend) {
  EXPECT_TRUE(row.at("verdict") == "ok" || row.at("verdict") == "unproven") << row.dump();
  EXPECT_EQ(row.at("backend"), backend);
  EXPECT_EQ(row.at("targets"), 0);
  EXPECT_GT(row.at("gb_per_s"), 0.0);
  EXPECT_FALSE(row.at("proof").get<std::string>().empty());
  std::uint64_t bytes = 0;
  for (const Json& share : row.at("path")) {
    EXPECT_EQ(share.at("backend"), backend);
    bytes += share.at("bytes").get<std::uint64_t>();
  }
  EXPECT_EQ(bytes, row.at("block_size").get<std::uint64_t>() *
                       row.at("batch_size").get<std::uint64_t>() *
                       row.at("transfers").get<std::uint64_t>());
}

TEST_F(BenchStorage, FilesAreWrittenReadAndChecked) {
  for (const char* op : {"write", "read"})
    for (const Words& more : {Words{},
                              {"--num-files", "5", "--num_threads", "2", "--pipeline_depth", "2"},
                              {"--verify", "full", "--num-files", "2"},
                              {"--block-sizes", "1000", "--batch", "7"},
                              {"--working-set", "2M", "--recreate_xfer"},
                              {"--num_initiator_dev", "2"},
                              {"--num_initiator_dev", "2", "--mode", "MG"}}) {
      Words words = files({"--op", op});
      words = withFlags(std::move(words), more);
      const Json json = results(words);
      ASSERT_EQ(json.at("rows").size(), 1U) << json.dump();
      const Json& row = json.at("rows").at(0);
      expectGoodRow(row, "file");
      EXPECT_EQ(row.at("op"), op);
      EXPECT_GE(row.at("checks").at("transfers"), 7) << "a short run takes long on a busy machine";
      EXPECT_EQ(json.at("settings").at("filepath"), folder_.path());
      EXPECT_EQ(filesLeft(), 0U);
    }
}

TEST_F(BenchStorage, ARunWithoutThePageCacheHasNoCeilingOfMemoryOrNetwork) {
  const Json row = results(files({})).at("rows").at(0);
  const std::string way = row.at("path").at(0).at("way");
  if (has(way, "buffered")) GTEST_SKIP() << "skipped: no O_DIRECT in " << folder_.path();
  EXPECT_FALSE(row.contains("ceiling")) << row.dump();
  EXPECT_TRUE(has(row.at("proof"), "block devices wrote")) << row.at("proof");
}

TEST_F(BenchStorage, NixlbenchUsesThePageCacheUnlessItIsAskedNotTo) {
  const Words words{"--backend",
                    "POSIX",
                    "--filepath",
                    folder_.path(),
                    "--num_iter=16",
                    "--warmup_iter=1",
                    "--max_block_size=4096",
                    "--total_buffer_size=1048576",
                    "--op_type=READ",
                    "--posix_api_type=URING"};
  const Json cached = results(words, "nixlbench").at("rows").at(0);
  expectGoodRow(cached, "file");
  EXPECT_TRUE(has(cached.at("path").at(0).at("way"), "buffered")) << cached.dump();
  Words direct = words;
  direct.emplace_back("--storage_enable_direct");
  Program run(direct, {}, "nixlbench");
  const int code = run.finish();
  EXPECT_TRUE(has(run.err(), "each --posix_api_type uses the same engine")) << run.err();
  if (code != 0)
    EXPECT_TRUE(has(run.err(), "its file system has no O_DIRECT")) << run.err();
  else
    EXPECT_TRUE(has(run.out(), "Backend (--backend=[UCX,GDS,GDS_MT,POSIX")) << run.out();
}

TEST_F(BenchStorage, NixlbenchPrintsItsFlagsOfFiles) {
  Program run({"--backend=POSIX", "--filepath", folder_.path(), "--num_files=3", "--num_iter=16",
               "--warmup_iter=1", "--max_block_size=4096", "--total_buffer_size=1048576",
               "--posix_api_type=URING", "--posix_kernel_queue_size=5000"},
              {}, "nixlbench");
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_TRUE(has(run.out(),
                  "POSIX API type (--posix_api_type=[AIO,URING,POSIXAIO])      : URING\n"
                  "POSIX IO pool size (--posix_ios_pool_size=N)                : 65536\n"
                  "POSIX kernel queue size (--posix_kernel_queue_size=N)       : 1024\n"
                  "filepath (--filepath=path)                                  : " +
                      folder_.path() +
                      "\n"
                      "Number of files (--num_files=N)                             : 3\n"
                      "Storage enable direct (--storage_enable_direct=[0,1])       : 0\n"))
      << run.out();
  EXPECT_TRUE(has(run.out(), ": disabled (storage backend)\n")) << run.out();
}

TEST_F(BenchStorage, AFileOfTheUserIsReadAndStaysAsItIs) {
  const std::string name = userFile(1 << 20U), before = contentOf(name);
  for (const char* verify : {"sampled", "full"}) {
    const Json json = results(bench({"--backend", "file", "--filenames", name, "--op", "read",
                                     "--working-set", "768K", "--verify", verify}));
    expectGoodRow(json.at("rows").at(0), "file");
    EXPECT_EQ(contentOf(name), before);
  }
  expectRefused(bench({"--backend", "file", "--filenames", name, "--op", "write"}),
                {"the file exists, and a write would destroy its contents", "--overwrite"});
  expectRefused(bench({"--backend", "file", "--filenames", name, "--op", "read", "--batch", "17"}),
                {"the file has 1 MiB, and the rows need 1088 KiB"});
  EXPECT_EQ(contentOf(name), before);
  results(bench({"--backend", "file", "--filenames", name, "--overwrite"}));
  EXPECT_NE(contentOf(name), before);
  EXPECT_EQ(contentOf(name).size(), before.size());
}

// The checks compare with the bytes that the file had when the row began.
TEST_F(BenchStorage, AFileThatAnotherProgramWritesIsNotCalledCorrupt) {
  const std::string name = userFile(1 << 20U);
  Program run({"bench", "--backend", "file", "--filenames", name, "--op", "read", "--block-sizes",
               "64K", "--batch", "4", "--duration", "600ms", "-i", "0.05"});
  ASSERT_TRUE(run.readUntil("file read 4 x 64 KiB: 0.00"));
  std::ofstream(name, std::ios::binary | std::ios::in) << std::string(1 << 20U, 'x');
  EXPECT_EQ(run.finish(), 1) << run.err();
  EXPECT_FALSE(has(run.out(), "CORRUPT")) << run.out();
  EXPECT_TRUE(has(run.out(), "FAILED")) << run.out();
  // The line may break between any two words.
  const std::regex why("another\\s+program\\s+has\\s+written\\s+the\\s+file");
  EXPECT_TRUE(std::regex_search(run.out(), why)) << run.out();
}

TEST_F(BenchStorage, NothingIsLeftOfAnEndedRun) {
  for (const int signal : {SIGINT, SIGKILL}) {
    Program run(files({"--iterations", "4000000000", "-i", "0.05", "--num_initiator_dev", "2"}));
    ASSERT_TRUE(run.readUntil("file write 3 x 64 KiB: 0.00")) << run.err();
    if (signal == SIGINT)
      run.interrupt(signal);
    else
      ::kill(run.pid(), signal);
    EXPECT_EQ(run.finish(), signal == SIGINT ? 130 : 128 + SIGKILL);
    EXPECT_EQ(filesLeft(), 0U);
    if (signal == SIGKILL) continue;
    EXPECT_TRUE(has(run.out(), "interrupted after")) << run.out();
  }
}

TEST_F(BenchStorage, AMissingNameIsAFileOfTheRunOnly) {
  Program run(files({"--filenames", "a,b", "--op", "read"}));
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_TRUE(has(run.err(), "/a does not exist; the run uses a file without a name")) << run.err();
}

TEST_F(BenchStorage, BadFilesAndFoldersAreNamedBeforeTheRun) {
  const std::string file = userFile(100), folder = folder_.path();
  const std::pair<Words, const char*> cases[] = {
      {{}, "--filepath: invalid: the run needs a folder for its files"},
      {{"--filepath", folder + "/none"}, "what to do: name an existing folder that you may write"},
      {{"--filepath", file}, "Not a directory"},
      {{"--filenames", folder + "/none/a"}, "No such file or directory"},
      {{"--filenames", folder, "--op", "read"}, "it is a folder"},
      {{"--filenames", folder}, "what to do: name a file that you may write, or use --op read"},
      {{"--filenames", "/dev/null", "--op", "read"}, "it is no regular file or block device"},
      {{"--filenames", "a,a"}, "a is named twice"},
      {{"--filenames", "a,b", "--num-files", "3"}, "3 files, and 2 names"},
      {{"--filenames", "a", "--num_initiator_dev", "2"}, "each process has files of its own"},
      {{"--filepath", folder, "--num-files", "4000000"}, "descriptors, and the limit is"},
      {{"--filepath", folder, "--latency"}, "storage is no member that could answer"},
      {{"--filepath", folder, "--background", "1M"}, "storage is no member that could answer"},
      {{"--filepath", folder, "--bidirectional"}, "storage is no member that could answer"},
  };
  for (const auto& [more, said] : cases) {
    Words words = bench({"--backend", "file"});
    words = withFlags(std::move(words), more);
    expectRefused(words, {said});
  }
  expectRefused({"--backend", "POSIX", "--filepath", folder, "--posix-api-type", "MMAP"},
                {"is none of AIO, URING, POSIXAIO"}, "nixlbench");
  expectRefused(bench({"--backend", "file,local", "--filepath", folder}),
                {"file and local differ in what they reach"});
  if (::geteuid() != 0)
    expectRefused(bench({"--backend", "file", "--filepath", "/"}), {"Permission denied"});
}

// Runs a command of a shell in `folder`, which then is a disk of 1 MiB. Returns its exit code and
// its output.
std::pair<int, std::string> runOnSmallDisk(const std::string& folder, const std::string& command) {
  const std::string whole =
      "unshare --mount --map-root-user sh -c 'mount -t tmpfs -o size=1m none " + folder +
      " && cd " + folder + " && exec 2>&1 && " + command + "'";
  FILE* const run = ::popen(whole.c_str(), "r");
  std::string said;
  for (int c = std::fgetc(run); c != EOF; c = std::fgetc(run)) said += static_cast<char>(c);
  return {WEXITSTATUS(::pclose(run)), said};
}

TEST_F(BenchStorage, AFullFileSystemIsNamedBeforeTheRun) {
  if (!mayUnshare({"--mount", "--map-root-user"}))
    GTEST_SKIP() << "skipped: no mount namespaces here";
  const auto [code, said] = runOnSmallDisk(
      folder_.path(),
      std::string(kProgram) + " bench --backend file --block-sizes 1M --batch 2 --filepath .");
  EXPECT_EQ(code, 2) << said;
  EXPECT_TRUE(has(said, "the files need 2 MiB, and the file system has 1.0 MiB free")) << said;
}

TEST_F(BenchStorage, AFullDiskKeepsTheResultsOfAnEarlierRun) {
  if (!mayUnshare({"--mount", "--map-root-user"}))
    GTEST_SKIP() << "skipped: no mount namespaces here";
  const auto [code, said] = runOnSmallDisk(
      folder_.path(),
      std::string("echo old results > results; dd if=/dev/zero of=rest bs=4096 2> /dev/null; ") +
          kProgram +
          " bench --backend local --block-sizes 4K --iterations 5 --json results; cat results");
  EXPECT_EQ(code, 0) << said;
  EXPECT_TRUE(has(said, "--json: exhausted: No space left on device")) << said;
  EXPECT_TRUE(said.ends_with("\nold results\n")) << said;
}

TEST_F(BenchStorage, FlagsWithoutAnEffectAreNamed) {
  Program objects(files({"--num-target-dev", "3", "--object-bucket", "x"}));
  EXPECT_EQ(objects.finish(), 0) << objects.err();
  EXPECT_TRUE(has(objects.err(),
                  "ignored, because this backend does not use them: --num_target_dev, "
                  "--object_bucket\n"))
      << objects.err();
  Program files_only(
      {"--backend=POSIX", "--filepath", folder_.path(), "--max_block_size=4096",
       "--total_buffer_size=1048576", "--num_iter=16", "--num-target-dev", "3", "--obj-region", "x",
       "--gds-batch-limit", "9", "--posix-kernel-queue-size", "5000"},
      {}, "nixlbench");
  EXPECT_EQ(files_only.finish(), 0) << files_only.err();
  EXPECT_TRUE(has(files_only.err(), "--posix_kernel_queue_size: 1024, the highest value"));
  EXPECT_TRUE(has(files_only.err(),
                  "ignored, because this backend does not use them: --gds_batch_limit, "
                  "--num_target_dev, --obj_region\n"))
      << files_only.err();
}

TEST_F(BenchStorage, OtherStorageOfNixlbenchIsRefusedWithTheReason) {
  const std::pair<const char*, Words> cases[] = {
      {"GPUNETIO", {"GPU kernels start its transfers"}},
      {"Mooncake", {"it is a transfer library of its own", "use UCX"}},
      {"UCCL", {"it is a transfer library of its own"}},
      {"HF3FS", {"it needs the client library of 3FS", "use POSIX"}},
      {"GUSLI", {"it needs the library of GUSLI", "block device in --filenames"}},
      {"AZURE_BLOB", {"speaks S3 only", "use OBJ"}},
      {"INFINIA", {"it needs the client library of Infinia", "use OBJ"}},
  };
  for (const auto& [name, said] : cases)
    expectRefused({"--backend", name, "--filepath", folder_.path()}, said, "nixlbench");
}

TEST_F(BenchStorage, ExplainMovesOneBlockAndLeavesNothing) {
  Program run(files({"--explain"}));
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "Between this process and its storage")) << run.out();
  EXPECT_TRUE(has(run.out(), "write: file\n  file    yes: file/")) << run.out();
  EXPECT_FALSE(has(run.out(), "read: ")) << run.out();
}

// Runs the benchmark against an object store that answers on loopback.
class BenchObjects : public BenchStorage {
 protected:
  BenchObjects() : server_({kServersPython, "-B", kFakeS3}) {
    port_ = server_.answer().value_or("none");
    EXPECT_EQ(tell("bucket kv"), "ok");
  }
  ~BenchObjects() override { EXPECT_EQ(tell("objects kv"), "0") << "the run left objects behind"; }
  std::string tell(const std::string& command) {
    return server_.ask(command).value_or("no answer");
  }
  Words environment() const {
    return {"no_proxy=*", "AWS_ACCESS_KEY_ID=FAKEKEY", "AWS_SECRET_ACCESS_KEY=fakesecret",
            "VIADUCT_OBJECT_ENDPOINT=http://127.0.0.1:" + port_};
  }
  Process server_;
  std::string port_;
};

TEST_F(BenchObjects, AreWrittenReadCheckedAndDeleted) {
  for (const char* op : {"write", "read"})
    for (const Words& more :
         {Words{}, {"--verify", "full"}, {"--num_threads", "2", "--working-set", "600K"}}) {
      Words words = bench({"--op", op, "--backend", "object", "--object-bucket", "kv",
                           "--iterations", "20", "--output", "json"});
      words = withFlags(std::move(words), more);
      Program run(words, environment());
      ASSERT_EQ(run.finish(), 0) << run.out() << run.err();
      const Json json = Json::parse(run.out());
      const Json& row = json.at("rows").at(0);
      expectGoodRow(row, "object");
      // Other traffic on loopback may hide the run's own traffic.
      EXPECT_TRUE(row.at("verdict") != "ok" || has(row.at("proof"), "lo")) << row.dump();
      EXPECT_FALSE(row.contains("ceiling")) << row.dump();
      EXPECT_EQ(tell("objects kv"), "0");
    }
}

TEST_F(BenchObjects, NixlbenchTakesItsFlagsAndShowsNoKey) {
  const std::string file = folder_.path() + "/result.json";
  user_files_ = 1;
  Program run(
      {"--backend=OBJ", "--obj_bucket_name=kv", "--obj_endpoint_override=127.0.0.1:" + port_,
       "--obj_scheme=http", "--obj_region=eu-central-1", "--obj_access_key=FAKEKEY",
       "--obj_secret_key=fakesecret", "--obj_use_virtual_addressing=0",
       "--obj_req_checksum=required", "--max_block_size=4096", "--total_buffer_size=1048576",
       "--num_iter=16", "--warmup_iter=1", "--check_consistency", "--op_type=READ", "--json", file},
      {"no_proxy=*"}, "nixlbench");
  EXPECT_EQ(run.finish(), 0) << run.out() << run.err();
  EXPECT_TRUE(has(run.err(), "ps shows the keys of this command line")) << run.err();
  EXPECT_TRUE(has(run.err(), "--obj_req_checksum has no effect")) << run.err();
  for (const std::string& line :
       {std::string("OBJ S3 bucket name (--obj_bucket_name=nixlbench-bucket)     : kv\n"),
        std::string("OBJ S3 scheme (--obj_scheme=[http, https])                  : http\n"),
        std::string("OBJ S3 region (--obj_region=region)                         : eu-central-1\n"),
        "(--obj_endpoint_override=endpoint) : http://127.0.0.1:" + port_ + "\n",
        std::string("(--obj_req_checksum=[supported, required]): required\n")})
    EXPECT_TRUE(has(run.out(), line)) << run.out();
  const std::string all = run.out() + run.err() + contentOf(file);
  EXPECT_FALSE(has(all, "FAKEKEY"));
  EXPECT_FALSE(has(all, "fakesecret"));
  EXPECT_FALSE(has(contentOf(file), port_)) << "the place of the store is not recorded";
  expectGoodRow(Json::parse(contentOf(file)).at("rows").at(0), "object");
}

TEST_F(BenchObjects, TakeTheVariablesOfNixlbench) {
  Words variables = environment();
  variables.back() = "AWS_ENDPOINT_OVERRIDE=http://127.0.0.1:" + port_;
  variables.emplace_back("AWS_DEFAULT_BUCKET=kv");
  Program run(bench({"--backend", "object", "--iterations", "5"}), variables);
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_TRUE(has(run.err(), "AWS_DEFAULT_BUCKET is set: taken as --object_bucket kv"));
  EXPECT_TRUE(has(run.err(), "AWS_ENDPOINT_OVERRIDE is set: taken as --object_endpoint\n"));
  Program other(bench({"--backend", "local", "--iterations", "5"}), variables);
  EXPECT_EQ(other.finish(), 0);
  EXPECT_FALSE(has(other.err(), "AWS_")) << other.err();
}

TEST_F(BenchObjects, AnInterruptedRunDeletesItsObjects) {
  Program run(bench({"--backend", "object", "--object-bucket", "kv", "--iterations", "4000000000",
                     "-i", "0.05"}),
              environment());
  ASSERT_TRUE(run.readUntil("object write 3 x 64 KiB: 0.00")) << run.err();
  run.interrupt(SIGINT);
  EXPECT_EQ(run.finish(), 130) << run.err();
  EXPECT_EQ(tell("objects kv"), "0");
}

TEST_F(BenchObjects, AStoreThatRefusesIsNamedBeforeTheFirstRow) {
  Words variables = environment();
  Program bucket(bench({"--backend", "object", "--object-bucket", "none"}), variables);
  EXPECT_EQ(bucket.finish(), 1);
  EXPECT_TRUE(has(bucket.err(), "NoSuchBucket")) << bucket.err();
  variables[2] = "AWS_SECRET_ACCESS_KEY=wrong";
  Program secret(bench({"--backend", "object", "--object-bucket", "kv"}), variables);
  EXPECT_EQ(secret.finish(), 1);
  EXPECT_TRUE(has(secret.err(), "SignatureDoesNotMatch")) << secret.err();
  EXPECT_FALSE(has(secret.out(), "GB/s")) << secret.out();
  // The error for a store that does not answer names the store, and does not report a dead worker.
  variables.back() = "VIADUCT_OBJECT_ENDPOINT=http://127.0.0.1:9";
  variables.emplace_back("VIADUCT_OBJECT_RETRIES=0");
  for (const Words& words :
       {bench({"--backend", "object", "--object-bucket", "kv"}),
        bench({"--backend", "object", "--object-bucket", "kv", "--num_initiator_dev", "2"}),
        Words{"pipeline", "object:kv/key,host"}}) {
    Program silent(words, variables);
    EXPECT_EQ(silent.finish(), 1) << silent.err();
    EXPECT_TRUE(has(silent.err(), "127.0.0.1:9 is down")) << silent.err();
  }
  expectRefused(bench({"--backend", "object"}), {"--object_bucket: invalid: the run needs"});
  expectRefused({"--backend=OBJ", "--obj_bucket_name=kv", "--obj_accelerated_enable"},
                {"--obj_accelerated_enable: unsupported: accelerated engines"}, "nixlbench");
}

}  // namespace
}  // namespace viaduct::testing
