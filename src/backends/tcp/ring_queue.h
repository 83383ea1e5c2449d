// A growing ring buffer. It keeps its memory, so a busy queue does not allocate. Threads: one at a
// time.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace viaduct::tcp {

template <class T>
class RingQueue {
 public:
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) { return slots_[(first_ + i) & (slots_.size() - 1)]; }
  const T& operator[](std::size_t i) const { return slots_[(first_ + i) & (slots_.size() - 1)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  void push(T value) {
    if (count_ == slots_.size()) grow();
    ++count_;
    (*this)[count_ - 1] = std::move(value);
  }
  T pop() {
    T out = std::move(front());
    first_ = (first_ + 1) & (slots_.size() - 1);
    --count_;
    return out;
  }
  // Empties the queue, and frees its memory.
  void reset() { *this = RingQueue(); }
  void trim() {
    if (count_ == 0 && slots_.size() > kKept) reset();
  }

 private:
  static constexpr std::size_t kKept = 8;
  void grow() {
    std::vector<T> wider(slots_.empty() ? kKept : 2 * slots_.size());
    for (std::size_t i = 0; i < count_; ++i) wider[i] = std::move((*this)[i]);
    slots_ = std::move(wider);
    first_ = 0;
  }
  std::vector<T> slots_;  // its size is a power of two
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace viaduct::tcp
