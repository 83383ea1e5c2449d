// Memory for objects that begin at a cache line. Threads: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace viaduct::base {

// Keeps a thread's last freed piece of a size that malloc() does not cache per thread. A new
// transfer mostly has the size of the transfer that was released before.
class SparePiece {
 public:
  SparePiece() = default;
  SparePiece(const SparePiece&) = delete;
  SparePiece& operator=(const SparePiece&) = delete;
  ~SparePiece() {
    ::operator delete(piece_);
    over_ = true;
  }
  void* take(std::size_t bytes) {
    if (over_ || piece_ == nullptr || bytes != bytes_) return nullptr;
    return std::exchange(piece_, nullptr);
  }
  // False: the piece was not kept, and the caller frees it.
  bool keep(void* piece, std::size_t bytes) {
    constexpr std::size_t kKeptByMalloc = 1024, kMost = 4096;
    if (over_ || piece_ != nullptr || bytes <= kKeptByMalloc || bytes > kMost) return false;
    piece_ = piece;
    bytes_ = bytes;
    return true;
  }

 private:
  void* piece_ = nullptr;
  std::size_t bytes_ = 0;
  bool over_ = false;  // the thread ends
};
inline thread_local SparePiece spare_piece;

// An allocator that takes memory from the plain operator new, one cache line more than asked for.
// Before glibc 2.38, aligned allocation takes ten times as many instructions, because it never
// reuses a freed piece as it is.
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
    void* const spare = spare_piece.take(bytes);
    auto* const got = static_cast<std::byte*>(spare != nullptr ? spare : ::operator new(bytes));
    // Operator new aligns to 16 bytes or more, so there is room for the pointer.
    auto* const out = got + kLine - reinterpret_cast<std::uintptr_t>(got) % kLine;
    std::memcpy(out - sizeof got, static_cast<const void*>(&got), sizeof got);
    return reinterpret_cast<T*>(out);
  }
  void deallocate(T* object, std::size_t count) {
    std::byte* got = nullptr;
    std::memcpy(static_cast<void*>(&got), reinterpret_cast<const std::byte*>(object) - sizeof got,
                sizeof got);
    if (!spare_piece.keep(got, count * sizeof(T) + kLine)) ::operator delete(got);
  }
  friend bool operator==(const CacheLines& /*one*/, const CacheLines& /*other*/) { return true; }
};

}  // namespace viaduct::base
