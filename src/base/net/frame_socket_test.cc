#include "base/net/frame_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace viaduct::base {
namespace {

constexpr std::size_t kMost = std::size_t{4} << 20U;
constexpr FrameProtocol kProtocol{
    .magic = "TEST",
    .version = {.major = 1, .minor = 0},
    .other_end = "test",
    .knows = [](std::uint8_t) { return true; },
    .check_size = [](std::uint8_t, std::size_t, std::size_t) { return Status(Ok{}); },
    .by_digest = true};

class FrameSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> both{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both.data()), 0);
    here_.reset(both[0]);
    there_.reset(both[1]);
    ASSERT_TRUE(writer_.useKey({1}) && reader_.decoder().useKey({1}));
    reader_.acceptFds();
  }
  // Reads and flushes until the next frame is complete: its type, the size of its payload, and the
  // number of its fds.
  std::array<std::size_t, 3> next() {
    Frame frame;
    while (reader_.decoder().next(frame) == FrameDecoder::Next::kMore) {
      EXPECT_TRUE(writer_.flush(here_.get()));
      const auto read = reader_.read(there_.get());
      if (!read || read->ended || read->bytes == 0) return {};
    }
    std::vector<Fd> fds;
    EXPECT_TRUE(reader_.takeFds(frame.fds, fds));
    return {frame.type, frame.payload.size(), fds.size()};
  }

  Fd here_, there_;
  FrameWriter writer_{kProtocol};
  FrameReader reader_{kProtocol, kMost};
};

// The socket accepts a part of the frames, and the rest waits. The frames have copied and shared
// payloads, with and without descriptors.
TEST_F(FrameSocketTest, FramesThatWaitKeepTheirOrderBytesAndDescriptors) {
  const auto large = std::make_shared<const Bytes>(kMost, std::byte{5});
  const FrameWriter::Shared shared{.payload = large, .digest = payloadDigest(*large)};
  const auto fdsOf = [](std::size_t count) {
    std::vector<Fd> fds;
    for (std::size_t i = 0; i < count; ++i) fds.emplace_back(::eventfd(0, EFD_CLOEXEC));
    return fds;
  };
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(writer_.write(here_.get(), 1, shared));
    ASSERT_TRUE(writer_.write(here_.get(), 2, bytesOf("small"), bytesOf("er"), fdsOf(2)));
    ASSERT_TRUE(writer_.write(here_.get(), 3, {}, {}, {}));
    ASSERT_TRUE(writer_.write(here_.get(), 4, *large, bytesOf(""), fdsOf(3)));
    ASSERT_TRUE(writer_.write(here_.get(), 5, {}, {}, fdsOf(1)));
  }
  EXPECT_GT(writer_.unsent(), 5 * kMost);
  using Found = std::array<std::size_t, 3>;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(next(), (Found{1, kMost, 0}));
    EXPECT_EQ(next(), (Found{2, 7, 2}));
    EXPECT_EQ(next(), (Found{3, 0, 0}));
    EXPECT_EQ(next(), (Found{4, kMost, 3}));
    EXPECT_EQ(next(), (Found{5, 0, 1}));
  }
  EXPECT_EQ(writer_.unsent(), 0U);
  EXPECT_EQ(large.use_count(), 2) << "the frames are sent; here and `shared` remain";
}

TEST_F(FrameSocketTest, APayloadOfEverybodyDoesNotCountAsUnsent) {
  const auto large = std::make_shared<const Bytes>(kMost, std::byte{5});
  for (int i = 0; i < 8; ++i)
    ASSERT_TRUE(writer_.write(
        here_.get(), 1, {.payload = large, .digest = payloadDigest(*large), .counts = false}));
  EXPECT_LE(writer_.unsent(), 8 * kFrameHeaderBytes);
}

}  // namespace
}  // namespace viaduct::base
