// Whole messages between the processes of one measurement, over a Unix socket pair. Threads: one
// at a time per end.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <cstddef>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/stop.h"

namespace viaduct::measure {

using base::StopFlag;

class Channel {
 public:
  static constexpr std::size_t kMaxMessage = std::size_t{128} * 1024;

  static Result<std::pair<Channel, Channel>> pair();

  Status send(std::span<const std::byte> message);
  // kPeerLost when the other end is closed, kCancelled when `stop` is set, kTimeout at `until`.
  Result<base::Bytes> receive(Deadline until, const StopFlag& stop);
  void close() { fd_.reset(); }

 private:
  explicit Channel(base::Fd fd) : fd_(std::move(fd)) {}
  Status waitReadable(Deadline until, const StopFlag& stop) const;
  base::Fd fd_;
};

}  // namespace viaduct::measure
