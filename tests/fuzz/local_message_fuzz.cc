// Any bytes from a peer's local link, with any files: no crash, no hang.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "backends/local/cma.h"
#include "backends/local/live_table.h"
#include "backends/local/local_backend.h"
#include "backends/local/local_message.h"
#include "base/shared_memory.h"

namespace {

using viaduct::base::Fd;
using viaduct::base::SharedMemory;
namespace core = viaduct::core;
namespace local = viaduct::local;

class NoHost final : public core::LinkHost {
 public:
  viaduct::Status send(std::span<const std::byte>, std::span<const int>) override {
    return viaduct::Ok{};
  }
  void changed() override {}
};

struct Stage {
  Stage() : page(*SharedMemory::allocate(4096)), table(*local::LiveTable::make()) {
    poller = std::move(*viaduct::base::Poller::open());
    settings.copy_threads = 1;
    backend = std::move(*local::open({settings, *poller}));
  }
  viaduct::Settings settings;
  std::unique_ptr<viaduct::base::Poller> poller;
  std::unique_ptr<core::Backend> backend;
  SharedMemory page;
  local::LiveTable table;
};

Fd fileOfKind(const Stage& stage, unsigned kind) {
  switch (kind % 4) {
    case 0:
      return Fd(::dup(stage.page.fd()));
    case 1:
      return Fd(::dup(stage.table.fd()));
    case 2:
      return local::openPidfd(::getpid());
    default:
      return Fd(::memfd_create("unsealed", MFD_CLOEXEC));
  }
}

}  // namespace

// The input is a sequence of: a length, a byte that selects the files, and the message.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Stage stage;
  NoHost host;
  core::LinkSeed seed;
  seed.same_host = seed.unix_socket = true;
  const auto link = stage.backend->link(seed, host);
  while (size >= 2) {
    const std::size_t length = std::min<std::size_t>(data[0], size - 2);
    unsigned files = data[1];
    const auto message = std::as_bytes(std::span(data + 2, length));
    std::vector<Fd> fds;
    for (unsigned count = files % 4; count != 0; --count, files >>= 2U)
      fds.push_back(fileOfKind(stage, files >> 2U));
    link->receive(message, std::move(fds));
    link->addPin({.info = {.address = 4096, .bytes = length, .slot = data[0]},
                  .key = {message.begin(), message.end()}});
    data += 2 + length;
    size -= 2 + length;
  }
  core::Completions out;
  link->close(out);
  return 0;
}
