// Compares transfers over the ofi backend with a bare loop of the same libfabric calls, turn by
// turn in one run. The loop calls fi_writemsg, the last of a transfer with FI_DELIVERY_COMPLETE;
// its target only reads its queue.   ofi_floor [PROVIDER [ROUNDS [MILLISECONDS]]]
#include <rdma/fi_rma.h>

#include "backends/ofi/choose.h"
#include "backends/ofi/raw_endpoint.h"
#include "backends/ofi/remote_key.h"
#include "fabric_floor.h"

namespace viaduct::bench {
namespace {

// Workloads with one block at a time, and with many blocks in flight.
constexpr Workload kWorkloads[] = {{"8 B", 8, 1},
                                   {"64 KiB", 65536, 1},
                                   {"1 MiB", 1U << 20U, 1},
                                   {"4 KiB x 1024", 4096, 1024},
                                   {"64 KiB x 64", 65536, 64},
                                   {"1 MiB x 16", 1U << 20U, 16},
                                   {"64 MiB", 64U << 20U, 1}};

void mustOfi(std::int64_t status, const char* call) {
  if (status < 0) die(ofi::ofiError(Code::kDevice, call, status, "bare").text());
}

// One endpoint with its queue, and the key of the other process's memory.
class Bare {
 public:
  explicit Bare(const BareEnd& end)
      : chosen_(must(ofi::choose(end.settings))),
        ofi_domain_(static_cast<const ofi::OfiDomain&>(*chosen_.domains.front())),
        memory_(must(ofi_domain_.add(
            {.address = reinterpret_cast<std::uintptr_t>(end.memory), .bytes = end.bytes}))) {
    open();
    end.other.send(endpoint_->name());
    must(endpoint_->join(end.other.receive()));
    while (endpoint_->ready() == nullptr) must(endpoint_->look());
    end.other.send(memory_->key());
    there_ = ofi::unpacked(end.other.receive()).value();
  }

  void write(std::span<const Extent> from, std::span<const Extent> into) {
    const bool ordered = ofi_domain_.profile().ordered;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const bool last = i + 1 == from.size();
      const std::uint64_t tells = last || !ordered ? FI_COMPLETION | FI_DELIVERY_COMPLETE : 0;
      while (pending_ + 1 >= ofi_domain_.profile().depth) progress();
      while (!went(from[i], into[i], tells | (last ? 0 : FI_MORE))) progress();
      pending_ += tells != 0 ? 1 : 0;
    }
    while (pending_ != 0) progress();
  }
  template <class Over>
  void serve(std::span<const Extent>, const Over& over) {
    while (!over()) progress();
  }
  void progress() {
    fi_cq_entry entries[16];
    const ssize_t got = fi_cq_read(queue_.get(), entries, std::size(entries));
    if (got > 0) pending_ -= static_cast<std::size_t>(got);
    if (got != -FI_EAGAIN) mustOfi(got, "fi_cq_read");
  }

 private:
  bool went(const Extent& from, const Extent& into, std::uint64_t flags) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an extent's address is a number
    const iovec here{.iov_base = reinterpret_cast<void*>(static_cast<std::uintptr_t>(from.address)),
                     .iov_len = from.bytes};
    const fi_rma_iov target{
        .addr = into.address - there_.base, .len = into.bytes, .key = there_.key};
    void* descriptor = static_cast<const ofi::RegisteredMemory&>(*memory_).descriptor();
    const fi_msg_rma message{.msg_iov = &here,
                             .desc = &descriptor,
                             .iov_count = 1,
                             .addr = endpoint_->peer(),
                             .rma_iov = &target,
                             .rma_iov_count = 1,
                             .context = nullptr,
                             .data = 0};
    const bool small = from.bytes <= ofi_domain_.profile().inject;
    const ssize_t given =
        fi_writemsg(endpoint_->ready(), &message, flags | (small ? FI_INJECT : 0));
    if (given != -FI_EAGAIN) mustOfi(given, "fi_writemsg");
    return given == 0;
  }
  void open() {
    fi_cq_attr queue{};
    queue.size = ofi_domain_.profile().depth;
    queue.format = FI_CQ_FORMAT_CONTEXT;
    fid_cq* cq = nullptr;
    domain_ = must(ofi_domain_.domain());
    mustOfi(fi_cq_open(domain_.get(), &queue, &cq, nullptr), "fi_cq_open");
    queue_.reset(cq);
    endpoint_ = must(ofi::RawEndpoint::open(ofi_domain_, *domain_, *cq));
  }

  move::Fabric chosen_;
  const ofi::OfiDomain& ofi_domain_;
  std::unique_ptr<move::Registration> memory_;
  std::shared_ptr<fid_domain> domain_;
  ofi::Fid<fid_cq> queue_;
  std::unique_ptr<ofi::RawEndpoint> endpoint_;
  ofi::RemoteMemory there_;
  std::size_t pending_ = 0;
};

}  // namespace
}  // namespace viaduct::bench

int main(int argc, char** argv) {
  using namespace viaduct::bench;
  const Arguments given(argc, argv, "ofi_floor [PROVIDER [ROUNDS [MILLISECONDS]]]");
  FloorOptions options{.workloads = kWorkloads,
                       .rounds = given.number(1, 15),
                       .turn = std::chrono::milliseconds(given.number(2, 40))};
  options.settings.backends = {"ofi"};
  options.settings.ofi_provider = given.text(0, "tcp");
  if (options.settings.ofi_provider != "shm") options.settings.rails = {"lo"};
  Floor<Bare>(options).run();
}
