#include "s3/memory_stream.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <string>

namespace viaduct::s3 {
namespace {

std::uint64_t addressOf(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }
const std::byte* bytesAt(const std::string& text) {
  return reinterpret_cast<const std::byte*>(text.data());
}

TEST(MemoryStreamTest, FillsPiecesInOrderAndReadsThemAgain) {
  const auto copy = base::CheckedCopy::open();
  std::string memory(300'000, '.');
  MemoryStream stream(*copy);
  stream.append(addressOf(&memory[200'000]), 100'000);
  stream.append(addressOf(&memory[10]), 5);
  stream.append(addressOf(&memory[15]), 5);  // adjoins the piece before
  std::string text(100'010, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 26);
  ASSERT_TRUE(stream.put(bytesAt(text), 7));
  ASSERT_TRUE(stream.put(bytesAt(text) + 7, text.size() - 7));
  EXPECT_EQ(memory.substr(200'000) + memory.substr(10, 10), text);
  EXPECT_FALSE(stream.put(bytesAt(text), 1)) << "the stream is full";

  stream.seek(99'999);
  std::string back(100, '\0');
  std::size_t got = 0;
  ASSERT_TRUE(stream.get(reinterpret_cast<std::byte*>(back.data()), back.size(), got));
  EXPECT_EQ(back.substr(0, got), text.substr(99'999));
  ASSERT_TRUE(stream.get(reinterpret_cast<std::byte*>(back.data()), back.size(), got));
  EXPECT_EQ(got, 0U) << "the end";
}

TEST(MemoryStreamTest, FailsForMemoryThatIsGone) {
  const auto copy = base::CheckedCopy::open();
  void* const page =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MemoryStream stream(*copy);
  stream.append(addressOf(page), 4096);
  ::munmap(page, 4096);
  const std::string text(10, 'x');
  std::byte into[10];
  std::size_t got = 0;
  EXPECT_FALSE(stream.put(bytesAt(text), text.size()));
  EXPECT_FALSE(stream.get(into, sizeof into, got));
}

}  // namespace
}  // namespace viaduct::s3
