#include "backends/object/assembly.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/sizes.h"
#include "core/op.h"

namespace viaduct::object {
namespace {

Error refusal(const ObjectFacts& object, s3::ByteRange range, Code code, std::string detail) {
  return {
      .code = code,
      .operation = fmt::format("PUT {} bytes {}-{}", object.name.text(), range.first, range.last),
      .detail = std::move(detail),
      .device = "object"};
}

Error cancelled(const ObjectFacts& object, std::string detail) {
  return {.code = Code::kCancelled,
          .operation = "PUT " + object.name.text(),
          .detail = std::move(detail),
          .device = "object"};
}

}  // namespace

// Parts are numbered by steps of the object. So ranges of at least a step have different numbers,
// at most 10,000.
Result<std::uint32_t> partNumberOf(const ObjectFacts& object, s3::ByteRange range) {
  const std::uint64_t step =
      std::max(core::kLeastOfWhole, (object.bytes + kMostParts - 1) / kMostParts);
  if (range.bytes() >= step || range.last + 1 == object.bytes)
    return static_cast<std::uint32_t>(range.first / step + 1);
  Error error =
      refusal(object, range, Code::kUnsupported,
              fmt::format("too small for a part of an upload: parts of {} bytes have at least {}",
                          object.bytes, base::showSize(step)));
  error.cause = step == core::kLeastOfWhole ? "S3 has no call that changes a part of an object"
                                            : "S3 takes at most 10,000 parts";
  error.remedy =
      "raise VIADUCT_STAGING_CHUNK at both ends, or write from host memory of the object's agent";
  return error;
}

void Assemblies::add(std::uint64_t whole, PartWork work) {
  Assembly& assembly = assemblies_[whole];
  if (assembly.why) return end_job_(*work.job, assembly.why);
  if (!assembly.object) assembly.object = work.pin.facts;
  Running& running = assembly.running.emplace_back(Running{.work = std::move(work)});
  if (auto accepted = accept(assembly, running); !accepted) return fail(assembly, accepted.error());
  start(assembly, running);
}

// Checks a work's bytes, and reserves them for it.
Status Assemblies::accept(Assembly& assembly, Running& running) {
  PartWork& work = running.work;
  const ObjectFacts& object = *assembly.object;
  const auto range = sortedRange(work.pieces);
  if (!range)
    return refusal(
        object,
        {work.pieces.front().offset, work.pieces.back().offset + work.pieces.back().bytes - 1},
        Code::kUnsupported, "the bytes of a part leave a gap or overlap");
  if (work.pin.facts->name != object.name || work.pin.facts->bytes != object.bytes)
    return refusal(*work.pin.facts, *range, Code::kInvalid,
                   "the other parts are of " + object.name.text());
  if (*range != s3::ByteRange{0, object.bytes - 1}) {
    VIADUCT_TRY(running.part, partNumberOf(object, *range));
  }
  const auto next = assembly.parts.lower_bound(running.part);
  const bool overlaps =
      (next != assembly.parts.end() && next->second.range.first <= range->last) ||
      (next != assembly.parts.begin() && std::prev(next)->second.range.last >= range->first);
  if (overlaps)
    return refusal(object, *range, Code::kInvalid, "another part has some of these bytes");
  assembly.parts.emplace(running.part, StoredPart{*range});
  return Ok{};
}

// Begins the work's request, or the upload. A work that has the whole object writes it alone,
// without an upload.
void Assemblies::start(Assembly& assembly, Running& running) {
  PartWork& work = running.work;
  const ObjectFacts& object = *assembly.object;
  if (running.part == 0) {
    auto write = Task::write(work.pin, std::move(work.pieces), most_part_);
    if (!write) return fail(assembly, write.error());
    running.task = assembly.last = *std::move(write);
  } else if (!assembly.upload.empty()) {
    running.task = Task::part(object.name, assembly.upload, running.part, std::move(work.pieces));
  } else {
    if (assembly.create) return;
    assembly.create = Task::create(object.name);
    return requests_.add(assembly.create, nullptr);
  }
  requests_.add(running.task, work.stop);
}

bool Assemblies::taskEnded(const std::shared_ptr<Task>& task, const std::optional<Error>& why) {
  for (auto& [whole, assembly] : assemblies_) {
    const auto at = std::ranges::find(assembly.running, task, &Running::task);
    const bool creates = assembly.create == task;
    if (!creates && at == assembly.running.end()) continue;
    if (why) {
      fail(assembly, *why);
    } else if (creates) {
      assembly.upload = task->takeUpload();
      assembly.create.reset();
      for (Running& running : assembly.running) start(assembly, running);
    } else {
      advance(assembly, at);
    }
    return true;
  }
  return false;
}

// A work's task has succeeded. The work that stores the last missing part completes the upload.
void Assemblies::advance(Assembly& assembly, std::vector<Running>::iterator at) {
  if (at->task == assembly.last) {
    assembly.upload.clear();
    assembly.last.reset();
  } else {
    StoredPart& part = assembly.parts[at->part];
    part.etag = at->task->uploadParts().front().etag;
    assembly.stored += part.range.bytes();
    if (assembly.stored == assembly.object->bytes) {
      std::vector<UploadPart> parts;
      parts.reserve(assembly.parts.size());
      for (const auto& [number, one] : assembly.parts) parts.push_back({number, one.etag});
      at->task = assembly.last =
          Task::complete(assembly.object->name, assembly.upload, std::move(parts));
      return requests_.add(at->task, at->work.stop);
    }
  }
  move::Job& job = *at->work.job;
  assembly.running.erase(at);
  end_job_(job, std::nullopt);
}

void Assemblies::fail(std::uint64_t whole, const Error& why) { fail(assemblies_[whole], why); }

// Ends the requests before their jobs, because after a job's end the memory belongs to its owner.
void Assemblies::fail(Assembly& assembly, const Error& why) {
  if (assembly.why) return;
  const Assembly ended = std::exchange(assembly, {.object = assembly.object, .why = why});
  if (ended.create) requests_.drop(ended.create);
  for (const Running& running : ended.running)
    if (running.task) requests_.drop(running.task);
  if (!ended.upload.empty()) requests_.abort(ended.object->name, ended.upload);
  for (const Running& running : ended.running) end_job_(*running.work.job, why);
}

void Assemblies::cancel(std::uint64_t whole) {
  Assembly& assembly = assemblies_[whole];
  fail(assembly, cancelled(*assembly.object, "the transfer of a part of it was cancelled"));
}

void Assemblies::giveUp(std::uint64_t whole) {
  const auto at = assemblies_.find(whole);
  if (at == assemblies_.end()) return;
  Assembly& assembly = at->second;
  if (assembly.object) fail(assembly, cancelled(*assembly.object, "its writer has given it up"));
  assemblies_.erase(at);
}

void Assemblies::giveUpAll() {
  while (!assemblies_.empty()) giveUp(assemblies_.begin()->first);
}

}  // namespace viaduct::object
