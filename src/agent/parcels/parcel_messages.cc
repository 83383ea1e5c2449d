#include "agent/parcels/parcel_messages.h"

namespace viaduct::agent {
namespace {

// Reads the message of the kind with this number.
template <std::size_t kKind = 0>
Result<ParcelMessage> read(base::Reader& in, std::size_t kind) {
  if constexpr (kKind == std::variant_size_v<ParcelMessage>) {
    return Error{.code = Code::kProtocol,
                 .operation = "decode",
                 .detail = "parcel: a message of no known kind"};
  } else {
    if (kind != kKind) return read<kKind + 1>(in, kind);
    std::variant_alternative_t<kKind, ParcelMessage> out;
    base::Fields::get(in, out);
    if (in.finished()) return ParcelMessage(std::move(out));
    return Error{.code = Code::kProtocol,
                 .operation = "decode",
                 .detail = std::string("parcel: ").append(in.fault())};
  }
}

}  // namespace

base::Bytes encodeParcel(const ParcelMessage& message) {
  constexpr std::size_t kUsual = 512;  // bytes of a message with the ticket of a short part
  base::Bytes out;
  out.reserve(kUsual);
  base::append(out, static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& fields) { base::append(out, fields); }, message);
  return out;
}

Result<ParcelMessage> decodeParcel(std::span<const std::byte> payload) {
  base::Reader in(payload);
  const auto kind = in.get<std::uint8_t>();
  return read(in, kind);
}

}  // namespace viaduct::agent
