// Any bytes in any pieces, as a session and as a meeting place: the decoder stays within its memory
// limit, finds the same frames for all pieces, and gives no more frames after an error. Inputs are
// also tried with correct checksums, as an owner of the key could send, so that the parser goes
// further.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "agent/session/frame.h"
#include "base/bytes.h"
#include "base/net/checksum.h"
#include "base/net/frame.h"
#include "fuzz/samples.h"
#include "meet/embedded/frame.h"

namespace {

using namespace viaduct::base;
using viaduct::agent::kMaxFramePayload, viaduct::agent::kMaxUnprovenPayload,
    viaduct::agent::kSessionFrames, viaduct::meet::embedded::kMeetFrames;
using Next = FrameDecoder::Next;

constexpr std::size_t kSmallest = 4096;

struct Found {
  std::vector<Bytes> payloads;
  Next last = Next::kMore;
};

Found decode(const FrameProtocol& protocol, ByteSpan bytes, std::size_t limit, std::size_t piece) {
  FrameDecoder decoder(protocol, limit);
  Found found;
  while (!bytes.empty() && found.last != Next::kBroken) {
    const auto space = decoder.space();
    if (space.empty()) std::abort();
    if (decoder.capacity() >
        std::max({limit + kFrameHeaderBytes, kSmallest, std::size_t{1} << 16U}))
      std::abort();
    const std::size_t n = std::min({piece, bytes.size(), space.size()});
    std::memcpy(space.data(), bytes.data(), n);
    decoder.wrote(n);
    bytes = bytes.subspan(n);
    Frame frame;
    while ((found.last = decoder.next(frame)) == Next::kFrame) {
      if (frame.payload.size() > limit || frame.fds > kMaxFrameFds) std::abort();
      found.payloads.emplace_back(frame.payload.begin(), frame.payload.end());
    }
    if (found.last == Next::kBroken && decoder.next(frame) != Next::kBroken) std::abort();
  }
  return found;
}

// Gives every frame its number and a correct checksum, as far as the lengths allow.
Bytes madeRight(const FrameProtocol& protocol, ByteSpan bytes) {
  Bytes out(bytes.begin(), bytes.end());
  std::size_t at = 0;
  for (std::uint64_t sequence = 0; out.size() - at >= kFrameHeaderBytes; ++sequence) {
    const std::size_t length = loadLittle<std::uint32_t>(&out[at + 8]);
    if (length > out.size() - at - kFrameHeaderBytes) break;
    storeLittle(&out[at + 16], sequence);
    std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(at) + 24, 16, std::byte{0});
    const ByteSpan head = ByteSpan(out).subspan(at, 24);
    const ByteSpan payload = ByteSpan(out).subspan(at + kFrameHeaderBytes, length);
    const Sha256Digest digest = payloadDigest(payload);
    const ByteSpan checked = protocol.by_digest ? std::as_bytes(std::span(digest)) : payload;
    storeLittle(&out[at + 24], Checksum().add(head).add(checked).value());
    at += kFrameHeaderBytes + length;
  }
  return out;
}

void check(const FrameProtocol& protocol, ByteSpan bytes, std::size_t piece) {
  for (const std::size_t limit : {kMaxUnprovenPayload, kMaxFramePayload}) {
    const Found whole = decode(protocol, bytes, limit, bytes.size());
    const Found pieces = decode(protocol, bytes, limit, piece);
    if (whole.payloads != pieces.payloads || whole.last != pieces.last) std::abort();
  }
}

}  // namespace

namespace viaduct::fuzz {
// Frames of the type 6: the session's messages of backends, which may have descriptors.
std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const base::FrameProtocol* protocol : {&kSessionFrames, &kMeetFrames}) {
    base::Writer stream;
    stream.put(std::uint8_t{7});
    base::FrameSealer sealer(*protocol);
    for (const std::size_t size : {0U, 3U, 40U, 100U}) {
      const base::Bytes payload(size, std::byte{0x41});
      const std::size_t fds = protocol == &kSessionFrames ? size % 3 : 0;
      stream.raw(sealer.seal(6, payload, {}, fds)).raw(payload);
    }
    out.push_back(sampleOf(stream.bytes()));
  }
  return out;
}
}  // namespace viaduct::fuzz

// The first byte sets the size of the pieces.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  for (const FrameProtocol* protocol : {&kSessionFrames, &kMeetFrames}) {
    check(*protocol, bytes, 1U + data[0]);
    check(*protocol, madeRight(*protocol, bytes), 1U + data[0]);
  }
  return 0;
}
