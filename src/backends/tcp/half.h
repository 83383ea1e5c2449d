// One end of the protocol without a socket, for tests and fuzzing: bytes go in and come out as
// many at a time as one likes. Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstring>
#include <list>
#include <vector>

#include "backends/tcp/inbound.h"
#include "backends/tcp/outbound.h"

namespace viaduct::tcp {

class Half final : public JobOwner {
 public:
  Half()
      : initiator_(pins, remote),
        responder_(pins, buffers_),
        outbound_(initiator_, responder_, buffers_),
        inbound_(pins, initiator_, responder_, buffers_) {}

  void report(Job&) override {}

  Job& post(OpKind kind, std::span<const core::Op> ops) {
    jobs_.emplace_back();
    Job& job = jobs_.back();
    job.work = {.kind = kind, .ops = ops};
    job.owner = this;
    initiator_.add(job);
    return job;
  }
  void stop(Job& job, Code code) { initiator_.stop(job, {.code = code}); }
  // What a backend does when a pin is withdrawn.
  void withdraw(std::uint32_t slot) {
    pins.drop(slot);
    inbound_.dropSlot(slot);
    outbound_.dropSlot(slot);
    for (Job& job : jobs_)
      for (const core::Op& op : job.work.ops)
        if (op.local_pin == slot) stop(job, Code::kDenied);
  }

  // At most `limit` bytes of what it has to send.
  std::vector<std::byte> take(std::size_t limit) {
    std::vector<std::byte> out;
    while (out.size() < limit) {
      std::size_t took = 0;
      for (const iovec& piece : outbound_.gather()) {
        const std::size_t part = std::min(piece.iov_len, limit - out.size());
        const auto* from = static_cast<const std::byte*>(piece.iov_base);
        out.insert(out.end(), from, from + part);
        took += part;
      }
      if (took == 0) break;
      outbound_.sent(took);
    }
    return out;
  }
  // What it says is wrong with them; empty: nothing.
  std::string_view give(std::span<const std::byte> bytes) {
    std::string_view wrong;
    while (!bytes.empty() && wrong.empty()) {
      std::size_t put = 0;
      for (const iovec& piece : inbound_.scatter()) {
        const std::size_t part = std::min(piece.iov_len, bytes.size());
        std::memcpy(piece.iov_base, bytes.data(), part);
        bytes = bytes.subspan(part);
        put += part;
      }
      wrong = inbound_.received(put);
    }
    inbound_.rest();
    return wrong;
  }

  PinTable pins;
  RemotePins remote;

 private:
  Buffers buffers_;
  Initiator initiator_;
  Responder responder_;
  Outbound outbound_;
  Inbound inbound_;
  std::list<Job> jobs_;
};

}  // namespace viaduct::tcp
