#include "meet/embedded/frame.h"

namespace viaduct::meet::embedded {
namespace {

bool knowsType(std::uint8_t type) { return type <= static_cast<std::uint8_t>(Type::kPing); }

Status checkTypeSize(std::uint8_t /*type*/, std::size_t /*bytes*/, std::size_t fds) {
  if (fds == 0) return Ok{};
  return Error{
      .code = Code::kProtocol, .operation = "receive", .detail = "a message with file descriptors"};
}

}  // namespace

// Sets `by_digest`, so that a roster, which goes to all members, is hashed only once.
const base::FrameProtocol kMeetFrames{.magic = "VDMP",
                                      .version = kVersion,
                                      .other_end = "Viaduct meeting place or member",
                                      .knows = &knowsType,
                                      .check_size = &checkTypeSize,
                                      .by_digest = true};

PacketPtr makePacket(Type type, Bytes payload) {
  const base::Sha256Digest digest = base::payloadDigest(payload);
  return std::make_shared<Packet>(
      Packet{.type = type, .payload = std::move(payload), .digest = digest});
}

}  // namespace viaduct::meet::embedded
