#include "meet/kubernetes/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/blocked_signals.h"
#include "meet/kubernetes/names.h"

namespace viaduct::meet::kubernetes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A watch cannot tell a frozen server from Leases without changes, so a watch ends after about this
// time. The next one begins where it has ended.
constexpr seconds kWatchTime{30};
// The server may end a watch later by this time.
constexpr seconds kWatchGrace{5};
// The watch goes on for this time after the last wait, because a program often looks for one name
// after the other.
constexpr seconds kLinger{5};
constexpr seconds kListTime{5};
constexpr milliseconds kRest{500};
constexpr milliseconds kLook{50};

// Puts the operation of a wait before the operation that failed.
Error inWait(const Wait& wait, Error why) {
  why.operation = wait.operation + ": " + why.operation;
  return why;
}

Error lateIn(const Wait& wait, const std::optional<Error>& trouble) {
  return trouble ? inWait(wait, *trouble) : wait.timedOut();
}

}  // namespace

Changes::Changes(std::shared_ptr<Client> client, std::string group_label)
    : client_(std::move(client)), group_label_(std::move(group_label)) {}

Changes::~Changes() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    if (channel_) channel_->wake();
  }
  work_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Changes::Waiter::Waiter(Changes& changes, const std::string& name_label)
    : changes_(changes), lease_(leaseName(changes.group_label_, name_label)) {
  const std::lock_guard lock(changes_.mutex_);
  Name& name = changes_.names_[lease_];
  name.label = name_label;
  if (name.waiting++ == 0) name.error.reset();
  ++changes_.waiting_;
  if (!changes_.thread_.joinable()) {
    const base::BlockedSignals blocked;
    try {
      changes_.thread_ = std::thread([all = &changes_] { all->run(); });
    } catch (const std::system_error& error) {
      name.error = systemError(Code::kExhausted, "start kubernetes' thread", error.code().value());
    }
  }
  if (changes_.channel_ && !changes_.covers(lease_)) changes_.channel_->wake();
  changes_.work_.notify_all();
}

Changes::Waiter::~Waiter() {
  const std::lock_guard lock(changes_.mutex_);
  --changes_.names_[lease_].waiting;
  if (--changes_.waiting_ == 0) changes_.idle_at_ = Clock::now();
}

Status Changes::Waiter::wait(const std::string& known, bool or_gone, const Wait& wait) {
  std::unique_lock lock(changes_.mutex_);
  Name& name = changes_.names_[lease_];
  for (;;) {
    const bool news = name.version && name.version != told_ && *name.version != known &&
                      (or_gone || !name.version->empty());
    if (news) {
      told_ = name.version;
      return Ok{};
    }
    if (name.error) return inWait(wait, *name.error);
    if (wait.stopped()) return wait.cancelled();
    const auto now = Clock::now();
    if (now >= wait.until) return lateIn(wait, changes_.trouble_);
    if (wait.aloud != nullptr && wait.aloud->isDue())
      wait.aloud->tell(lateIn(wait, changes_.trouble_));
    name.changed.wait_until(lock, std::min<Clock::time_point>(now + kLook, wait.until));
  }
}

void Changes::run() {
  pthread_setname_np(pthread_self(), "viaduct-watch");
  auto channel = Channel::open();
  if (!channel) return failed(std::move(channel).error(), false);
  {
    const std::lock_guard lock(mutex_);
    channel_ = *std::move(channel);
  }
  while (waitForWork()) {
    const std::string selector = select();
    auto version = list(selector);
    if (version) {
      follow(selector, *std::move(version));
    } else if (!stop_) {
      const bool again = version.error().code == Code::kTimeout;
      failed(std::move(version).error(), again);
      pause(jittered(kRest));
    }
  }
}

// Waits until a call waits for a name. Forgets all names, because their changes between two watches
// are not seen.
bool Changes::waitForWork() {
  std::unique_lock lock(mutex_);
  covered_.clear();
  covers_group_ = false;
  std::erase_if(names_, [](const auto& one) { return one.second.waiting == 0; });
  work_.wait(lock, [this] { return stop_ || waiting_ > 0; });
  return !stop_;
}

// Decides which names the next list and watch cover.
std::string Changes::select() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> labels;
  for (const auto& [lease, name] : names_) {
    labels.push_back(name.label);
    covered_.insert(lease);
  }
  covers_group_ = labels.size() > kMostSelected;
  return selectorOf(group_label_, labels);
}

bool Changes::covers(std::string_view lease) const {
  return covers_group_ || covered_.contains(lease);
}

bool Changes::coversAll() const {
  return covers_group_ || std::ranges::all_of(names_, [this](const auto& one) {
           return one.second.waiting == 0 || covers(one.first);
         });
}

bool Changes::goesOn() {
  const std::lock_guard lock(mutex_);
  return !stop_ && coversAll() && (waiting_ > 0 || Clock::now() < idle_at_ + kLinger);
}

// Reads the selected Leases, and returns the version at which a watch continues.
Result<std::string> Changes::list(const std::string& selector) {
  for (std::string next;;) {
    std::vector<Seen> leases;
    LeasePage page;
    Answer answer;
    do {
      const Wait wait{.until = Clock::now() + kListTime, .stop = &stop_};
      std::string query = selector + "&limit=500";
      if (!next.empty()) query += "&continue=" + escaped(next);
      VIADUCT_TRY(answer, client_->call({.verb = "list", .query = query}, wait, pace_));
      if (answer.status != 200) break;
      VIADUCT_TRY(page, answerOf(client_->text(), wait, parsePage(answer.body)));
      leases.insert(leases.end(), std::make_move_iterator(page.leases.begin()),
                    std::make_move_iterator(page.leases.end()));
      next = page.next;
    } while (!next.empty());
    if (answer.status == 200) {
      listed(leases);
      return page.version;
    }
    // The rest of the list is gone, because the Leases have changed too much: it begins again.
    if (std::exchange(next, "").empty())
      return Error{.code = Code::kTimeout,
                   .operation = "kubernetes",
                   .detail = fmt::format("{}: list leases: HTTP {}", client_->access().server,
                                         answer.status)};
  }
}

void Changes::listed(const std::vector<Seen>& leases) {
  const std::lock_guard lock(mutex_);
  trouble_.reset();
  for (auto& [lease, name] : names_)
    if (covers(lease)) name.version = "";
  for (const Seen& one : leases)
    if (covers(one.name)) names_[one.name].version = one.version;
  for (auto& [lease, name] : names_) name.changed.notify_all();
}

// Reads changes from `version` on, until the Leases have to be listed anew.
void Changes::follow(const std::string& selector, std::string version) {
  while (goesOn()) {
    const auto allowed = pace_.next(Clock::now());
    pause(allowed - Clock::now());
    const auto time = std::chrono::ceil<seconds>(jittered(kWatchTime));
    const LeaseRequest request{
        .verb = "watch",
        .query = fmt::format("{}&watch=1&resourceVersion={}&allowWatchBookmarks=true"
                             "&timeoutSeconds={}",
                             selector, escaped(version), time.count())};
    const auto until = Clock::now() + time + kWatchGrace;
    std::optional<Client::StreamEnd> ended;  // by a line of the stream
    const auto line = [&](std::string_view text) {
      if (!ended) ended = take(text, request, version);
      return !ended;
    };
    const auto goes_on = [&] { return goesOn() && Clock::now() < until; };
    Client::StreamEnd end = client_->stream(request, *channel_, until, line, goes_on);
    if (ended) end = *std::move(ended);
    if (end.error) failed(*std::move(end.error), end.again);
    const bool gone = end.answer && end.answer->status != 200;
    if (end.error || gone) return pause(jittered(kRest));
  }
}

// Takes a line of a watch's stream, and moves `version` on. Returns nothing if the stream goes on.
std::optional<Client::StreamEnd> Changes::take(std::string_view text, const LeaseRequest& request,
                                               std::string& version) {
  auto event = parseEvent(text);
  if (!event) return Client::StreamEnd{.error = std::move(event).error(), .again = true};
  if (event->refusal) return client_->streamEnd(request, *event->refusal);
  if (!event->bookmark) changed(*event);
  version = std::move(event->lease.version);
  return std::nullopt;
}

void Changes::changed(const WatchEvent& event) {
  const std::lock_guard lock(mutex_);
  Name& name = names_[event.lease.name];
  name.version = event.deleted ? "" : event.lease.version;
  name.changed.notify_all();
}

void Changes::failed(Error why, bool again) {
  const std::lock_guard lock(mutex_);
  if (why.operation.empty()) why.operation = "kubernetes";
  if (again) {
    trouble_ = std::move(why);
    return;
  }
  for (auto& [lease, name] : names_) {
    name.error = why;
    name.changed.notify_all();
  }
}

void Changes::pause(Duration time) {
  std::unique_lock lock(mutex_);
  work_.wait_for(lock, time, [this] { return stop_.load(); });
}

}  // namespace viaduct::meet::kubernetes
