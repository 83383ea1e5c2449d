// Memory for objects that begin at a cache line. Threads: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace viaduct::base {

// Takes memory from the plain operator new, and one cache line more. Before glibc 2.38, aligned
// allocation takes ten times as many instructions, because it never reuses a freed piece as it is.
template <class T>
struct CacheLines {
  using value_type = T;
  static constexpr std::size_t kLine = 64;

  CacheLines() = default;
  template <class Other>
  CacheLines(const CacheLines<Other>& /*other*/) {}

  T* allocate(std::size_t count) {
    static_assert(alignof(T) <= kLine);
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, sizeof(T), &bytes) ||
        __builtin_add_overflow(bytes, kLine, &bytes))
      throw std::bad_array_new_length();
    auto* const got = static_cast<std::byte*>(::operator new(bytes));
    // Operator new aligns to 16 bytes or more, so there is room for the pointer.
    auto* const out = got + kLine - reinterpret_cast<std::uintptr_t>(got) % kLine;
    std::memcpy(out - sizeof got, &got, sizeof got);
    return reinterpret_cast<T*>(out);
  }
  void deallocate(T* object, std::size_t /*count*/) {
    std::byte* got = nullptr;
    std::memcpy(&got, reinterpret_cast<const std::byte*>(object) - sizeof got, sizeof got);
    ::operator delete(got);
  }
  friend bool operator==(const CacheLines& /*one*/, const CacheLines& /*other*/) { return true; }
};

}  // namespace viaduct::base
