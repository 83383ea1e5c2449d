#include "base/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "support/huge_pages.h"
#include "support/strict_overcommit.h"

namespace viaduct::base {
namespace {

TEST(SharedMemory, IsZeroedWritableAndSealed) {
  auto memory = SharedMemory::allocate(10000);
  ASSERT_TRUE(memory) << memory.error().text();
  EXPECT_EQ(memory->size(), 10000U);
  for (const std::byte byte : memory->bytes()) ASSERT_EQ(byte, std::byte{0});
  std::memset(memory->data(), 7, memory->size());
  EXPECT_EQ(::fcntl(memory->fd(), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  EXPECT_NE(::ftruncate(memory->fd(), 0), 0);
  EXPECT_EQ(errno, EPERM);
}

TEST(SharedMemory, DescribesItselfForPinning) {
  auto memory = SharedMemory::allocate(4096);
  ASSERT_TRUE(memory);
  const Segment segment = memory->segment();
  EXPECT_EQ(segment.address, reinterpret_cast<std::uintptr_t>(memory->data()));
  EXPECT_EQ(segment.bytes, 4096U);
  EXPECT_EQ(segment.fd, memory->fd());
  EXPECT_EQ(segment.fd_offset, 0U);
}

TEST(SharedMemory, ASecondMappingSeesTheSameBytes) {
  auto memory = SharedMemory::allocate(4096);
  ASSERT_TRUE(memory);
  const Fd file(::dup(memory->fd()));
  auto again = SharedMemory::map(file, 4096, SharedMemory::Access::kReadWrite);
  ASSERT_TRUE(again) << again.error().text();
  again->data()[17] = std::byte{42};
  EXPECT_EQ(memory->data()[17], std::byte{42});
  EXPECT_EQ(again->fd(), -1);
}

TEST(SharedMemory, MovesWithItsMapping) {
  auto memory = SharedMemory::allocate(4096);
  ASSERT_TRUE(memory);
  SharedMemory other = *std::move(memory);
  EXPECT_FALSE(*memory);
  other.data()[0] = std::byte{1};
  other = SharedMemory();
  EXPECT_FALSE(other);
}

TEST(SharedMemory, RefusesImpossibleSizes) {
  EXPECT_EQ(SharedMemory::allocate(0).error().code, Code::kInvalid);
  EXPECT_EQ(SharedMemory::allocate(std::uint64_t{1} << 63U).error().code, Code::kInvalid);
  EXPECT_EQ(SharedMemory::allocate(std::uint64_t{1} << 55U).error().code, Code::kExhausted);
}

TEST(SharedMemory, TooManyOpenFilesAreNoLackOfMemory) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto memory = SharedMemory::allocate(4096);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, Code::kExhausted);
  EXPECT_NE(memory.error().remedy.find("ulimit -n"), std::string::npos) << memory.error().text();
}

TEST(SharedMemory, RefusesFilesThatCouldBeCutShort) {
  const Fd plain(::memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(plain.get(), 8192), 0);
  EXPECT_EQ(SharedMemory::map(plain, 1, SharedMemory::Access::kRead).error().code, Code::kProtocol);
  ASSERT_EQ(::fcntl(plain.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(SharedMemory::map(plain, 8193, SharedMemory::Access::kRead).error().code,
            Code::kProtocol);
  EXPECT_TRUE(SharedMemory::map(plain, 8192, SharedMemory::Access::kRead));
  const Fd device(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(SharedMemory::map(device, 0, SharedMemory::Access::kRead).error().code,
            Code::kProtocol);
}

// A sparse file of any size costs its sender nothing.
TEST(SharedMemory, MapsNoMoreThanWasAnnounced) {
  const Fd sparse(::memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(sparse.get(), off_t{1} << 45U), 0);
  ASSERT_EQ(::fcntl(sparse.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  std::vector<SharedMemory> mapped;
  for (int i = 0; i < 100; ++i) {  // the address space has room for four of 32 TiB each
    auto one = SharedMemory::map(sparse, 5000, SharedMemory::Access::kReadWrite);
    ASSERT_TRUE(one) << i << ": " << one.error().text();
    EXPECT_EQ(one->size(), 5000U);
    mapped.push_back(*std::move(one));
  }
}

TEST(SharedMemory, MissingHugePagesAreAnErrorThatSaysSo) {
  // No machine has that much free.
  auto memory = SharedMemory::allocate(std::uint64_t{1} << 45U, {.huge_pages = true});
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code, Code::kExhausted);
  EXPECT_NE(memory.error().text().find("2 MiB"), std::string::npos) << memory.error().text();
  EXPECT_FALSE(memory.error().remedy.empty());
}

using Access = SharedMemory::Access;

// The size of the pool does not matter: the file has holes, and can get more.
TEST(SharedMemory, RefusesHugePagesThatCouldHaveHoles) {
  const Fd huge(::memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (!huge) GTEST_SKIP() << "skipped: no huge pages in this kernel";
  struct stat facts{};
  ASSERT_EQ(::fstat(huge.get(), &facts), 0);
  ASSERT_EQ(::ftruncate(huge.get(), facts.st_blksize), 0);
  ASSERT_EQ(::fcntl(huge.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  for (const int seal : {0, 0x10 /* F_SEAL_FUTURE_WRITE */}) {
    ASSERT_EQ(::fcntl(huge.get(), F_ADD_SEALS, seal), 0);
    const auto access = SharedMemory::accessOfPeers(huge.get());
    ASSERT_FALSE(access);
    EXPECT_EQ(access.error().code, Code::kUnsupported);
    EXPECT_FALSE(SharedMemory::map(huge, 4096, Access::kRead));
  }
}

// Huge pages behind the end of a file count as its pages.
TEST(SharedMemory, FillsHiddenHolesAmongHugePagesOfAPeer) {
  const testing::HugePages pages;
  constexpr off_t kPage = 2 << 20;
  const Fd file(
      ::memfd_create("hidden", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | 21U << 26U));
  if (::ftruncate(file.get(), kPage) != 0 ||
      ::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, kPage, kPage) != 0)
    GTEST_SKIP() << "skipped: no free 2 MiB pages";
  ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | 0x10 /* F_SEAL_FUTURE_WRITE */), 0);
  ASSERT_TRUE(SharedMemory::accessOfPeers(file.get()));
  static_cast<void>(SharedMemory::map(file, kPage, Access::kRead));
  struct stat facts{};
  ASSERT_EQ(::fstat(file.get(), &facts), 0);
  if (facts.st_blocks * 512 < 2 * kPage) GTEST_SKIP() << "skipped: no second free 2 MiB page";
  EXPECT_EQ(facts.st_blocks * 512, 2 * kPage);
}

TEST(SharedMemory, PeersMayReadItsHugePages) {
  const testing::HugePages pages;
  const auto memory = SharedMemory::allocate(4096, {.huge_pages = true});
  if (!memory) GTEST_SKIP() << "skipped: no free 2 MiB pages";
  memory->data()[0] = std::byte{1};
  const Fd file(::dup(memory->fd()));
  EXPECT_FALSE(SharedMemory::map(file, 4096, Access::kReadWrite));
  const auto peers = SharedMemory::map(file, 4096, Access::kRead);
  ASSERT_TRUE(peers) << peers.error().text();
  EXPECT_EQ(peers->data()[0], std::byte{1});
  EXPECT_NE(::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2 << 20), 0);
  EXPECT_NE(::madvise(memory->data(), 2 << 20, MADV_REMOVE), 0);
  memory->data()[0] = std::byte{2};
  EXPECT_EQ(peers->data()[0], std::byte{2});
}

// Runs in a process of its own, whose host seems to count memory strictly.
int exitCodeUnderStrictOvercommit(int (*body)()) {
  const int child = ::fork();
  if (child == 0) ::_exit(viaduct::testing::pretendStrictOvercommit() ? body() : 77);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Returns the number of the failed check, or 0.
int checkStrictMemory() {
  const auto usual = SharedMemory::allocate(10000);
  if (!usual) return 1;
  std::array<unsigned char, 3> resident{};
  if (::mincore(usual->data(), 10000, resident.data()) != 0) return 2;
  for (const unsigned char page : resident)
    if ((page & 1U) == 0) return 3;
  const Fd file(::dup(usual->fd()));
  if (SharedMemory::map(file, 10000, Access::kReadWrite)) return 4;
  if (!SharedMemory::map(file, 10000, Access::kRead)) return 5;
  const Fd sparse(::memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (::ftruncate(sparse.get(), 10000) != 0) return 6;
  for (const int seal : {F_SEAL_SHRINK, 0x10 /* F_SEAL_FUTURE_WRITE */}) {
    if (::fcntl(sparse.get(), F_ADD_SEALS, seal) != 0) return 7;
    if (SharedMemory::map(sparse, 10000, Access::kRead)) return 8;
  }
  return 0;
}

int checkStrictControlPages() {
  const auto control = SharedMemory::allocate(10000, {.control = true});
  if (!control) return control.error().code == Code::kUnsupported ? 76 : 11;
  if (::fallocate(control->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0)
    return 6;
  if (::madvise(control->data(), 4096, MADV_REMOVE) == 0) return 7;
  if (::ftruncate(control->fd(), 0) == 0) return 8;
  const Fd file(::dup(control->fd()));
  const auto mapped = SharedMemory::map(file, 10000, SharedMemory::Access::kReadWrite);
  if (!mapped) return 15;
  control->data()[9999] = std::byte{5};
  return mapped->data()[9999] == std::byte{5} ? 0 : 16;
}

TEST(SharedMemory, UnderStrictOvercommitNoPageIsMissing) {
  const int code = exitCodeUnderStrictOvercommit(checkStrictMemory);
  if (code == 77) GTEST_SKIP() << "skipped: this process may not mount";
  EXPECT_EQ(code, 0);
}

TEST(SharedMemory, UnderStrictOvercommitControlPagesCannotBePunched) {
  const int code = exitCodeUnderStrictOvercommit(checkStrictControlPages);
  if (code == 77) GTEST_SKIP() << "skipped: this process may not mount";
  if (code == 76) GTEST_SKIP() << "skipped: no memfd_secret in this kernel";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace viaduct::base
