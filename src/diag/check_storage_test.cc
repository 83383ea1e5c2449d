#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/live.h"
#include "diag/live_storage.h"
#include "support/temporary_folder.h"

namespace viaduct::diag {
namespace {

using testing::codesAboveInfo;
using testing::findingOf;
using Codes = std::vector<std::string>;

constexpr std::uint64_t kTiB = std::uint64_t{1} << 40U;

PathFacts goodPath() {
  return {.path = "/nvme",
          .opened = {.ok = true},
          .kind = "xfs",
          .mount = "/nvme",
          .source = "/dev/md0",
          .bytes = 8 * kTiB,
          .free = 4 * kTiB,
          .direct = Tried{.ok = true},
          .offset_multiple = 512,
          .memory_multiple = 4};
}

struct PathCase {
  const char* code;
  Severity severity;
  const char* says;  // in the finding
  void (*plant)(PathFacts&);
};

const PathCase kPathCases[] = {
    {"storage.path-missing", Severity::kFailure, "There is no /nvme",
     [](PathFacts& path) { path.opened = {.text = "stat: No such file or directory"}; }},
    {"storage.path-denied", Severity::kFailure, "fsGroup",
     [](PathFacts& path) { path.opened = {.text = "open: Permission denied"}; }},
    {"storage.path-fault", Severity::kFailure, "Stale file handle",
     [](PathFacts& path) { path.opened = {.text = "stat: Stale file handle"}; }},
    {"storage.path-special", Severity::kFailure, "pipes",
     [](PathFacts& path) {
       path.opened = {.text = "it is no regular file, folder or block device"};
     }},
    {"storage.path-silent", Severity::kFailure, "is down",
     [](PathFacts& path) { path.opened = {.text = "no answer within 5s"}; }},
    {"storage.path-in-memory", Severity::kWarning, "tmpfs at /nvme",
     [](PathFacts& path) {
       path.kind = "tmpfs";
       path.direct = Tried{.text = "none"};
     }},
    {"storage.path-overlay", Severity::kWarning, "the container's own layer",
     [](PathFacts& path) { path.kind = "overlay"; }},
    {"storage.path-network", Severity::kInfo, "nfs4", [](PathFacts& path) { path.kind = "nfs4"; }},
    {"storage.path-network", Severity::kInfo, "fuse.sshfs",
     [](PathFacts& path) { path.kind = "fuse.sshfs"; }},
    {"storage.direct-not-tried", Severity::kUnknown, "--path /nvme/FILE",
     [](PathFacts& path) { path.direct.reset(); }},
    {"storage.no-direct", Severity::kWarning, "Invalid argument",
     [](PathFacts& path) { path.direct = Tried{.text = "open with O_DIRECT: Invalid argument"}; }},
    {"storage.path-read-only", Severity::kInfo, "only be read",
     [](PathFacts& path) { path.read_only = true; }},
    {"storage.path-full", Severity::kWarning, "of 8.0 TiB are free",
     [](PathFacts& path) { path.free = 2U << 30U; }},
};

std::string textOf(const Finding& finding) {
  std::string out = finding.what + "\n" + finding.cause + "\n" + finding.fix;
  for (const Evidence& one : finding.evidence) out += "\n" + one.source + ": " + one.value;
  return out;
}

TEST(CheckStorage, NamesEachFaultOfAPath) {
  auto folder = testing::roceNode();
  for (const PathCase& one : kPathCases) {
    PathFacts path = goodPath();
    one.plant(path);
    folder.live.paths = {path};
    EXPECT_EQ(codesAboveInfo(folder), one.severity == Severity::kInfo ? Codes{} : Codes{one.code})
        << one.says;
    const Finding finding = findingOf(folder, one.code);
    EXPECT_EQ(finding.severity, one.severity) << one.code;
    EXPECT_FALSE(finding.cause.empty()) << one.code;
    EXPECT_TRUE(!finding.fix.empty() || one.severity == Severity::kInfo) << one.code;
    EXPECT_NE(textOf(finding).find(one.says), std::string::npos) << textOf(finding);
  }
}

TEST(CheckStorage, TellsTheAlignmentOfAPathThatIsInOrder) {
  auto folder = testing::roceNode();
  folder.live.paths = {goodPath()};
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
  const Findings findings = diagnose(folder.node(), std::vector<std::string>{"storage"});
  ASSERT_EQ(findings.fines().size(), 2U);
  EXPECT_EQ(
      findings.fines()[0].what,
      "O_DIRECT works at /nvme (xfs at /nvme (/dev/md0)): offsets are multiples of 512 bytes, "
      "addresses of 4.");
}

TEST(CheckStorage, NamesAVirtioDiskThatNeedsHugePages) {
  constexpr auto kSetting = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
  auto folder = testing::roceNode();
  PathFacts path = goodPath();
  path.virtio_features = std::string(64, '0');
  folder.live.paths = {path};
  const auto named = [&] { return diagnose(folder.node()).has("storage.small-pages"); };
  EXPECT_TRUE(named());  // a kernel without transparent huge pages
  folder.write(kSetting, "always within_size advise [never] deny force");
  EXPECT_TRUE(named());
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
  EXPECT_NE(textOf(findingOf(folder, "storage.small-pages")).find("echo advise"),
            std::string::npos);
  folder.write(kSetting, "always within_size [advise] never deny force");
  EXPECT_FALSE(named());
  folder.write(kSetting, "always within_size advise never [deny] force");
  EXPECT_TRUE(named());
  folder.live.paths[0].virtio_features[28] = '1';  // indirect descriptors
  EXPECT_FALSE(named());
  folder.live.paths[0].virtio_features.clear();  // no virtio disk
  EXPECT_FALSE(named());
}

struct StoreCase {
  StoreStep ended;
  const char* code;
  const char* says;
};
const StoreCase kStoreCases[] = {
    {StoreStep::kSettings, "storage.store-settings", "settings of the bucket kv at https://store"},
    {StoreStep::kLibrary, "storage.no-libcurl", "libcurl"},
    {StoreStep::kName, "storage.store-unresolved", "does not resolve"},
    {StoreStep::kPort, "storage.store-unreachable", "does not answer"},
    {StoreStep::kTls, "storage.store-tls", "TLS"},
    {StoreStep::kClock, "storage.store-clock", "clocks differ"},
    {StoreStep::kKeys, "storage.store-keys", "no valid keys"},
    {StoreStep::kBucket, "storage.store-bucket", "not at this store"},
    {StoreStep::kAnswer, "storage.store-answer", "as it should"},
};

TEST(CheckStorage, NamesTheStepAtWhichAStoreFails) {
  auto folder = testing::roceNode();
  for (const StoreCase& one : kStoreCases) {
    folder.live.stores = {{.endpoint = "https://store",
                           .bucket = "kv",
                           .ended = one.ended,
                           .text = "list s3://kv: the text",
                           .cause = "its cause",
                           .remedy = "its remedy"}};
    EXPECT_EQ(codesAboveInfo(folder), Codes{one.code});
    const Finding finding = findingOf(folder, one.code);
    EXPECT_EQ(finding.severity, Severity::kFailure);
    EXPECT_NE(finding.what.find(one.says), std::string::npos) << finding.what;
    EXPECT_EQ(finding.cause, "Its cause.");
    EXPECT_EQ(finding.fix, "Its remedy.");
  }
}

TEST(CheckStorage, MissingRightsToListAreNoFault) {
  auto folder = testing::roceNode();
  folder.live.stores = {{.endpoint = "https://store", .bucket = "kv", .ended = StoreStep::kRights}};
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
  EXPECT_EQ(findingOf(folder, "storage.store-rights").severity, Severity::kInfo);
  folder.live.stores[0].bucket = "";
  EXPECT_FALSE(diagnose(folder.node()).has("storage.store-rights")) << "the keys are accepted";
}

TEST(CheckStorage, WarnsOfAClockThatStillWorks) {
  auto folder = testing::roceNode();
  folder.live.stores = {
      {.endpoint = "https://store", .bucket = "kv", .clock_off = 301, .behind = true}};
  EXPECT_EQ(codesAboveInfo(folder), Codes{"storage.clock-off"});
  EXPECT_NE(findingOf(folder, "storage.clock-off").what.find("301 s behind"), std::string::npos);
  folder.live.stores[0].clock_off = 300;
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

TEST(LiveStorage, SurvivesASnapshot) {
  auto folder = testing::roceNode();
  PathFacts path = goodPath();
  path.direct = Tried{.text = "Invalid argument"};
  path.virtio_features = "0010";
  folder.live.paths = {path};
  folder.live.stores = {{.endpoint = "https://store",
                         .bucket = "kv",
                         .ended = StoreStep::kKeys,
                         .text = "403",
                         .clock_off = 7,
                         .behind = true}};
  const auto read = liveFromJson(asJson(folder.live));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(asJson(*read), asJson(folder.live));
  EXPECT_EQ(read->paths.at(0).direct->text, "Invalid argument");
  EXPECT_EQ(read->paths.at(0).virtio_features, "0010");
  EXPECT_EQ(read->stores.at(0).ended, StoreStep::kKeys);
  EXPECT_EQ(read->stores.at(0).clock_off, 7U);
}

TEST(LiveStorage, LooksAtFilesAndFoldersAndLeavesNothingBehind) {
  const viaduct::testing::TemporaryFolder folder;
  folder.write("/block", std::string(1 << 20U, 'b'));
  const PathFacts inside = lookAtPath(folder.path()), file = lookAtPath(folder.path() + "/block");
  for (const PathFacts& one : {inside, file}) {
    EXPECT_TRUE(one.opened.ok) << one.opened.text;
    EXPECT_FALSE(one.kind.empty());
    EXPECT_FALSE(one.mount.empty());
    EXPECT_GT(one.bytes, 0U);
    EXPECT_FALSE(one.read_only);
    ASSERT_TRUE(one.direct);
    EXPECT_EQ(one.direct->ok, one.offset_multiple != 0) << one.direct->text;
  }
  EXPECT_EQ(inside.direct->ok, file.direct->ok);
  std::filesystem::remove(folder.path() + "/block");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(LiveStorage, TellsMemoryAndMissingAndSpecialPaths) {
  const PathFacts memory = lookAtPath("/dev/shm");
  EXPECT_EQ(memory.kind, "tmpfs");
  EXPECT_EQ(memory.virtio_features, "");
  EXPECT_FALSE(memory.direct && memory.direct->ok);
  EXPECT_EQ(lookAtPath("/nowhere/at/all").opened.text, "stat: No such file or directory");
  EXPECT_EQ(lookAtPath("/dev/null").opened.text, "it is no regular file, folder or block device");
}

TEST(LiveStorage, AsksNoStoreUnlessItIsTold) { EXPECT_TRUE(lookAtStores({}).empty()); }

}  // namespace
}  // namespace viaduct::diag
