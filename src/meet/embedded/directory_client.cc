#include "meet/embedded/directory_client.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace viaduct::meet::embedded {

namespace {

// The longest time for which a stopped or unreachable server delays the end of a program.
constexpr Duration kWithdrawnWithin = std::chrono::seconds(1);

}  // namespace

DirectoryClient::DirectoryClient(SitePtr site)
    : site_(std::move(site)), connection_(site_, *this) {}

DirectoryClient::~DirectoryClient() {
  const auto held = site_->loop->hold();
  connection_.close();
}

void DirectoryClient::ready() {
  for (const auto& [number, request] : requests_)
    connection_.send(makePacket(request.type, request.message));
}

Status DirectoryClient::message(Type type, ByteSpan payload) {
  if (type != Type::kAnswer) return Ok{};
  VIADUCT_TRY(auto answer, base::decode<AnswerMessage>(payload));
  if (withdrawing_.erase(answer.request) > 0) changed_.notify_all();
  const auto found = requests_.find(answer.request);
  if (found == requests_.end()) return Ok{};
  PendingRequest& request = found->second;
  if (request.answer && answer.error)  // an entry was published again after a loss
    base::log(base::LogLevel::kError, "{}", answer.error->text());
  if (!request.answer)
    request.answer = answer.error ? Result<std::string>(std::move(*answer.error))
                                  : Result<std::string>(std::move(answer.value));
  changed_.notify_all();
  return Ok{};
}

// Published entries are published again when a lost meeting place comes back.
void DirectoryClient::lost(const Error& why, bool again) {
  if (again && !requests_.empty()) return connection_.open(Clock::time_point::max(), kReopenAfter);
  for (auto& [number, request] : requests_)
    if (!request.answer) request.answer = why;
  changed_.notify_all();
}

// An error with the reason why there is no answer yet.
Error DirectoryClient::unanswered(const PendingRequest& request) const {
  if (!connection_.ready()) return connection_.unreachable();
  return {.code = Code::kTimeout,
          .detail = fmt::format(
              "meeting place {}: {} \"{}\" in namespace {}", site_->where,
              request.type == Type::kFind ? "no agent has published" : "no answer about",
              request.message.name, site_->name_space)};
}

Result<DirectoryClient::Answered> DirectoryClient::ask(PendingRequest request, Deadline until,
                                                       const StopFlag& stop) {
  const Type type = request.type;
  const std::string operation =
      fmt::format("{} {}", type == Type::kFind ? "find" : "publish", request.message.name);
  VIADUCT_CHECK(checkEntry(operation, request.message.name, request.message.value));
  auto held = site_->loop->hold();
  const std::uint32_t number = request.message.request = ++last_;
  const auto& mine = requests_.emplace(number, std::move(request)).first->second;
  if (!connection_.opened())
    connection_.open(Clock::time_point::max());
  else
    connection_.send(makePacket(type, mine.message));
  const auto so_far = [&] {
    Error why = unanswered(mine);
    why.operation = operation;
    return why;
  };
  base::Waiting waiting(site_->waiting, until.at());
  const Wait waited = waitAloud(
      changed_, held, until.at(), stop, waiting, [&] { return mine.answer.has_value(); }, so_far);
  if (mine.answer && *mine.answer) return Answered{number, **mine.answer};
  Error why = so_far();
  if (mine.answer)
    why = mine.answer->error();
  else if (waited == Wait::kStopped)
    why = {.code = Code::kCancelled, .detail = "stopped by the caller"};
  why.operation = operation;
  if (!mine.answer) connection_.send(makePacket(Type::kForget, NumberMessage{number}));
  requests_.erase(number);
  return why;
}

Result<std::uint32_t> DirectoryClient::publish(const std::string& name, const std::string& value,
                                               Deadline until) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const StopFlag never{false};
  PendingRequest request{.type = Type::kPublish,
                         .message = {.name_space = site_->name_space,
                                     .name = name,
                                     .value = value,
                                     .owner = fmt::format("{:.200}:{}", host.data(), ::getpid())}};
  VIADUCT_TRY(const auto answer, ask(std::move(request), until, never));
  return answer.request;
}

void DirectoryClient::withdraw(std::uint32_t request) {
  auto held = site_->loop->hold();
  if (requests_.erase(request) == 0 || !connection_.ready()) return;
  withdrawing_.insert(request);
  connection_.send(makePacket(Type::kWithdraw, NumberMessage{request}));
  const auto over = [&] { return !withdrawing_.contains(request) || !connection_.ready(); };
  changed_.wait_until(held, Clock::now() + kWithdrawnWithin, over);
  withdrawing_.erase(request);
}

Result<std::string> DirectoryClient::find(const std::string& name, Deadline until,
                                          const StopFlag& stop) {
  PendingRequest request{.type = Type::kFind,
                         .message = {.name_space = site_->name_space, .name = name}};
  VIADUCT_TRY(auto answer, ask(std::move(request), until, stop));
  const auto held = site_->loop->hold();
  requests_.erase(answer.request);
  return std::move(answer.value);
}

}  // namespace viaduct::meet::embedded
