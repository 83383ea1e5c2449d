#include "base/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

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

}  // namespace
}  // namespace viaduct::base
