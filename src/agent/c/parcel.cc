// The C interface: parcels and their fetches.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "agent/c/call.h"
#include "agent/c/objects.h"

namespace {

using namespace viaduct;
using namespace viaduct::agent::c;

static_assert(static_cast<int>(ParcelOutcome::kWhole) == VIADUCT_PARCEL_WHOLE);
static_assert(static_cast<int>(ParcelOutcome::kFailed) == VIADUCT_PARCEL_FAILED);
static_assert(static_cast<int>(ParcelOutcome::kSuperseded) == VIADUCT_PARCEL_SUPERSEDED);
static_assert(static_cast<int>(ParcelOutcome::kExpired) == VIADUCT_PARCEL_EXPIRED);
static_assert(static_cast<int>(ParcelOutcome::kCancelled) == VIADUCT_PARCEL_CANCELLED);
static_assert(static_cast<int>(ParcelOutcome::kLost) == VIADUCT_PARCEL_LOST);
// Programs are compiled with these sizes: fields may only be added.
static_assert(sizeof(viaduct_part_blocks) == 56);
static_assert(sizeof(viaduct_publish_options) == 72);
static_assert(sizeof(viaduct_parcel_end) == 1072);
static_assert(sizeof(viaduct_fetch_options) == 72);

ParcelPart partOf(viaduct_parcel_part part) {
  return {.rank = part.rank, .component = part.component};
}
viaduct_parcel_part partOf(ParcelPart part) { return {part.rank, part.component}; }

Status listParts(const char* operation, const std::vector<ParcelPart>& listed,
                 viaduct_parcel_part* parts, uint64_t capacity, uint64_t* count) {
  VIADUCT_CHECK(need(operation, "count", count));
  if (capacity != 0) VIADUCT_CHECK(need(operation, "parts", parts));
  *count = listed.size();
  for (std::size_t i = 0; i < std::min<std::uint64_t>(capacity, listed.size()); ++i)
    parts[i] = partOf(listed[i]);
  return Ok{};
}

Result<PublishedPart> publishedPart(const char* operation, const viaduct_part_blocks& given) {
  if (given.slice.id != 0 || given.have_count != 0)
    return misuse(operation, "a part that is published has a slice, or digests of what is here",
                  "leave these fields 0");
  VIADUCT_TRY(auto blocks, selectionOf(operation, given.blocks, given.indices, given.index_count));
  return PublishedPart{.part = partOf(given.part), .blocks = std::move(blocks)};
}

Result<PartInto> partInto(const char* operation, const viaduct_part_blocks& given) {
  VIADUCT_TRY(auto into, selectionOf(operation, given.blocks, given.indices, given.index_count));
  PartInto out{.part = partOf(given.part), .into = std::move(into)};
  if (given.slice.id != 0) {
    VIADUCT_TRY(const auto slice, find<Blocks>(operation, "list of blocks", given.slice.id));
    out.slice = *slice;
  }
  VIADUCT_TRY(const auto have, arrayOf(operation, "have", given.have, given.have_count));
  for (const viaduct_digest& one : have) out.have.push_back({.low = one.low, .high = one.high});
  return out;
}

// The parts of the caller, each as `make` reads it.
template <class T>
Result<std::vector<T>> partsOf(const char* operation, const viaduct_part_blocks* first,
                               uint64_t count,
                               Result<T> (*make)(const char*, const viaduct_part_blocks&)) {
  VIADUCT_TRY(const auto given, arrayOf(operation, "parts", first, count));
  std::vector<T> out;
  for (const viaduct_part_blocks& part : given) {
    VIADUCT_TRY(auto one, make(operation, part));
    out.push_back(std::move(one));
  }
  return out;
}

Result<PublishOptions> optionsOf(const char* operation, const viaduct_publish_options* given) {
  VIADUCT_CHECK(checkSized(operation, given));
  PublishOptions options;
  if (given == nullptr) return options;
  options.version = given->version;
  options.layout = given->layout;
  options.takers = given->takers;
  options.digests = given->digests != 0;
  options.at_place = given->at_place != 0;
  if (given->life_ns != 0) options.life = std::chrono::nanoseconds(given->life_ns);
  if (given->owner.id != 0) {
    VIADUCT_TRY(const auto owner, find<Peer>(operation, "peer", given->owner.id));
    options.owner = *owner;
  }
  VIADUCT_TRY(const auto parts, arrayOf(operation, "parts", given->parts, given->part_count));
  for (const viaduct_parcel_part part : parts) options.parts.push_back(partOf(part));
  return options;
}

Result<FetchOptions> optionsOf(const char* operation, const viaduct_fetch_options* given) {
  VIADUCT_CHECK(checkSized(operation, given));
  FetchOptions options;
  if (given == nullptr) return options;
  options.version = given->version;
  options.exact = given->exact != 0;
  options.layout = given->layout;
  if (given->group != nullptr)
    options.group = {.name = given->group,
                     .size = given->group_size,
                     .rank = given->group_rank,
                     .at_least = given->at_least};
  VIADUCT_TRY(options.priority, priorityOf(operation, given->priority));
  if (given->require != nullptr) options.require = given->require;
  if (given->deadline_ns > 0) options.deadline = until(given->deadline_ns);
  return options;
}

void describe(const ParcelEnd& end, viaduct_parcel_end& into) {
  into.version = end.version;
  into.outcome = static_cast<std::int32_t>(end.outcome);
  into.has_part = end.part ? 1 : 0;
  into.part = partOf(end.part.value_or(ParcelPart{}));
  into.has_consumer = end.consumer ? 1 : 0;
  into.consumer = end.consumer.value_or(0);
  into.ranks = end.ranks.size();
  copyInto(into.why, end.why ? end.why->text() : "");
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names of C
viaduct_code viaduct_parcel_publish(viaduct_agent agent, const char* name,
                                    const viaduct_publish_options* options,
                                    const viaduct_part_blocks* ready, uint64_t ready_count,
                                    viaduct_parcel* parcel, viaduct_error* error) {
  return call(error, [&]() -> Status {
    constexpr auto kOperation = "publish";
    VIADUCT_TRY(const auto open, find<AgentObject>(kOperation, "agent", agent.id));
    VIADUCT_CHECK(need(kOperation, "name", name));
    VIADUCT_CHECK(need(kOperation, "parcel", parcel));
    VIADUCT_TRY(PublishOptions given, optionsOf(kOperation, options));
    VIADUCT_TRY(given.ready, partsOf(kOperation, ready, ready_count, publishedPart));
    VIADUCT_TRY(auto published, open->agent.publish(name, std::move(given)));
    give<PublishedParcel>(*parcel, std::move(published));
    return Ok{};
  });
}

viaduct_code viaduct_parcel_ready(viaduct_parcel parcel, const viaduct_part_blocks* part,
                                  viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<PublishedParcel>("ready", "parcel", parcel.id));
    VIADUCT_CHECK(need("ready", "part", part));
    VIADUCT_TRY(auto one, publishedPart("ready", *part));
    return known->ready(std::move(one));
  });
}

viaduct_code viaduct_parcel_missing(viaduct_parcel parcel, viaduct_parcel_part* parts,
                                    uint64_t capacity, uint64_t* count, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<PublishedParcel>("missing", "parcel", parcel.id));
    return listParts("missing", known->missing(), parts, capacity, count);
  });
}

viaduct_code viaduct_parcel_wait(viaduct_parcel parcel, int64_t timeout_ns, viaduct_parcel_end* end,
                                 viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<PublishedParcel>("wait", "parcel", parcel.id));
    VIADUCT_CHECK(checkSized("wait", end));
    VIADUCT_TRY(const auto ended, known->wait(until(timeout_ns)));
    if (end != nullptr) describe(ended, *end);
    return Ok{};
  });
}

viaduct_code viaduct_parcel_withdraw(viaduct_parcel parcel, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<PublishedParcel>("withdraw", "parcel", parcel.id));
    return known->withdraw();
  });
}

viaduct_code viaduct_parcel_taken(viaduct_parcel parcel, uint64_t* count, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<PublishedParcel>("taken", "parcel", parcel.id));
    VIADUCT_CHECK(need("taken", "count", count));
    *count = known->taken();
    return Ok{};
  });
}

viaduct_code viaduct_parcel_close(viaduct_parcel parcel, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, take<PublishedParcel>("close the parcel", "parcel", parcel.id));
    return known->close();
  });
}

viaduct_code viaduct_blocks_digests(viaduct_agent agent, viaduct_blocks blocks,
                                    const uint32_t* indices, uint64_t index_count,
                                    viaduct_digest* digests, uint64_t count, viaduct_error* error) {
  return call(error, [&]() -> Status {
    constexpr auto kOperation = "digests";
    VIADUCT_TRY(const auto open, find<AgentObject>(kOperation, "agent", agent.id));
    VIADUCT_TRY(const auto taken, selectionOf(kOperation, blocks, indices, index_count));
    if (count != 0) VIADUCT_CHECK(need(kOperation, "digests", digests));
    VIADUCT_TRY(const auto made, open->agent.digestBlocks(taken));
    if (made.size() != count)
      return misuse(kOperation, fmt::format("room for {} digests of {} blocks", count, made.size()),
                    "give room for one digest of each block");
    for (std::size_t i = 0; i < made.size(); ++i) digests[i] = {made[i].low, made[i].high};
    return Ok{};
  });
}

viaduct_code viaduct_fetch_begin(viaduct_agent agent, viaduct_peer owner, const char* name,
                                 const viaduct_fetch_options* options,
                                 const viaduct_part_blocks* into, uint64_t into_count,
                                 viaduct_fetch* fetch, viaduct_error* error) {
  return call(error, [&]() -> Status {
    constexpr auto kOperation = "fetch";
    VIADUCT_TRY(const auto open, find<AgentObject>(kOperation, "agent", agent.id));
    VIADUCT_CHECK(need(kOperation, "name", name));
    VIADUCT_CHECK(need(kOperation, "fetch", fetch));
    VIADUCT_TRY(FetchOptions given, optionsOf(kOperation, options));
    VIADUCT_TRY(given.into, partsOf(kOperation, into, into_count, partInto));
    const auto begin = [&]() -> Result<ParcelFetch> {
      if (owner.id == 0) return open->agent.fetch(name, std::move(given));
      VIADUCT_TRY(const auto known, find<Peer>(kOperation, "peer", owner.id));
      return open->agent.fetch(*known, name, std::move(given));
    };
    VIADUCT_TRY(auto begun, begin());
    give<ParcelFetch>(*fetch, std::move(begun));
    return Ok{};
  });
}

viaduct_code viaduct_fetch_wait(viaduct_fetch fetch, int64_t timeout_ns, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<ParcelFetch>("wait", "fetch", fetch.id));
    return known->wait(until(timeout_ns));
  });
}

viaduct_code viaduct_fetch_wait_part(viaduct_fetch fetch, viaduct_parcel_part part,
                                     int64_t timeout_ns, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<ParcelFetch>("wait", "fetch", fetch.id));
    return known->waitPart(partOf(part), until(timeout_ns));
  });
}

viaduct_code viaduct_fetch_end(viaduct_fetch fetch, viaduct_parcel_end* end, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<ParcelFetch>("end", "fetch", fetch.id));
    VIADUCT_CHECK(needSized("end", end));
    const auto ended = known->end();
    if (!ended)
      return Error{.code = Code::kBusy, .operation = "end", .detail = "the fetch has not ended"};
    describe(*ended, *end);
    return Ok{};
  });
}

viaduct_code viaduct_fetch_missing(viaduct_fetch fetch, viaduct_parcel_part* parts,
                                   uint64_t capacity, uint64_t* count, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<ParcelFetch>("missing", "fetch", fetch.id));
    return listParts("missing", known->missing(), parts, capacity, count);
  });
}

viaduct_code viaduct_fetch_cancel(viaduct_fetch fetch, const char* why, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, find<ParcelFetch>("cancel", "fetch", fetch.id));
    known->cancel(why == nullptr ? "the application cancelled it" : why);
    return Ok{};
  });
}

viaduct_code viaduct_fetch_close(viaduct_fetch fetch, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto known, take<ParcelFetch>("close the fetch", "fetch", fetch.id));
    // Other threads may still wait for the fetch. Then the last of them destroys it.
    known->cancel("its handle was closed");
    static_cast<void>(known->wait(Deadline::never()));
    return Ok{};
  });
}
// NOLINTEND(readability-identifier-naming)
