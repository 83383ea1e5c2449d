// A peer's messages are untrusted bytes. Tests that wrong ones make the link unusable, with a
// reason.
#include "backends/local/local_message.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

#include "backends/local/gate.h"
#include "backends/local/live_table.h"
#include "backends/local/local_backend.h"
#include "base/random.h"
#include "base/shared_memory.h"
#include "support/link_pair.h"

namespace viaduct::local {
namespace {

using base::Fd;
using base::SharedMemory;
using Phase = core::LinkState::Phase;

TEST(LocalMessage, ComesBackAsItWas) {
  LocalHello hello{.probe_address = 7, .scratch_address = ~std::uint64_t{0}};
  hello.door.fill(3);
  hello.probe.fill(200);
  for (const LocalMessage& message :
       {LocalMessage(hello), LocalMessage(FileOffer{4, std::uint64_t{1} << 40U}),
        LocalMessage(FileGone{9})}) {
    const auto again = decode(encode(message));
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, message);
  }
  const PinKey key{.generation = 5, .in_file = true, .file = 6, .offset = 7};
  EXPECT_EQ(*decodeKey(encodeKey(key)), key);
}

TEST(LocalMessage, EveryTruncationAndExtensionIsRefused) {
  for (const LocalMessage& message :
       {LocalMessage(LocalHello{}), LocalMessage(FileOffer{1, 2}), LocalMessage(FileGone{3})}) {
    auto bytes = encode(message);
    for (std::size_t length = 0; length < bytes.size(); ++length)
      EXPECT_FALSE(decode(std::span(bytes).first(length)));
    bytes.push_back(std::byte{0});
    EXPECT_EQ(decode(bytes).error().code, Code::kProtocol);
  }
  auto key = encodeKey({.generation = 1});
  for (std::size_t length = 0; length < key.size(); ++length)
    EXPECT_FALSE(decodeKey(std::span(key).first(length)));
  EXPECT_FALSE(decodeKey(encodeKey({.generation = 0})));
}

class BogusPeer : public ::testing::Test {
 protected:
  void SetUp() override {
    poller_ = std::move(*base::Poller::open());
    backend_ = std::move(*open({settings_, *poller_}));
    fresh();
  }
  void TearDown() override { close(); }

  void close() {
    core::Completions out;
    if (link_) link_->close(out);
    link_.reset();
    host_.sent.clear();  // closes the three descriptors of a hello
  }
  void fresh() {
    close();
    core::LinkSeed seed;
    seed.same_host = seed.unix_socket = true;
    link_ = backend_->link(seed, host_);
    ASSERT_EQ(link_->state().phase, Phase::kOpening);
  }

  static Fd sealed(std::uint64_t bytes) {
    const auto memory = SharedMemory::allocate(bytes);
    EXPECT_TRUE(memory) << memory.error().text();
    return Fd(memory ? ::dup(memory->fd()) : -1);
  }
  static Fd unsealed(std::uint64_t bytes) {
    Fd file(::memfd_create("bogus", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    return file;
  }
  static std::vector<Fd> hellosFiles() {
    std::vector<Fd> files;
    files.push_back(sealed(4096));
    files.push_back(sealed(kSlots * sizeof(std::uint64_t)));
    files.push_back(openPidfd(::getpid()));
    return files;
  }
  void hello(std::vector<Fd> files) { link_->receive(encode(LocalHello{}), std::move(files)); }
  bool refused() {
    const auto state = link_->state();
    return state.phase == Phase::kUnusable && !state.text.empty();
  }

  Settings settings_;
  std::unique_ptr<base::Poller> poller_;
  std::unique_ptr<core::Backend> backend_;
  viaduct::testing::LinkEnd host_;
  std::unique_ptr<core::Link> link_;
};

TEST_F(BogusPeer, AProperHelloIsTaken) {
  hello(hellosFiles());
  EXPECT_EQ(link_->state().phase, Phase::kReady);
  EXPECT_EQ(host_.changes, 1);
  hello(hellosFiles());
  EXPECT_TRUE(refused());  // a second hello is refused
}

TEST_F(BogusPeer, AHelloNeedsItsThreeFiles) {
  for (std::size_t count : {0U, 1U, 2U, 4U}) {
    fresh();
    auto files = hellosFiles();
    files.resize(count);
    hello(std::move(files));
    EXPECT_TRUE(refused()) << count;
  }
}

TEST_F(BogusPeer, FilesThatCouldFaultUsAreRefused) {
  const auto with = [&](std::size_t which, Fd file) {
    fresh();
    auto files = hellosFiles();
    files[which] = std::move(file);
    hello(std::move(files));
    return refused();
  };
  for (const std::size_t which : {0U, 1U}) {
    EXPECT_TRUE(with(which, unsealed(1 << 21)));
    EXPECT_TRUE(with(which, Fd(::open("/dev/zero", O_RDWR | O_CLOEXEC))));
    EXPECT_TRUE(with(which, Fd(-1)));
  }
  EXPECT_TRUE(with(1, sealed(4096)));  // too small for a table
}

TEST_F(BogusPeer, FileOffersAreChecked) {
  const auto offer = [&](std::uint32_t id, std::uint64_t bytes, Fd file) {
    std::vector<Fd> files;
    files.push_back(std::move(file));
    link_->receive(encode(FileOffer{id, bytes}), std::move(files));
    return refused();
  };
  EXPECT_TRUE(offer(1, 4096, sealed(4096)));  // before the hello
  const auto again = [&] {
    fresh();
    hello(hellosFiles());
  };
  again();
  EXPECT_FALSE(offer(1, 4096, sealed(4096)));
  EXPECT_TRUE(offer(1, 4096, sealed(4096)));  // the same number twice
  again();
  EXPECT_TRUE(offer(1, 8192, sealed(4096)));  // smaller than announced
  again();
  EXPECT_TRUE(offer(1, 4096, unsealed(4096)));
  again();
  link_->receive(encode(FileOffer{1, 4096}), {});
  EXPECT_TRUE(refused());
  again();
  link_->receive(encode(FileGone{77}), {});  // unknown: there is no mapping to drop
  EXPECT_FALSE(refused());
}

std::uint64_t addressSpace() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0;
  statm >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Sparse files cost their sender nothing, but use our address space.
TEST_F(BogusPeer, NoMoreIsMappedThanThisHostHas) {
  hello(hellosFiles());
  const std::uint64_t before = addressSpace();
  for (std::uint32_t id = 1; id <= 20; ++id) {
    Fd sparse = unsealed(hostMemory() / 2);
    ASSERT_EQ(::fcntl(sparse.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    std::vector<Fd> files;
    files.push_back(std::move(sparse));
    link_->receive(encode(FileOffer{id, hostMemory() / 2}), std::move(files));
    ASSERT_FALSE(refused()) << "it is reached another way";
  }
  EXPECT_LE(addressSpace(), before + hostMemory() + (std::uint64_t{1} << 30U));
  // A withdrawn file makes room for another.
  link_->receive(encode(FileGone{1}), {});
  std::vector<Fd> files;
  files.push_back(sealed(4096));
  link_->receive(encode(FileOffer{21, 4096}), std::move(files));
  std::byte byte{};
  ASSERT_TRUE(backend_->pin(0, Segment::host(&byte, 1)));
  link_->addPin({.info = {.address = 4096, .bytes = 4096, .slot = 1},
                 .key = encodeKey({.generation = 1, .in_file = true, .file = 21, .offset = 0})});
  EXPECT_EQ(link_->reaches(OpKind::kWrite, 0, 1), "mapped");
  close();
  EXPECT_LE(addressSpace(), before + (std::uint64_t{1} << 30U));
}

TEST_F(BogusPeer, KeysThatLieReachNothing) {
  hello(hellosFiles());
  std::vector<Fd> files;
  files.push_back(sealed(8192));
  link_->receive(encode(FileOffer{1, 8192}), std::move(files));
  std::byte byte{};
  ASSERT_TRUE(backend_->pin(0, Segment::host(&byte, 1)));
  const auto reaches = [&](std::uint32_t slot, std::uint64_t bytes, core::Bytes key) {
    link_->addPin({.info = {.address = 4096, .bytes = bytes, .slot = slot}, .key = std::move(key)});
    return link_->reaches(OpKind::kWrite, 0, slot).has_value();
  };
  const auto key = [](std::uint64_t offset, std::uint32_t file = 1) {
    return encodeKey({.generation = 1, .in_file = true, .file = file, .offset = offset});
  };
  EXPECT_TRUE(reaches(1, 4096, key(4096)));
  EXPECT_FALSE(reaches(2, 4097, key(4096)));
  EXPECT_FALSE(reaches(3, 1, key(~std::uint64_t{0})));
  EXPECT_FALSE(reaches(4, ~std::uint64_t{0}, key(0)));
  EXPECT_FALSE(reaches(5, 1, key(0, 2)));  // the file was never sent
  EXPECT_FALSE(reaches(kSlots, 1, key(0)));
  EXPECT_FALSE(reaches(6, 1, {}));
  EXPECT_FALSE(reaches(7, 1, core::Bytes(3)));
}

TEST_F(BogusPeer, NoiseNeverGetsFurther) {
  base::Random random(2);
  for (int round = 0; round < 2000; ++round) {
    fresh();
    if (random.chance(0.5)) hello(hellosFiles());
    core::Bytes noise(random.below(80));
    for (auto& byte : noise) byte = static_cast<std::byte>(random.next());
    if (noise.size() > 1 && random.chance(0.9)) {
      noise[0] = std::byte{1};
      noise[1] = static_cast<std::byte>(random.below(5));
    }
    std::vector<Fd> files;
    for (std::uint64_t i = random.below(4); i != 0; --i)
      files.push_back(random.chance(0.5) ? sealed(4096) : unsealed(100));
    link_->receive(noise, std::move(files));
  }
}

}  // namespace
}  // namespace viaduct::local
