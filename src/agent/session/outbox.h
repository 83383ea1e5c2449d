// The bytes of a socket that it has not taken yet. Threads: one at a time.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/net/crypto.h"

namespace viaduct::agent {

using base::ByteSpan;

class Outbox {
 public:
  // Sends what `socket` takes at once, keeps the rest. The error is the socket's: what was to be
  // sent after it never will be.
  Status push(int socket, ByteSpan header, ByteSpan head, ByteSpan body, std::vector<base::Fd> fds);
  Status flush(int socket);
  std::size_t unsent() const { return bytes_.size() - begin_; }

 private:
  // They go with the byte at `at` of the stream.
  struct Attached {
    std::uint64_t at;
    std::vector<base::Fd> fds;
  };
  void keep(ByteSpan bytes);

  base::Bytes bytes_;
  std::size_t begin_ = 0;
  std::uint64_t position_ = 0;  // in the stream, of bytes_[begin_]
  std::deque<Attached> attached_;
};

}  // namespace viaduct::agent
