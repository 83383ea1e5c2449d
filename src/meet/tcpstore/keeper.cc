#include "meet/tcpstore/keeper.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/blocked_signals.h"
#include "base/log.h"
#include "base/poller.h"
#include "base/random.h"

namespace viaduct::meet::tcpstore {
namespace {

constexpr std::chrono::seconds kGoodbye{1}, kStepTime{3};
// A withdrawal that the store has not answered is tried again after this time.
constexpr std::chrono::seconds kAgain{1};
// A store counts as lost after this much silence beyond the lease, as an etcd does.
constexpr std::chrono::seconds kPatience{5};

std::string randomOwner() {
  const auto first = base::secretNumber(), second = base::secretNumber();
  return fmt::format("{:016x}{:08x}", first ? *first : 0,
                     second ? static_cast<std::uint32_t>(*second) : 0U);
}

Error takenOver(const std::string& key) {
  return {.code = Code::kPeerLost,
          .operation = "TCPStore",
          .detail = fmt::format("another process has taken over {}", key),
          .cause =
              "this process was stopped, or could not reach the store, for longer than the "
              "lease",
          .remedy = "start it again, or give it another name"};
}

}  // namespace

Keeper::Keeper(std::shared_ptr<Client> client, const std::string& root, Duration lease)
    : client_(std::move(client)),
      owner_(randomOwner()),
      keys_(ownerKeys(root, owner_)),
      lease_(lease),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Keeper::~Keeper() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  wake();
  thread_.join();
}

void Keeper::wake() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake_.get(), &one, sizeof one));
}

Status Keeper::start(const Wait& wait) {
  const std::lock_guard lock(mutex_);
  if (started_) return Ok{};
  if (!wake_) return systemError(Code::kExhausted, "eventfd", errno);
  VIADUCT_CHECK(client_->set(keys_.beat, "0", wait));
  const base::BlockedSignals blocked;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return systemError(Code::kExhausted, "start the TCPStore's thread", error.code().value());
  }
  started_ = true;
  return Ok{};
}

void Keeper::add(std::shared_ptr<KeptName> name) {
  const std::lock_guard lock(mutex_);
  names_[name->key] = std::move(name);
}

bool Keeper::keeps(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return names_.contains(key);
}

void Keeper::remove(const std::shared_ptr<KeptName>& name) {
  name->leaving = true;
  leave(name);
}

void Keeper::undo(const std::shared_ptr<KeptName>& name) {
  {
    const std::lock_guard lock(mutex_);
    left_.push_back(name);
  }
  wake();
}

std::vector<std::shared_ptr<KeptName>> Keeper::names() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<KeptName>> out;
  out.reserve(names_.size());
  for (const auto& [key, name] : names_) out.push_back(name);
  return out;
}

// The limits of a step that a working store ends at once.
Limits Keeper::step() const {
  return {.until = Clock::now() + kStepTime, .goes_on = [this] { return !stopping_; }};
}

void Keeper::run() {
  pthread_setname_np(pthread_self(), "viaduct-tcpstore");
  heard_ = checked_ = Clock::now();
  while (!stopping_) {
    withdrawLeaving();
    if (!connection_ && !connected()) continue;
    if (!answered()) connection_.reset();
  }
}

// Connects, and checks the names, because the store may be another one than before.
bool Keeper::connected() {
  auto opened = client_->connect(step());
  if (opened) {
    connection_ = *std::move(opened);
    const Dialect dialect = connection_->dialect();
    const auto set = connection_->ask(
        setQuery(dialect, keys_.beat, std::to_string(answers_)) + countKeysQuery(dialect),
        Form::kNumber, step());
    if (set) {
      pauses_.reset();
      heard_ = Clock::now();
      check();
      withdrawLeft();
      return true;
    }
    opened = set.error();
    connection_.reset();
  }
  checkSilence(opened.error());
  sleepUntil(Clock::now() + pauses_.next());
  return false;
}

// Waits for a question and answers it. False: the connection is unusable.
bool Keeper::answered() {
  const auto all = names();
  const bool strayed = std::ranges::any_of(all, [](const auto& name) { return !name->ours; });
  const auto until = hasLeft() ? Clock::now() + kAgain
                     : strayed ? Clock::now() + lease_
                               : Clock::time_point::max();
  const auto asked = connection_->ask(waitQuery(connection_->dialect(), keys_.question(answers_)),
                                      Form::kByte, {.until = until, .wake = wake_.get()});
  if (asked && asked->number == 0) {
    withdrawLeft();
    if (Status done = answer(); !done) return false;
    heard_ = Clock::now();
    if (heard_ - checked_ > lease_ / 2) check();
    return true;
  }
  if (strayed) check();
  sleepUntil(Clock::now());  // consumes the wake-up
  return false;
}

// Sets the beat before the answer. A later reader then asks with the next number, so an answer that
// it finds is newer than its question.
Status Keeper::answer() {
  const Dialect dialect = connection_->dialect();
  const std::uint64_t n = answers_++;
  std::string queries = setQuery(dialect, keys_.beat, std::to_string(answers_)) +
                        setQuery(dialect, keys_.answer(n), "1") +
                        deleteQuery(dialect, keys_.question(n));
  VIADUCT_CHECK(connection_->ask(queries, Form::kNumber, step()));
  if (n < 2) return Ok{};
  // Readers of answer n - 2 have read it by now.
  VIADUCT_CHECK(connection_->ask(deleteQuery(dialect, keys_.answer(n - 2)), Form::kNumber, step()));
  return Ok{};
}

void Keeper::check() {
  checked_ = Clock::now();
  for (const auto& name : names()) {
    const std::lock_guard lock(name->mutex);
    if (!name->over) check(*name);
  }
}

void Keeper::check(KeptName& name) {
  const Wait wait{.until = Clock::now() + kStepTime,
                  .stop = &name.leaving,
                  .operation = fmt::format("keep {}", name.key)};
  const auto found = client_->read(name.key, wait);
  if (!found) return;
  if (*found && **found == encodeRecord(name.head)) {
    name.ours = true;
    return;
  }
  const auto there = *found ? decodeRecord<Head>(**found) : std::nullopt;
  if (!*found || (there && !there->present)) return publishAgain(name, *found, wait);
  if (name.lost) {
    name.over = true;
    return name.lost(takenOver(name.key));
  }
  if (name.ours)
    base::log(base::LogLevel::kWarning, "{}; it is published again once it is free",
              takenOver(name.key).text());
  name.ours = false;
}

void Keeper::publishAgain(KeptName& name, const std::optional<std::string>& found,
                          const Wait& wait) {
  const auto there = found ? decodeRecord<Head>(*found) : std::nullopt;
  Head next = name.head;
  next.generation = there ? there->generation + 1 : 1;
  const std::string record = encodeRecord(next);
  const auto now = client_->compareSet(name.key, found.value_or(""), record, wait);
  if (!now || *now != record) return;
  name.head = std::move(next);
  name.ours = true;
  static_cast<void>(client_->set(changeKey(name.key, name.head.generation), "1", wait));
}

// Gives the name up. If the store does not answer, the thread tries again before it answers the
// next question, because readers would still believe the name.
void Keeper::leave(const std::shared_ptr<KeptName>& name) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = names_.find(name->key);
    if (at != names_.end() && at->second == name) names_.erase(at);
  }
  const std::lock_guard lock(name->mutex);
  if (std::exchange(name->over, true) || withdraw(*name)) return;
  const std::lock_guard all(mutex_);
  left_.push_back(name);
}

void Keeper::withdrawLeft() {
  std::vector<std::shared_ptr<KeptName>> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(left_);
  }
  std::erase_if(left, [this](const auto& name) {
    const std::lock_guard lock(name->mutex);
    return withdraw(*name);
  });
  const std::lock_guard lock(mutex_);
  left_.insert(left_.end(), left.begin(), left.end());
}

bool Keeper::hasLeft() {
  const std::lock_guard lock(mutex_);
  return !left_.empty();
}

// Withdraws a name. False: the store did not answer.
bool Keeper::withdraw(KeptName& name) {
  const Wait wait{.until = Clock::now() + kGoodbye,
                  .operation = fmt::format("withdraw {}", name.key)};
  if (name.unsure_after) {
    const auto burnt = burn(name, wait);
    if (!burnt || *burnt) return static_cast<bool>(burnt);
  }
  const Head gone{.generation = name.head.generation + 1, .owner = owner_};
  const std::string record = encodeRecord(gone);
  const auto now = client_->compareSet(name.key, encodeRecord(name.head), record, wait);
  if (now && *now == record)
    static_cast<void>(client_->set(changeKey(name.key, gone.generation), "1", wait));
  return static_cast<bool>(now);
}

// Changes the value that our late query expects, so that the query fails. False: there is another
// value, maybe our head.
Result<bool> Keeper::burn(const KeptName& name, const Wait& wait) {
  const Head gone{.generation = name.head.generation, .owner = owner_};
  const std::string record = encodeRecord(gone);
  VIADUCT_TRY(const std::string now,
              client_->compareSet(name.key, *name.unsure_after, record, wait));
  if (now != record) return false;
  static_cast<void>(client_->set(changeKey(name.key, gone.generation), "1", wait));
  return true;
}

void Keeper::withdrawLeaving() {
  for (const auto& name : names())
    if (name->withdraw_soon.exchange(false)) leave(name);
}

// After lease_ + kPatience of silence, another process may have the names.
void Keeper::checkSilence(const Error& why) {
  if (Clock::now() - heard_ < lease_ + kPatience) return;
  for (const auto& name : names()) {
    const std::lock_guard lock(name->mutex);
    if (!name->lost || name->over) continue;
    name->over = true;
    Error lost = explained(why, fmt::format("keep {}", name->key), client_->text());
    lost.code = Code::kPeerLost;
    name->lost(lost);
  }
}

// Returns early when another thread calls wake().
bool Keeper::sleepUntil(Clock::time_point until) {
  pollfd woken{wake_.get(), POLLIN, 0};
  if (::poll(&woken, 1, base::Poller::milliseconds(until - Clock::now())) <= 0) return true;
  std::uint64_t count = 0;
  static_cast<void>(::read(wake_.get(), &count, sizeof count));
  return false;
}

}  // namespace viaduct::meet::tcpstore
