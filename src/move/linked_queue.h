// An intrusive FIFO queue. An element is in one queue at a time, because the queue uses its member
// `next`. Threads: one at a time.
#pragma once

namespace viaduct::move {

template <class T>
class LinkedQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  T* front() const { return first_; }
  void push(T& one) {
    one.next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = &one;
    last_ = &one;
  }
  T& pop() {
    T& one = *first_;
    first_ = one.next;
    if (first_ == nullptr) last_ = nullptr;
    return one;
  }
  void append(LinkedQueue& other) {
    while (!other.empty()) push(other.pop());
  }
  // Visits all elements, so call it rarely.
  void remove(const T& one) {
    LinkedQueue rest;
    while (!empty())
      if (T& each = pop(); &each != &one) rest.push(each);
    *this = rest;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
};

}  // namespace viaduct::move
