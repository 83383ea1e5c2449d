#include "base/net/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/net/checksum.h"
#include "base/printable.h"

namespace viaduct::base {
namespace {

// The layout of the header, see docs/wire.md.
constexpr std::size_t kMagicBytes = 4;
constexpr std::size_t kMajorAt = 4, kMinorAt = 5, kTypeAt = 6, kFlagsAt = 7, kLengthAt = 8,
                      kFdsAt = 12, kReservedAt = 14, kSequenceAt = 16, kCheckAt = 24;
constexpr std::size_t kCheckBytes = kFrameHeaderBytes - kCheckAt;

// The read buffer of an idle connection, and of a busy one. A larger frame gets a buffer of its
// size, which shrinks after kQuietReads small reads.
constexpr std::size_t kSmallBuffer = 4096, kBusyBuffer = std::size_t{64} << 10U;
constexpr unsigned kQuietReads = 16;

using Check = std::array<std::byte, kCheckBytes>;

Check checkOf(const std::optional<Hmac>& mac, const std::byte* header, ByteSpan head,
              ByteSpan body) {
  const ByteSpan sealed{header, kCheckAt};
  Check check{};
  if (mac) {
    const Sha256Digest digest = mac->of({sealed, head, body});
    std::memcpy(check.data(), digest.data(), check.size());
  } else {
    storeLittle(check.data(), Checksum().add(sealed).add(head).add(body).value());
  }
  return check;
}

// Always takes AES-GCM, because neither end knows yet which cipher the other end's processor
// computes fast.
Status takeKey(const FrameProtocol& protocol, AeadUse use, const Key& key, std::optional<Hmac>& mac,
               std::unique_ptr<RecordKeys>& keys) {
  if (protocol.by_digest) {
    mac.emplace(key);
    return Ok{};
  }
  VIADUCT_TRY(auto aead, makeAead(AeadKind::kAesGcm, use));
  VIADUCT_TRY(keys, RecordKeys::open(std::move(aead), key));
  return Ok{};
}

Error protocolError(std::string detail) {
  return {.code = Code::kProtocol, .operation = "receive", .detail = std::move(detail)};
}

// The first line of bytes from outside, in quotation marks: printable, and cut if it is long.
std::string quoted(ByteSpan bytes) {
  constexpr std::size_t kMost = 60;
  const std::string_view text = textOf(bytes);
  return fmt::format("\"{}\"", printable(text.substr(0, text.find_first_of("\r\n")), kMost));
}

}  // namespace

Sha256Digest payloadDigest(ByteSpan head, ByteSpan body) {
  Sha256 digest;
  digest.add(head);
  digest.add(body);
  return digest.digest();
}

Status FrameSealer::useKey(const Key& key) {
  return takeKey(protocol_, AeadUse::kSeal, key, mac_, keys_);
}

Status FrameDecoder::useKey(const Key& key) {
  return takeKey(protocol_, AeadUse::kOpen, key, mac_, keys_);
}

FrameSealer::Header FrameSealer::seal(std::uint8_t type, ByteSpan head, ByteSpan body,
                                      std::size_t fds) {
  if (!protocol_.by_digest) return sealParts(type, head.size() + body.size(), fds, head, body);
  const Sha256Digest digest = payloadDigest(head, body);
  return sealParts(type, head.size() + body.size(), fds, std::as_bytes(std::span(digest)), {});
}

FrameSealer::Header FrameSealer::sealDigest(std::uint8_t type, std::size_t bytes,
                                            const Sha256Digest& digest) {
  return sealParts(type, bytes, 0, std::as_bytes(std::span(digest)), {});
}

std::optional<FrameSealer::Header> FrameSealer::encrypt(std::uint8_t type,
                                                        std::span<std::byte> payload,
                                                        std::size_t fds) {
  Header header = headerOf(type, payload.size(), fds);
  if (!keys_->seal(ByteSpan(header).first(kCheckAt), payload, payload.data(), &header[kCheckAt]))
    return std::nullopt;
  return header;
}

FrameSealer::Header FrameSealer::headerOf(std::uint8_t type, std::size_t bytes, std::size_t fds) {
  Header header{};
  std::memcpy(header.data(), protocol_.magic.data(), kMagicBytes);
  header[kMajorAt] = std::byte{protocol_.version.major};
  header[kMinorAt] = std::byte{protocol_.version.minor};
  header[kTypeAt] = std::byte{type};
  storeLittle(&header[kLengthAt], static_cast<std::uint32_t>(bytes));
  storeLittle(&header[kFdsAt], static_cast<std::uint16_t>(fds));
  storeLittle(&header[kSequenceAt], sequence_++);
  return header;
}

FrameSealer::Header FrameSealer::sealParts(std::uint8_t type, std::size_t bytes, std::size_t fds,
                                           ByteSpan checked_head, ByteSpan checked_body) {
  Header header = headerOf(type, bytes, fds);
  const Check check = checkOf(mac_, header.data(), checked_head, checked_body);
  std::memcpy(&header[kCheckAt], check.data(), check.size());
  return header;
}

void FrameDecoder::freeBuffer() {
  if (midFrame()) return;
  buffer_.reset();
  capacity_ = begin_ = end_ = 0;
}

void FrameDecoder::resize(std::size_t capacity) {
  auto larger = std::make_unique_for_overwrite<std::byte[]>(capacity);
  if (end_ > begin_) std::memcpy(larger.get(), &buffer_[begin_], end_ - begin_);
  buffer_ = std::move(larger);
  capacity_ = capacity;
  end_ -= begin_;
  begin_ = 0;
}

std::span<std::byte> FrameDecoder::space() {
  makeRoom();
  return {&buffer_[end_], capacity_ - end_};
}

void FrameDecoder::makeRoom() {
  const std::size_t have = end_ - begin_;
  const std::size_t need = std::max(wanted_, have + 1);
  if (have == 0) {
    begin_ = end_ = 0;
    if (capacity_ > kSmallBuffer && small_reads_ >= kQuietReads && need <= kSmallBuffer)
      resize(kSmallBuffer);
  }
  if (need > capacity_)
    resize(std::max(need, kSmallBuffer));
  else if (crowded_ && capacity_ < kBusyBuffer)
    resize(std::min(capacity_ * 2, kBusyBuffer));
  else if (need > capacity_ - begin_) {
    std::memmove(buffer_.get(), &buffer_[begin_], have);
    begin_ = 0;
    end_ = have;
  }
  crowded_ = false;
}

void FrameDecoder::wrote(std::size_t bytes) {
  end_ += bytes;
  crowded_ = end_ == capacity_;
  small_reads_ = bytes < kSmallBuffer ? small_reads_ + 1 : 0;
}

FrameDecoder::Next FrameDecoder::fail(Error why) {
  broken_ = true;
  error_ = std::move(why);
  return Next::kBroken;
}

FrameDecoder::Next FrameDecoder::next(Frame& out) {
  if (broken_) return Next::kBroken;
  const ByteSpan have{buffer_.get() + begin_, end_ - begin_};
  if (!checkStart(have)) return Next::kBroken;
  if (have.size() < kFrameHeaderBytes) return Next::kMore;
  const std::byte* const header = have.data();
  if (!checkHeader(header)) return Next::kBroken;
  const std::size_t length = loadLittle<std::uint32_t>(header + kLengthAt);
  wanted_ = kFrameHeaderBytes + length;
  if (have.size() < wanted_) return Next::kMore;

  if (!isGenuine({buffer_.get() + begin_, wanted_}))
    return fail(protocolError(mac_ || keys_
                                  ? "a frame's authentication code is wrong: the frame was "
                                    "changed on its way, or is not the peer's"
                                  : "a frame's checksum is wrong"));
  out = {.type = std::to_integer<std::uint8_t>(header[kTypeAt]),
         .minor = std::to_integer<std::uint8_t>(header[kMinorAt]),
         .fds = loadLittle<std::uint16_t>(header + kFdsAt),
         .payload = have.subspan(kFrameHeaderBytes, length)};
  out.skip = !protocol_.knows(out.type);
  if (out.skip && out.minor <= protocol_.version.minor)
    return fail(protocolError(fmt::format("a frame of the unknown type {}", out.type)));
  begin_ += wanted_;
  wanted_ = kFrameHeaderBytes;
  ++sequence_;
  return Next::kFrame;
}

// Checks the check field of a frame. Decrypts an encrypted payload in place.
bool FrameDecoder::isGenuine(std::span<std::byte> frame) {
  const std::span<std::byte> payload = frame.subspan(kFrameHeaderBytes);
  if (keys_) return keys_->open(frame.first(kCheckAt), payload, payload.data(), &frame[kCheckAt]);
  const Sha256Digest digest = protocol_.by_digest ? payloadDigest(payload) : Sha256Digest{};
  const Check check =
      checkOf(mac_, frame.data(),
              protocol_.by_digest ? std::as_bytes(std::span(digest)) : ByteSpan(payload), {});
  return sameBytes(check, frame.subspan(kCheckAt, kCheckBytes));
}

// Checks magic and major version as soon as they arrive, because the rest of another version's
// header may differ.
bool FrameDecoder::checkStart(ByteSpan have) {
  if (!protocol_.magic.starts_with(textOf(have.first(std::min(have.size(), kMagicBytes))))) {
    Error why = protocolError(
        fmt::format("the other end is no {}; it sent {}", protocol_.other_end, quoted(have)));
    why.cause = "the port belongs to another program, or another program called ours";
    why.remedy = "check the address and port";
    fail(std::move(why));
    return false;
  }
  const auto [major, minor] = protocol_.version;
  if (have.size() <= kMinorAt || have[kMajorAt] == std::byte{major}) return true;
  Error why{
      .code = Code::kUnsupported,
      .operation = "receive",
      .detail = fmt::format("the other end speaks version {}.{} of the protocol, this end {}.{}",
                            std::to_integer<unsigned>(have[kMajorAt]),
                            std::to_integer<unsigned>(have[kMinorAt]), major, minor)};
  why.cause = "the two ends run incompatible releases of Viaduct";
  why.remedy = "install the same release at both ends";
  fail(std::move(why));
  return false;
}

// Checks the limits of the frame before its payload is kept.
bool FrameDecoder::checkHeader(const std::byte* header) {
  const bool newer = header[kMinorAt] > std::byte{protocol_.version.minor};
  const auto type = std::to_integer<std::uint8_t>(header[kTypeAt]);
  const auto length = loadLittle<std::uint32_t>(header + kLengthAt);
  const auto fds = loadLittle<std::uint16_t>(header + kFdsAt);
  const auto sequence = loadLittle<std::uint64_t>(header + kSequenceAt);
  if (length > limit_)
    fail(protocolError(fmt::format("a frame of {} bytes exceeds the limit of {}", length, limit_)));
  else if (fds > kMaxFrameFds)
    fail(protocolError("a frame with too many file descriptors"));
  else if (const Status fits =
               protocol_.knows(type) ? protocol_.check_size(type, length, fds) : Status(Ok{});
           !fits)
    fail(fits.error());
  else if (sequence != sequence_)
    fail(protocolError(fmt::format("frame {} instead of {}: replayed, lost or out of order",
                                   sequence, sequence_)));
  else if (!newer && (header[kFlagsAt] != std::byte{0} ||
                      loadLittle<std::uint16_t>(header + kReservedAt) != 0))
    fail(protocolError("a frame with flags that this version does not know"));
  return !broken_;
}

}  // namespace viaduct::base
