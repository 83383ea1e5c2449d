// The stream of frames in sealed records, for Privacy::kIntegrity and above. A record is its
// length, at most kRecordBytes of the stream, and a tag. Both classes work in CheckedCopy::room(),
// which stays in the cache. So the kernel copies to and from pinned memory, and nothing unproven is
// written there. They do no I/O on the socket. Threads: those of the channel's rail.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "backends/tcp/inbound.h"
#include "backends/tcp/outbound.h"

namespace viaduct::tcp {

class RecordWriter {
 public:
  // `encrypts`: false leaves the bytes readable, and only proves them.
  RecordWriter(base::RecordKeys& keys, bool encrypts, Buffers& buffers)
      : keys_(keys), encrypts_(encrypts), buffers_(buffers) {}

  std::span<const std::byte> unsent() const {
    return records_ ? std::span<const std::byte>(records_->bytes).subspan(begin_, end_ - begin_)
                    : std::span<const std::byte>{};
  }
  // If nothing is unsent, seals the next bytes of `from`: one frame if `one_frame`, otherwise at
  // most kRecordsAtOnce records. False: no byte could be sealed although there are some.
  bool fill(Outbound& from, bool one_frame);
  void sent(std::size_t bytes);
  void clear() { buffers_.records.give(std::move(records_)); }

 private:
  std::span<std::byte> collect(Outbound& from, bool one_frame);
  bool seal(std::span<std::byte> text);

  base::RecordKeys& keys_;
  const bool encrypts_;
  Buffers& buffers_;
  std::unique_ptr<SealedRecords> records_;
  std::size_t begin_ = 0, end_ = 0;  // the unsent bytes
};

class RecordReader {
 public:
  RecordReader(base::RecordKeys& keys, bool encrypted, Buffers& buffers)
      : keys_(keys), encrypted_(encrypted), buffers_(buffers) {}

  // The place for the next received bytes.
  std::span<std::byte> space();
  // Opens the records that are complete, and gives their bytes to `into`. Returns the peer's
  // mistake, or an empty text.
  std::string_view received(std::size_t bytes, Inbound& into);
  // Returns the buffer to the pool, unless it holds part of a record.
  void rest() {
    if (end_ == 0) clear();
  }
  void clear() { buffers_.records.give(std::move(records_)); }

 private:
  std::size_t openOne(std::span<const std::byte> at, std::size_t to, std::string_view& wrong);

  base::RecordKeys& keys_;
  const bool encrypted_;
  Buffers& buffers_;
  std::unique_ptr<SealedRecords> records_;
  std::size_t end_ = 0;  // received bytes that are not opened
};

}  // namespace viaduct::tcp
