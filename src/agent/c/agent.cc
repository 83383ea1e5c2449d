// The C interface: agents, memory and notes.
#include <deque>
#include <optional>
#include <string>

#include "agent/c/call.h"
#include "agent/c/objects.h"

namespace viaduct::agent::c {
namespace {

Status applySetting(const viaduct_setting& setting, Settings& into) {
  constexpr auto kOperation = "settings";
  VIADUCT_CHECK(need(kOperation, "the name of a setting", setting.name));
  VIADUCT_CHECK(need(kOperation, setting.name, setting.value));
  for (const SettingRow& row : settingRows()) {
    if (row.variable != setting.name) continue;
    auto parsed = row.parse(setting.value, into);
    if (parsed) return Ok{};
    Error error = std::move(parsed).error();
    error.detail = fmt::format("{}={} cannot be read", setting.name, setting.value);
    error.remedy = fmt::format("give {}", error.remedy);
    return error;
  }
  const std::string_view meant = nearestSetting(setting.name);
  return misuse(kOperation, fmt::format("there is no setting {}", setting.name),
                meant.empty() ? "name one of docs/settings.md" : fmt::format("use {}", meant));
}

Status refuseFlags(const char* operation, std::uint32_t flags, std::uint32_t known) {
  if ((flags & ~known) == 0) return Ok{};
  return misuse(operation, fmt::format("unknown flags {:#x}", flags & ~known));
}

std::string textOf(const char* text) { return text == nullptr ? "" : text; }

static_assert(static_cast<int>(MemoryKind::kHost) == VIADUCT_MEMORY_HOST);
static_assert(static_cast<int>(MemoryKind::kDevice) == VIADUCT_MEMORY_DEVICE);
static_assert(static_cast<int>(MemoryKind::kFile) == VIADUCT_MEMORY_FILE);
static_assert(static_cast<int>(MemoryKind::kBlock) == VIADUCT_MEMORY_BLOCK);
static_assert(static_cast<int>(MemoryKind::kObject) == VIADUCT_MEMORY_OBJECT);

Result<FileOptions> optionsOf(const char* operation, const viaduct_part* part) {
  FileOptions options;
  if (part == nullptr) return options;
  if (!isSized(part))
    return misuse(operation, fmt::format("the part has size {}", part->size),
                  "set its field `size` to its sizeof, as VIADUCT_INIT does");
  VIADUCT_CHECK(refuseFlags(operation, part->flags, VIADUCT_CREATE | VIADUCT_ONLY_READ));
  options.offset = part->offset;
  options.bytes = part->bytes;
  options.create = (part->flags & VIADUCT_CREATE) != 0;
  options.read_only = (part->flags & VIADUCT_ONLY_READ) != 0;
  return options;
}

void describe(const DrainLeft& left, viaduct_drain_left& into) {
  copyInto(into.peer, left.peer);
  into.transfers = left.transfers;
  into.bytes = left.bytes;
  into.their_transfers = left.their_transfers;
  into.their_bytes = left.their_bytes;
  into.lent = left.lent;
  into.borrowed = left.borrowed;
  into.streams = left.streams;
  into.unsent_bytes = left.unsent_bytes;
  into.answered = left.answered ? 1 : 0;
}

Status pinInto(viaduct_pin* pin, AgentObject& open, const Segment& segment, const char* label) {
  VIADUCT_TRY(auto pinned, open.agent.pin(segment, textOf(label)));
  give<Pin>(*pin, std::move(pinned));
  return Ok{};
}

}  // namespace

// Returns a note that did not fit into the buffer of an earlier call.
std::optional<Note> AgentObject::takeKept() {
  return kept.with([](std::deque<Note>& notes) -> std::optional<Note> {
    if (notes.empty()) return std::nullopt;
    Note first = std::move(notes.front());
    notes.pop_front();
    return first;
  });
}

void AgentObject::keep(Note note) {
  kept.with([&](std::deque<Note>& notes) { notes.push_front(std::move(note)); });
}

}  // namespace viaduct::agent::c

// NOLINTBEGIN(readability-identifier-naming): the names of C
using namespace viaduct;
using namespace viaduct::agent::c;

viaduct_code viaduct_agent_open(const viaduct_setting* settings, uint64_t count, uint32_t flags,
                                viaduct_agent* agent, viaduct_error* error) {
  return call(error, [&]() -> Status {
    constexpr auto kOperation = "open the agent";
    VIADUCT_CHECK(need(kOperation, "agent", agent));
    VIADUCT_TRY(const auto given, arrayOf(kOperation, "settings", settings, count));
    VIADUCT_CHECK(refuseFlags(kOperation, flags, VIADUCT_READ_ENVIRONMENT));
    Settings chosen;
    if ((flags & VIADUCT_READ_ENVIRONMENT) != 0) {
      VIADUCT_TRY(chosen, settingsFromEnvironment());
    }
    for (const viaduct_setting& one : given) VIADUCT_CHECK(applySetting(one, chosen));
    VIADUCT_TRY(auto opened, Agent::open(chosen));
    give<AgentObject>(*agent, std::move(opened));
    return Ok{};
  });
}

viaduct_code viaduct_agent_close(viaduct_agent agent, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto closing, take<AgentObject>("close the agent", "agent", agent.id));
    closing->agent.close();
    return Ok{};
  });
}

viaduct_code viaduct_agent_drain(viaduct_agent agent, int64_t timeout_ns, uint64_t* cut_off,
                                 viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto open, find<AgentObject>("drain", "agent", agent.id));
    VIADUCT_TRY(const auto rest, open->agent.drain(until(timeout_ns)));
    if (cut_off != nullptr) *cut_off = rest.size();
    return Ok{};
  });
}

viaduct_code viaduct_agent_undrain(viaduct_agent agent, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto open, find<AgentObject>("undrain", "agent", agent.id));
    return open->agent.undrain();
  });
}

viaduct_code viaduct_agent_drain_left(viaduct_agent agent, viaduct_drain_left* left,
                                      uint64_t capacity, uint64_t* count, viaduct_error* error) {
  return call(error, [&]() -> Status {
    constexpr auto kOperation = "the rest of a drain";
    VIADUCT_TRY(const auto open, find<AgentObject>(kOperation, "agent", agent.id));
    VIADUCT_CHECK(need(kOperation, "count", count));
    if (capacity != 0) VIADUCT_CHECK(need(kOperation, "left", left));
    const DrainState state = open->agent.drainState();
    for (std::uint64_t i = 0; i < capacity && i < state.left.size(); ++i) {
      VIADUCT_CHECK(needSized(kOperation, left + i));
      describe(state.left[i], left[i]);
    }
    *count = state.left.size();
    return Ok{};
  });
}

viaduct_code viaduct_agent_name(viaduct_agent agent, char* buffer, uint64_t capacity,
                                uint64_t* length, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto open, find<AgentObject>("agent name", "agent", agent.id));
    return copyText("agent name", open->agent.name(), buffer, capacity, length);
  });
}

viaduct_code viaduct_agent_poll(viaduct_agent agent, int32_t* moved, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto open, find<AgentObject>("poll", "agent", agent.id));
    const bool something = open->agent.poll();
    if (moved != nullptr) *moved = something ? 1 : 0;
    return Ok{};
  });
}

viaduct_code viaduct_agent_event_fd(viaduct_agent agent, int32_t* fd, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto open, find<AgentObject>("event fd", "agent", agent.id));
    VIADUCT_CHECK(need("event fd", "fd", fd));
    VIADUCT_TRY(*fd, open->agent.eventFd());
    return Ok{};
  });
}

viaduct_code viaduct_memory_allocate(viaduct_agent agent, uint64_t bytes, const char* label,
                                     uint32_t flags, viaduct_pin* pin, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto open, find<AgentObject>("allocate", "agent", agent.id));
    VIADUCT_CHECK(need("allocate", "pin", pin));
    VIADUCT_CHECK(refuseFlags("allocate", flags, VIADUCT_HUGE_PAGES));
    const AllocateOptions options{.label = textOf(label),
                                  .huge_pages = (flags & VIADUCT_HUGE_PAGES) != 0};
    VIADUCT_TRY(auto allocated, open->agent.allocate(bytes, options));
    give<Pin>(*pin, std::move(allocated));
    return Ok{};
  });
}

viaduct_code viaduct_memory_pin(viaduct_agent agent, void* start, uint64_t bytes, const char* label,
                                viaduct_pin* pin, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto open, find<AgentObject>("pin", "agent", agent.id));
    VIADUCT_CHECK(need("pin", "pin", pin));
    return pinInto(pin, *open, Segment::host(start, bytes), label);
  });
}

viaduct_code viaduct_gpu_allocate(viaduct_agent agent, uint32_t device, uint64_t bytes,
                                  const char* label, viaduct_pin* pin, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto open, find<AgentObject>("allocate", "agent", agent.id));
    VIADUCT_CHECK(need("allocate", "pin", pin));
    VIADUCT_TRY(auto allocated,
                open->agent.allocate(bytes, {.label = textOf(label), .device = device}));
    give<Pin>(*pin, std::move(allocated));
    return Ok{};
  });
}

viaduct_code viaduct_gpu_pin(viaduct_agent agent, uint32_t device, uint64_t address, uint64_t bytes,
                             const char* label, viaduct_pin* pin, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto open, find<AgentObject>("pin", "agent", agent.id));
    VIADUCT_CHECK(need("pin", "pin", pin));
    return pinInto(pin, *open, Segment::gpu(device, address, bytes), label);
  });
}

viaduct_code viaduct_file_pin(viaduct_agent agent, const char* path, int32_t fd,
                              const viaduct_part* part, const char* label, viaduct_pin* pin,
                              viaduct_error* error) {
  return call(error, [&]() -> Status {
    constexpr auto kOperation = "pin the file";
    VIADUCT_TRY(const auto open, find<AgentObject>(kOperation, "agent", agent.id));
    VIADUCT_CHECK(need(kOperation, "pin", pin));
    VIADUCT_TRY(const FileOptions options, optionsOf(kOperation, part));
    if (path != nullptr) return pinInto(pin, *open, Segment::file(path, options), label);
    return pinInto(pin, *open, Segment::file(fd, options), label);
  });
}

viaduct_code viaduct_object_pin(viaduct_agent agent, const char* url, const viaduct_part* part,
                                const char* label, viaduct_pin* pin, viaduct_error* error) {
  return call(error, [&]() -> Status {
    constexpr auto kOperation = "pin the object";
    VIADUCT_TRY(const auto open, find<AgentObject>(kOperation, "agent", agent.id));
    VIADUCT_CHECK(need(kOperation, "pin", pin));
    VIADUCT_CHECK(need(kOperation, "url", url));
    VIADUCT_TRY(const FileOptions options, optionsOf(kOperation, part));
    return pinInto(pin, *open, Segment::object(url, options), label);
  });
}

viaduct_code viaduct_pin_describe(viaduct_pin pin, viaduct_pin_info* info, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto pinned, find<Pin>("describe", "pin", pin.id));
    VIADUCT_CHECK(needSized("describe", info));
    describe(pinned->info(), *info);
    return Ok{};
  });
}

viaduct_code viaduct_pin_close(viaduct_pin pin, viaduct_error* error) {
  return call(error, [&]() -> Status {
    VIADUCT_TRY(const auto closing, take<Pin>("release", "pin", pin.id));
    return closing->release();
  });
}

viaduct_code viaduct_note_receive(viaduct_agent agent, int64_t timeout_ns, viaduct_note_info* info,
                                  void* buffer, uint64_t capacity, viaduct_error* error) {
  return call(error, [&]() -> Status {
    constexpr auto kOperation = "receive a note";
    VIADUCT_TRY(const auto open, find<AgentObject>(kOperation, "agent", agent.id));
    VIADUCT_CHECK(needSized(kOperation, info));
    if (capacity != 0) VIADUCT_CHECK(need(kOperation, "buffer", buffer));
    std::optional<Note> note = open->takeKept();
    if (!note) {
      VIADUCT_TRY(note, open->agent.waitNote(until(timeout_ns)));
    }
    info->bytes = note->bytes.size();
    copyInto(info->from, note->from);
    Status copied = copyBytes(kOperation, note->bytes, buffer, capacity, &info->bytes);
    if (!copied) open->keep(*std::move(note));
    return copied;
  });
}
// NOLINTEND(readability-identifier-naming)
