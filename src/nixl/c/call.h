// Common parts of the calls of NIXL's C interface. They turn failures into statuses, and let no
// exception out. Threads: any.
#pragma once

#include <cstddef>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "nixl/c/nixl_capi.h"
#include "nixl/c/objects.h"
#include "nixl/status.h"

namespace viaduct::nixl::c {

// Some calls report every failure as NIXL_CAPI_ERROR_BACKEND.
enum class Failures { kByName, kBackend };

// Logs the failure, because no caller gets its text.
Status statusOf(const std::exception* caught, Failures failures) noexcept;

// Refuses a NULL among the needed pointers, then runs the body, which may return a status.
template <Failures kFailures = Failures::kByName, class Body>
Status call(std::initializer_list<const void*> needed, const Body& body) noexcept {
  for (const void* const one : needed)
    if (one == nullptr) return NIXL_CAPI_ERROR_INVALID_PARAM;
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return NIXL_CAPI_SUCCESS;
    } else {
      return body();
    }
  } catch (const std::exception& caught) {
    return statusOf(&caught, kFailures);
  } catch (...) {
    return statusOf(nullptr, kFailures);
  }
}

// Logs the functions of NIXL that the program or library at `caller` names and this library lacks,
// once in a process. A program of a newer NIXL looks a function up when it first calls it, and
// aborts if it is not there.
void warnOfLackingFunctions(const void* caller) noexcept;

template <class T>
Status create(T** object) {
  return call({object}, [&] { *object = new T(); });
}
template <class T>
Status destroy(T* object) noexcept {
  return call({object}, [&] { delete object; });
}

// Copies bytes for a caller who calls free(). No bytes: NULL.
void* copied(std::string_view bytes);
inline void giveBytes(std::string_view bytes, void** data, std::size_t* length) {
  *data = copied(bytes);
  *length = bytes.size();
}
// Copies the bytes of a caller. NULL is allowed only if `length` is 0.
std::string bytesAt(const void* data, std::size_t length);

Memory memoryOf(MemType type);  // fails for UNKNOWN and for other numbers

template <class Items>
auto& itemAt(Items& items, std::size_t index) {
  if (index >= items.size())
    fail(Outcome::kInvalid, "the index is beyond the end of the list; ask for its size first");
  return items[index];
}

// The list of a caller; fails if its kind of memory is UNKNOWN.
template <class D>
auto& usable(D* dlist) {
  dlist->list.memory = memoryOf(dlist->type);
  return dlist->list;
}

}  // namespace viaduct::nixl::c
