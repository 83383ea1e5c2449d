#include "backends/cuda/share_message.h"

#include <gtest/gtest.h>

namespace viaduct::cuda {
namespace {

TEST(ShareMessage, EachComesBackAsItWas) {
  const MemoryOffer offer{.pin = 7,
                          .lifeline = true,
                          .all = 20,
                          .ranges = {{.base = 0x7000'0000, .bytes = 4096, .buffer_id = 9},
                                     {.base = 0x7000'1000,
                                      .bytes = 4096,
                                      .buffer_id = 10,
                                      .handle = base::Bytes(64, std::byte{5})}}};
  for (const ShareMessage& message : std::initializer_list<ShareMessage>{
           MemoryWanted{1}, offer, MemoryRefused{2, "no"}, MemoryRecalled{3}, MemoryReturned{4}}) {
    const auto bytes = encode(message);
    const auto back = decodeShare(bytes);
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(*back, message);
    for (std::size_t length = 0; length < bytes.size(); ++length)
      EXPECT_FALSE(decodeShare(std::span(bytes).first(length))) << length;
  }
}

TEST(ShareMessage, BytesBeyondTheirLimitsAreRefused) {
  auto wrapping = encode(MemoryOffer{
      .pin = 1, .all = 1, .ranges = {{.base = ~std::uint64_t{0}, .bytes = 2, .buffer_id = 1}}});
  EXPECT_FALSE(decodeShare(wrapping));
  EXPECT_FALSE(decodeShare(encode(
      MemoryOffer{.pin = 1, .all = 16, .ranges = std::vector<SharedRange>(kRangesOfOffer + 1)})));
  EXPECT_FALSE(decodeShare(encode(
      MemoryOffer{.pin = 1, .all = 1, .ranges = {{.handle = base::Bytes(65, std::byte{1})}}})));
  auto unknown = encode(MemoryWanted{1});
  unknown[1] = std::byte{5};
  EXPECT_FALSE(decodeShare(unknown));
}

TEST(ShareMessage, AKeyNamesPinClassAndGpu) {
  const MemoryKey key{.pin = 3, .memory_class = MemoryClass::kPool, .gpu = {1, 2, 3}};
  const auto back = decodeKey(encodeKey(key));
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(*back, key);
  auto other = encodeKey(key);
  other[9] = std::byte{200};  // no such class
  EXPECT_FALSE(decodeKey(other));
}

}  // namespace
}  // namespace viaduct::cuda
