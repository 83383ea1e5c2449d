// The survivor is the test's own agent, and the victim an agent in another process. The tests run
// over every mechanism between two processes. Threads: the test's.
#pragma once

#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/unseen_order.h"
#include "process/process.h"
#include "process/storm.h"
#include "process/words.h"
#include "support/bytes.h"

namespace viaduct::testing {

// A way to move bytes between two processes of this host.
struct DataPath {
  const char* name;
  const char* backend;
  bool heap;                  // both use private memory, which no peer can map
  const char* provider = "";  // of libfabric; empty: the backend's choice
  friend void PrintTo(const DataPath& path, std::ostream* out) { *out << path.name; }
};
#ifdef VIADUCT_WITH_OFI
// A provider without a descriptor to sleep on for incoming messages.
inline constexpr DataPath kMute{"mute", "ofi", false, "net"};
#endif
inline constexpr DataPath kDataPaths[] = {
    {"mapped", "local", false}, {"cma", "local", true}, {"tcp", "tcp", false},
#ifdef VIADUCT_WITH_OFI
    {"ofi", "ofi", false},
#endif
#ifdef VIADUCT_WITH_UCX
    {"ucx", "ucx", false},
#endif
};

inline std::vector<std::byte> filled(std::uint64_t bytes, int with) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(with));
}

// Milliseconds since `start`, to print beside a promised time.
inline std::int64_t since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count();
}

class Survivor {
 public:
  // Pinned memory of the survivor. The pin is destroyed first.
  struct Memory {
    std::vector<std::byte> own;
    std::unique_ptr<Pin> pin;
    std::ptrdiff_t differ(int from) const {
      const base::UnseenOrder ignored;
      return static_cast<std::ptrdiff_t>(countOther(pin->bytes(), static_cast<std::byte>(from)));
    }
    void fill(int with) const {
      const base::UnseenOrder ignored;
      std::memset(pin->data(), with, pin->size());
    }
  };

  explicit Survivor(DataPath path, std::chrono::milliseconds detect = std::chrono::seconds(4),
                    std::chrono::milliseconds grace = std::chrono::milliseconds(500));

  Agent& agent() { return *agent_; }
  std::string settings(const std::string& name) const;  // of a victim
  // Starts or restarts the process `name`. Returns once its agent is ready here, and has pinned
  // "data" and "small". `more`: further settings, " faults=stop".
  std::unique_ptr<PeerProcess> start(const std::string& name = "victim",
                                     const std::string& more = "");
  Peer peer(const std::string& name = "victim");
  Memory memory(std::uint64_t bytes, const std::string& label);
  // Plans all of `local` to or from the start of the peer's memory of that label, in blocks that do
  // not merge.
  Transfer plan(OpKind kind, const Memory& local, const std::string& remote,
                std::uint64_t block = 64 << 10, TransferOptions options = {},
                const std::string& name = "victim");
  // Expects that transfers of this pair work now, both ways.
  void expectWorks(PeerProcess& victim);

  // Large enough that a stop falls into the middle of a transfer.
  static constexpr std::uint64_t kData = 32 << 20;
  static constexpr std::uint64_t kSmall = 64 << 10;
  static constexpr std::uint64_t kBlock = 64 << 10;

 private:
  DataPath data_path_;
  std::chrono::milliseconds detect_;
  std::unique_ptr<Agent> agent_;
};

}  // namespace viaduct::testing
