#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/net/checksum.h"
#include "nixl/lists.h"
#include "nixl/status.h"

namespace viaduct::nixl {
namespace {

constexpr std::string_view kMagic = "VIADDESC";
constexpr std::uint8_t kVersion = 1;
enum class Type : std::uint8_t { kTransfer, kRegistration, kRemote };
constexpr std::size_t kSumBytes = 8;

void encodeRow(base::Writer& out, const Rows& rows, std::size_t row) {
  const Run run = rows.run(row);
  out.put(run.base).put(run.bytes).put(rows.devices()[row]);
  if (rows.ofRuns()) out.put(run.stride).put(run.count);
}

std::string encode(Type type, const List& list, std::span<const std::string> tails) {
  base::Writer out;
  const Rows& rows = *list.rows;
  out.raw(base::bytesOf(kMagic)).put(kVersion).put(static_cast<std::uint8_t>(type));
  out.put(static_cast<std::uint8_t>(list.memory));
  out.put(static_cast<std::uint8_t>(rows.ofRuns() ? 5 : 3));
  out.put(std::uint64_t{rows.count()});
  for (std::size_t row = 0; row < rows.count(); ++row) encodeRow(out, rows, row);
  for (const std::string& tail : tails) out.text(tail);
  out.put(base::Checksum().add(out.bytes()).value());
  const auto& bytes = out.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

[[noreturn]] void refuse(std::string_view what) {
  fail(Outcome::kInvalid,
       fmt::format("deserialize: {}; pass exactly the bytes that get_serialized_descs returned",
                   what));
}

Rows decodeRows(base::Reader& in, std::uint8_t columns, std::uint64_t count) {
  Rows rows;
  for (std::uint64_t row = 0; row < count; ++row) {
    const auto address = in.get<std::uint64_t>(), bytes = in.get<std::uint64_t>();
    const auto device = in.get<std::uint64_t>();
    if (columns == 3) {
      rows.add(Extent{address, bytes}, device);
    } else {
      const auto stride = in.get<std::uint64_t>();
      rows.add(Run{address, stride, bytes, in.get<std::uint64_t>()}, device);
    }
  }
  return rows;
}

// Checks the magic and the checksum, and returns a reader of the bytes between them.
base::Reader unwrap(std::string_view state) {
  const auto bytes = base::bytesOf(state);
  if (!state.starts_with(kMagic)) refuse("these bytes are not a descriptor list of Viaduct");
  if (state.size() < kMagic.size() + kSumBytes) refuse("the list is cut short");
  const auto body = bytes.first(bytes.size() - kSumBytes);
  if (base::Checksum().add(body).value() != base::loadLittle<std::uint64_t>(&bytes[body.size()]))
    refuse("the list is cut short or changed: its checksum is wrong");
  return base::Reader(body.subspan(kMagic.size()));
}

}  // namespace

std::string encodeList(const TransferList& list) { return encode(Type::kTransfer, list, {}); }
std::string encodeList(const RegistrationList& list) {
  return encode(Type::kRegistration, list, list.metadata);
}
std::string encodeList(const RemoteList& list) { return encode(Type::kRemote, list, list.agents); }

std::variant<TransferList, RegistrationList, RemoteList> decodeList(std::string_view state) {
  base::Reader in = unwrap(state);
  const auto version = in.get<std::uint8_t>();
  if (version != kVersion)
    refuse(
        fmt::format("the list has version {}; this release reads version {}", version, kVersion));
  const auto type = in.get<std::uint8_t>(), memory = in.get<std::uint8_t>(),
             columns = in.get<std::uint8_t>();
  const auto count = in.get<std::uint64_t>();
  const bool known =
      type <= static_cast<std::uint8_t>(Type::kRemote) &&
      memory <= static_cast<std::uint8_t>(Memory::kFile) &&
      (columns == 3 || (columns == 5 && type == static_cast<std::uint8_t>(Type::kTransfer)));
  // The claimed count may be wrong or hostile, so the received bytes limit it before allocation.
  if (!in.ok() || !known || count > in.left() / (columns * sizeof(std::uint64_t)))
    refuse("the list's header is malformed");
  const List list{static_cast<Memory>(memory),
                  std::make_shared<Rows>(decodeRows(in, columns, count))};
  std::vector<std::string> tails;
  if (type != static_cast<std::uint8_t>(Type::kTransfer))
    for (std::uint64_t row = 0; row < count && in.ok(); ++row) tails.push_back(in.text());
  if (!in.finished()) refuse("the list's content is malformed");
  if (type == static_cast<std::uint8_t>(Type::kTransfer)) return TransferList{list};
  if (type == static_cast<std::uint8_t>(Type::kRegistration))
    return RegistrationList{list, std::move(tails)};
  return RemoteList{list, std::move(tails)};
}

}  // namespace viaduct::nixl
