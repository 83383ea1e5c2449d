#include "backends/local/local_message.h"

#include <optional>

namespace viaduct::local {
namespace {

constexpr std::uint8_t kVersion = 1;
enum class Type : std::uint8_t { kHello = 1, kFileOffer, kFileGone };

struct Encoder {
  base::Writer& out;
  void operator()(const LocalHello& hello) const {
    head(Type::kHello);
    out.raw(std::as_bytes(std::span(hello.door)));
    out.put(hello.probe_address).put(hello.scratch_address);
    out.raw(std::as_bytes(std::span(hello.probe)));
  }
  void operator()(const FileOffer& offer) const {
    head(Type::kFileOffer);
    out.put(offer.file).put(offer.bytes);
  }
  void operator()(const FileGone& gone) const {
    head(Type::kFileGone);
    out.put(gone.file);
  }
  void head(Type type) const { out.put(kVersion).put(static_cast<std::uint8_t>(type)); }
};

std::optional<LocalMessage> decodeBody(Type type, base::Reader& in) {
  switch (type) {
    case Type::kHello: {
      LocalHello hello;
      hello.door = in.array<16>();
      hello.probe_address = in.get<std::uint64_t>();
      hello.scratch_address = in.get<std::uint64_t>();
      hello.probe = in.array<16>();
      return hello;
    }
    case Type::kFileOffer: {
      FileOffer offer;
      offer.file = in.get<std::uint32_t>();
      offer.bytes = in.get<std::uint64_t>();
      return offer;
    }
    case Type::kFileGone:
      return FileGone{in.get<std::uint32_t>()};
  }
  return std::nullopt;
}

Error malformed(const char* what) {
  return {.code = Code::kProtocol, .operation = "local message", .detail = what};
}

}  // namespace

base::Bytes encode(const LocalMessage& message) {
  base::Writer out;
  std::visit(Encoder{out}, message);
  return out.take();
}

Result<LocalMessage> decode(std::span<const std::byte> bytes) {
  base::Reader in(bytes);
  const auto version = in.get<std::uint8_t>();
  const auto type = static_cast<Type>(in.get<std::uint8_t>());
  if (version != kVersion) return malformed("unknown version");
  const auto message = decodeBody(type, in);
  if (!message) return malformed("unknown type");
  if (!in.finished()) return malformed("wrong length");
  return *message;
}

base::Bytes encodeKey(const PinKey& key) {
  return base::Writer()
      .put(kVersion)
      .put(key.generation)
      .put(static_cast<std::uint8_t>(key.in_file))
      .put(key.file)
      .put(key.offset)
      .take();
}

Result<PinKey> decodeKey(std::span<const std::byte> bytes) {
  base::Reader in(bytes);
  const auto version = in.get<std::uint8_t>();
  PinKey key;
  key.generation = in.get<std::uint64_t>();
  key.in_file = in.get<std::uint8_t>() != 0;
  key.file = in.get<std::uint32_t>();
  key.offset = in.get<std::uint64_t>();
  if (version != kVersion) return malformed("unknown version of a key");
  if (!in.finished() || key.generation == 0) return malformed("malformed key");
  return key;
}

}  // namespace viaduct::local
