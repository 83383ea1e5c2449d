// Tests which rails are nearest to memory, on a two-socket machine described by files like the
// kernel's. Tests also that a pin gets the rails of its memory.
#include "move/near_rails.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/poller.h"
#include "move/fabric_backend.h"
#include "support/temporary_folder.h"

namespace viaduct::move {
namespace {

using Names = std::vector<std::string>;

class TwoSockets : public ::testing::Test {
 protected:
  TwoSockets() {
    node(0, "10 21");
    node(1, "21 10");
    const std::string bridge = "pci0000:15/0000:15:01.0/0000:16:00.0/";
    nic("mlx5_0", bridge + "0000:17:01.0/0000:19:00.0", 0);
    nic("mlx5_1", "pci0000:25/0000:25:01.0/0000:26:00.0", 0);
    nic("mlx5_2", "pci0000:95/0000:95:01.0/0000:96:00.0", 1);
    gpu_ = {.pci = {"0000:15:01.0", "0000:16:00.0", "0000:17:00.0", "0000:18:00.0"}, .node = 0};
  }
  void node(int number, const std::string& distances) const {
    root_.write("/sys/devices/system/node/node" + std::to_string(number) + "/distance", distances);
  }
  void nic(const std::string& name, const std::string& path, int numa) const {
    root_.write("/sys/devices/" + path + "/numa_node", std::to_string(numa));
    const std::filesystem::path at(root_.path());
    std::filesystem::create_directories(at / "sys/class/infiniband" / name);
    std::filesystem::create_directory_symlink("/sys/devices/" + path,
                                              at / "sys/class/infiniband" / name / "device");
  }
  NearRails near(const Names& nics) const { return NearRails(nics, host::Tree(root_.path())); }

  testing::TemporaryFolder root_;
  host::Place gpu_;
};

TEST_F(TwoSockets, MemoryHasTheRailsOfItsNode) {
  const NearRails rails = near({"mlx5_2:1", "mlx5_0:1", "mlx5_1:1"});
  EXPECT_TRUE(rails.differ());
  EXPECT_EQ(rails.to({.node = 0}), 0b110U);
  EXPECT_EQ(rails.to({.node = 1}), 0b001U);
}

TEST_F(TwoSockets, MemoryOfAGpuHasTheRailBehindItsSwitch) {
  EXPECT_EQ(near({"mlx5_0", "mlx5_1", "mlx5_2"}).to(gpu_), 0b001U);
  EXPECT_EQ(near({"mlx5_2", "mlx5_1"}).to(gpu_), 0b10U);
}

TEST_F(TwoSockets, UnknownPlacesGetEveryRail) {
  const NearRails rails = near({"mlx5_0", "mlx5_2"});
  EXPECT_EQ(rails.to({.node = -1}), core::kAllRails);
  EXPECT_FALSE(near({"rxe0", "rxe1"}).differ());
  EXPECT_EQ(near({"rxe0", "rxe1"}).to({.node = 0}), core::kAllRails);
}

TEST_F(TwoSockets, RailsThatAreEquallyNearDoNotDiffer) {
  EXPECT_FALSE(NearRails().differ());
  EXPECT_EQ(NearRails().to({.node = 0}), core::kAllRails);
  EXPECT_FALSE(near({}).differ());
  EXPECT_FALSE(near({"mlx5_0"}).differ());
  EXPECT_FALSE(near({"mlx5_0", "mlx5_1"}).differ()) << "one is as far from node 1 as the other";
  std::filesystem::remove_all(root_.path() + "/sys/devices/system/node/node1");
  EXPECT_FALSE(near({"mlx5_0", "mlx5_2"}).differ()) << "there is one node";
}

// Registers any memory. `touches`: the registration puts the pages in place, as RDMA does.
class IdleGround final : public Domain {
 public:
  explicit IdleGround(bool touches) : touches_(touches) {}
  Result<std::unique_ptr<Endpoint>> open() const override {
    return Error{.code = Code::kUnsupported, .operation = "open"};
  }
  Result<std::unique_ptr<Registration>> add(const MemoryRange& range) const override {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the test's own memory
    if (touches_) std::memset(reinterpret_cast<void*>(range.address), 'x', range.bytes);
    return std::make_unique<Registration>(Bytes{});
  }

 private:
  const bool touches_;
};

class NearPins : public TwoSockets {
 protected:
  static constexpr std::size_t kBytes = 1 << 20;
  void SetUp() override {
    memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  void TearDown() override { ::munmap(memory_, kBytes); }

  // Opens a backend over mlx5_0 of node 0 and mlx5_2 of node 1.
  std::unique_ptr<core::Backend> open(NearRails near, bool touches = false) {
    Fabric fabric{.can = {.name = "idle", .memory = {MemoryKind::kHost}},
                  .kind = "idle",
                  .description = "idle"};
    for (const char* name : {"mlx5_0", "mlx5_2"}) {
      fabric.names.emplace_back(name);
      fabric.domains.push_back(std::make_unique<IdleGround>(touches));
    }
    fabric.near = std::move(near);
    return *FabricBackend::open({.settings = settings_, .poller = *poller_}, std::move(fabric));
  }

  const Settings settings_ = {};
  std::unique_ptr<base::Poller> poller_ = *base::Poller::open();
  void* memory_ = nullptr;
};

TEST_F(NearPins, APinGetsTheRailsOfItsPagesNode) {
  const NearRails rails = near({"mlx5_0", "mlx5_2"});
  const auto backend = open(rails);
  ASSERT_TRUE(backend->pin(0, Segment::host(memory_, kBytes)));
  EXPECT_EQ(backend->near(0), core::kAllRails) << "nobody has touched it";
  std::memset(memory_, 'x', kBytes);
  const int node = host::nodeOfMemory(memory_, kBytes);
  if (node != 0 && node != 1) GTEST_SKIP() << "skipped: the kernel does not tell, or another node";
  ASSERT_TRUE(backend->pin(1, Segment::host(memory_, kBytes)));
  EXPECT_EQ(backend->near(1), node == 0 ? 0b01U : 0b10U);
  EXPECT_NE(backend->description().find("the rails nearest to it"), std::string_view::npos);
  ASSERT_TRUE(backend->unpin(1));
  EXPECT_EQ(backend->near(1), core::kAllRails);
}

TEST_F(NearPins, PagesAreLocatedAfterTheRegistration) {
  const auto backend = open(near({"mlx5_0", "mlx5_2"}), true);
  ASSERT_TRUE(backend->pin(0, Segment::host(memory_, kBytes)));
  const int node = host::nodeOfMemory(memory_, kBytes);
  if (node != 0 && node != 1) GTEST_SKIP() << "skipped: the kernel does not tell, or another node";
  EXPECT_EQ(backend->near(0), node == 0 ? 0b01U : 0b10U);
}

TEST_F(NearPins, WithNamedRailsEveryRailIsNear) {
  std::memset(memory_, 'x', kBytes);
  const auto backend = open({});
  ASSERT_TRUE(backend->pin(0, Segment::host(memory_, kBytes)));
  EXPECT_EQ(backend->near(0), core::kAllRails);
  EXPECT_EQ(backend->description(), "idle");
}

}  // namespace
}  // namespace viaduct::move
