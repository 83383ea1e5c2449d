#include "meet/etcd/etcd.h"

#include <fmt/format.h>

#include <chrono>
#include <future>
#include <utility>

#include "meet/etcd/context.h"
#include "meet/etcd/directory.h"
#include "meet/etcd/membership.h"

namespace viaduct::meet {
namespace etcd {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAbandon{1000};

// The clock's end is no moment that can be added to.
Clock::time_point clamped(Deadline until) {
  return std::min(until.at(), Clock::now() + std::chrono::hours(24 * 365));
}

Error invalid(std::string operation, std::string detail) {
  return {.operation = std::move(operation), .detail = std::move(detail)};
}

Status checkRequest(const JoinRequest& request) {
  const std::string operation =
      fmt::format("join group \"{}\"", request.group.substr(0, kMaxNameBytes));
  if (request.group.empty() || request.group.size() > kMaxNameBytes)
    return invalid(operation, fmt::format("a group's name has 1 to {} bytes", kMaxNameBytes));
  if (request.size == 0 || request.size > kMaxMembers)
    return invalid(operation,
                   fmt::format("a group has 1 to {} members, not {}", kMaxMembers, request.size));
  if (request.rank && *request.rank >= request.size)
    return invalid(operation,
                   fmt::format("rank {} is not below the size {}", *request.rank, request.size));
  if (request.name.size() > kMaxNameBytes)
    return invalid(operation, fmt::format("a member's name has up to {} bytes", kMaxNameBytes));
  if (request.about.size() > kMaxAboutBytes)
    return invalid(operation, fmt::format("a member's description has up to {} bytes, not {}",
                                          kMaxAboutBytes, request.about.size()));
  return Ok{};
}

Error stopped(std::string operation) {
  return {.code = Code::kCancelled, .operation = std::move(operation), .detail = "asked to stop"};
}

class EtcdGroup final : public Group {
 public:
  EtcdGroup(std::shared_ptr<EtcdContext> context, std::unique_ptr<Membership> member, Roster roster)
      : context_(std::move(context)), member_(std::move(member)), roster_(std::move(roster)) {}
  ~EtcdGroup() override {
    context_->run([this] {
      member_->leave();
      member_.reset();
    });
  }
  EtcdGroup(const EtcdGroup&) = delete;
  EtcdGroup& operator=(const EtcdGroup&) = delete;

  const Roster& roster() const override { return roster_; }
  Result<std::vector<std::string>> gather(std::string value, Deadline until,
                                          const StopFlag& stop) override;
  std::optional<Error> trouble() const override {
    return member_->board.look([this] { return member_->state.trouble; });
  }
  void requestStop() override {
    context_->loop().post([member = member_.get()] { member->requestStop(); });
  }
  std::optional<std::uint32_t> stopRequestedBy() override {
    return member_->board.look([this] { return member_->state.stop_requested_by; });
  }
  void abandon(const std::string& reason) override;
  Status finish(Deadline until) override;

 private:
  std::shared_ptr<EtcdContext> context_;
  std::unique_ptr<Membership> member_;
  Roster roster_;
  std::uint64_t round_ = 0;
  bool open_ = false;  // our value for round_ is given, its outcome not taken
};

Result<std::vector<std::string>> EtcdGroup::gather(std::string value, Deadline until,
                                                   const StopFlag& stop) {
  if (value.size() > kMaxValueBytes)
    return invalid("gather",
                   fmt::format("a value has up to {} bytes, not {}", kMaxValueBytes, value.size()));
  Membership::State& state = member_->state;
  if (auto why = trouble()) return *why;
  if (!std::exchange(open_, true)) {
    ++round_;
    context_->loop().post(
        [member = member_.get(), round = round_, value = std::move(value)]() mutable {
          member->give(round, std::move(value));
        });
  }
  const auto ready = [&] { return state.trouble || state.round == round_ || state.missing; };
  const auto at = clamped(until);
  const auto left = at - Clock::now();
  const auto ask_at = at - std::min<Duration>(left / 4, milliseconds(200));
  Board& board = member_->board;
  const auto whole = [&] { return state.trouble || state.round == round_; };
  const auto ask = [member = member_.get(), round = round_](Clock::time_point answer_at) {
    member->askWhoIsMissing(round, answer_at);
  };
  if (!waitAloud(*context_, board, state.missing, ask_at, stop, whole,
                 [ask] { ask(Clock::now() + kAskTime); })) {
    if (stop.load(std::memory_order_relaxed)) return stopped("gather");
    board.change([&] { state.missing.reset(); });
    context_->loop().post([ask, at] { ask(at); });
    board.wait(at + kGrace, &stop, ready);
  }
  return board.look([&]() -> Result<std::vector<std::string>> {
    if (state.round == round_) {
      open_ = false;
      return std::move(state.values);
    }
    if (state.trouble) return *state.trouble;
    if (state.missing) return *state.missing;
    return Error{.code = Code::kTimeout, .operation = "gather", .detail = "the deadline passed"};
  });
}

void EtcdGroup::abandon(const std::string& reason) {
  auto done = std::make_shared<std::promise<void>>();
  auto written = done->get_future();
  context_->loop().post([member = member_.get(), reason, done] {
    member->abandon(reason, [done] { done->set_value(); });
  });
  written.wait_for(kAbandon);
}

Status EtcdGroup::finish(Deadline until) {
  const auto at = clamped(until);
  Membership::State& state = member_->state;
  member_->board.change([&] { state.unfinished.reset(); });
  context_->loop().post([member = member_.get(), at] { member->finish(at); });
  member_->board.wait(at + kGrace, nullptr, [&] { return state.finished || state.unfinished; });
  return member_->board.look([&]() -> Status {
    if (state.finished) return Ok{};
    if (state.unfinished) return *state.unfinished;
    return Error{.code = Code::kTimeout,
                 .operation = "finish",
                 .detail = "etcd did not answer, or no member became the group's leader in time"};
  });
}

class EtcdPlace final : public MeetingPlace {
 public:
  explicit EtcdPlace(std::shared_ptr<EtcdContext> context) : context_(std::move(context)) {}
  std::string text() const override { return context_->text(); }
  Result<std::unique_ptr<Group>> join(const JoinRequest& request, Deadline until,
                                      const StopFlag& stop) override;
  Result<std::unique_ptr<PublishedName>> publish(const std::string& name, const std::string& value,
                                                 Deadline until) override {
    return publishName(context_, name, value, clamped(until));
  }
  Result<std::string> find(const std::string& name, Deadline until, const StopFlag& stop) override {
    return findName(*context_, name, clamped(until), stop);
  }

 private:
  std::shared_ptr<EtcdContext> context_;
};

Result<std::unique_ptr<Group>> EtcdPlace::join(const JoinRequest& request, Deadline until,
                                               const StopFlag& stop) {
  VIADUCT_CHECK(checkRequest(request));
  const auto at = clamped(until);
  auto member = std::make_unique<Membership>(*context_, request, at);
  context_->loop().post([member = member.get()] { member->begin(); });
  Membership::State& state = member->state;
  const auto decided = [&] { return state.roster || state.refused; };
  bool known = waitAloud(*context_, member->board, state.missing, at + kGrace, stop, decided,
                         [member = member.get()] { member->askWhoIsMissing(); });
  if (!known && !stop.load(std::memory_order_relaxed)) {
    // On a busy machine the loop may be late: calls that have failed say so before this has run.
    context_->run([] {});
    known = member->board.look(decided);
  }
  auto roster = member->board.look([&] { return state.roster; });
  if (known && roster)
    return std::unique_ptr<Group>(
        std::make_unique<EtcdGroup>(context_, std::move(member), *std::move(roster)));
  const auto refused = member->board.look([&] { return state.refused; });
  context_->run([&] {
    member->leave();
    member.reset();
  });
  if (refused) return *refused;
  const std::string operation = fmt::format("join group \"{}\"", request.group);
  if (stop.load(std::memory_order_relaxed)) return stopped(operation);
  return Error{.code = Code::kTimeout, .operation = operation, .detail = "etcd did not answer"};
}

}  // namespace
}  // namespace etcd

Result<std::unique_ptr<MeetingPlace>> openEtcd(const PlaceOptions& options) {
  VIADUCT_TRY(auto context, etcd::EtcdContext::open(options));
  return std::unique_ptr<MeetingPlace>(std::make_unique<etcd::EtcdPlace>(std::move(context)));
}

}  // namespace viaduct::meet
