// A limit on the bytes that one party may use, and on the total of all its siblings. Threads: one
// at a time for all budgets that share `whole`.
#pragma once

#include <viaduct/result.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace viaduct::base {

class Budget {
 public:
  // `whole` is the larger budget that this one and its siblings draw from. `whole` outlives them.
  // Null: there is no larger budget.
  explicit Budget(std::uint64_t most, Budget* whole = nullptr) : most_(most), whole_(whole) {}
  ~Budget() { give(used_); }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  std::uint64_t used() const { return used_; }
  std::uint64_t left() const {
    const std::uint64_t own = most_ - used_;
    return whole_ == nullptr ? own : std::min(own, whole_->left());
  }

  // False: fewer than `bytes` are left, and none was taken.
  bool take(std::uint64_t bytes) {
    if (bytes > left()) return false;
    used_ += bytes;
    if (whole_ != nullptr) whole_->used_ += bytes;
    return true;
  }
  void give(std::uint64_t bytes) {
    used_ -= bytes;
    if (whole_ != nullptr) whole_->give(bytes);
  }

  // The error after take() returned false. `whose` names the user of this budget ("one peer"), and
  // `all` those of the whole ("all peers").
  Error refusal(std::string operation, std::uint64_t bytes, const std::string& whose,
                const std::string& all) const {
    std::string detail = std::to_string(bytes) + " bytes do not fit: " + std::to_string(left()) +
                         " are left of the " + std::to_string(most_) + " for " + whose;
    if (whole_ != nullptr) detail += " and the " + std::to_string(whole_->most_) + " for " + all;
    return {
        .code = Code::kExhausted, .operation = std::move(operation), .detail = std::move(detail)};
  }

 private:
  const std::uint64_t most_;
  Budget* const whole_;
  std::uint64_t used_ = 0;
};

}  // namespace viaduct::base
