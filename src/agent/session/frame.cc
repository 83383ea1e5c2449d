#include "agent/session/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "agent/session/frame_rules.h"
#include "base/bytes.h"
#include "base/net/checksum.h"

namespace viaduct::agent {
namespace {

// The layout of the header, see docs/wire.md.
constexpr std::array kMagic{std::byte{'V'}, std::byte{'D'}, std::byte{'C'}, std::byte{'T'}};
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
    const base::Sha256Digest digest = mac->of({sealed, head, body});
    std::memcpy(check.data(), digest.data(), check.size());
  } else {
    base::storeLittle(check.data(), base::Checksum().add(sealed).add(head).add(body).value());
  }
  return check;
}

Error protocolError(std::string detail) {
  return {.code = Code::kProtocol, .operation = "receive", .detail = std::move(detail)};
}

}  // namespace

FrameSealer::Header FrameSealer::seal(FrameType type, ByteSpan head, ByteSpan body,
                                      std::size_t fds) {
  Header header{};
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  header[kMajorAt] = std::byte{kWireMajor};
  header[kMinorAt] = std::byte{kWireMinor};
  header[kTypeAt] = static_cast<std::byte>(type);
  base::storeLittle(&header[kLengthAt], static_cast<std::uint32_t>(head.size() + body.size()));
  base::storeLittle(&header[kFdsAt], static_cast<std::uint16_t>(fds));
  base::storeLittle(&header[kSequenceAt], sequence_++);
  const Check check = checkOf(mac_, header.data(), head, body);
  std::memcpy(&header[kCheckAt], check.data(), check.size());
  return header;
}

FrameDecoder::FrameDecoder(std::size_t limit) : limit_(limit) { resize(kSmallBuffer); }

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
    resize(need);
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
  const ByteSpan have{&buffer_[begin_], end_ - begin_};
  if (!checkStart(have)) return Next::kBroken;
  if (have.size() < kFrameHeaderBytes) return Next::kMore;
  const std::byte* const header = have.data();
  if (!checkHeader(header)) return Next::kBroken;
  const std::size_t length = base::loadLittle<std::uint32_t>(header + kLengthAt);
  wanted_ = kFrameHeaderBytes + length;
  if (have.size() < wanted_) return Next::kMore;

  const ByteSpan payload = have.subspan(kFrameHeaderBytes, length);
  const Check check = checkOf(mac_, header, payload, {});
  if (!base::sameBytes(check, have.subspan(kCheckAt, kCheckBytes)))
    return fail(protocolError(mac_ ? "a frame's authentication code is wrong: the frame was "
                                     "changed on its way, or is not the peer's"
                                   : "a frame's checksum is wrong"));
  out = {.type = static_cast<FrameType>(header[kTypeAt]),
         .minor = std::to_integer<std::uint8_t>(header[kMinorAt]),
         .fds = base::loadLittle<std::uint16_t>(header + kFdsAt),
         .payload = payload};
  out.skip = !isKnown(out.type);
  if (out.skip && out.minor <= kWireMinor)
    return fail(protocolError(
        fmt::format("a frame of the unknown type {}", static_cast<unsigned>(out.type))));
  begin_ += wanted_;
  wanted_ = kFrameHeaderBytes;
  ++sequence_;
  return Next::kFrame;
}

// Checks magic and major version as soon as they arrive, because the rest of another version's
// header may differ.
bool FrameDecoder::checkStart(ByteSpan have) {
  const std::size_t magic = std::min(have.size(), kMagic.size());
  if (!std::equal(have.begin(), have.begin() + static_cast<std::ptrdiff_t>(magic),
                  kMagic.begin())) {
    Error why = protocolError("the received bytes are not a Viaduct session");
    why.cause = "the port belongs to another program, or another program called ours";
    why.remedy = "check the address and port";
    fail(std::move(why));
    return false;
  }
  if (have.size() <= kMinorAt || have[kMajorAt] == std::byte{kWireMajor}) return true;
  Error why{.code = Code::kUnsupported,
            .operation = "receive",
            .detail = fmt::format(
                "the peer speaks version {}.{} of the session protocol, this agent speaks {}.{}",
                std::to_integer<unsigned>(have[kMajorAt]),
                std::to_integer<unsigned>(have[kMinorAt]), kWireMajor, kWireMinor)};
  why.cause = "the two ends run incompatible releases of Viaduct";
  why.remedy = "install the same release at both ends";
  fail(std::move(why));
  return false;
}

// Checks the limits of the frame before its payload is kept.
bool FrameDecoder::checkHeader(const std::byte* header) {
  const bool newer = header[kMinorAt] > std::byte{kWireMinor};
  const FrameRule* const rule = ruleOf(static_cast<FrameType>(header[kTypeAt]));
  const auto length = base::loadLittle<std::uint32_t>(header + kLengthAt);
  const auto fds = base::loadLittle<std::uint16_t>(header + kFdsAt);
  const auto sequence = base::loadLittle<std::uint64_t>(header + kSequenceAt);
  if (length > limit_)
    fail(protocolError(fmt::format("a frame of {} bytes exceeds the limit of {}", length, limit_)));
  else if (fds > kMaxFrameFds)
    fail(protocolError("a frame with too many file descriptors"));
  else if (const Status fits = rule == nullptr ? Status(Ok{}) : checkSize(*rule, length, fds);
           !fits)
    fail(fits.error());
  else if (sequence != sequence_)
    fail(protocolError(fmt::format("frame {} instead of {}: replayed, lost or out of order",
                                   sequence, sequence_)));
  else if (!newer && (header[kFlagsAt] != std::byte{0} ||
                      base::loadLittle<std::uint16_t>(header + kReservedAt) != 0))
    fail(protocolError("a frame with flags that this version does not know"));
  return !broken_;
}

}  // namespace viaduct::agent
