#include "meet/embedded/server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "base/loop.h"
#include "base/net/address.h"
#include "base/net/listener.h"
#include "base/random.h"
#include "meet/embedded/message_socket.h"
#include "meet/embedded/server_state.h"
#include "meet/embedded/token_proof.h"

namespace viaduct::meet {

namespace wire = embedded;
using wire::ByteSpan, wire::GuestId, wire::PacketPtr, wire::Type;

namespace {

constexpr std::chrono::seconds kHandshakeTime{5};
constexpr int kTicksPerDetect = 4;
constexpr std::size_t kScratch = std::size_t{64} << 10U;

Error outOfTurn() {
  return {.code = Code::kProtocol, .operation = "handshake", .detail = "an unexpected message"};
}

bool isLoopback(const std::string& address) {
  const auto where = base::parseHostPort(address);
  return where && (where->host.starts_with("127.") || where->host == "::1");
}

// A number that is greater for every later start of a server, on any host whose clock is roughly
// right.
std::uint64_t firstEpoch() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

}  // namespace

class EmbeddedServer::Impl final : public wire::MemberConnections {
 public:
  explicit Impl(ServerOptions options)
      : options_(std::move(options)),
        token_(base::secretFromText(options_.token)),
        state_(*this, firstEpoch(), static_cast<bool>(options_.over)) {}
  ~Impl() override {
    if (loop_) loop_->stop();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status start();
  std::vector<std::string> addresses() const { return listener_->addresses(); }
  void close(const Error& why);
  bool drained(Clock::time_point until);
  ServerCounts counts();

  void send(GuestId to, const PacketPtr& packet) override;
  std::uint64_t ping(GuestId to) override;
  void say(const std::string& line) override;

 private:
  struct Guest {
    Guest(base::Fd fd, std::string where)
        : socket(std::move(fd), wire::kMaxUnproven), remote(std::move(where)) {}
    wire::MessageSocket socket;
    std::string remote;
    base::Poller::Id watch = 0;
    bool writes = false;  // the poller watches for room in the socket
    bool challenged = false, proven = false, doomed = false;
    base::Unproven::Place place = {};  // until it is proven
    wire::TokenProof proof = {};
    Clock::time_point came = Clock::now(), heard = came;
  };

  void accept(base::Fd socket, base::Unproven::Place place);
  void onEvents(GuestId id, std::uint32_t events);
  Status take(GuestId id, Guest& guest, Type type, ByteSpan payload);
  Status challenge(Guest& guest, ByteSpan payload);
  Status prove(Guest& guest, ByteSpan payload);
  Status deny(Guest& guest, Error why);
  void write(GuestId id, Guest& guest, const PacketPtr& packet);
  void watchWriting(GuestId id, Guest& guest);
  void doom(GuestId id, std::string how);
  void reap();
  void dropUnproven(GuestId id);
  void tick();

  ServerOptions options_;
  base::Key token_;
  std::unique_ptr<base::Loop> loop_;
  wire::ServerState state_;
  // Declared before the guests, whose places refer to it.
  std::unique_ptr<base::Listener> listener_;
  std::unordered_map<GuestId, std::unique_ptr<Guest>> guests_;
  std::vector<std::pair<GuestId, std::string>> doomed_;
  GuestId last_guest_ = 0;
  std::uint64_t last_ping_ = 0;
  std::uint64_t received_ = 0, sent_ = 0;
  Clock::time_point ticked_ = {};
  std::condition_variable quiet_;
  std::vector<std::byte> scratch_ = std::vector<std::byte>(kScratch);
};

Status EmbeddedServer::Impl::start() {
  VIADUCT_TRY(loop_, base::Loop::start("viaduct meet", [this] { reap(); }));
  const auto held = loop_->hold();
  const auto where = options_.listening ? std::vector<std::string>{} : options_.listen;
  VIADUCT_TRY(listener_, base::Listener::open(where, {}, loop_->poller(),
                                              [this](base::Fd socket, base::Unproven::Place place) {
                                                accept(std::move(socket), std::move(place));
                                              }));
  if (options_.listening) VIADUCT_CHECK(listener_->adopt(std::move(options_.listening)));
  const auto at = addresses();
  if (options_.token.empty() && !options_.insecure &&
      !std::all_of(at.begin(), at.end(), &isLoopback))
    return Error{.code = Code::kDenied,
                 .operation = "listen",
                 .detail = fmt::format("{}: every process that reaches it could join", at.front()),
                 .cause = "there is no token, and the address is not a loopback one",
                 .remedy =
                     "give all members the same secret (--secret, VIADUCT_SECRET), or accept "
                     "everyone: VIADUCT_INSECURE=yes"};
  tick();
  loop_->wake();
  return Ok{};
}

void EmbeddedServer::Impl::accept(base::Fd socket, base::Unproven::Place place) {
  const auto remote = base::remoteAddress(socket.get());
  const GuestId id = ++last_guest_;
  auto guest = std::make_unique<Guest>(std::move(socket), remote ? remote->text() : "?");
  auto watch = loop_->poller().watch(guest->socket.fd(), EPOLLIN | EPOLLRDHUP,
                                     [this, id](std::uint32_t events) { onEvents(id, events); });
  if (!watch) return base::log(base::LogLevel::kError, "meet: {}", watch.error().text());
  guest->watch = *watch;
  guest->place = std::move(place);
  guest->place.watch([one = guest.get()] { return one->challenged; },
                     [this, id] { dropUnproven(id); });
  guests_.emplace(id, std::move(guest));
}

void EmbeddedServer::Impl::onEvents(GuestId id, std::uint32_t events) {
  const auto found = guests_.find(id);
  if (found == guests_.end() || found->second->doomed) return;
  Guest& guest = *found->second;
  if ((events & EPOLLOUT) != 0) {
    if (const Status flushed = guest.socket.flush(); !flushed)
      return doom(id, flushed.error().detail);
    watchWriting(id, guest);
  }
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return;
  const auto read = guest.socket.read(
      scratch_, [&](Type type, ByteSpan payload) { return take(id, guest, type, payload); });
  if (!read)
    doom(id, read.error().detail);
  else if (*read == wire::MessageSocket::Read::kEnd)
    doom(id, "its connection closed");
  else
    guest.heard = Clock::now();
}

Status EmbeddedServer::Impl::take(GuestId id, Guest& guest, Type type, ByteSpan payload) {
  ++received_;
  if (guest.proven) return state_.take(id, type, payload);
  if (type == Type::kOpen && !guest.challenged) return challenge(guest, payload);
  if (type == Type::kProof && guest.challenged) return prove(guest, payload);
  return outOfTurn();
}

Status EmbeddedServer::Impl::challenge(Guest& guest, ByteSpan payload) {
  VIADUCT_TRY(const auto open, wire::OpenMessage::decode(payload));
  if (open.major != wire::kMajor)
    return deny(guest,
                {.code = Code::kUnsupported,
                 .operation = "hello",
                 .detail = fmt::format("the meeting place speaks version {}.{}, this member {}.{}",
                                       wire::kMajor, wire::kMinor, open.major, open.minor),
                 .remedy = "install the same release for all members"});
  guest.challenged = true;
  guest.proof.token = token_;
  guest.proof.member_nonce = open.nonce;
  VIADUCT_CHECK(base::fillSecret(guest.proof.server_nonce));
  return guest.socket.send(wire::makePacket(
      Type::kChallenge, wire::ChallengeMessage{guest.proof.server_nonce}.encode()));
}

Status EmbeddedServer::Impl::prove(Guest& guest, ByteSpan payload) {
  VIADUCT_TRY(const auto theirs, wire::ProofMessage::decode(payload));
  const auto expected = guest.proof.ofMember();
  if (!base::sameBytes(std::as_bytes(std::span(theirs.proof)), std::as_bytes(std::span(expected))))
    return deny(
        guest,
        {.code = Code::kDenied,
         .operation = "hello",
         .detail = "the token is not the meeting place's",
         .cause =
             options_.token.empty() ? "the meeting place has no token" : "a wrong or missing token",
         .remedy =
             "give all members and the meeting place the same secret (--secret, VIADUCT_SECRET)"});
  const wire::WelcomeMessage welcome{guest.proof.ofServer(),
                                     static_cast<std::uint32_t>(options_.detect.count())};
  VIADUCT_CHECK(guest.socket.send(wire::makePacket(Type::kWelcome, welcome.encode())));
  guest.socket.useKeys(guest.proof.fromServer(), guest.proof.fromMember());
  guest.socket.setLimit(wire::kMaxFromMember);
  guest.proven = true;
  guest.place.leave();
  return Ok{};
}

// Sends the reason to the other end, and returns it as the error that closes the connection.
Status EmbeddedServer::Impl::deny(Guest& guest, Error why) {
  const std::string line = fmt::format("turned {} away: {}", guest.remote, why.detail);
  // If a member runs the server, nobody has set options_.say, and the user learns the reason from
  // the log.
  if (options_.say)
    say(line);
  else
    base::log(base::LogLevel::kWarning, "meet: {}", line);
  static_cast<void>(
      guest.socket.send(wire::makePacket(Type::kDeny, wire::ErrorMessage{why}.encode())));
  return why;
}

void EmbeddedServer::Impl::send(GuestId to, const PacketPtr& packet) {
  const auto found = guests_.find(to);
  if (found != guests_.end()) write(to, *found->second, packet);
}

void EmbeddedServer::Impl::write(GuestId id, Guest& guest, const PacketPtr& packet) {
  if (guest.doomed) return;
  ++sent_;
  if (const Status sent = guest.socket.send(packet); !sent) return doom(id, sent.error().detail);
  watchWriting(id, guest);
}

void EmbeddedServer::Impl::watchWriting(GuestId id, Guest& guest) {
  if (guest.socket.unsent() == guest.writes) return;
  guest.writes = guest.socket.unsent();
  const std::uint32_t events = EPOLLIN | EPOLLRDHUP | (guest.writes ? EPOLLOUT : 0U);
  if (const Status changed = loop_->poller().change(guest.watch, events); !changed)
    doom(id, changed.error().detail);
}

std::uint64_t EmbeddedServer::Impl::ping(GuestId to) {
  send(to, wire::makePacket(Type::kPing, wire::NumberMessage{++last_ping_}.encode()));
  return last_ping_;
}

void EmbeddedServer::Impl::say(const std::string& line) {
  base::log(base::LogLevel::kInfo, "meet: {}", line);
  if (options_.say) options_.say(line);
}

// Marks the guest. reap() removes it at the end of the turn, when no code refers to it.
void EmbeddedServer::Impl::doom(GuestId id, std::string how) {
  Guest& guest = *guests_.at(id);
  if (std::exchange(guest.doomed, true)) return;
  doomed_.emplace_back(id, std::move(how));
}

void EmbeddedServer::Impl::reap() {
  while (!doomed_.empty()) {
    const auto [id, how] = std::move(doomed_.back());
    doomed_.pop_back();
    const auto found = guests_.find(id);
    if (found == guests_.end()) continue;  // dropped meanwhile
    loop_->poller().forget(found->second->watch);
    const bool proven = found->second->proven;
    guests_.erase(found);
    if (proven) state_.gone(id, how);
  }
  if (state_.liveGroups() == 0) quiet_.notify_all();
  if (options_.over && state_.over()) std::exchange(options_.over, nullptr)();
}

void EmbeddedServer::Impl::close(const Error& why) {
  const auto held = loop_->hold();
  state_.close(why);
  loop_->wake();
}

// The listener calls it to make room for a newer connection.
void EmbeddedServer::Impl::dropUnproven(GuestId id) {
  const auto found = guests_.find(id);
  base::log(base::LogLevel::kInfo, "meet: {} was dropped for a newer connection",
            found->second->remote);
  loop_->poller().forget(found->second->watch);
  guests_.erase(found);
}

void EmbeddedServer::Impl::tick() {
  const auto every = options_.detect / kTicksPerDetect;
  const auto now = Clock::now();
  // If this process itself was stopped, messages that members sent meanwhile are still unread.
  const bool slept = now - ticked_ > 2 * every;
  ticked_ = now;
  const PacketPtr beat = wire::makePacket(Type::kBeat);
  for (auto& [id, guest] : guests_) {
    if (guest->doomed) continue;
    if (slept) guest->heard = now;
    if (!guest->proven && now - guest->came > kHandshakeTime)
      doom(id, "its hello did not arrive in time");
    else if (guest->proven && now - guest->heard > options_.detect)
      doom(id, fmt::format("silent for {:.1f} s: frozen, or its host or network is down",
                           std::chrono::duration<double>(now - guest->heard).count()));
    else if (guest->proven)
      write(id, *guest, beat);
  }
  loop_->poller().at(now + every, [this] { tick(); });
}

bool EmbeddedServer::Impl::drained(Clock::time_point until) {
  auto held = loop_->hold();
  const auto quiet = [this] { return state_.liveGroups() == 0; };
  while (!quiet()) {
    if (Clock::now() >= until) return false;
    // Waits a second at a time, because wait_until() with time_point::max() overflows in some
    // libraries.
    quiet_.wait_until(held, std::min(until, Clock::now() + std::chrono::seconds(1)));
  }
  return true;
}

ServerCounts EmbeddedServer::Impl::counts() {
  const auto held = loop_->hold();
  ServerCounts out{
      .groups = state_.liveGroups(), .names = state_.names(), .received = received_, .sent = sent_};
  for (const auto& [id, guest] : guests_) out.members += guest->proven && !guest->doomed ? 1 : 0;
  return out;
}

EmbeddedServer::EmbeddedServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EmbeddedServer::~EmbeddedServer() = default;

Result<std::unique_ptr<EmbeddedServer>> EmbeddedServer::start(ServerOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  VIADUCT_CHECK(impl->start());
  return std::unique_ptr<EmbeddedServer>(new EmbeddedServer(std::move(impl)));
}

Result<base::Fd> EmbeddedServer::listen(const std::string& where) {
  VIADUCT_TRY(const auto host, base::parseHostPort(where));
  VIADUCT_TRY(const auto addresses, base::resolve(host));
  return base::listenAt(addresses.front());
}

std::vector<std::string> EmbeddedServer::addresses() const { return impl_->addresses(); }
void EmbeddedServer::close(const Error& why) { impl_->close(why); }
bool EmbeddedServer::drained(Deadline until) { return impl_->drained(until.at()); }
ServerCounts EmbeddedServer::counts() { return impl_->counts(); }

}  // namespace viaduct::meet
