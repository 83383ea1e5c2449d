#include "backends/ofi/address_probe.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <viaduct/deadline.h>

#include <chrono>
#include <span>
#include <vector>

namespace viaduct::ofi {
namespace {

// A host that does not answer is tested in the virtual machine of `./dev check --verbs`.
std::vector<std::byte> address(const char* text) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  EXPECT_EQ(::inet_pton(AF_INET, text, &out.sin_addr), 1);
  const auto bytes = std::as_bytes(std::span(&out, 1));
  return {bytes.begin(), bytes.end()};
}
std::vector<std::byte> address6(const in6_addr& host) {
  sockaddr_in6 out{};
  out.sin6_family = AF_INET6;
  out.sin6_addr = host;
  const auto bytes = std::as_bytes(std::span(&out, 1));
  return {bytes.begin(), bytes.end()};
}

bool ends(AddressProbe probe) {
  const auto until = Clock::now() + std::chrono::seconds(20);
  for (auto over = probe.over(); over; over = probe.over())
    if (*over || Clock::now() > until) return *over;
  return false;
}

TEST(AddressProbe, IsOverForAReachableHost) {
  EXPECT_TRUE(ends({address("127.0.0.1"), address("127.0.0.1")}));
  EXPECT_TRUE(ends({address6(in6addr_loopback), address6(in6addr_loopback)}));
}

TEST(AddressProbe, IsOverAtOnceWithoutAPath) {
  EXPECT_TRUE(AddressProbe(address("192.0.2.1"), address("127.0.0.1")).over().value());
  EXPECT_TRUE(AddressProbe(address("127.0.0.1"), address6(in6addr_loopback)).over().value());
  EXPECT_TRUE(AddressProbe({}, {}).over().value());
}

}  // namespace
}  // namespace viaduct::ofi
