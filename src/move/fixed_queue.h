// A ring buffer of N elements, a power of two. It never allocates. Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>

namespace viaduct::move {

template <class T, std::size_t N>
class FixedQueue {
  static_assert((N & (N - 1)) == 0);

 public:
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ == N; }
  std::size_t size() const { return count_; }
  T& front() { return slots_[first_]; }
  void push(const T& value) { slots_[(first_ + count_++) & (N - 1)] = value; }
  void pop() {
    first_ = (first_ + 1) & (N - 1);
    --count_;
  }

 private:
  std::array<T, N> slots_{};
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace viaduct::move
