// Peer::ready() while the peer comes and goes.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <atomic>
#include <optional>
#include <thread>

namespace viaduct {
namespace {

using namespace std::chrono_literals;

// A life that ends between "it is ready" and the answer is no answer: the next one is waited for.
TEST(Ready, LastsUntilThePeerIsThereOrTheTimeIsOver) {
  const auto opened = [](const char* name) {
    return Agent::open({.name = name, .backends = {"local"}});
  };
  auto a = opened("a");
  ASSERT_TRUE(a) << a.error().text();
  std::optional<Agent> b(*opened("b"));
  const auto peer = a->importCard(b->exportCard());
  ASSERT_TRUE(peer && peer->ready(10s));
  std::atomic<bool> over{false};
  std::jthread waits([&] {
    while (!over) {
      const Status ready = peer->ready(30s);
      ASSERT_TRUE(ready) << ready.error().text();
    }
  });
  for (int life = 0; life < 200; ++life) {
    const auto epoch = peer->epoch();
    b.emplace(*opened("b"));
    ASSERT_TRUE(b->importCard(a->exportCard()));
    ASSERT_TRUE(peer->over(epoch, 10s) && peer->ready(30s));
  }
  over = true;
}

}  // namespace
}  // namespace viaduct
