#include "device/fake/streams.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "device/fake/world.h"

namespace viaduct::fakegpu {
namespace {

// Starts a thread that no signal of the program interrupts.
void startDetached(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(std::move(body)).detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// All work of blocking streams waits for the null stream's, and the reverse.
std::vector<Moment> implicitOrder(World& world, Stream& stream) {
  std::vector<Moment> after;
  Context& context = stream.context();
  if (context.null_stream.get() != &stream) {
    if (stream.blocking() && context.null_stream != nullptr)
      after.push_back(context.null_stream->last());
    return after;
  }
  for (const auto& [handle, other] : world.streams.objects())
    if (other->blocking() && &other->context() == &context) after.push_back(other->last());
  return after;
}

}  // namespace

bool Moment::reached() const { return stream == nullptr || stream->done() >= count; }

Stream::Stream(World& world, Context& context, bool blocking, std::uint64_t seed)
    : world_(world),
      context_(context),
      blocking_(blocking),
      random_(static_cast<std::minstd_rand::result_type>(seed)) {}

void Stream::start() {
  startDetached([self = shared_from_this()] { self->work(); });
}

Moment Stream::add(Work work) {
  queue_.push_back(std::move(work));
  ++added_;
  world_.changed.notify_all();
  return last();
}

void Stream::close() {
  closing_ = true;
  world_.changed.notify_all();
}

void Stream::work() {
  Lock lock(world_);
  for (;;) {
    lock.wait([this] {
      if (queue_.empty()) return closing_;
      if (context_.failure != CUresult::kSuccess) return true;
      if (world_.paused) return false;
      for (const Moment& moment : queue_.front().after)
        if (!moment.reached()) return false;
      return true;
    });
    if (queue_.empty()) return;
    runOne(lock);
  }
}

void Stream::runOne(Lock& lock) {
  const Work work = std::move(queue_.front());
  queue_.pop_front();
  if (context_.failure == CUresult::kSuccess || work.always) {
    const CUresult result = lock.without([&] {
      linger();
      return work.run();
    });
    if (result != CUresult::kSuccess) context_.failure = result;
  }
  ++done_;
  world_.changed.notify_all();
}

// Sleeps one time in four, so that streams overtake each other.
void Stream::linger() {
  const auto draw = random_() % 400;
  if (draw < 100) ::usleep(static_cast<useconds_t>(draw));
}

std::shared_ptr<Stream> makeStream(World& world, Context& context, bool blocking) {
  const std::uint64_t seed = world.configuration.seed + 977 * ++world.streams_made;
  auto made = std::make_shared<Stream>(world, context, blocking, seed);
  made->start();
  return made;
}

std::shared_ptr<Stream> streamOf(World& world, Context& context, CUstream handle) {
  const bool null_stream = handle == nullptr || std::uint64_t(handle) == 1;
  if (!null_stream) return world.streams.find(handle);
  if (context.null_stream == nullptr) context.null_stream = makeStream(world, context, true);
  return context.null_stream;
}

CUresult enqueue(World& world, Context& context, CUstream handle, Work work, Moment* moment) {
  const auto stream = streamOf(world, context, handle);
  if (stream == nullptr) return CUresult::kInvalidHandle;
  for (Moment& other : implicitOrder(world, *stream)) work.after.push_back(std::move(other));
  const Moment at = stream->add(std::move(work));
  if (moment != nullptr) *moment = at;
  return CUresult::kSuccess;
}

CUresult waitFor(Lock& lock, const Moment& moment) {
  lock.wait([&] { return moment.reached(); });
  return moment.stream == nullptr ? CUresult::kSuccess : moment.stream->context().failure;
}

void drain(World& world, Lock& lock) {
  std::vector<Moment> all;
  for (const auto& [handle, stream] : world.streams.objects()) all.push_back(stream->last());
  for (const auto& context : world.contexts)
    if (context->null_stream != nullptr) all.push_back(context->null_stream->last());
  for (const Moment& moment : all) waitFor(lock, moment);
}

}  // namespace viaduct::fakegpu
