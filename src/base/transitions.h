// Describes a state machine by a table of its transitions, with a reason for each. Threads: one at
// a time; now() and is() any.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

namespace viaduct::base {

// One row of a table: in any state of `from`, `event` leads to `to`.
template <class State, class Event>
struct Transition {
  std::uint32_t from;  // a set of states, made by anyOf()
  Event event;
  State to;
  std::string_view reason;
};

template <class... States>
constexpr std::uint32_t anyOf(States... states) {
  return ((1U << static_cast<unsigned>(states)) | ...);
}

// Reports an event that the table `name` does not allow, which is a bug of this library. A build
// with assertions stops the process; other builds log an error.
void reportForbiddenStep(std::string_view name, unsigned state, unsigned event);

// A state that changes only as `Table` allows. `Table` has two enums State and Event, the
// transitions kSteps, and a kName for the log. The state starts as the first one.
template <class Table>
class Machine {
 public:
  using State = typename Table::State;
  using Event = typename Table::Event;

  // Returns the state after `event`, or nothing if no row allows the event.
  static constexpr std::optional<State> after(State state, Event event) {
    for (const auto& row : Table::kSteps)
      if (row.event == event && (row.from & anyOf(state)) != 0) return row.to;
    return std::nullopt;
  }

  Machine() = default;
  Machine(const Machine& other) : now_(other.now()) {}
  Machine& operator=(const Machine&) = delete;
  ~Machine() = default;

  State now() const { return now_.load(std::memory_order_acquire); }
  bool is(State state) const { return now() == state; }
  // An event without a row leaves the state unchanged, and is reported.
  void step(Event event) {
    const auto next = after(now(), event);
    if (!next) [[unlikely]]
      return reportForbiddenStep(Table::kName, static_cast<unsigned>(now()),
                                 static_cast<unsigned>(event));
    now_.store(*next, std::memory_order_release);
  }

 private:
  std::atomic<State> now_{};
};

}  // namespace viaduct::base
