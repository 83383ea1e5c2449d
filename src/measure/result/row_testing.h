// Converts a single row to JSON and back, and makes counts, for tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measure/result/row_figures.h"
#include "measure/result/row_json.h"

namespace viaduct::measure {

inline std::string toJson(const Row& row) { return base::dumpJson(JsonWriter::of(row), -1); }

inline Result<Row> rowFromJson(std::string_view text) {
  VIADUCT_TRY(const Json json, base::parseJson(text));
  if (!json.is_object())
    return Error{.code = Code::kProtocol, .operation = "result row", .detail = "not a JSON object"};
  JsonReader from(json);
  Row row;
  describe(from, row);
  VIADUCT_CHECK(from.status("result row", {}));
  return row;
}

// Gives a row the counts of one stream that had each of these rates for a millisecond, and the
// figures that follow from the counts. The row needs a block size.
inline Row withCounts(Row row, const std::vector<double>& gb_per_s) {
  const std::uint64_t one = row.block_size * row.batch_size;
  RowCounts& counts = row.counts.emplace();
  RepeatCounts& repeat = counts.repeats.emplace_back();
  MemberCounts member{.initiator = true};
  Histogram latency;
  for (const double rate : gb_per_s) {
    const auto transfers = static_cast<std::uint64_t>(rate * 1e6 / static_cast<double>(one)) + 1;
    const TimedBytes part{transfers * one, static_cast<double>(transfers * one) / (rate * 1e9)};
    repeat.parts.push_back(part);
    repeat.whole.add(part);
    member.timed += transfers;
    for (std::uint64_t i = 0; i < transfers; ++i)
      latency.record(
          static_cast<std::uint64_t>(part.seconds * 1e9 / static_cast<double>(transfers)));
  }
  member.timed_bytes = member.bytes = repeat.whole.bytes;
  member.transfers = member.timed;
  counts.latency_ns = latency.distribution();
  counts.members.push_back(member);
  if (row.path.empty())
    row.path = {{row.backend, "socket", "eth0", member.bytes, member.timed, Proven::kYes}};
  for (ProvenShare& share : row.path) share.bytes = member.bytes / row.path.size();
  row.run = "0123456789abcdef0123456789abcdef";
  computeFigures(row);
  return row;
}

}  // namespace viaduct::measure
