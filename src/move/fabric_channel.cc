#include "move/fabric_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace viaduct::move {
namespace {

// The interval for checks of a channel that opens or has data in flight.
constexpr Duration kLook = std::chrono::milliseconds(50);
// The peer's process handles its sockets between two answers. After the second answer, a busy peer
// no longer explains the silence.
constexpr int kEnoughAnswers = 2;
// While an answer is late, the session is silent too, so all paths to the peer are silent.
// Afterwards a path may stay silent for as long again, because its retransmissions come at doubling
// intervals.
constexpr int kTimesAsLong = 3;
// The longest pause between two calls of progress() for a channel that dozes: with ops that wait to
// be posted, and without any.
constexpr Duration kLongestDoze = std::chrono::milliseconds(1);
constexpr Duration kLongestRest = std::chrono::seconds(1);
// The longest pause between two arms, in multiples of the spin. An event for incoming data costs
// both ends some 5 us, so continuous traffic makes the pauses longer.
constexpr int kMostUnarmed = 8;
// Edge-triggered, because some descriptors stay readable until arm(). With level-triggered events,
// each poll would take that for traffic, and the channel would never sleep.
constexpr std::uint32_t kNews = EPOLLIN | EPOLLET;
// An endpoint of libfabric or UCX opens about a dozen descriptors.
constexpr int kEnoughDescriptors = 24;

// Searches from the highest number down, because the system gives out the lowest free one.
bool areDescriptorsShort() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t kMost = std::numeric_limits<int>::max();
  int free = 0;
  for (auto fd = static_cast<int>(std::min(limit.rlim_cur, kMost));
       fd-- > 0 && free < kEnoughDescriptors;)
    if (::fcntl(fd, F_GETFD) < 0) ++free;
  return free < kEnoughDescriptors;
}

}  // namespace

FabricChannel::FabricChannel(const FabricChannelSeed& seed, ChannelHost& host,
                             ChannelMessages& peer, const ChannelLife& life)
    : Channel(host, seed.place, life), seed_(seed), peer_(peer), poster_(seed.poster) {}

Result<OpenChannel> FabricChannel::begin(bool answer) {
  talk_ = {};  // may hold notices about an earlier life that arrived after its end
  events_ = {};
  // Libraries report a shortage of descriptors like any other error, and UCX may end the process. A
  // later life needs no check, because the earlier life has closed as many descriptors.
  if (life().isFirst() && areDescriptorsShort())
    return linkError(
        {.code = Code::kExhausted,
         .detail = fmt::format("fewer than {} file descriptors are free", kEnoughDescriptors)});
  VIADUCT_TRY(endpoint_, seed_.domain.open());
  opening_until_ = seed_.poller.now() + seed_.opening;
  lookLater();
  return OpenChannel{.answer = answer,
                     .channel = index(),
                     .life = life().number(),
                     .address = endpoint_->address(),
                     .probe = seed_.word.probe()};
}

Status FabricChannel::join(const OpenChannel& theirs) {
  VIADUCT_CHECK(endpoint_->join(theirs.address));
  transport_ = endpoint_->transport();
  transport_devices_ = endpoint_->transportDevices();
  there_ = theirs.probe;
  // The poller watches the descriptor also while the channel is awake: an event then shows that the
  // channel has to stay awake. Some libraries report incoming data in no other way.
  if (endpoint_->fd() >= 0) {
    VIADUCT_TRY(watch_,
                seed_.poller.watch(endpoint_->fd(), kNews, [this](std::uint32_t) { told(); }));
  }
  life().on(ChannelEvent::kJoin);
  last_busy_ = seed_.poller.now();
  host().activate(*this);
  return Ok{};
}

void FabricChannel::told() {
  last_busy_ = seed_.poller.now();
  unarmed_for_ = active ? std::min(unarmed_for_ * 2, kMostUnarmed) : 1;
  host().activate(*this);
}

// True: the probe has arrived at the peer. The probe is needed because no library reports a broken
// path before it is used. If the endpoint does not accept the probe, the next progress() retries.
bool FabricChannel::probed() {
  if (!talk_.probe_sent) {
    const Piece word{.here = seed_.word.out(),
                     .there = there_.address,
                     .bytes = sizeof(std::uint64_t),
                     .local = seed_.word.registered.get()};
    // No pin has the generation 0.
    const RemoteKey key = endpoint_->keyOf(0, there_.key);
    if (key == nullptr)
      breakWith(linkError({.code = Code::kProtocol, .detail = "the peer's key cannot be read"}));
    else if (endpoint_->post(OpKind::kWrite, std::span(&word, 1), key).pieces == 1) {
      probe_ = endpoint_->flush();
      talk_.probe_sent = true;
    }
  }
  return talk_.probe_sent && endpoint_->ended(probe_);
}

Error FabricChannel::linkError(Error why) const {
  why.operation = fmt::format("{} link", seed_.poster.device);
  why.device = seed_.poster.device;
  return why;
}

void FabricChannel::close() {
  if (timer_ != 0) seed_.poller.forgetTimer(std::exchange(timer_, 0));
  awake();
  if (doze_ != 0) seed_.poller.forgetTimer(std::exchange(doze_, 0));
  if (watch_ != 0) seed_.poller.forget(std::exchange(watch_, 0));
  host().deactivate(*this);
  if (!endpoint_) return;
  endpoint_->letGo(probe_);
  poster_.rewind(*endpoint_);
  endpoint_.reset();
}

void FabricChannel::push() {
  if (!up()) return;
  const bool was_idle = poster_.idle();
  if (poster_.starved() && mayTell(true)) events_.tells_polling = true;
  poster_.push(*endpoint_);
  if (!was_idle || poster_.idle()) return;
  if (timer_ == 0) events_.begins_look = true;
  awake();
}

void FabricChannel::add(Job& job) {
  poster_.add(job);
  pushNow();
}

void FabricChannel::keysHaveCome() {
  poster_.keysHaveCome();
  pushNow();
}

// The rail asks only active channels for events. So the channel becomes active, and handleEvents()
// does the work that push() leaves.
void FabricChannel::pushNow() {
  if (!up()) return;
  push();
  host().activate(*this);
}

// Does the work that push() has left.
void FabricChannel::afterPush() {
  if (std::exchange(events_.tells_polling, false)) tellPolling(true);
  if (std::exchange(events_.begins_look, false)) lookLater();
  for (const std::uint32_t slot : poster_.takeWantedKeys()) peer_.askForKey(slot);
}

void FabricChannel::handleEvents() {
  afterPush();
  if (std::exchange(events_.dozes, false)) doze();
  // Comes last, because the link may close the channel.
  if (std::exchange(events_.proved, false) && life().on(ChannelEvent::kProve)) host().opened(*this);
}

void FabricChannel::retireKey(std::uint32_t generation) {
  if (endpoint_) endpoint_->retire(generation);
}

void FabricChannel::progress(Clock::time_point now, const Turn& turn) {
  bool moved = false, told = false;
  do {
    moved = endpoint_->progress();
    if (!up() && !events_.proved && probed()) events_.proved = moved = true;
    const bool reaped = poster_.reap(*endpoint_);
    if (reaped) {
      talk_.asked.reset();
      talk_.answers = 0;
      talk_.slowest_answer = {};
      moved = true;
    }
    if (auto why = endpoint_->broken()) return breakWith(std::move(*why));
    push();
    if (!moved) continue;
    last_busy_ = now;
    awake();
    told = reaped && poster_.idle();  // nothing is in flight: report before more progress
  } while (moved && !told && !turn.isOver(now = seed_.poller.now()));
}

bool FabricChannel::sleep(Clock::time_point now) {
  const Duration quiet = quietFor(now);
  if (life().broken() || quiet < seed_.spin) return false;
  if (watch_ != 0 && !unposted()) return sleepUntilTold(now, quiet);
  const bool tells = rests() && mayTell(false);
  events_.dozes = mayDoze() && (tells || !(dozes_ || talk_.peer_polls));
  return false;
}

Duration FabricChannel::quietFor(Clock::time_point now) const {
  return now - std::max(last_busy_, poster_.lastMoved());
}

bool FabricChannel::sleepUntilTold(Clock::time_point now, Duration quiet) {
  if (!endpoint_->tellsUnarmed() && !armedAWhile(now, quiet)) return false;
  // change() makes epoll report the descriptor again if it is readable already.
  return endpoint_->arm() && seed_.poller.change(watch_, kNews).has_value();
}

// No event will wake the channel. It gets progress() whenever its rail is polled. After a pause of
// half its quiet time so far, it makes the rail busy again.
void FabricChannel::doze() {
  const auto now = seed_.poller.now();
  const Duration quiet = quietFor(now);
  if (quiet < seed_.spin || !mayDoze()) return;  // something has happened since sleep()
  if (rests()) tellPolling(false);
  if (dozes_ || talk_.peer_polls) return;
  if (doze_ != 0) seed_.poller.forgetTimer(doze_);
  const Duration longest = rests() ? kLongestRest : kLongestDoze;
  doze_ = seed_.poller.at(now + std::min(longest, quiet / 2), [this] {
    doze_ = 0;
    dozes_ = false;
  });
  dozes_ = true;
}

// Tells the peer whether we are polling. A peer without wake-ups polls while we do.
void FabricChannel::tellPolling(bool awake) {
  if (!mayTell(awake)) return;
  talk_.told_polling = awake;
  peer_.tell(PollingNotice{.awake = awake, .channel = index(), .life = life().number()});
}

void FabricChannel::peerPolling(bool awake) {
  talk_.peer_polls = awake && watch_ == 0;
  if (!talk_.peer_polls || !joined()) return;
  last_busy_ = seed_.poller.now();
  host().activate(*this);
}

// Data that arrived while the endpoint was not armed went unnoticed. The channel therefore sleeps
// only after it was armed for a whole spin without an event.
bool FabricChannel::armedAWhile(Clock::time_point now, Duration quiet) {
  if (armed_since_) return now - *armed_since_ >= seed_.spin;
  if (quiet >= seed_.spin * unarmed_for_ && endpoint_->arm()) armed_since_ = now;
  return false;
}

void FabricChannel::awake() {
  if (std::exchange(armed_since_, std::nullopt) && endpoint_) endpoint_->disarm();
  dozes_ = false;  // the timer stays, because another thread may set one meanwhile
}

void FabricChannel::lookLater() {
  if (timer_ == 0)
    timer_ = seed_.poller.at(seed_.poller.now() + kLook, [this] {
      timer_ = 0;
      look();
    });
}

void FabricChannel::look() {
  const auto now = seed_.poller.now();
  const bool waits = life().state() == ChannelState::kWaiting;
  if (waits || life().state() == ChannelState::kProbing) {
    if (now >= opening_until_)
      return breakWith(linkError({.code = Code::kTimeout,
                                  .detail = waits ? "the peer did not open its end in time"
                                                  : "no byte arrived over " + transport_devices_,
                                  .cause = "the devices of the two ends do not reach each other"}));
    return lookLater();
  }
  if (poster_.idle()) return;
  judgeSilence(now);
  lookLater();
}

// UCX, libfabric and the kernel do not report a cut path for minutes. The session may use another
// path, so the peer is asked over the session whether it is alive.
void FabricChannel::judgeSilence(Clock::time_point now) {
  const auto silence = now - poster_.lastMoved();
  if (silence < poster_.patience() + kTimesAsLong * talk_.slowest_answer) return;
  if (talk_.answers >= kEnoughAnswers)
    return breakWith(linkError(
        {.code = Code::kTimeout,
         .detail = "no answer arrived over " + transport_devices_ + ", although the peer is alive",
         .cause = "the path of this rail is cut or has stalled",
         .remedy = "check the link; the agent retries the rail"}));
  if (talk_.asked) return;
  talk_.asked = now;
  host().activate(*this);  // the channel may sleep, and a library may have lost the event
  peer_.tell(PingChannel{.channel = index(), .life = life().number()});
}

// The channel may sleep, and a library may have lost the event of the peer's data.
void FabricChannel::pinged() {
  if (!joined()) return;
  last_busy_ = seed_.poller.now();
  host().activate(*this);
}

void FabricChannel::answered() {
  if (!talk_.asked) return;
  talk_.slowest_answer = std::max(talk_.slowest_answer, seed_.poller.now() - *talk_.asked);
  talk_.asked.reset();
  ++talk_.answers;
}

}  // namespace viaduct::move
