// Common parts of all calls of the C interface. They take handles and buffers, turn errors into
// codes, and let no exception out. Threads: any.
#pragma once

#include <fmt/format.h>
#include <viaduct/c.h>
#include <viaduct/viaduct.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "agent/c/handles.h"

namespace viaduct::agent::c {

Error misuse(const char* operation, std::string detail, std::string remedy = {});
Error fromException(const std::exception* caught);

// True for NULL, and for a struct of a caller that knows every field of version 1.
template <class T>
bool isSized(const T* sized) {
  return sized == nullptr || sized->size >= sizeof(T);
}
// Refuses an output that is NULL or too short.
template <class T>
Status needSized(const char* operation, const T* sized) {
  if (sized != nullptr && isSized(sized)) return Ok{};
  return misuse(operation,
                sized == nullptr ? "a struct to fill is missing"
                                 : fmt::format("the struct to fill has size {}; {} is the least",
                                               sized->size, sizeof(T)),
                "set its field `size` to its sizeof, as VIADUCT_INIT does");
}
// Refuses a struct of the caller that is too short. It may be NULL.
template <class T>
Status checkSized(const char* operation, const T* sized) {
  return sized == nullptr ? Status(Ok{}) : needSized(operation, sized);
}
inline Status need(const char* operation, const char* what, const void* given) {
  if (given != nullptr) return Ok{};
  return misuse(operation, fmt::format("{} is NULL", what));
}

viaduct_code succeed(viaduct_error* error);
viaduct_code fail(const Error& why, viaduct_error* error);

// Runs the body of a call, which returns a Status.
template <class F>
viaduct_code call(viaduct_error* error, F&& body) noexcept {
  if (!isSized(error)) return VIADUCT_INVALID;
  try {
    const Status done = std::forward<F>(body)();
    return done ? succeed(error) : fail(done.error(), error);
  } catch (const std::exception& caught) {
    return fail(fromException(&caught), error);
  } catch (...) {
    return fail(fromException(nullptr), error);
  }
}

Error closedHandle(const char* operation, const char* kind);

template <class T>
Result<std::shared_ptr<T>> find(const char* operation, const char* kind, std::uint64_t handle) {
  auto found = Handles<T>::ofThisProcess().find(handle);
  if (found == nullptr) return closedHandle(operation, kind);
  return found;
}
template <class T>
Result<std::shared_ptr<T>> take(const char* operation, const char* kind, std::uint64_t handle) {
  auto taken = Handles<T>::ofThisProcess().take(handle);
  if (taken == nullptr) return closedHandle(operation, kind);
  return taken;
}
template <class T, class H, class... Args>
void give(H& handle, Args&&... args) {
  handle.id = Handles<T>::ofThisProcess().add(std::make_shared<T>(std::forward<Args>(args)...));
}

inline Deadline until(std::int64_t timeout_ns) {
  return timeout_ns < 0 ? Deadline::never() : Deadline(std::chrono::nanoseconds(timeout_ns));
}

// The array of `count` elements at `first`, which may be NULL only if `count` is 0. No call has a
// use for more elements than blocks have numbers.
template <class T>
Result<std::span<const T>> arrayOf(const char* operation, const char* what, const T* first,
                                   std::uint64_t count) {
  if (count != 0) VIADUCT_CHECK(need(operation, what, first));
  if (count > std::uint64_t{1} << 32U)
    return misuse(operation, fmt::format("{} {}; the limit is 2^32", count, what));
  return std::span(first, count);
}
// The `length` bytes at `start`, which may be NULL only if `length` is 0.
Result<std::span<const std::byte>> bytesOf(const char* operation, const void* start,
                                           std::uint64_t length);
Status copyBytes(const char* operation, std::span<const std::byte> bytes, void* buffer,
                 std::uint64_t capacity, std::uint64_t* length);
// Adds a NUL, which `*length` does not count.
Status copyText(const char* operation, std::string_view text, char* buffer, std::uint64_t capacity,
                std::uint64_t* length);

// Cuts a text that is too long, at the end of a character.
template <std::size_t N>
void copyInto(char (&field)[N], std::string_view text) {
  constexpr std::string_view kMore = "...";
  const bool fits = text.size() < N;
  std::size_t kept = fits ? text.size() : N - 1 - kMore.size();
  while (!fits && kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xc0U) == 0x80U) --kept;
  text.copy(field, kept);
  if (!fits) kept += kMore.copy(field + kept, kMore.size());
  field[kept] = '\0';
}

// The blocks that `indices` name; NULL with count 0 takes all.
Result<Selection> selectionOf(const char* operation, viaduct_blocks blocks, const uint32_t* indices,
                              uint64_t count);
Result<Priority> priorityOf(const char* operation, int32_t value);
void describe(const PinInfo& pin, viaduct_pin_info& into);

}  // namespace viaduct::agent::c
