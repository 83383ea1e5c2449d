#include "backends/object/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/bytes.h"
#include "base/log.h"
#include "base/sizes.h"

namespace viaduct::object {
namespace {

constexpr auto kFirstBackOff = std::chrono::milliseconds(50);
constexpr auto kLongestBackOff = std::chrono::seconds(5);
constexpr auto kBetweenWarnings = std::chrono::seconds(10);
// The number of times that a failed abort is repeated. Nobody waits for it.
constexpr std::uint32_t kAbortRetries = 4;

Error outOfMemory() {
  return {.code = Code::kExhausted,
          .operation = "prepare a request",
          .detail = "libcurl is out of memory",
          .device = "object"};
}

}  // namespace

Result<std::unique_ptr<Requests>> Requests::open(const ObjectOptions& options, TaskEnded ended) {
  VIADUCT_TRY(const base::CurlLibrary* curl, base::curlLibrary());
  VIADUCT_TRY(auto copy, base::CheckedCopy::open());
  std::unique_ptr<Requests> out(new Requests(*curl, options, std::move(ended), std::move(copy)));
  if (!out->multi_) return outOfMemory();
  curl->curl_multi_setopt(out->multi_.get(), CURLMOPT_MAXCONNECTS,
                          static_cast<long>(options.connections));
  return out;
}

Requests::Requests(const base::CurlLibrary& curl, const ObjectOptions& options, TaskEnded ended,
                   base::CheckedCopy copy)
    : curl_(curl),
      options_(options),
      ended_(std::move(ended)),
      copy_(std::move(copy)),
      multi_(curl.curl_multi_init(), curl.curl_multi_cleanup),
      random_(static_cast<std::uint64_t>(Clock::now().time_since_epoch().count())) {}

// The keys are removed, because a server may put the request's head into the id of an upload.
std::string Requests::operationOf(const Request& request) const {
  return s3::withoutKeys(request.task->operation(request.ask), options_.access.credentials);
}

Requests::~Requests() {
  while (!flights_.empty()) release(flights_.size() - 1);
}

void Requests::add(const std::shared_ptr<Task>& task, const std::atomic<bool>* stop) {
  for (const Ask ask : task->begin()) ready_.push_back({task, ask, stop});
}

void Requests::drop(const std::shared_ptr<Task>& task) {
  const auto of_task = [&](const Request& request) { return request.task == task; };
  std::erase_if(ready_, of_task);
  std::erase_if(later_, of_task);
  for (std::size_t i = flights_.size(); i-- > 0;) {
    Request& request = flights_[i]->request;
    if (!of_task(request)) continue;
    // A kCreate goes on, because its answer names an upload that S3 would keep for ever.
    if (request.ask.step == TaskStep::kCreate) {
      request.orphan = true;
      request.stop = nullptr;
      ++tidying_;
    } else {
      release(i);
    }
  }
  abort(task->name(), task->takeUpload());
}

// Takes the handle back from libcurl, which closes an unfinished connection.
void Requests::release(std::size_t flight) {
  curl_.curl_multi_remove_handle(multi_.get(), flights_[flight]->exchange->handle());
  idle_.push_back(std::move(flights_[flight]->exchange));
  flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(flight));
}

void Requests::remove(const s3::ObjectName& name) {
  ready_.push_back({.task = Task::remove(name), .ask = {TaskStep::kDelete}, .orphan = true});
  ++tidying_;
}

// A task may be dropped twice, by its failure and by its owner. Its upload is aborted once.
void Requests::abort(const s3::ObjectName& name, std::string upload) {
  if (upload.empty()) return;
  ready_.push_front(
      {.task = Task::abort(name, std::move(upload)), .ask = {TaskStep::kAbort}, .orphan = true});
  ++tidying_;
}

void Requests::turn(Clock::time_point until) {
  const auto now = Clock::now();
  auto next = until;
  for (std::size_t i = later_.size(); i-- > 0;) {
    if (later_[i].when > now) {
      next = std::min(next, later_[i].when);
      continue;
    }
    ready_.push_back(std::move(later_[i]));
    later_.erase(later_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  startReady();
  int running = 0;
  curl_.curl_multi_perform(multi_.get(), &running);
  const std::size_t before = flights_.size();
  collect();
  if (flights_.size() != before) return;  // there is room for others, or a task has ended
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - now);
  constexpr std::int64_t kLongest = 3'600'000;
  curl_.curl_multi_poll(multi_.get(), nullptr, 0,
                        static_cast<int>(std::clamp<std::int64_t>(wait.count(), 0, kLongest)),
                        nullptr);
}

void Requests::wake() { curl_.curl_multi_wakeup(multi_.get()); }

void Requests::startReady() {
  while (!ready_.empty() && flights_.size() < options_.connections) {
    Request request = std::move(ready_.front());
    ready_.pop_front();
    if (request.stop != nullptr && *request.stop) continue;  // its owner drops the task
    const Request copy = request;
    if (!start(std::move(request))) fail(copy, outOfMemory());
  }
}

bool Requests::start(Request request) {
  auto flight = std::make_unique<ActiveRequest>(
      ActiveRequest{.request = std::move(request), .memory = s3::MemoryStream(copy_)});
  if (idle_.empty()) {
    flight->exchange = std::make_unique<s3::Exchange>(curl_, options_.access.ca_file);
  } else {
    flight->exchange = std::move(idle_.back());
    idle_.pop_back();
  }
  const Task& task = *flight->request.task;
  task.describe(flight->request.ask, flight->memory);
  const auto hash = hashOf(*flight);
  if (!hash) {
    const Request failed = flight->request;
    idle_.push_back(std::move(flight->exchange));
    if (failed.stop != nullptr && *failed.stop) return true;  // its owner drops the task
    fail(failed,
         // A fault is always a failure.
         s3::failureOf({.fault = s3::Fault::kMemory}, {.operation = operationOf(failed),
                                                       .place = {},
                                                       .credentials = options_.access.credentials,
                                                       .time = {}})
             ->error);
    return true;
  }
  if (!flight->exchange->prepare(signedRequest(*flight, *hash), &flight->memory) ||
      curl_.curl_multi_add_handle(multi_.get(), flight->exchange->handle()) != CURLM_OK)
    return false;
  flights_.push_back(std::move(flight));
  return true;
}

// The hash of the request's body. Nothing: its memory is gone, or the task was stopped.
std::optional<std::string> Requests::hashOf(ActiveRequest& flight) const {
  const TaskStep step = flight.request.ask.step;
  base::Sha256 hash;
  if (step == TaskStep::kComplete) {
    hash.add(base::bytesOf(flight.request.task->request(flight.request.ask).body));
  } else if (step == TaskStep::kPut || step == TaskStep::kPart) {
    if (!options_.sign_bodies) return std::string(s3::kUnsignedPayload);
    std::array<std::byte, base::CheckedCopy::kMostBytes> buffer;
    for (std::size_t got = 1; got != 0;) {
      if (flight.request.stop != nullptr && *flight.request.stop) return std::nullopt;
      if (!flight.memory.get(buffer.data(), buffer.size(), got)) return std::nullopt;
      hash.add(std::span(buffer).first(got));
    }
  }
  return base::hexText(hash.digest());
}

s3::HttpRequest Requests::signedRequest(ActiveRequest& flight, std::string_view hash) const {
  const Task& task = *flight.request.task;
  flight.signed_at = std::chrono::system_clock::now();
  return s3::signedRequest(task.request(flight.request.ask),
                           {.place = s3::placeOf(task.name(), options_.access.endpoint),
                            .query = task.query(flight.request.ask),
                            .payload_hash = hash,
                            .time = flight.signed_at},
                           options_.access);
}

void Requests::collect() {
  int left = 0;
  while (const CURLMsg* const message = curl_.curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURL* const handle = message->easy_handle;
    const CURLcode code = message->data.result;
    const auto at = std::ranges::find_if(
        flights_, [&](const auto& flight) { return flight->exchange->handle() == handle; });
    const s3::Answer answer = (*at)->exchange->finish(code);
    Request request = std::move((*at)->request);
    const auto signed_at = (*at)->signed_at;
    release(static_cast<std::size_t>(at - flights_.begin()));
    settle(std::move(request), answer, signed_at);
  }
}

void Requests::settle(Request request, const s3::Answer& answer,
                      std::chrono::system_clock::time_point signed_at) {
  const s3::Place place = s3::placeOf(request.task->name(), options_.access.endpoint);
  auto failure = s3::failureOf(answer, {.operation = operationOf(request),
                                        .place = place,
                                        .credentials = options_.access.credentials,
                                        .time = signed_at});
  const std::uint32_t retries =
      request.orphan ? std::min(kAbortRetries, options_.retries) : options_.retries;
  if (failure && failure->again && request.attempt < retries) {
    const Duration wait = backOff(request.attempt++);
    sayRetry(failure->error, request.attempt, wait);
    request.when = Clock::now() + wait;
    later_.push_back(std::move(request));
    return;
  }
  if (failure && request.attempt != 0)
    failure->error.detail += fmt::format(" (attempt {})", request.attempt + 1);
  if (request.orphan)
    return settleOrphan(request, answer, failure.has_value(), failure ? &failure->error : nullptr);
  if (failure) return fail(request, std::move(failure->error));
  auto more = request.task->answered(request.ask, answer);
  if (!more) {
    Error why = std::move(more).error();
    why.operation = operationOf(request);
    return fail(request, std::move(why));
  }
  for (const Ask ask : *more) ready_.push_back({request.task, ask, request.stop});
  if (request.ask.step == TaskStep::kCreate)
    base::log(base::LogLevel::kInfo, "object: upload {} of {} begins",
              s3::shown(request.task->upload(), options_.access.credentials),
              request.task->name().text());
  if (request.task->done()) ended_(request.task, std::nullopt);
}

void Requests::fail(const Request& request, Error why) {
  const auto task = request.task;
  drop(task);
  ended_(task, std::move(why));
}

// Ends a request without an owner: a creation, whose upload is now aborted, or an abort or a
// deletion.
void Requests::settleOrphan(const Request& request, const s3::Answer& answer, bool failed,
                            const Error* why) {
  --tidying_;
  const bool creates = request.ask.step == TaskStep::kCreate;
  if (creates && !failed && request.task->answered(request.ask, answer))
    abort(request.task->name(), request.task->takeUpload());
  if (creates || !failed || why->code == Code::kNotFound) return;
  base::log(base::LogLevel::kWarning,
            "object: {} stays at the store, and takes its room: {}; remove it by hand "
            "(docs/objects.md)",
            request.ask.step == TaskStep::kDelete ? "a temporary object" : "an unfinished upload",
            why->text());
}

void Requests::sayWhatIsLeft() const {
  const auto say = [this](const Request& request) {
    if (request.orphan)
      base::log(base::LogLevel::kWarning,
                "object: the agent closes before this is done: {}; do it by hand "
                "(docs/objects.md)",
                operationOf(request));
  };
  for (const Request& request : ready_) say(request);
  for (const Request& request : later_) say(request);
  for (const auto& flight : flights_) say(flight->request);
}

// A deadline may end the transfer before its retries end. The transfer's error then does not say
// why it retried. So lasting trouble is logged as a warning, once in kBetweenWarnings.
void Requests::sayRetry(const Error& why, std::uint32_t attempt, Duration wait) {
  const auto now = Clock::now();
  const bool warns = attempt > 1 && now >= warn_after_;
  if (warns) warn_after_ = now + kBetweenWarnings;
  base::log(warns ? base::LogLevel::kWarning : base::LogLevel::kInfo,
            "object: {}; attempt {} follows in {}", why.text(), attempt + 1,
            base::formatDuration(std::chrono::duration_cast<std::chrono::milliseconds>(wait)));
}

// Returns between half and all of a pause that doubles with each attempt, so that many clients do
// not come back at once.
Duration Requests::backOff(std::uint32_t attempt) {
  const Duration whole =
      std::min<Duration>(kLongestBackOff, kFirstBackOff * (1U << std::min(attempt, 10U)));
  const auto half = static_cast<std::uint64_t>(whole.count() / 2);
  return Duration(static_cast<Duration::rep>(half + random_.below(half + 1)));
}

}  // namespace viaduct::object
