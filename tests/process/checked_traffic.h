// Copies and notes between this process and one peer without a pause. Checks every promise that one
// end can check. Two agents do this to each other while the test stops and kills their processes.
// Threads: take() by one; the rest by any.
#pragma once

#include <viaduct/viaduct.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/shared_memory.h"

namespace viaduct::testing {

// The grace of all agents in a storm.
inline constexpr auto kStormGrace = std::chrono::milliseconds(100);

// Checks that
//  - a buffer is this end's own once its transfer has ended, however it ended;
//  - released memory is this end's own once release() or settled() has said so;
//  - reads return what was written, and so does memory when the note behind the write arrives;
//  - notes come once and in order, and only the end of a session loses any.
class CheckedTraffic {
 public:
  using Violated = std::function<void(const std::string&)>;
  // `heap`: uses private memory of the process instead of files that peers may map.
  CheckedTraffic(Agent& agent, std::string peer, bool heap, std::uint64_t seed, Violated violated);
  CheckedTraffic(const CheckedTraffic&) = delete;
  CheckedTraffic& operator=(const CheckedTraffic&) = delete;
  ~CheckedTraffic() { stop(); }

  void take(const Note& note);  // from that peer
  // Ends the threads and checks all memory a last time.
  void stop();

  std::uint64_t verified() const { return verified_; }  // contents that were checked and right
  std::string counts() const;

 private:
  // Pinned memory, and the value of all its bytes while it is this end's own.
  struct Memory {
    Memory() = default;
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory();
    base::SharedMemory file = {};  // empty: private memory
    std::span<std::byte> own = {};
    std::optional<Pin> pin = {};
    std::byte mark = {};
    std::span<std::byte> bytes() const { return pin->bytes(); }
  };
  // The blocks of both sides of a transfer, as offsets from the start of a memory.
  struct Part {
    std::uint64_t offset = 0, block = 0, count = 0;
    std::uint64_t bytes() const { return block * count; }
  };
  struct How {
    std::uint64_t remote_offset = 0;
    std::string note = {};
    Duration again = {};  // posts again and again for that long
  };
  struct Heard {  // from one process of the peer
    std::uint64_t note = 0, data = 0, gaps = 0, first_epoch = 0;
  };

  std::unique_ptr<Memory> memory(const std::string& label);
  std::string label(const std::string& what);
  void seal(Memory& memory);
  void inspect(const Memory& memory, const char* whose);
  Memory& nextBuffer();
  Part anyPart(std::uint64_t within);

  void copyUntilStopped();
  void copyOverAndOver(const Peer& peer);
  void writeAndReadBack(const Peer& peer);
  void writeWithNote(const Peer& peer);
  void sendNotes(const Peer& peer);
  bool move(OpKind kind, const Peer& peer, const Memory& local, const Part& here,
            const PinInfo& remote, const How& how);
  void releaseUntilStopped();
  void becomesOurs(Memory& memory);
  bool areSettled(std::string names) const;
  void takeData(const Peer& peer, const std::vector<std::string>& words, Heard& heard);
  void takeNumber(const Peer& peer, std::uint64_t number, std::uint64_t sent_in, Heard& heard);

  Agent& agent_;
  // `instance_` identifies one run of a process; pids may repeat in a long storm.
  const std::string peer_, instance_;
  const bool heap_;
  const Violated violated_;
  base::Random random_;
  std::vector<std::unique_ptr<Memory>> buffers_;
  std::size_t last_buffer_ = 0;
  std::unique_ptr<Memory> inbox_, shelf_, yard_;  // the peer writes here
  std::deque<std::unique_ptr<Memory>> released_;  // the peer must not write here any more
  std::atomic<std::uint64_t> patterns_ = 0, labels_ = 0;
  std::uint64_t notes_sent_ = 0;
  std::map<std::string, Heard> heard_;  // by the sending process

  std::mutex mutex_;
  std::condition_variable acknowledged_;
  std::uint64_t acknowledged_data_ = 0;  // confirmed by the peer; guarded by the mutex

  std::atomic<bool> stop_ = false;
  std::atomic<std::uint64_t> verified_ = 0, done_ = 0, failed_ = 0, notes_ = 0, releases_ = 0,
                             unsettled_ = 0;
  std::thread copies_, releases_thread_;
};

}  // namespace viaduct::testing
