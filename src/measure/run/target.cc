#include "measure/run/target.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace viaduct::measure {
namespace {

// Filling 64 GiB takes its time.
constexpr auto kAnswerWithin = std::chrono::minutes(2);
constexpr auto kLook = std::chrono::milliseconds(100);  // how often a lost target is looked for

enum class Verb : std::uint8_t { kPrepare, kFill, kVerify, kCpu, kRelease };

base::Writer request(Verb verb) {
  base::Writer out;
  out.put(static_cast<std::uint8_t>(verb));
  return out;
}

Error garbled() {
  return {.code = Code::kProtocol, .operation = "bench", .detail = "garbled control message"};
}

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}

Error unprepared() {
  return {.code = Code::kInvalid, .operation = "bench", .detail = "no memory has been prepared"};
}

Result<base::Bytes> nothing(const Status& status) {
  if (!status) return status.error();
  return base::Bytes{};
}

Result<base::Bytes> servePrepare(base::Reader& in, Target& target) {
  VIADUCT_TRY(const Workload workload, decodeWorkload(in));
  const std::string label = in.text();
  if (!in.finished()) return garbled();
  return nothing(target.prepare(workload, label));
}

Result<base::Bytes> serveVerify(base::Reader& in, Target& target) {
  VIADUCT_TRY(const auto wrong, target.verify(in.get<std::uint64_t>()));
  base::Writer out;
  if (wrong) out.put(wrong->block).put(wrong->offset).text(wrong->text);
  return out.take();
}

Result<base::Bytes> serveCpu(Target& target) {
  VIADUCT_TRY(const double used, target.cpu());
  base::Writer out;
  out.put(static_cast<std::uint64_t>(used * 1e9));
  return out.take();
}

Result<base::Bytes> serveOne(std::span<const std::byte> message, Target& target) {
  base::Reader in(message);
  switch (static_cast<Verb>(in.get<std::uint8_t>())) {
    case Verb::kPrepare:
      return servePrepare(in, target);
    case Verb::kFill:
      return nothing(target.fill(in.get<std::uint64_t>()));
    case Verb::kVerify:
      return serveVerify(in, target);
    case Verb::kCpu:
      return serveCpu(target);
    case Verb::kRelease:
      return nothing(target.release());
  }
  return garbled();
}

}  // namespace

double cpuSeconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

Status OwnTarget::prepare(const Workload& workload, const std::string& label) {
  region_.reset();
  VIADUCT_TRY(region_, Region::make(agent_, workload, Role::kTarget, label));
  return Ok{};
}

Status OwnTarget::fill(std::uint64_t epoch) {
  if (!region_) return unprepared();
  region_->fill(epoch);
  return Ok{};
}

Result<std::optional<Mismatch>> OwnTarget::verify(std::uint64_t epoch) {
  if (!region_) return unprepared();
  // The agent's thread may have written what is read here, and only the other process has seen
  // both: a turn of the agent's loop orders the two within this one as well.
  agent_.poll();
  return region_->verify(epoch);
}

Status OwnTarget::release() {
  if (!region_) return Ok{};
  auto released = region_->release();
  region_.reset();
  return released;
}

base::Bytes encodeAnswer(const Result<base::Bytes>& answer) {
  base::Writer out;
  if (answer) return out.put(std::uint8_t{1}).raw(*answer).take();
  const Error& e = answer.error();
  out.put(std::uint8_t{0}).put(static_cast<std::uint8_t>(e.code));
  out.text(e.operation).text(e.detail).put(static_cast<std::uint32_t>(e.os_errno));
  return out.text(e.peer).text(e.device).text(e.cause).text(e.remedy).take();
}

Result<base::Bytes> decodeAnswer(std::span<const std::byte> message) {
  base::Reader in(message);
  if (in.get<std::uint8_t>() == 1) {
    const auto rest = in.raw(in.left());
    return base::Bytes(rest.begin(), rest.end());
  }
  Error e;
  e.code = static_cast<Code>(in.get<std::uint8_t>());
  e.operation = in.text();
  e.detail = in.text();
  e.os_errno = static_cast<int>(in.get<std::uint32_t>());
  e.peer = in.text();
  e.device = in.text();
  e.cause = in.text();
  e.remedy = in.text();
  if (!in.finished() || e.code > Code::kProtocol) return garbled();
  return e;
}

Result<base::Bytes> RemoteTarget::ask(const base::Writer& request) {
  VIADUCT_CHECK(channel_.send(request.bytes()));
  const Deadline until = kAnswerWithin;
  for (;;) {
    const auto answer = channel_.receive(std::min(until.at(), Clock::now() + kLook), stop_);
    if (answer) return decodeAnswer(*answer);
    if (answer.error().code != Code::kTimeout || until.passed()) return answer.error();
    if (lost_ && lost_())
      return Error{.code = Code::kPeerLost,
                   .operation = "bench",
                   .detail = "the target does not answer, and its agent is lost"};
  }
}

Status RemoteTarget::prepare(const Workload& workload, const std::string& label) {
  base::Writer out = request(Verb::kPrepare);
  encode(out, workload);
  VIADUCT_CHECK(ask(out.text(label)));
  return Ok{};
}

Status RemoteTarget::fill(std::uint64_t epoch) {
  VIADUCT_CHECK(ask(request(Verb::kFill).put(epoch)));
  return Ok{};
}

Result<std::optional<Mismatch>> RemoteTarget::verify(std::uint64_t epoch) {
  VIADUCT_TRY(const base::Bytes answer, ask(request(Verb::kVerify).put(epoch)));
  if (answer.empty()) return std::optional<Mismatch>{};
  base::Reader in(answer);
  Mismatch wrong;
  wrong.block = in.get<std::uint64_t>();
  wrong.offset = in.get<std::uint64_t>();
  wrong.text = in.text();
  if (!in.finished()) return garbled();
  return std::optional(wrong);
}

Result<double> RemoteTarget::cpu() {
  VIADUCT_TRY(const base::Bytes answer, ask(request(Verb::kCpu)));
  base::Reader in(answer);
  const auto nanoseconds = in.get<std::uint64_t>();
  if (!in.finished()) return garbled();
  return static_cast<double>(nanoseconds) * 1e-9;
}

Status RemoteTarget::release() {
  VIADUCT_CHECK(ask(request(Verb::kRelease)));
  return Ok{};
}

Status serveTarget(Channel& channel, Target& target, const StopFlag& stop) {
  for (;;) {
    auto message = channel.receive(Deadline::never(), stop);
    if (!message && message.error().code == Code::kPeerLost) return Ok{};
    if (!message) return std::move(message).error();
    VIADUCT_CHECK(channel.send(encodeAnswer(serveOne(*message, target))));
  }
}

}  // namespace viaduct::measure
