#include "base/checked_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <numeric>
#include <vector>

namespace viaduct::base {
namespace {

TEST(CheckedCopy, FillsPiecesInOrder) {
  const auto copy = CheckedCopy::open();
  ASSERT_TRUE(copy) << copy.error().text();
  std::vector<unsigned char> from(CheckedCopy::kMostBytes), to(from.size());
  std::iota(from.begin(), from.end(), 0);
  const std::array<iovec, 3> pieces{
      {{to.data() + 1000, to.size() - 1000}, {to.data(), 1}, {to.data() + 1, 999}}};
  ASSERT_TRUE(copy->copy(pieces, reinterpret_cast<const std::byte*>(from.data())));
  EXPECT_TRUE(std::equal(to.begin() + 1000, to.end(), from.begin()));
  EXPECT_TRUE(std::equal(to.begin(), to.begin() + 1000, from.end() - 1000));
}

TEST(CheckedCopy, FetchesPiecesThatAreReadable) {
  const auto copy = CheckedCopy::open();
  ASSERT_TRUE(copy) << copy.error().text();
  constexpr std::size_t kPage = 4096;
  auto* const pages = static_cast<std::byte*>(
      ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  pages[1] = std::byte{1};
  pages[kPage - 1] = std::byte{2};
  std::array<std::byte, 2> to{};
  const std::array<iovec, 2> pieces{{{pages + kPage - 1, 1}, {pages + 1, 1}}};
  ASSERT_TRUE(copy->fetch(to.data(), pieces));
  EXPECT_EQ(to, (std::array{std::byte{2}, std::byte{1}}));
  ASSERT_EQ(::mprotect(pages + kPage, kPage, PROT_NONE), 0);
  const iovec both{pages + kPage - 1, 2};
  EXPECT_FALSE(copy->fetch(to.data(), std::span(&both, 1)));
  ::munmap(pages, 2 * kPage);
}

TEST(CheckedCopy, FailsForMemoryThatIsNotWritable) {
  const auto copy = CheckedCopy::open();
  ASSERT_TRUE(copy) << copy.error().text();
  constexpr std::size_t kPage = 4096;
  auto* const pages = static_cast<std::byte*>(
      ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_EQ(::mprotect(pages + kPage, kPage, PROT_READ), 0);
  const std::vector<std::byte> from(CheckedCopy::kMostBytes + 1, std::byte{7});
  const auto writes = [&](std::byte* to, std::size_t bytes) {
    const iovec piece{to, bytes};
    return copy->copy(std::span(&piece, 1), from.data());
  };
  EXPECT_TRUE(writes(pages, kPage));
  EXPECT_FALSE(writes(pages, kPage + 1)) << "read-only behind it";
  EXPECT_FALSE(writes(pages + kPage, 1)) << "read-only";
  ASSERT_EQ(::munmap(pages, kPage), 0);
  EXPECT_FALSE(writes(pages, 1)) << "gone";
  EXPECT_FALSE(writes(pages, CheckedCopy::kMostBytes + 1)) << "more than it takes";
  ::munmap(pages + kPage, kPage);
}

}  // namespace
}  // namespace viaduct::base
