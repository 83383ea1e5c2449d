#include "base/memory_access.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

namespace viaduct::base {
namespace {

// Adjacent pages, each with its own protection.
class Pages {
 public:
  explicit Pages(const std::vector<int>& protections)
      : page_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))),
        bytes_(page_ * protections.size()),
        start_(static_cast<std::byte*>(
            ::mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    for (std::size_t i = 0; i < protections.size(); ++i)
      EXPECT_EQ(::mprotect(start_ + i * page_, page_, protections[i]), 0);
  }
  ~Pages() { ::munmap(start_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::uint64_t at(std::size_t page) const {
    return reinterpret_cast<std::uintptr_t>(start_) + page * page_;
  }
  std::uint64_t bytes(std::size_t pages) const { return pages * page_; }
  void unmap(std::size_t page) { ::munmap(start_ + page * page_, page_); }
  // The number of pages that the kernel has populated.
  std::size_t present() const {
    std::vector<unsigned char> in(bytes_ / page_);
    EXPECT_EQ(::mincore(start_, bytes_, in.data()), 0);
    std::size_t count = 0;
    for (const unsigned char one : in) count += one & 1U;
    return count;
  }

 private:
  const std::size_t page_, bytes_;
  std::byte* const start_;
};

constexpr int kWritable = PROT_READ | PROT_WRITE;

class MemoryAccessTest
    : public ::testing::TestWithParam<Result<MemoryAccess> (*)(std::uint64_t, std::uint64_t)> {
 protected:
  static Result<MemoryAccess> ask(std::uint64_t address, std::uint64_t bytes) {
    return GetParam()(address, bytes);
  }
};

TEST_P(MemoryAccessTest, IsTheLeastOfAllPages) {
  const Pages pages({kWritable, kWritable, PROT_READ, PROT_READ, kWritable});
  EXPECT_EQ(*ask(pages.at(0), pages.bytes(2)), MemoryAccess::kReadWrite);
  EXPECT_EQ(*ask(pages.at(0), pages.bytes(2) + 1), MemoryAccess::kReadOnly);
  EXPECT_EQ(*ask(pages.at(2), pages.bytes(2)), MemoryAccess::kReadOnly);
  EXPECT_EQ(*ask(pages.at(3) + 1, pages.bytes(1)), MemoryAccess::kReadOnly);
  EXPECT_EQ(*ask(pages.at(4), 1), MemoryAccess::kReadWrite);
  EXPECT_EQ(*ask(pages.at(0), pages.bytes(5)), MemoryAccess::kReadOnly);
}

TEST_P(MemoryAccessTest, NamesTheFirstAddressThatCannotBeRead) {
  Pages pages({kWritable, PROT_NONE, kWritable, kWritable});
  pages.unmap(3);
  for (const auto& [first, bad] : {std::pair(0, 1), std::pair(1, 1), std::pair(2, 3)}) {
    const auto access = ask(pages.at(first), pages.bytes(4) - pages.bytes(first));
    ASSERT_FALSE(access) << first;
    EXPECT_EQ(access.error().code, Code::kInvalid);
    char address[32];
    std::snprintf(address, sizeof address, "%#llx", static_cast<unsigned long long>(pages.at(bad)));
    EXPECT_NE(access.error().text().find(address), std::string::npos) << access.error().text();
  }
  EXPECT_FALSE(ask(4096, 1)) << "below all mappings";
  EXPECT_FALSE(ask((std::uint64_t{1} << 62U), 1)) << "above all mappings";
}

TEST_P(MemoryAccessTest, TouchesNoPage) {
  const Pages pages({kWritable, kWritable, PROT_READ});
  EXPECT_EQ(*ask(pages.at(0), pages.bytes(3)), MemoryAccess::kReadOnly);
  EXPECT_EQ(pages.present(), 0U);
}

// One read of /proc/self/maps does not return all of these mappings.
TEST_P(MemoryAccessTest, FindsItsWayAmongManyMappings) {
  std::vector<int> protections;
  for (int i = 0; i < 2000; ++i) protections.push_back(i % 2 == 0 ? kWritable : PROT_READ);
  const Pages pages(protections);
  for (std::size_t i = 0; i < protections.size(); i += 97)
    EXPECT_EQ(*ask(pages.at(i), pages.bytes(1)),
              i % 2 == 0 ? MemoryAccess::kReadWrite : MemoryAccess::kReadOnly);
  EXPECT_EQ(*ask(pages.at(0), pages.bytes(2000)), MemoryAccess::kReadOnly);
}

INSTANTIATE_TEST_SUITE_P(Both, MemoryAccessTest,
                         ::testing::Values(&memoryAccess, &memoryAccessFromList));

}  // namespace
}  // namespace viaduct::base
