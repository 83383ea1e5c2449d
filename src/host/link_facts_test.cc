#include "host/link_facts.h"

#include <gtest/gtest.h>

namespace viaduct::host {
namespace {

TEST(LinkFacts, LoopbackIsThere) {
  const std::vector<LinkFacts> links = linkFacts();
  bool found = false;
  for (const LinkFacts& link : links) found = found || (link.name == "lo" && link.mtu >= 1500);
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace viaduct::host
