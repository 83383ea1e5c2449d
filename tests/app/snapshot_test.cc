// A snapshot contains no secrets, and its diagnosis elsewhere equals that of the node.
#include "diag/snapshot.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "diag/environ.h"
#include "diag/fixtures_testing.h"
#include "diag/live.h"
#include "diag/node_card.h"
#include "diag/node_testing.h"
#include "diag/topics.h"
#include "viaduct/snapshot_file.h"

namespace viaduct::app {
namespace {

using namespace viaduct::diag;
using viaduct::diag::testing::Fixture;
using viaduct::diag::testing::NodeFolder;
using viaduct::testing::TemporaryFolder;

std::vector<std::string> wordsOf(const Findings& report) {
  std::vector<std::string> out;
  for (const Finding& one : report.all()) out.push_back(one.code + ": " + one.what);
  for (const Fine& one : report.fines()) out.push_back(one.topic + ": " + one.what);
  return out;
}

class Snapshots : public ::testing::Test {
 protected:
  // Writes a snapshot, unpacks it and opens the copy.
  Result<Node> copyOf(const Node& node) {
    VIADUCT_CHECK(writeSnapshot(file_, snapshotOf(node)));
    VIADUCT_CHECK(unpackSnapshot(file_, folder_.path()));
    return nodeIn(folder_.path() + "/node");
  }
  TemporaryFolder folder_, files_;
  const std::string file_ = files_.path() + "/node.tar.gz";
};

TEST_F(Snapshots, AreDiagnosedAsTheNodeItself) {
  NodeFolder folder;
  folder.addPci({.address = "0000:19:00.0",
                 .bridge = "pci0000:15",
                 .above = {"0000:15:01.0"},
                 .vendor = "0x15b3",
                 .device = "0x1021",
                 .kind = "0x020700"});
  folder.addRdma({.name = "mlx5_0", .pci = "0000:19:00.0"});
  folder.write("/sys/devices/pci0000:15/0000:15:01.0/0000:19:00.0/infiniband/mlx5_0/fw_ver",
               std::string("\0\1", 2));
  folder.live.shm_bytes = 64U << 20U;
  const Node node = folder.node();
  const auto before = wordsOf(diagnose(node));
  const auto copy = copyOf(node);
  ASSERT_TRUE(copy) << copy.error().text();
  EXPECT_EQ(wordsOf(diagnose(*copy)), before);
  EXPECT_EQ(nodeCard(*copy), nodeCard(node));
  EXPECT_NE(nodeCard(*copy).find("mlx5_0 MT4129"), std::string::npos);
}

TEST_F(Snapshots, OfWholeNodesAreDiagnosedAlike) {
  std::vector<Fixture (*)()> makers{diag::testing::openShiftBefore};
  for (const auto& node : diag::testing::healthyNodes()) makers.push_back(node.make);
  for (Fixture (*make)() : makers) {
    const Fixture folder = make();
    const Node node = folder.node();
    ASSERT_TRUE(writeSnapshot(file_, snapshotOf(node)));
    const TemporaryFolder to(std::filesystem::path(folder.root()).parent_path());
    ASSERT_TRUE(unpackSnapshot(file_, to.path()));
    const auto copy = nodeIn(to.path() + "/node");
    ASSERT_TRUE(copy) << copy.error().text();
    EXPECT_EQ(wordsOf(diagnose(*copy)), wordsOf(diagnose(folder.node()))) << node.live.hostname;
    EXPECT_EQ(nodeCard(*copy), nodeCard(node));
    EXPECT_LT(std::filesystem::file_size(file_), 5U << 20U) << node.live.hostname;
  }
}

TEST_F(Snapshots, LeaveSecretsOut) {
  NodeFolder folder;
  folder.variables = {{"NCCL_IB_HCA", "mlx5_0"},
                      {"AWS_SECRET_ACCESS_KEY", "hidden-1"},
                      {"VIADUCT_TOKEN", "hidden-2"},
                      {"NIXL_ETCD_ENDPOINTS", "http://user:hidden-3@etcd:2379"},
                      {"MY_DATABASE", "hidden-4"}};
  const std::string parameters =
      "ro join.token=hidden-5 ds=http://user:hidden-6@10.0.0.1/ iommu=pt quiet";
  folder.write("/proc/cmdline", parameters);
  folder.live.kernel_log = {.ok = true, .text = "Command line: " + parameters + "\nnext line\n"};
  const auto entries = snapshotOf(folder.node());
  for (const SnapshotEntry& entry : entries)
    EXPECT_EQ(entry.text.find("hidden-"), std::string::npos) << entry.path << entry.text;
  const auto environ = std::find_if(entries.begin(), entries.end(),
                                    [](const auto& one) { return one.path == "/viaduct/environ"; });
  ASSERT_NE(environ, entries.end());
  EXPECT_NE(environ->text.find("NCCL_IB_HCA=mlx5_0"), std::string::npos);
  const auto copy = copyOf(folder.node());
  ASSERT_TRUE(copy) << copy.error().text();
  const std::string shown = "ro join.token=(left out) ds=(left out) iommu=pt quiet";
  EXPECT_EQ(copy->tree.line("/proc/cmdline"), shown);
  EXPECT_EQ(copy->live.kernel_log->text, "Command line: " + shown + "\nnext line\n");
}

TEST_F(Snapshots, OfThisMachineAreSmallAndComplete) {
  auto node = nodeIn("/");
  ASSERT_TRUE(node);
  node->variables = ownVariables();
  node->live = collectLive(node->tree, node->variables, {});
  node->live.kernel_log.reset();  // its size varies
  const auto before = wordsOf(diagnose(*node));
  const auto copy = copyOf(*node);
  ASSERT_TRUE(copy) << copy.error().text();
  EXPECT_EQ(copy->live.hostname, node->live.hostname);
  EXPECT_EQ(copy->live.addresses.size(), node->live.addresses.size());
  EXPECT_EQ(wordsOf(diagnose(*copy)), before);
  EXPECT_LT(std::filesystem::file_size(file_), 5U << 20U);
}

TEST_F(Snapshots, ThatAreCutOffOrNoneAreRefused) {
  ASSERT_TRUE(writeSnapshot(file_, snapshotOf(NodeFolder().node())));
  const auto whole = std::filesystem::file_size(file_);
  for (const auto size : {whole - 1, whole / 2, whole / 10, std::uintmax_t{0}}) {
    std::filesystem::resize_file(file_, size);
    TemporaryFolder to;
    EXPECT_FALSE(unpackSnapshot(file_, to.path())) << size << " of " << whole;
  }
  std::ofstream(file_) << "no archive";
  EXPECT_FALSE(unpackSnapshot(file_, folder_.path()));
  EXPECT_FALSE(unpackSnapshot(files_.path() + "/none", folder_.path()));
}

// An archive that the test composes entry by entry.
class Hostile : public Snapshots {
 protected:
  struct Entry {
    const char* path;
    unsigned kind;
    const char* target;
  };
  void write(const std::vector<Entry>& entries) {
    archive* const to = ::archive_write_new();
    ::archive_write_add_filter_gzip(to);
    ::archive_write_set_format_pax(to);
    ASSERT_EQ(::archive_write_open_filename(to, file_.c_str()), ARCHIVE_OK);
    for (const Entry& one : entries) {
      archive_entry* const entry = ::archive_entry_new();
      ::archive_entry_set_pathname(entry, one.path);
      ::archive_entry_set_filetype(entry, one.kind);
      ::archive_entry_set_perm(entry, 0644);
      ::archive_entry_set_size(entry, one.kind == AE_IFREG ? 1 : 0);
      if (one.kind == AE_IFLNK) ::archive_entry_set_symlink(entry, one.target);
      if (one.kind == 0) {
        ::archive_entry_set_filetype(entry, AE_IFREG);
        ::archive_entry_set_hardlink(entry, one.target);
      }
      ::archive_write_header(to, entry);
      if (one.kind == AE_IFREG) ::archive_write_data(to, "x", 1);
      ::archive_entry_free(entry);
    }
    ::archive_write_free(to);
  }
};

TEST_F(Hostile, EntriesThatLeaveTheFolderAreRefused) {
  TemporaryFolder outside;
  const std::string there = outside.path();
  const std::vector<std::vector<Entry>> archives{
      {{"/etc/viaduct", AE_IFREG, nullptr}},
      {{"node/../../escaped", AE_IFREG, nullptr}},
      {{"other/file", AE_IFREG, nullptr}},
      {{"node/link", AE_IFLNK, there.c_str()}, {"node/link/file", AE_IFREG, nullptr}},
      {{"node/link", AE_IFLNK, there.c_str()}, {"node/link", AE_IFREG, nullptr}},
      {{"node/device", AE_IFBLK, nullptr}},
      {{"node/pipe", AE_IFIFO, nullptr}},
      {{"node/hard", 0, "/etc/passwd"}},
      {{"node/twice", AE_IFREG, nullptr}, {"node/twice", AE_IFREG, nullptr}}};
  for (const auto& entries : archives) {
    write(entries);
    TemporaryFolder to;
    EXPECT_FALSE(unpackSnapshot(file_, to.path())) << entries.back().path;
    EXPECT_TRUE(std::filesystem::is_empty(there)) << entries.back().path;
  }
}

// If `node` were a link to /, the doctor would diagnose this machine instead of the snapshot.
TEST_F(Hostile, ATopThatIsNoFolderIsRefused) {
  for (const char* name : {"node", "node/", "node//", "node/."})
    for (const unsigned kind : {AE_IFLNK, AE_IFREG}) {
      write({{name, kind, "/"}});
      TemporaryFolder to;
      EXPECT_FALSE(unpackSnapshot(file_, to.path())) << name;
    }
}

TEST_F(Hostile, DeepPathsAreRefused) {
  std::string deep = "node";
  while (deep.size() < 80'000) deep += "/d";
  write({{deep.c_str(), AE_IFDIR, nullptr}});
  TemporaryFolder to;
  const auto done = unpackSnapshot(file_, to.path());
  ASSERT_FALSE(done);
  EXPECT_LT(done.error().text().size(), 1000U) << done.error().text();
  EXPECT_TRUE(std::filesystem::is_empty(to.path()));
}

TEST_F(Hostile, NamesAreShownPrintable) {
  write({{"\x1b[2J\nviaduct: fine", AE_IFREG, nullptr}});
  const std::string text = unpackSnapshot(file_, folder_.path()).error().text();
  EXPECT_EQ(text.find_first_of("\x1b\n"), std::string::npos) << text;
}

TEST_F(Snapshots, UnpackingEndsWhenItIsStopped) {
  ASSERT_TRUE(writeSnapshot(file_, snapshotOf(NodeFolder().node())));
  const base::StopFlag stop{true};
  const auto done = unpackSnapshot(file_, folder_.path(), &stop);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kCancelled);
}

TEST_F(Snapshots, NoFolderOfANodeIsRefusedInOneLine) {
  const auto none = nodeIn(files_.path());
  ASSERT_FALSE(none);
  const std::string text = none.error().text();
  EXPECT_NE(text.find("so it is no node"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

TEST_F(Snapshots, AFullDiskIsNamed) {
  const auto written = writeSnapshot("/dev/full", snapshotOf(NodeFolder().node()));
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().text().find("No space left on device"), std::string::npos)
      << written.error().text();
}

TEST_F(Hostile, LinksThatLeadOutAreNotFollowed) {
  write({{"node/proc", AE_IFDIR, nullptr}, {"node/proc/meminfo", AE_IFLNK, "/proc/meminfo"}});
  ASSERT_TRUE(unpackSnapshot(file_, folder_.path()));
  const auto node = nodeIn(folder_.path() + "/node");
  ASSERT_TRUE(node);
  EXPECT_FALSE(node->tree.read("/proc/meminfo"));
}

}  // namespace
}  // namespace viaduct::app
