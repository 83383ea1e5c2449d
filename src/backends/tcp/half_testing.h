// One end of the protocol without a socket, for tests and fuzzing. A test moves any number of bytes
// at a time. Threads: one at a time.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "backends/tcp/inbound.h"
#include "backends/tcp/outbound.h"
#include "backends/tcp/protection.h"
#include "backends/tcp/records.h"

namespace viaduct::tcp {

class Half : private move::Carrier {
 public:
  explicit Half(core::PinRights theirs = core::PinRights(), const Protection& protection = {},
                SocketKeys keys = {})
      : rights(std::move(theirs)),
        keys_(std::move(keys)),
        initiator_(pins, remote),
        responder_(pins, buffers_, rights),
        outbound_(initiator_, responder_, buffers_,
                  protection.hasRecords() ? nullptr : keys_.sealing.get()),
        inbound_(initiator_, responder_, buffers_,
                 protection.hasRecords() ? nullptr : keys_.opening.get()) {
    if (protection.hasRecords()) {
      const bool encrypted = protection.level == Privacy::kEncrypted;
      writer_.emplace(*keys_.sealing, encrypted, buffers_);
      reader_.emplace(*keys_.opening, encrypted, buffers_);
    }
  }
  ~Half() {
    inbound_.clear();
    outbound_.clear();
    if (writer_) writer_->clear();
    if (reader_) reader_->clear();
  }
  Half(const Half&) = delete;
  Half& operator=(const Half&) = delete;

  move::Job& post(OpKind kind, std::span<const core::Op> ops) {
    move::Job& job = table_.add({.kind = kind, .ops = ops}, this);
    initiator_.add(job);
    return job;
  }
  void stop(move::Job& job, Code code) { table_.stop(job, {.code = code}); }
  // Withdraws a pin as the backend does.
  void withdraw(std::uint32_t slot) {
    pins.drop(slot);
    inbound_.dropSlot(slot);
    outbound_.dropSlot(slot);
    table_.dropSlot(slot);
  }

  // Takes at most `limit` bytes that this end has to send. The kernel reads them, as with a socket,
  // so unreadable memory gives EFAULT.
  std::vector<std::byte> take(std::size_t limit) {
    if (writer_) return takeRecords(limit);
    std::vector<std::byte> out;
    while (out.size() < limit) {
      std::size_t took = 0;
      bool faulted = false;
      for (const iovec& piece : outbound_.gather()) {
        const std::size_t part = std::min(piece.iov_len, limit - out.size());
        faulted =
            ::pwrite(shared_.sent.fd(), piece.iov_base, part, 0) != static_cast<ssize_t>(part);
        if (faulted) break;
        out.insert(out.end(), shared_.sent.data(), shared_.sent.data() + part);
        took += part;
      }
      if (took > 0)
        outbound_.sent(took);
      else if (!faulted || !outbound_.faulted())
        break;
    }
    return out;
  }
  // Gives received bytes to this end. Returns the mistake that it finds, or an empty text. The
  // kernel writes them, as with a socket, so unwritable memory gives EFAULT.
  std::string_view give(std::span<const std::byte> bytes) {
    if (reader_) return giveRecords(bytes);
    std::string_view wrong;
    while (!bytes.empty() && wrong.empty()) {
      std::size_t put = 0;
      bool faulted = false;
      for (const iovec& piece : inbound_.scatter()) {
        const std::size_t part = std::min(piece.iov_len, bytes.size());
        faulted = !write(static_cast<std::byte*>(piece.iov_base), bytes.first(part));
        if (faulted) break;
        bytes = bytes.subspan(part);
        put += part;
      }
      if (put > 0)
        wrong = inbound_.received(put);
      else if (!faulted || !inbound_.faulted())
        return "nothing could be received";
    }
    inbound_.rest();
    return wrong;
  }

  TargetPins pins;
  RemotePins remote;
  core::PinRights rights;  // the other end's

 private:
  // All ends of a thread share this state, as the sockets of a rail share their buffers.
  struct Shared {
    Shared() {
      if (auto opened = base::CheckedCopy::open()) buffers.copy = *std::move(opened);
      if (auto made = base::SharedMemory::allocate(kMaxFrameBytes)) sent = *std::move(made);
    }
    Buffers buffers;
    base::SharedMemory sent;
  };
  static Shared& shared() {
    thread_local Shared all;
    return all;
  }

  std::vector<std::byte> takeRecords(std::size_t limit) {
    std::vector<std::byte> out;
    while (out.size() < limit && writer_->fill(outbound_, false)) {
      const auto part =
          writer_->unsent().first(std::min(writer_->unsent().size(), limit - out.size()));
      if (part.empty()) break;
      out.insert(out.end(), part.begin(), part.end());
      writer_->sent(part.size());
    }
    return out;
  }
  std::string_view giveRecords(std::span<const std::byte> bytes) {
    std::string_view wrong;
    while (!bytes.empty() && wrong.empty()) {
      const auto into = reader_->space();
      const std::size_t part = std::min(into.size(), bytes.size());
      std::copy_n(bytes.begin(), part, into.begin());
      wrong = reader_->received(part, inbound_);
      bytes = bytes.subspan(part);
    }
    return wrong;
  }
  void stop(move::Job& job) override { initiator_.stop(job); }
  bool write(std::byte* to, std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const iovec part{to, std::min(bytes.size(), base::CheckedCopy::kMostBytes)};
      if (!buffers_.copy.copy(std::span(&part, 1), bytes.data())) return false;
      to += part.iov_len;
      bytes = bytes.subspan(part.iov_len);
    }
    return true;
  }

  Shared& shared_ = shared();
  Buffers& buffers_ = shared_.buffers;
  SocketKeys keys_;
  Initiator initiator_;
  Responder responder_;
  Outbound outbound_;
  Inbound inbound_;
  std::optional<RecordWriter> writer_;
  std::optional<RecordReader> reader_;
  move::JobTable table_;
};

}  // namespace viaduct::tcp
