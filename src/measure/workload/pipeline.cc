#include "measure/workload/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"

namespace viaduct::measure::pipeline {
namespace {

constexpr auto kAllowed = "use file:PATH, object:BUCKET/KEY, s3://BUCKET/KEY, host, cuda0 or net";
constexpr auto kExample =
    "file:/a,host,net,host,file:/b, or a part of it with one stage or more; cuda0 may replace host";

// One entry of the list: a place, or the network.
struct Entry {
  Place place = {};
  bool net = false;
  std::size_t position = 1;

  bool isStorage() const { return place.kind == Place::Kind::kStorage; }
  std::string name() const { return fmt::format("entry {} (\"{}\")", position, place.text); }
  Error error(std::string_view detail, std::string remedy) const {
    return {.code = Code::kInvalid,
            .detail = fmt::format("{} {}", name(), detail),
            .remedy = std::move(remedy)};
  }
};

Result<Entry> objectEntry(Entry entry, std::string_view name) {
  const auto slash = name.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == name.size())
    return entry.error("does not name a bucket and a key", "write object:BUCKET/KEY");
  entry.place.kind = Place::Kind::kStorage;
  entry.place.storage = {MemoryKind::kObject, entry.place.text, fmt::format("s3://{}", name)};
  return entry;
}

Result<Entry> gpuEntry(Entry entry, std::string_view number) {
  const auto gpu = base::numberIn<std::uint32_t>(number);
  if (!gpu) return entry.error("names no GPU", "write cuda0 for the first GPU of the process");
  entry.place.kind = Place::Kind::kGpu;
  entry.place.gpu = *gpu;
  return entry;
}

Result<Entry> entryOf(const std::string& text, std::size_t position) {
  constexpr std::string_view kFile = "file:", kObject = "object:", kS3 = "s3://", kCuda = "cuda";
  Entry entry{.place = {.text = text}, .net = text == kNet, .position = position};
  if (text.empty()) return entry.error("is empty", kAllowed);
  if (entry.net || text == "host") return entry;
  if (text.starts_with(kCuda)) return gpuEntry(std::move(entry), text.substr(kCuda.size()));
  if (text.starts_with("gpu")) return gpuEntry(std::move(entry), "");
  if (text.starts_with(kObject)) return objectEntry(std::move(entry), text.substr(kObject.size()));
  if (text.starts_with(kS3)) return objectEntry(std::move(entry), text.substr(kS3.size()));
  if (!text.starts_with(kFile)) return entry.error("is unknown", kAllowed);
  if (text.size() == kFile.size()) return entry.error("has no path", "write file:PATH");
  entry.place.kind = Place::Kind::kStorage;
  entry.place.storage = {MemoryKind::kFile, text, text.substr(kFile.size())};
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

Status checkEntry(const std::vector<Entry>& entries, std::size_t i) {
  const Entry& entry = entries[i];
  const bool at_end = i == 0 || i + 1 == entries.size();
  if (entry.net && at_end)
    return entry.error("stands at an end", "put host, a GPU or storage before and behind net");
  if (i > 0 && !entry.isStorage() && entry.place.text == entries[i - 1].place.text)
    return entry.error(fmt::format("stands directly behind {}", entries[i - 1].name()),
                       entry.net ? "put host between them" : "put net between them");
  if (entry.isStorage() && !at_end)
    return entry.error("stands in the middle", "only the first and the last entry are storage");
  const auto before = entries.begin() + static_cast<std::ptrdiff_t>(i);
  if (entry.net && std::any_of(entries.begin(), before, [](const Entry& one) { return one.net; }))
    return entry.error("is the second net", "a pipeline has two processes, so one net at most");
  return Ok{};
}

std::string stageBetween(const Place& from, const Place& into) {
  if (from.rank != into.rank) return kNet;
  const bool loads = from.kind == Place::Kind::kStorage,
             stores = into.kind == Place::Kind::kStorage;
  if (loads == stores) return "copy";
  return loads ? "load" : "store";
}

// Numbers the stages named "copy" if there are several, so that each name means one stage.
void numberCopies(std::vector<std::string>& stages) {
  if (std::count(stages.begin(), stages.end(), "copy") < 2) return;
  std::size_t number = 0;
  for (std::string& stage : stages)
    if (stage == "copy") stage += fmt::format(" {}", ++number);
}

}  // namespace

bool Pipeline::hasGpu() const {
  return std::any_of(places.begin(), places.end(),
                     [](const Place& place) { return place.kind == Place::Kind::kGpu; });
}

std::string Pipeline::routeOf(std::size_t stage) const {
  return fmt::format("{} -> {}", places[stage].text, places[stage + 1].text);
}

Result<Pipeline> parsePipeline(std::string_view text) {
  if (base::trimmed(text).empty())
    return Error{.code = Code::kInvalid, .detail = "the list is empty", .remedy = kExample};
  VIADUCT_TRY(std::vector<Entry> entries, entriesOf(text));
  if (entries.size() == 1) return entries.front().error("is the only entry", kExample);
  for (std::size_t i = 0; i < entries.size(); ++i) VIADUCT_CHECK(checkEntry(entries, i));
  Pipeline out{.text = std::string(text)};
  std::uint32_t rank = 0;
  for (Entry& entry : entries) {
    entry.place.rank = rank;
    if (entry.net)
      ++rank;
    else
      out.places.push_back(std::move(entry.place));
  }
  for (std::size_t i = 1; i < out.places.size(); ++i)
    out.stages.push_back(stageBetween(out.places[i - 1], out.places[i]));
  numberCopies(out.stages);
  return out;
}

}  // namespace viaduct::measure::pipeline
