#include "diag/acs.h"

#include <array>
#include <cstddef>

namespace viaduct::diag {
namespace {

constexpr std::size_t kConfigBytes = 4096;
constexpr std::size_t kFirstExtended = 0x100;
constexpr std::uint32_t kAcsCapability = 0x000d;
constexpr std::uint16_t kReqRedir = 0x04, kCmpltRedir = 0x08;

// Reads a number of PCI config space, which is little-endian.
std::uint32_t littleEndian(std::string_view bytes) {
  std::uint32_t out = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    out = (out << 8U) | static_cast<unsigned char>(bytes[i]);
  return out;
}

}  // namespace

bool AcsControl::redirects() const {
  return state == State::kSeen && (word & (kReqRedir | kCmpltRedir)) != 0;
}

std::string AcsControl::text() const {
  constexpr std::array<const char*, 7> kNames{
      "SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans"};
  std::string out;
  for (std::size_t bit = 0; bit < kNames.size(); ++bit) {
    out += bit == 0 ? "" : " ";
    out += kNames[bit];
    out += ((word >> bit) & 1U) != 0 ? '+' : '-';
  }
  return out;
}

AcsControl acsOf(std::string_view config) {
  using State = AcsControl::State;
  std::size_t at = kFirstExtended;
  // A damaged list may form a loop, so the steps are limited to the capabilities that have room.
  for (std::size_t left = (kConfigBytes - kFirstExtended) / 8; left > 0; --left) {
    if (at + 8 > config.size()) break;
    const std::uint32_t header = littleEndian(config.substr(at, 4));
    if (header == 0xffffffffU) break;  // the device does not answer
    if ((header & 0xffffU) == kAcsCapability)
      return {State::kSeen, static_cast<std::uint16_t>(littleEndian(config.substr(at + 6, 2)))};
    at = (header >> 20U) & ~std::size_t{3};
    if (at < kFirstExtended) return {State::kNone};  // the list ends here
  }
  return {State::kHidden};
}

AcsControl acsControl(const Tree& tree, const std::string& folder) {
  return acsOf(tree.readBytes(folder + "/config", kConfigBytes).text);
}

}  // namespace viaduct::diag
