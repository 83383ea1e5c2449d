#include "measure/result/result_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "measure/result/nixlbench.h"
#include "support/text.h"

namespace viaduct::measure {
namespace {

class Files : public ::testing::Test {
 protected:
  Files() : file_(::testing::TempDir() + "viaduct_files_" + std::to_string(::getpid())) {}
  ~Files() override { std::filesystem::remove(file_); }
  std::string complaint(const std::string& content) {
    std::ofstream(file_) << content;
    const auto read = readReports(file_);
    return read ? "it was read" : read.error().text();
  }
  std::string file_;
};

using testing::has;

TEST_F(Files, FormatsOfFilesAreRecognised) {
  std::ofstream(file_) << toJson(Report{.version = "1", .rows = {Row{.backend = "tcp"}}});
  auto read = readReports(file_);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->at(0).rows.at(0).backend, "tcp");
  const Row row{.block_size = 8,
                .gb_per_s = 1,
                .prep_us = MeanP99{1, 2},
                .post_us = MeanP99{1, 2},
                .tx_us = MeanP99{1, 2}};
  std::ofstream(file_) << "Starting\n"
                       << nixlbenchHead(NixlbenchColumns::kUsual)
                       << nixlbenchLine(row, NixlbenchColumns::kUsual);
  read = readReports(file_);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->at(0).rows.at(0).block_size, 8U);
}

TEST_F(Files, AnUnreadableFileIsNamed) {
  const auto missing = readReports("/no/such/file.json");
  ASSERT_FALSE(missing);
  EXPECT_TRUE(has(missing.error().text(), "/no/such/file.json")) << missing.error().text();
  EXPECT_TRUE(has(missing.error().text(), "No such file")) << missing.error().text();
  EXPECT_TRUE(has(readReports("/tmp").error().text(), "directory"));
  EXPECT_TRUE(has(complaint(""), "it is empty"));
  EXPECT_TRUE(has(complaint("hello\n"), "the file holds neither JSON nor a table of a known tool"));
  EXPECT_TRUE(has(complaint("{\"format\": \"viaduct-bench/1\", "), "ends too early"));
  EXPECT_TRUE(has(complaint("{\"format\": \"viaduct-bench/9\"}"), "its format is viaduct-bench/9"));
}

}  // namespace
}  // namespace viaduct::measure
