// Tests connections of strangers to the listener of a connected endpoint.
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>

#include "backends/ofi/ofi_endpoint_testing.h"
#include "base/fd.h"

namespace viaduct::ofi {
namespace {

std::size_t descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

class ConnectionListenerTest : public OfiEndpointTest {
 protected:
  // Offset of the token in the address, after mark, provider, type, format and length.
  static std::size_t tokenAt(const Side& side) {
    return 4 + 4 + static_cast<const OfiDomain&>(*side.domain).provider().size() + 4 + 4 + 4;
  }
  static Bytes tokenOf(const Side& side) {
    const Bytes& whole = side.endpoint->address();
    const auto from = whole.begin() + static_cast<std::ptrdiff_t>(tokenAt(side));
    return {from, from + 16};
  }
  // The side's address with another token. That token is the largest, so the end that joins this
  // address connects.
  static Bytes forged(const Side& side) {
    Bytes out = side.endpoint->address();
    std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(tokenAt(side)), 16, std::byte{0xff});
    return out;
  }

  static sockaddr_in listenerOf(const Side& side) {
    sockaddr_in where{};
    std::memcpy(&where, side.endpoint->address().data() + tokenAt(side) + 16, sizeof where);
    return where;
  }
  // A stranger's connection to the listener. The stranger sends nothing.
  static base::Fd caller(const Side& side) {
    const sockaddr_in where = listenerOf(side);
    base::Fd out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(out.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
    return out;
  }
  // Records the bytes of an endpoint's connection request.
  void overhear(Bytes& request) {
    Side side;
    ASSERT_NO_FATAL_FAILURE(open(side));
    sockaddr_in where = listenerOf(side);
    where.sin_port = 0;
    const base::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    socklen_t size = sizeof where;
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&where), size), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&where), &size), 0);
    Bytes address = forged(side);
    std::memcpy(address.data() + tokenAt(side) + 16, &where, sizeof where);
    ASSERT_TRUE(side.endpoint->join(address));
    const base::Fd taken(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    request.resize(4096);
    ssize_t got = 0;
    ASSERT_TRUE(turnUntil([&] {
      side.endpoint->progress();
      got = ::recv(taken.get(), request.data(), request.size(), MSG_DONTWAIT);
      return got > 0;
    }));
    request.resize(static_cast<std::size_t>(got));
  }
};

// A connection request without the token is rejected, and the peer still connects.
TEST_P(ConnectionListenerTest, AStrangerIsRejectedAndDoesNotDisturbThePeer) {
  ASSERT_NO_FATAL_FAILURE(open(a_));
  ASSERT_NO_FATAL_FAILURE(open(b_));
  // Both ends listen. The stranger connects to the end that will accept the peer.
  const bool a_connects = tokenOf(a_) < tokenOf(b_);
  Side stranger;
  ASSERT_NO_FATAL_FAILURE(open(stranger));
  ASSERT_TRUE(stranger.endpoint->join(forged(a_connects ? b_ : a_)));
  const auto turnAll = [&] {
    stranger.endpoint->progress();
    for (Side* side : {&a_, &b_}) side->endpoint->progress();
    return !!stranger.endpoint->broken();
  };
  EXPECT_TRUE(turnUntil(turnAll)) << "the stranger is told nothing";
  std::cout << "a stranger is told: " << stranger.endpoint->broken()->text() << "\n";
  for (Side* side : {&a_, &b_}) EXPECT_FALSE(side->endpoint->broken());
  ASSERT_NO_FATAL_FAILURE(join());
  a_.bytes = pattern();
  moved(OpKind::kWrite, pieces(1, 4096, 0));
  EXPECT_TRUE(same(b_, 0, 4096));
}

// libfabric accepts a connection, and reads its request later. A request that arrives after the
// listener is gone must not be read.
TEST_P(ConnectionListenerTest, ARequestAfterTheListenerIsGoneIsNotRead) {
  ASSERT_NO_FATAL_FAILURE(open(a_));
  ASSERT_NO_FATAL_FAILURE(open(b_));
  Bytes request;
  ASSERT_NO_FATAL_FAILURE(overhear(request));
  const base::Fd stranger = caller(tokenOf(a_) < tokenOf(b_) ? b_ : a_);
  for (int i = 0; i < 3; ++i)
    for (Side* side : {&a_, &b_}) side->endpoint->progress();
  ASSERT_NO_FATAL_FAILURE(join());
  moved(OpKind::kWrite, pieces(1, 8, 0));
  ASSERT_EQ(::send(stranger.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  a_.bytes = pattern();
  moved(OpKind::kWrite, pieces(1, 4096, 0));
  EXPECT_TRUE(same(b_, 0, 4096));
  for (Side* side : {&a_, &b_}) EXPECT_FALSE(side->endpoint->broken());
}

TEST_P(ConnectionListenerTest, AStrangersConnectionLeaksNoDescriptor) {
  ASSERT_NO_FATAL_FAILURE(open(a_));
  const std::size_t before = descriptors();
  ASSERT_NO_FATAL_FAILURE(open(b_));
  base::Fd stranger = caller(b_);
  b_.endpoint->progress();  // libfabric accepts the connection
  stranger.reset();
  b_.close();
  EXPECT_EQ(descriptors(), before);
}

// A stranger that sends bytes of another protocol.
TEST_P(ConnectionListenerTest, GarbageAtTheListenerDoesNotDisturbThePeer) {
  ASSERT_NO_FATAL_FAILURE(open(a_));
  ASSERT_NO_FATAL_FAILURE(open(b_));
  std::vector<base::Fd> strangers;
  for (const Side* side : {&a_, &b_}) {
    for (const std::size_t bytes : {0U, 7U, 4096U}) {
      const base::Fd& one = strangers.emplace_back(caller(*side));
      const std::vector<std::byte> nonsense(bytes, std::byte{0x5a});
      ASSERT_EQ(::send(one.get(), nonsense.data(), bytes, MSG_NOSIGNAL),
                static_cast<ssize_t>(bytes));
    }
  }
  for (int i = 0; i < 1000; ++i)
    for (Side* side : {&a_, &b_}) side->endpoint->progress();
  ASSERT_NO_FATAL_FAILURE(join());
  a_.bytes = pattern();
  moved(OpKind::kWrite, pieces(1, 4096, 0));
  EXPECT_TRUE(same(b_, 0, 4096));
}

INSTANTIATE_TEST_SUITE_P(Ofi, ConnectionListenerTest, ::testing::Values("tcp", "net"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace viaduct::ofi
