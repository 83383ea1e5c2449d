// The floor of protected data over tcp: one plain socket that carries records, and no agents.
// Threads: one per end.
#pragma once

#include <memory>
#include <vector>

#include "base/checked_copy.h"
#include "base/net/aead.h"
#include "harness/processes.h"
#include "tcp_floor_bare.h"

namespace viaduct::bench {

// Moves the same blocks to another process, again and again. Each record of 16 KiB is copied by the
// kernel out of memory that may be unmapped, sealed, sent, opened, and copied to its place by the
// kernel. No step can be left out, because no byte may be written to its place before its tag is
// verified.
class BareRecords {
 public:
  BareRecords(std::size_t block_bytes, std::size_t count, bool encrypts);
  // Sends all blocks, and waits for one acknowledgement.
  void write();

 private:
  struct End {
    explicit End(base::Fd socket, const BareRecords& of, base::AeadUse use);
    bool move(bool sends);
    void seal(std::size_t bytes);
    void open(std::size_t bytes);
    bool transport(bool sends, std::size_t bytes);

    const base::Fd socket;
    const bool encrypts;
    const base::CheckedCopy copy;
    const std::unique_ptr<base::Aead> aead;
    std::vector<iovec> blocks;
    std::vector<std::byte> records;
  };

  const std::size_t block_bytes_, count_;
  const bool encrypts_;
  BarePair sockets_;
  Child process_;
  End end_;
};

}  // namespace viaduct::bench
