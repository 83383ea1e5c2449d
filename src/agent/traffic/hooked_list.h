// A list whose elements contain their links, so that it allocates nothing. Threads: one at a time.
#pragma once

#include <cstddef>

namespace viaduct::agent {

// The links of an element in one list.
template <class T>
struct Hook {
  T* before = nullptr;
  T* next = nullptr;
  bool in = false;  // the element is in the list
};

template <class T, Hook<T> T::* kHook>
class HookedList {
 public:
  HookedList() = default;
  HookedList(const HookedList&) = delete;
  HookedList& operator=(const HookedList&) = delete;
  ~HookedList() = default;

  bool empty() const { return first_ == nullptr; }
  // Adds an element at the end.
  void add(T& one) {
    one.*kHook = {.before = last_, .in = true};
    (last_ != nullptr ? (last_->*kHook).next : first_) = &one;
    last_ = &one;
  }
  void remove(T& one) {
    const Hook<T> links = one.*kHook;
    for (Walk* walk = walks_; walk != nullptr; walk = walk->outer)
      if (walk->next == &one) walk->next = links.next;
    (links.before != nullptr ? (links.before->*kHook).next : first_) = links.next;
    (links.next != nullptr ? (links.next->*kHook).before : last_) = links.before;
    one.*kHook = {};
  }
  // Calls `f` with each element. `f` may remove any elements, and destroy them.
  template <class F>
  void forEach(F f) {
    Walk walk{.next = first_, .outer = walks_};
    walks_ = &walk;
    while (T* const one = walk.next) {
      walk.next = (one->*kHook).next;
      f(*one);
    }
    walks_ = walk.outer;
  }
  template <class P>
  bool none(P matches) const {
    for (const T* one = first_; one != nullptr; one = (one->*kHook).next)
      if (matches(*one)) return false;
    return true;
  }

 private:
  struct Walk {
    T* next = nullptr;
    Walk* outer = nullptr;
  };
  T* first_ = nullptr;
  T* last_ = nullptr;
  Walk* walks_ = nullptr;  // running, the innermost first
};

}  // namespace viaduct::agent
