// Compares transfers over the ucx backend with a bare loop, turn by turn in one run, over the
// transport that UCX_TLS names. The loop makes puts (one flush per transfer; its target only
// progresses its worker), or sends the backend's own messages without the layers above them.
//   UCX_TLS=tcp UCX_NET_DEVICES=lo ucx_floor [ROUNDS [MILLISECONDS [puts|messages]]]
#include "backends/ucx/context.h"
#include "fabric_floor.h"

namespace viaduct::bench {
namespace {

constexpr Workload kWorkloads[] = {{"64 B x 1024", 64, 1024},
                                   {"4 KiB x 1024", 4096, 1024},
                                   {"64 KiB x 64", 65536, 64},
                                   {"1 MiB x 16", 1U << 20U, 16},
                                   {"64 MiB x 1", 64U << 20U, 1}};

// A worker, an endpoint, and the key of the other process's memory.
class Bare {
 public:
  inline static bool by_messages = false;
  explicit Bare(const BareEnd& end)
      : context_(must(ucx::Context::open(*must(ucx::library()), {.by_messages = by_messages}))),
        registered_(must(context_->add(
            {.address = reinterpret_cast<std::uintptr_t>(end.memory), .bytes = end.bytes}))),
        endpoint_(must(context_->open())) {
    end.other.send(endpoint_->address());
    const auto worker = end.other.receive();
    end.other.send(registered_->key());
    const auto key = end.other.receive();
    must(endpoint_->join(worker));
    key_ = endpoint_->keyOf(1, key);
    if (key_ == nullptr) die("the key");
  }
  void write(std::span<const Extent> from, std::span<const Extent> into) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      const auto at = static_cast<std::uintptr_t>(from[i].address);
      // NOLINTNEXTLINE(performance-no-int-to-ptr): an extent's address is a number
      const move::Piece piece{.here = reinterpret_cast<std::byte*>(at),
                              .there = into[i].address,
                              .bytes = from[i].bytes};
      while (endpoint_->post(OpKind::kWrite, std::span(&piece, 1), key_).pieces == 0) progress();
    }
    auto flush = endpoint_->flush();
    while (!endpoint_->ended(flush)) progress();
  }
  template <class Over>
  void serve(std::span<const Extent>, const Over& over) {
    while (!over()) progress();
  }
  void progress() {
    endpoint_->progress();
    if (const auto why = endpoint_->broken()) die(why->text());
  }

 private:
  std::unique_ptr<ucx::Context> context_;
  std::unique_ptr<move::Registration> registered_;
  std::unique_ptr<move::Endpoint> endpoint_;
  move::RemoteKey key_ = nullptr;
};

}  // namespace
}  // namespace viaduct::bench

int main(int argc, char** argv) {
  using namespace viaduct::bench;
  const Arguments given(argc, argv, "ucx_floor [ROUNDS [MILLISECONDS [puts|messages]]]");
  Bare::by_messages = given.text(2) == "messages";
  Floor<Bare>({.settings = {.backends = {"ucx"}},
               .workloads = kWorkloads,
               .rounds = given.number(0, 15),
               .turn = std::chrono::milliseconds(given.number(1, 40))})
      .run();
}
