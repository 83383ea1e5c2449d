#include "agent/c/call.h"

#include <cstring>
#include <new>
#include <system_error>

#include "base/random.h"

namespace viaduct::agent::c {
namespace {

// Programs are compiled with these numbers, so a changed enumerator must not compile.
constexpr viaduct_code codeOf(Code code) { return static_cast<viaduct_code>(code) + 1; }
static_assert(codeOf(Code::kInvalid) == VIADUCT_INVALID);
static_assert(codeOf(Code::kNotFound) == VIADUCT_NOT_FOUND);
static_assert(codeOf(Code::kUnsupported) == VIADUCT_UNSUPPORTED);
static_assert(codeOf(Code::kDenied) == VIADUCT_DENIED);
static_assert(codeOf(Code::kBusy) == VIADUCT_BUSY);
static_assert(codeOf(Code::kTimeout) == VIADUCT_TIMEOUT);
static_assert(codeOf(Code::kCancelled) == VIADUCT_CANCELLED);
static_assert(codeOf(Code::kPeerLost) == VIADUCT_PEER_LOST);
static_assert(codeOf(Code::kDevice) == VIADUCT_DEVICE);
static_assert(codeOf(Code::kExhausted) == VIADUCT_EXHAUSTED);
static_assert(codeOf(Code::kProtocol) == VIADUCT_PROTOCOL);
static_assert(codeOf(Code::kStale) == VIADUCT_STALE);
static_assert(codeOf(Code::kCorrupt) == VIADUCT_CORRUPT);
static_assert(codeOf(Code::kDraining) == VIADUCT_DRAINING);
static_assert(static_cast<int>(MemoryKind::kHost) == VIADUCT_MEMORY_HOST);
static_assert(static_cast<int>(MemoryAccess::kReadWrite) == VIADUCT_READ_WRITE);
static_assert(static_cast<int>(MemoryAccess::kReadOnly) == VIADUCT_READ_ONLY);
static_assert(static_cast<int>(MemoryAccess::kWriteOnly) == VIADUCT_WRITE_ONLY);
// Programs are compiled with these sizes: fields may only be added.
static_assert(sizeof(viaduct_error) == 2704);
static_assert(sizeof(viaduct_pin_info) == 32);
static_assert(sizeof(viaduct_note_info) == 272);
static_assert(sizeof(viaduct_drain_left) == 336);

}  // namespace

std::uint64_t freshHandle() {
  // With a random start, a number that was never a handle, such as 1, names nothing.
  static std::atomic<std::uint64_t> next{[] {
    const auto random = base::secretNumber();
    return (random ? *random >> 2U : 0) + (std::uint64_t{1} << 62U);
  }()};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Error misuse(const char* operation, std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = operation,
          .detail = std::move(detail),
          .remedy = std::move(remedy)};
}

Error closedHandle(const char* operation, const char* kind) {
  return misuse(operation,
                fmt::format("the {} is 0, closed, or of the process before a fork()", kind));
}

Error fromException(const std::exception* caught) {
  if (dynamic_cast<const std::bad_alloc*>(caught) != nullptr)
    return {.code = Code::kExhausted, .operation = "allocate", .detail = "out of memory"};
  if (const auto* system = dynamic_cast<const std::system_error*>(caught))
    return systemError(Code::kExhausted, "call", system->code().value());
  return {.code = Code::kDevice,
          .operation = "call",
          .detail = caught == nullptr ? "an unknown exception" : caught->what()};
}

viaduct_code succeed(viaduct_error* error) {
  if (error != nullptr) {
    error->code = VIADUCT_OK;
    error->text[0] = '\0';
  }
  return VIADUCT_OK;
}

viaduct_code fail(const Error& why, viaduct_error* error) {
  if (error != nullptr) {
    error->code = codeOf(why.code);
    error->os_errno = why.os_errno;
    copyInto(error->operation, why.operation);
    copyInto(error->device, why.device);
    copyInto(error->peer, why.peer);
    copyInto(error->file, why.file);
    copyInto(error->detail, why.detail);
    copyInto(error->cause, why.cause);
    copyInto(error->remedy, why.remedy);
    copyInto(error->text, why.text());
  }
  return codeOf(why.code);
}

Result<std::span<const std::byte>> bytesOf(const char* operation, const void* start,
                                           std::uint64_t length) {
  if (start == nullptr && length != 0)
    return misuse(operation, fmt::format("{} bytes at NULL", length));
  return std::span(static_cast<const std::byte*>(start), length);
}

Status copyBytes(const char* operation, std::span<const std::byte> bytes, void* buffer,
                 std::uint64_t capacity, std::uint64_t* length) {
  VIADUCT_CHECK(need(operation, "length", length));
  *length = bytes.size();
  if (capacity < bytes.size())
    return Error{
        .code = Code::kExhausted,
        .operation = operation,
        .detail = fmt::format("the buffer has {} bytes; {} are needed", capacity, bytes.size()),
        .remedy = "call again with a larger buffer"};
  if (!bytes.empty()) {
    VIADUCT_CHECK(need(operation, "buffer", buffer));
    std::memcpy(buffer, bytes.data(), bytes.size());
  }
  return Ok{};
}

Status copyText(const char* operation, std::string_view text, char* buffer, std::uint64_t capacity,
                std::uint64_t* length) {
  const std::string with_nul(text);
  const Status copied =
      copyBytes(operation, std::as_bytes(std::span(with_nul.c_str(), with_nul.size() + 1)), buffer,
                capacity, length);
  if (length != nullptr) *length = text.size();
  return copied;
}

void describe(const PinInfo& pin, viaduct_pin_info& into) {
  into.address = pin.address;
  into.bytes = pin.bytes;
  into.kind = static_cast<std::int32_t>(pin.kind);
  into.access = static_cast<std::int32_t>(pin.access);
}

}  // namespace viaduct::agent::c

// NOLINTBEGIN(readability-identifier-naming): the names of C
using viaduct::Code;

const char* viaduct_code_name(viaduct_code code) {
  if (code == VIADUCT_OK) return "ok";
  if (code < VIADUCT_OK || code > VIADUCT_DRAINING) return "unknown code";
  return viaduct::codeName(static_cast<Code>(code - 1));
}

uint32_t viaduct_abi_version() { return VIADUCT_ABI_VERSION; }
const char* viaduct_version() { return VIADUCT_VERSION; }
// NOLINTEND(readability-identifier-naming)
