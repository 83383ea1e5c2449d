// Marks: numbers that tell a peer which parts of its data are complete, without a note for each
// part. A stream is a set of marks that two agents exchange. Marks may arrive before this end opens
// its stream: Agent::openMarks(). Threads: call from any; on_change runs on the same threads as
// TransferOptions::on_end.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace viaduct {

namespace agent {
class MarkStreamImpl;
}

inline constexpr std::uint32_t kMaxMarks = 65'536;  // of one stream

// One mark of a stream. Numbers start at 0.
struct Mark {
  std::uint64_t stream = 0;
  std::uint32_t number = 0;
};

struct MarkStreamOptions {
  std::uint64_t number = 0;  // the same at both ends, and not used before in this session
  std::uint32_t marks = 0;   // the peer may send marks 0 to marks - 1
  // Runs after marks have arrived or the stream has ended, once for several changes. It must not
  // block.
  std::function<void()> on_change = {};
};

// One end of a stream. The destructor ends the stream if marks of the peer are missing.
class MarkStream {
 public:
  explicit MarkStream(std::shared_ptr<agent::MarkStreamImpl> impl);
  MarkStream(const MarkStream&) = delete;
  MarkStream& operator=(const MarkStream&) = delete;
  MarkStream(MarkStream&&) noexcept;
  MarkStream& operator=(MarkStream&&) noexcept;
  ~MarkStream();

  std::uint64_t number() const;
  // has() and count() report the peer's marks that have arrived. Both take no lock. A mark counts
  // once.
  bool has(std::uint32_t mark) const;
  std::uint32_t count() const;

  // Block until the mark, or `count` marks, have arrived. A mark that has arrived is never lost.
  // While marks are missing, both calls return the error that ended the stream (kPeerLost: the
  // session is over), or kTimeout at `until`.
  Status wait(std::uint32_t mark, Deadline until) const;
  Status waitCount(std::uint32_t count, Deadline until) const;

  // Sends a mark now, in one order with notes. It does not wait for running transfers.
  // PostOptions::mark sends one after a transfer's data.
  Status mark(std::uint32_t number) const;

  // Ends the stream at both ends, and does not block. From then on wait() and waitCount() for
  // missing marks fail with `why`, and so do posts with marks of the stream. Running transfers go
  // on.
  void end(Error why) const;
  // The error that has ended the stream; Ok: it goes on.
  Status ended() const;
  // After end(): waits until the peer has ended or closed its end as well, or is lost.
  Status over(Deadline until) const;

 private:
  std::shared_ptr<agent::MarkStreamImpl> impl_;
};

}  // namespace viaduct
