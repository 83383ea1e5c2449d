#include "backends/tcp/records.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"

namespace viaduct::tcp {

namespace {
static_assert(kRecordsAtOnce * kRecordBytes <= base::CheckedCopy::kMostBytes);
}  // namespace

bool RecordWriter::fill(Outbound& from, bool one_frame) {
  if (records_) return true;
  const auto text = collect(from, one_frame);
  if (text.empty()) return true;
  records_ = buffers_.records.take();
  begin_ = end_ = 0;
  for (std::size_t at = 0; at < text.size(); at += kRecordBytes)
    if (!seal(text.subspan(at, std::min(kRecordBytes, text.size() - at)))) return false;
  return true;
}

// Copies the next bytes of the stream into the room. A system call copies the bytes of pinned
// memory.
std::span<std::byte> RecordWriter::collect(Outbound& from, bool one_frame) {
  constexpr std::size_t kMost = kRecordsAtOnce * kRecordBytes;
  std::size_t bytes = 0;
  while (bytes < kMost) {
    const auto pieces = from.gather();
    if (pieces.empty()) break;
    std::size_t got = std::min(pieces.front().iov_len, kMost - bytes);
    if (from.isOurs())
      std::memcpy(buffers_.copy.room().data() + bytes, pieces.front().iov_base, got);
    else
      got = buffers_.copy.collect(pieces, bytes, kMost - bytes);
    bytes += got;
    if (got == 0 && !from.faulted()) break;
    if (got > 0 && from.sent(got) && one_frame) break;
  }
  return buffers_.copy.room().first(bytes);
}

bool RecordWriter::seal(std::span<std::byte> text) {
  std::byte* const head = records_->bytes.data() + end_;
  std::byte* const body = head + kRecordHead;
  std::byte* const tag = body + text.size();
  base::storeLittle(head, static_cast<std::uint32_t>(text.size()));
  end_ += kRecordHead + text.size() + base::kTagBytes;
  if (encrypts_) return keys_.seal({head, kRecordHead}, text, body, tag);
  std::memcpy(body, text.data(), text.size());
  return keys_.seal({head, kRecordHead + text.size()}, {}, nullptr, tag);
}

void RecordWriter::sent(std::size_t bytes) {
  begin_ += bytes;
  if (begin_ == end_) clear();
}

std::span<std::byte> RecordReader::space() {
  if (!records_) records_ = buffers_.records.take();
  return std::span(records_->bytes).subspan(end_);
}

std::string_view RecordReader::received(std::size_t bytes, Inbound& into) {
  end_ += bytes;
  std::string_view wrong;
  std::size_t at = 0, opened = 0;
  for (bool more = true; more && wrong.empty();) {
    const std::span<const std::byte> have(records_->bytes.data() + at, end_ - at);
    const std::size_t text = openOne(have, opened, wrong);
    more = text > 0;
    if (more) at += kRecordHead + text + base::kTagBytes;
    opened += text;
  }
  if (const auto first = into.takeRoom(opened); !first.empty()) return first;
  std::memmove(records_->bytes.data(), records_->bytes.data() + at, end_ - at);
  end_ -= at;
  return wrong;
}

// Opens the first record into CheckedCopy::room() at `to`. Returns the number of its bytes; 0: the
// record is incomplete, or wrong.
std::size_t RecordReader::openOne(std::span<const std::byte> from, std::size_t to,
                                  std::string_view& wrong) {
  if (from.size() < kRecordHead) return 0;
  const std::size_t bytes = base::loadLittle<std::uint32_t>(from.data());
  if (bytes == 0 || bytes > kRecordBytes) {
    wrong = "a record of an impossible length: it was changed on its way, or is no record";
    return 0;
  }
  if (from.size() < kRecordHead + bytes + base::kTagBytes) return 0;
  const auto said = from.first(kRecordHead + bytes);
  const std::byte* const tag = said.data() + said.size();
  std::byte* const place = buffers_.copy.room().data() + to;
  const bool proven =
      encrypted_ ? keys_.open(said.first(kRecordHead), said.subspan(kRecordHead), place, tag)
                 : keys_.open(said, {}, nullptr, tag);
  if (!proven) {
    wrong = kNotGenuine;
    return 0;
  }
  if (!encrypted_) std::memcpy(place, said.data() + kRecordHead, bytes);
  return bytes;
}

}  // namespace viaduct::tcp
