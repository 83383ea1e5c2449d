#include <utility>

#include "base/fields.h"
#include "base/net/checked_blob.h"
#include "nixl/lists.h"
#include "nixl/status.h"

namespace viaduct::nixl {
namespace {

constexpr base::BlobKind kDescriptorList{.magic = "VIADDESC",
                                         .version = 2,
                                         .name = "descriptor list",
                                         .maker = "get_serialized_descs()",
                                         .taker = "deserialize_descs()"};
enum class ListType : std::uint8_t { kTransfer, kRegistration, kRemote };

std::string encode(ListType type, const List& list) {
  const Rows& rows = *list.rows;
  base::Writer body;
  base::Fields::put(body, type, list.memory, rows.ofRuns(), std::uint64_t{rows.count()});
  for (std::size_t row = 0; row < rows.count(); ++row) {
    const Run run = rows.run(row);
    body.put(run.base).put(run.bytes).put(rows.devices()[row]);
    if (rows.ofRuns()) body.put(run.stride).put(run.count);
  }
  base::Fields::put(body, list.texts);
  return std::string(base::textOf(base::wrapBlob(kDescriptorList, body.bytes())));
}

Rows decodeRows(base::Reader& in, bool of_runs, std::uint64_t count) {
  Rows rows;
  // The claimed count may be wrong or hostile, so the received bytes limit the rows.
  for (std::uint64_t row = 0; row < count && in.ok(); ++row) {
    const auto address = in.get<std::uint64_t>(), bytes = in.get<std::uint64_t>();
    const auto device = in.get<std::uint64_t>();
    if (!of_runs) {
      rows.add(Extent{address, bytes}, device);
    } else {
      const auto stride = in.get<std::uint64_t>();
      rows.add(Run{address, stride, bytes, in.get<std::uint64_t>()}, device);
    }
  }
  return rows;
}

}  // namespace

std::string encodeList(const TransferList& list) { return encode(ListType::kTransfer, list); }
std::string encodeList(const RegistrationList& list) {
  return encode(ListType::kRegistration, list);
}
std::string encodeList(const RemoteList& list) { return encode(ListType::kRemote, list); }

std::variant<TransferList, RegistrationList, RemoteList> decodeList(std::string_view state) {
  const auto body = base::unwrapBlob(kDescriptorList, base::bytesOf(state));
  if (!body) fail(Outcome::kInvalid, body.error().text());
  base::Reader in(*body);
  List list;
  ListType type{};
  std::uint8_t of_runs = 0;
  std::uint64_t count = 0;
  base::Fields::get(in, base::atMost(ListType::kRemote, type),
                    base::atMost(Memory::kFile, list.memory), base::atMost(1, of_runs), count);
  *list.rows = decodeRows(in, of_runs != 0, count);
  base::Fields::get(in, list.texts);
  const bool has_texts = type != ListType::kTransfer;
  if (!in.finished() || list.texts.size() != (has_texts ? count : 0) ||
      list.rows->ofRuns() != (of_runs != 0) || (has_texts && of_runs != 0))
    fail(Outcome::kInvalid,
         base::corruptedBlob(kDescriptorList, "the list's content is malformed").text());
  if (!has_texts) return TransferList{list};
  if (type == ListType::kRegistration) return RegistrationList{list};
  return RemoteList{list};
}

}  // namespace viaduct::nixl
