// A watch that starts at a revision that etcd has compacted.
#include "meet/etcd/watch.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "meet/etcd/context.h"
#include "support/etcd_server.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;
using namespace meet::etcd;

TEST(EtcdWatch, FromAForgottenRevisionItReadsAllAndGoesOn) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer server;
  for (const char* put : {"put k/a 1", "put k/b 1", "put k/a 2", "del k/b", "compact 5"})
    server.ctl(put);
  const auto context = EtcdContext::open({.where = server.url()});
  ASSERT_TRUE(context) << context.error().text();
  Board board;
  std::vector<std::string> seen;
  const auto add = [&](const std::string& what) { board.change([&] { seen.push_back(what); }); };
  std::unique_ptr<Watch> watch;
  (*context)->run([&] {
    watch = std::make_unique<Watch>(
        (*context)->loop(), (*context)->client(), std::vector<KeyRange>{prefix("k/")}, 2,
        Watch::Handlers{
            .event =
                [&](const WatchEvent& event) { add("event " + event.kv.key + event.kv.value); },
            .snapshot =
                [&](const std::vector<KeyValue>& all) {
                  for (const KeyValue& kv : all) add("all " + kv.key + kv.value);
                },
            .failed = [&](const Error& why) { add(why.text()); }});
  });
  EXPECT_TRUE(board.wait(Clock::now() + 20s, nullptr, [&] { return !seen.empty(); }));
  server.ctl("put k/c 3");
  EXPECT_TRUE(board.wait(Clock::now() + 20s, nullptr, [&] { return seen.size() >= 2; }));
  (*context)->run([&] { watch.reset(); });
  EXPECT_EQ(seen, (std::vector<std::string>{"all k/a2", "event k/c3"}));
}

}  // namespace
}  // namespace viaduct::testing
