#include "meet/etcd/curl_loop.h"

#include <algorithm>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/blocked_signals.h"

namespace viaduct::meet::etcd {
namespace {

std::uint64_t idOf(const CurlLibrary& curl, CURL* easy) {
  Exchange* exchange = nullptr;
  curl.curl_easy_getinfo(easy, CURLINFO_PRIVATE, &exchange);
  return exchange->id();
}

}  // namespace

CurlLoop::CurlLoop(const CurlLibrary& curl, Tls tls)
    : curl_(curl), tls_(std::move(tls)), multi_(curl.curl_multi_init(), curl.curl_multi_cleanup) {}

Result<std::unique_ptr<CurlLoop>> CurlLoop::open(Tls tls) {
  VIADUCT_TRY(const CurlLibrary* curl, library());
  std::unique_ptr<CurlLoop> loop(new CurlLoop(*curl, std::move(tls)));
  if (!loop->multi_)
    return Error{.code = Code::kExhausted, .operation = "curl_multi_init", .detail = "no memory"};
  const base::BlockedSignals blocked;
  try {
    loop->thread_ = std::thread([self = loop.get()] { self->run(); });
  } catch (const std::system_error& error) {
    return systemError(Code::kExhausted, "start etcd's thread", error.code().value());
  }
  return loop;
}

CurlLoop::~CurlLoop() {
  if (thread_.joinable()) {
    inbox_.with([](Inbox& inbox) { inbox.stop = true; });
    curl_.curl_multi_wakeup(multi_.get());
    thread_.join();
  }
  for (auto& [id, running] : running_)
    curl_.curl_multi_remove_handle(multi_.get(), running.exchange->easy());
}

void CurlLoop::post(std::function<void()> task) {
  inbox_.with([&](Inbox& inbox) { inbox.tasks.push_back(std::move(task)); });
  curl_.curl_multi_wakeup(multi_.get());
}

CurlLoop::Id CurlLoop::at(Clock::time_point when, std::function<void()> run) {
  const Id id = ++last_id_;
  timer_by_id_[id] = timers_.emplace(when, std::pair(id, std::move(run)));
  return id;
}

void CurlLoop::forget(Id timer) {
  const auto found = timer_by_id_.find(timer);
  if (found == timer_by_id_.end()) return;
  timers_.erase(found->second);
  timer_by_id_.erase(found);
}

CurlLoop::Id CurlLoop::start(CurlRequest request) {
  const Id id = ++last_id_;
  Running& running = running_[id];
  const Clock::time_point until = request.until;
  running.exchange = std::make_unique<Exchange>(curl_, id, std::move(request), tls_);
  if (!running.exchange->ok() ||
      curl_.curl_multi_add_handle(multi_.get(), running.exchange->easy()) != CURLM_OK) {
    running.timer = at(Clock::now(), [this, id] {
      end(id, {.failure = CurlFailure{.text = "libcurl is out of memory", .for_good = true}});
    });
    return id;
  }
  running.timer = at(until, [this, id] { end(id, running_.at(id).exchange->expire()); });
  return id;
}

void CurlLoop::drop(Id exchange) {
  const auto found = running_.find(exchange);
  if (found == running_.end()) return;
  forget(found->second.timer);
  curl_.curl_multi_remove_handle(multi_.get(), found->second.exchange->easy());
  running_.erase(found);
}

void CurlLoop::end(Id id, CurlAnswer answer) {
  const auto done = running_.at(id).exchange->request().done;
  drop(id);
  done(std::move(answer));
}

void CurlLoop::run() {
  pthread_setname_np(pthread_self(), "viaduct-etcd");
  while (turn()) {
  }
}

bool CurlLoop::turn() {
  int running = 0;
  curl_.curl_multi_perform(multi_.get(), &running);
  deliverLines();
  deliverEnds();
  runTimers();
  std::vector<std::function<void()>> tasks;
  const bool stop = inbox_.with([&](Inbox& inbox) {
    tasks.swap(inbox.tasks);
    return inbox.stop;
  });
  for (const auto& task : tasks) task();
  // Does not sleep when something was just started.
  if (!stop) curl_.curl_multi_poll(multi_.get(), nullptr, 0, sleepFor(), nullptr);
  return !stop;
}

int CurlLoop::sleepFor() const {
  constexpr int kLongest = 60'000;
  if (timers_.empty()) return kLongest;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kLongest));
}

void CurlLoop::runTimers() {
  const auto now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const auto first = timers_.begin();
    const auto run = std::move(first->second.second);
    timer_by_id_.erase(first->second.first);
    timers_.erase(first);
    run();
  }
}

// Handlers may drop any exchange, so each is looked for anew.
void CurlLoop::deliverLines() {
  std::vector<Id> streams;
  for (const auto& [id, running] : running_)
    if (running.exchange->stream()) streams.push_back(id);
  for (const Id id : streams) {
    for (;;) {
      const auto found = running_.find(id);
      if (found == running_.end()) break;
      const auto line = found->second.exchange->nextLine();
      if (!line) break;
      forget(std::exchange(found->second.timer, 0));
      const auto handler = found->second.exchange->request().line;
      handler(*line);
    }
  }
}

void CurlLoop::deliverEnds() {
  std::vector<std::pair<Id, CURLcode>> ended;
  int left = 0;
  while (const CURLMsg* message = curl_.curl_multi_info_read(multi_.get(), &left))
    if (message->msg == CURLMSG_DONE)
      ended.emplace_back(idOf(curl_, message->easy_handle), message->data.result);
  for (const auto& [id, code] : ended) {
    const auto found = running_.find(id);
    if (found == running_.end()) continue;
    end(id, found->second.exchange->finish(code));
  }
}

}  // namespace viaduct::meet::etcd
