#include "base/inner_error.h"

#include <gtest/gtest.h>

namespace viaduct::base {
namespace {

TEST(InnerError, SaysNothingThatTheOuterErrorSays) {
  const Error inner{.code = Code::kPeerLost,
                    .operation = "recvmsg",
                    .detail = "Connection reset by peer",
                    .os_errno = 104,
                    .peer = "b",
                    .device = "eth0",
                    .cause = "its process died",
                    .remedy = "start it"};
  const Error outer{
      .code = Code::kPeerLost, .operation = "tcp", .detail = innerText(inner), .peer = "b"};
  EXPECT_EQ(outer.text(),
            "tcp: peer lost: recvmsg: Connection reset by peer (errno 104); device eth0; "
            "likely cause: its process died; what to do: start it; peer b");
}

}  // namespace
}  // namespace viaduct::base
