#include "measure/pipeline/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace viaduct::measure::pipeline {
namespace {

constexpr auto kAllowed = "use file:PATH, object:BUCKET/KEY, s3://BUCKET/KEY, host or net";
constexpr auto kExample = "file:/a,host,net,host,file:/b, or a part of it with one stage or more";

// One entry of the list.
struct Entry {
  enum class Kind : std::uint8_t { kHost, kNet, kStorage };
  Kind kind = Kind::kHost;
  Storage storage = {};
  std::string text = {};
  std::size_t position = 1;

  std::string name() const { return fmt::format("entry {} (\"{}\")", position, text); }
  Error error(std::string_view detail, std::string remedy) const {
    return {.code = Code::kInvalid,
            .detail = fmt::format("{} {}", name(), detail),
            .remedy = std::move(remedy)};
  }
};
using Kind = Entry::Kind;

Result<Entry> objectEntry(Entry entry, std::string_view name) {
  const auto slash = name.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == name.size())
    return entry.error("does not name a bucket and a key", "write object:BUCKET/KEY");
  entry.kind = Kind::kStorage;
  entry.storage = {MemoryKind::kObject, entry.text, fmt::format("s3://{}", name)};
  return entry;
}

Result<Entry> entryOf(const std::string& text, std::size_t position) {
  constexpr std::string_view kFile = "file:", kObject = "object:", kS3 = "s3://";
  Entry entry{.text = text, .position = position};
  if (text.empty()) return entry.error("is empty", kAllowed);
  if (text == "host") return entry;
  if (text == "net") {
    entry.kind = Kind::kNet;
    return entry;
  }
  if (text == "gpu" || text.starts_with("gpu:"))
    return entry.error("is not yet supported: pipelines move host memory only", kAllowed);
  if (text.starts_with(kObject)) return objectEntry(entry, text.substr(kObject.size()));
  if (text.starts_with(kS3)) return objectEntry(entry, text.substr(kS3.size()));
  if (!text.starts_with(kFile)) return entry.error("is unknown", kAllowed);
  if (text.size() == kFile.size()) return entry.error("has no path", "write file:PATH");
  entry.kind = Kind::kStorage;
  entry.storage = {MemoryKind::kFile, text, text.substr(kFile.size())};
  return entry;
}

Result<std::vector<Entry>> entriesOf(std::string_view text) {
  std::vector<Entry> entries;
  for (bool more = true; more;) {
    const auto comma = text.find(',');
    const std::string word(base::trimmed(text.substr(0, comma)));
    VIADUCT_TRY(Entry entry, entryOf(word, entries.size() + 1));
    entries.push_back(std::move(entry));
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return entries;
}

// Returns why `right` must not stand behind `left`.
Status mayFollow(const Entry& left, const Entry& right) {
  if ((left.kind == Kind::kHost) != (right.kind == Kind::kHost)) return Ok{};
  const std::string behind = fmt::format("stands directly behind {}", left.name());
  return right.error(
      behind, left.kind == Kind::kHost ? "put net between two hosts" : "put host between them");
}

Status checkPlace(const std::vector<Entry>& entries, std::size_t i) {
  const Entry& entry = entries[i];
  const bool at_end = i == 0 || i + 1 == entries.size();
  if (entry.kind == Kind::kNet && at_end)
    return entry.error("stands at an end", "put host before and behind net");
  if (i > 0) VIADUCT_CHECK(mayFollow(entries[i - 1], entry));
  if (entry.kind == Kind::kStorage && !at_end)
    return entry.error("stands in the middle", "only the first and the last entry are storage");
  const auto nets = std::count_if(entries.begin(), entries.end(),
                                  [](const Entry& one) { return one.kind == Kind::kNet; });
  if (entry.kind == Kind::kNet && nets > 1 && i > 1)
    return entry.error("is the second net", "a pipeline has two processes, so one net at most");
  return Ok{};
}

}  // namespace

bool Pipeline::has(StageKind kind) const {
  return std::find(stages.begin(), stages.end(), kind) != stages.end();
}

std::string Pipeline::routeOf(StageKind kind) const {
  switch (kind) {
    case StageKind::kLoad:
      return source->text + " -> host";
    case StageKind::kNet:
      return "host -> host";
    case StageKind::kStore:
      return "host -> " + destination->text;
  }
  return {};
}

bool Pipeline::needs(MemoryKind kind) const {
  return (source && source->kind == kind) || (destination && destination->kind == kind);
}

Result<Pipeline> parsePipeline(std::string_view text) {
  if (base::trimmed(text).empty())
    return Error{.code = Code::kInvalid, .detail = "the list is empty", .remedy = kExample};
  VIADUCT_TRY(const std::vector<Entry> entries, entriesOf(text));
  for (std::size_t i = 0; i < entries.size(); ++i) VIADUCT_CHECK(checkPlace(entries, i));
  if (entries.size() == 1) return entries.front().error("is the only entry", kExample);
  Pipeline out{.text = std::string(text)};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    if (entry.kind == Kind::kNet) out.stages.push_back(StageKind::kNet);
    if (entry.kind != Kind::kStorage) continue;
    (i == 0 ? out.source : out.destination) = entry.storage;
    out.stages.push_back(i == 0 ? StageKind::kLoad : StageKind::kStore);
  }
  return out;
}

}  // namespace viaduct::measure::pipeline
