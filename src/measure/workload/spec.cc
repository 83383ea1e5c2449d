#include "measure/workload/spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "base/sizes.h"
#include "measure/workload/collective.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kPage = 4096;
// The most sets. A set's planned transfers take about a kilobyte each. If more sets would fit into
// the memory, the sets lie farther apart instead.
constexpr std::uint64_t kMostSets = 16'384;

std::uint64_t partBytes(std::uint64_t device, std::uint32_t parts) {
  const std::uint64_t part = device / parts;
  return part >= kPage ? part / kPage * kPage : part;
}

// Returns the bytes that a stream's part needs for all rows, if the part may have `room` bytes.
std::uint64_t neededPart(const Spec& spec,
                         std::uint64_t room = std::numeric_limits<std::uint64_t>::max()) {
  std::uint64_t most = 1;
  for (const Workload& row : spec.rows) {
    const std::uint64_t sets = std::max<std::uint64_t>(spec.depth, spec.working_set / row.bytes());
    most = std::max(most, std::min(sets, room / row.bytes()) * row.bytes());
  }
  return (most + kPage - 1) / kPage * kPage;
}

struct MostParts {
  std::uint32_t initiator = 1, target = 1;
};
MostParts mostParts(const Spec& spec) {
  MostParts most;
  for (const Stream& s : streamsOf(spec.layout, spec.threads, spec.bidirectional)) {
    most.initiator = std::max(most.initiator, s.initiator_parts);
    most.target = std::max(most.target, s.target_parts);
  }
  return most;
}

Status fits(const Spec& spec, const char* side, std::uint64_t device, std::uint32_t parts) {
  const std::uint64_t part = partBytes(device, parts);
  for (const Workload& row : spec.rows)
    if (row.bytes() > part)
      return Error{.code = Code::kInvalid,
                   .operation = "--total_buffer_size",
                   .detail = fmt::format(
                       "{} blocks of {} do not fit: a device of the {} has {}, {} for each "
                       "stream that uses it",
                       row.batch, base::showSize(row.block_bytes), side, base::showSize(device),
                       base::showSize(part)),
                   .remedy = fmt::format(
                       "use a larger --total_buffer_size, or at most {} for blocks x batch",
                       base::showSize(part))};
  return Ok{};
}

std::string yesNo(bool value) { return value ? "true" : "false"; }

// Returns the pools of the largest KV row, or nothing if there is none.
std::optional<DeviceBytes> poolsOf(const Spec& spec) {
  std::optional<DeviceBytes> out;
  for (const Workload& row : spec.rows) {
    if (!row.kv) continue;
    const bool push = row.op == OpKind::kWrite;
    const KvEnd &here = push ? row.kv->source : row.kv->destination,
                &there = push ? row.kv->destination : row.kv->source;
    if (!out) out.emplace();
    out->initiator = std::max(out->initiator, here.bytes);
    out->target = std::max(out->target, there.bytes);
  }
  return out;
}

// Returns a KV point as text, with pools and sets. Members that differ in these have different
// block tables, so members compare the text.
std::string kvWords(const Workload& row) {
  const KvPoint& point = *row.kv;
  std::string out = fmt::format(" ({}, {} sets in pools of {} and {} blocks", textOf(point),
                                point.sets, point.source.pool, point.destination.pool);
  if (row.trace)
    out += fmt::format(", trace of {} requests with hash {:016x} at speed {:g}",
                       row.trace->requests->requests.size(), traceDigest(*row.trace->requests),
                       row.trace->speed);
  return out + ")";
}

std::string joinedSizes(const Spec& spec) {
  std::string out;
  for (const Workload& row : spec.rows) {
    const std::string one = fmt::format("{}/{}x{}", row.backend, row.block_bytes, row.batch);
    // Paged and bulk rows of all trials have the same name, which is listed once.
    const bool again = row.kv && (row.kv->bulk || row.kv->trial != 0);
    if (!again) out += (out.empty() ? "" : ",") + one + (row.kv ? kvWords(row) : "");
  }
  return out;
}

}  // namespace

std::optional<ScaledSide> scaledSide(const Spec& spec) {
  if (spec.ping_pong || spec.rate > 0 || spec.layout.pattern()) return std::nullopt;
  const std::uint32_t here = spec.initiator_gpu ? spec.layout.initiators : 0;
  const std::uint32_t there = spec.target_gpu ? spec.layout.targets : 0;
  if (std::max(here, there) < 2) return std::nullopt;
  return here >= there ? ScaledSide{Role::kInitiator, here} : ScaledSide{Role::kTarget, there};
}

std::vector<Option> optionsOf(const Spec& spec) {
  const Workload first = spec.rows.empty() ? Workload{} : spec.rows.front();
  const auto number = [](std::uint64_t value) { return fmt::format("{}", value); };
  std::vector<Option> out{{"scheme", schemeName(spec.layout.scheme)},
                          {"mode", modeName(spec.layout.mode)},
                          {"num_initiator_dev", number(spec.layout.initiators)},
                          {"num_target_dev", number(spec.layout.targets)},
                          {"rows", joinedSizes(spec)},
                          {"op_type", opKindName(first.op)},
                          {"iterations", number(first.iterations)},
                          {"warmup_iterations", number(first.warm_iterations)},
                          {"num_threads", number(spec.threads)},
                          {"pipeline_depth", number(spec.depth)},
                          {"bidirectional", yesNo(spec.bidirectional)},
                          {"latency", yesNo(spec.ping_pong)},
                          {"recreate_xfer", yesNo(spec.recreate)},
                          {"reregister_mem", yesNo(spec.reregister)},
                          {"memory", memoryChoiceName(spec.memory)},
                          {"use_hugepages", yesNo(spec.huge_pages)},
                          {"total_buffer_size", number(spec.buffer_bytes)},
                          {"working_set", number(spec.working_set)},
                          {"warmup", base::formatDuration(spec.warmup)},
                          {"duration", base::formatDuration(spec.duration)},
                          {"repeat", number(spec.repeat)},
                          {"rate", fmt::format("{}", spec.rate)},
                          {"arrivals", spec.poisson ? "poisson" : "constant"},
                          {"background", number(spec.background)},
                          {"verify", verifiedName(spec.verify)},
                          {"require", spec.require},
                          {"seed", number(spec.seed)}};
  if (spec.fresh) out.push_back({"fresh", "true"});
  if (spec.layout.stored()) {
    const StorageChoice& storage = spec.storage;
    const bool files = storage.kind == MemoryKind::kFile;
    out.push_back({files ? "filepath" : "obj_bucket_name", storage.place});
    if (files) out.push_back({"filenames", fmt::format("{}", fmt::join(storage.names, ","))});
    if (files) out.push_back({"num_files", number(storage.files)});
  }
  if (spec.layout.scheme == Scheme::kMatrix)
    out.push_back({"matrix", fmt::format("{}", fmt::join(spec.layout.matrix.bytes, " "))});
  if (spec.pipeline) {
    const pipeline::StorageOptions& storage = spec.pipeline_data;
    out.insert(out.end(), {{"pipeline", spec.pipeline->text},
                           {"create_source", number(storage.create_source)},
                           {"VIADUCT_STAGING_CHUNK", number(storage.chunks.chunk_bytes)},
                           {"VIADUCT_STAGING_CHUNKS", number(storage.chunks.ring_chunks)},
                           {"overwrite", yesNo(storage.overwrite)},
                           {"require of net", spec.net_require}});
  }
  if (spec.initiator_gpu) out.push_back({"initiator_seg_type", "VRAM"});
  if (spec.target_gpu) out.push_back({"target_seg_type", "VRAM"});
  if (spec.interval.count() != 0) out.push_back({"interval", base::formatDuration(spec.interval)});
  return out;
}

Result<DeviceBytes> deviceBytes(const Spec& spec) {
  if (const auto pools = poolsOf(spec)) return *pools;
  const MostParts parts = mostParts(spec);
  DeviceBytes bytes{neededPart(spec) * parts.initiator, neededPart(spec) * parts.target};
  if (spec.buffer_bytes != 0) {
    const bool many = spec.layout.mode == Mode::kMg;
    const std::uint32_t alone = spec.layout.pattern() ? 2 : 1;  // devices of a process in mode SG
    bytes.initiator = spec.buffer_bytes / (many ? spec.layout.initiators : alone);
    // Storage is not larger than the rows need, because it is filled before the first row.
    bytes.target =
        spec.layout.stored()
            ? neededPart(spec, partBytes(bytes.initiator, parts.initiator)) * parts.target
            : spec.buffer_bytes / (many ? spec.layout.targets : alone);
  }
  VIADUCT_CHECK(fits(spec, "initiators", bytes.initiator, parts.initiator));
  VIADUCT_CHECK(fits(spec, "targets", bytes.target, parts.target));
  return bytes;
}

std::uint64_t fileBytes(const Spec& spec, const DeviceBytes& bytes) {
  const std::uint32_t parts = mostParts(spec).target;
  std::uint64_t most = 0;
  for (const Workload& row : spec.rows) {
    const std::uint64_t blocks = partBytes(bytes.target, parts) / row.block_bytes;
    most = std::max(most, (blocks + spec.storage.files - 1) / spec.storage.files * row.block_bytes);
  }
  return (most + kPage - 1) / kPage * kPage * parts;
}

DeviceBytes hostBytes(const Spec& spec, const DeviceBytes& bytes) {
  const MostParts parts = mostParts(spec);
  DeviceBytes out = bytes;
  const auto used = [&](std::uint64_t device, std::uint32_t count) {
    return std::min(device, neededPart(spec, partBytes(device, count)) * count);
  };
  if (spec.initiator_gpu) out.initiator = used(bytes.initiator, parts.initiator);
  if (spec.target_gpu) out.target = used(bytes.target, parts.target);
  return out;
}

std::uint64_t processBytes(const Spec& spec, const DeviceBytes& bytes, std::uint32_t rank) {
  const bool initiator = spec.layout.isInitiator(rank);
  const bool both = spec.layout.stored() || spec.layout.pattern();
  const std::uint64_t one = (initiator ? bytes.initiator : bytes.target) +
                            (both ? bytes.target : 0) + kBackgroundDepth * spec.background;
  if (spec.layout.mode == Mode::kSg) return one;
  return one * (initiator ? spec.layout.initiators : spec.layout.targets);
}

Sets setsOf(const Spec& spec, const Workload& all, const Stream& stream, const DeviceBytes& bytes) {
  if (all.kv) return {.count = all.kv->sets};  // block tables decide where blocks lie
  const Workload row = workOf(all, stream);
  const std::uint64_t here = partBytes(bytes.initiator, stream.initiator_parts);
  const std::uint64_t there = partBytes(bytes.target, stream.target_parts);
  const std::uint64_t room = std::min(here, there) / row.bytes();
  const std::uint64_t wanted = std::max<std::uint64_t>(spec.working_set / row.bytes(), spec.depth);
  const std::uint64_t walked = std::max<std::uint64_t>(std::min(room, wanted), 1);
  const std::uint64_t count = std::min(walked, kMostSets);
  return {.initiator_at = here * stream.initiator_part,
          .target_at = there * stream.target_part,
          .count = count,
          .stride = walked / count * row.bytes()};
}

std::uint64_t workingSet(const Spec& spec, const Workload& row) {
  if (row.stages || row.swap) return row.bytes();
  const auto memory = deviceBytes(spec);
  if (!memory) return 0;
  std::uint64_t bytes = 0;
  for (const Stream& stream : streamsOf(spec.layout, spec.threads, spec.bidirectional))
    bytes += setsOf(spec, row, stream, *memory).count * workOf(row, stream).bytes();
  return bytes;
}

std::uint64_t largestWorkingSet(const Spec& spec) {
  std::uint64_t largest = 0;
  for (const Workload& row : spec.rows) largest = std::max(largest, workingSet(spec, row));
  return largest;
}

}  // namespace viaduct::measure
