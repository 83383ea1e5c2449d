#include "meet/groups/server.h"

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
#include "base/net/weak_secret.h"
#include "meet/embedded/message_socket.h"
#include "meet/groups/server_state.h"

namespace viaduct::meet {

namespace wire = embedded;
using groups::GuestId;
using Stage = base::Handshake::Stage;
using wire::ByteSpan, wire::PacketPtr, wire::Type;

namespace {

constexpr std::chrono::seconds kHandshakeTime{5};
constexpr int kTicksPerDetect = 4;

Error outOfTurn() {
  return {.code = Code::kProtocol, .operation = "handshake", .detail = "an unexpected message"};
}

// A number that is greater for every later start of a server, on any host whose clock is roughly
// right.
std::uint64_t firstEpoch() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

}  // namespace

class EmbeddedServer::Impl final : public groups::MemberConnections {
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
    bool proven = false, doomed = false;
    base::Unproven::Place place = {};               // until it is proven
    std::optional<base::Handshake> handshake = {};  // from the challenge on
    Clock::time_point came = Clock::now(), heard = came;
  };

  void accept(base::Fd socket, base::Unproven::Place place);
  void onReadable(GuestId id);
  Status take(GuestId id, Guest& guest, const base::Frame& frame);
  Status challenge(Guest& guest, const base::Frame& open);
  Status prove(Guest& guest, ByteSpan payload);
  Status turnAway(const Guest& guest, Error why);
  Status deny(Guest& guest, Error why);
  void write(GuestId id, Guest& guest, const PacketPtr& packet);
  void doom(GuestId id, std::string how);
  void reap();
  void dropUnproven(GuestId id);
  void tick();

  ServerOptions options_;
  base::Key token_;
  std::unique_ptr<base::Loop> loop_;
  groups::ServerState state_;
  // Declared before `guests_`, whose Unproven::Place objects refer to the listener.
  std::unique_ptr<base::Listener> listener_;
  std::unordered_map<GuestId, std::unique_ptr<Guest>> guests_;
  std::vector<std::pair<GuestId, std::string>> doomed_;
  GuestId last_guest_ = 0;
  std::uint64_t last_ping_ = 0;
  std::uint64_t received_ = 0, sent_ = 0;
  Clock::time_point ticked_ = {};
  std::condition_variable quiet_;
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
  if (!listener_->isLocal()) base::warnIfGuessable(options_.token);
  if (options_.token.empty() && !options_.insecure && !listener_->isLocal())
    return Error{
        .code = Code::kDenied,
        .operation = "listen",
        .detail = fmt::format("{}: every process that reaches it could join", addresses().front()),
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
  if (const Status watched = guest->socket.watch(loop_->poller(), [this, id] { onReadable(id); });
      !watched)
    return base::log(base::LogLevel::kError, "meet: {}", watched.error().text());
  guest->place = std::move(place);
  guest->place.watch([one = guest.get()] { return one->handshake.has_value(); },
                     [this, id] { dropUnproven(id); });
  guests_.emplace(id, std::move(guest));
}

void EmbeddedServer::Impl::onReadable(GuestId id) {
  Guest& guest = *guests_.at(id);
  if (guest.doomed) return;
  const auto read =
      guest.socket.read([&](const base::Frame& frame) { return take(id, guest, frame); });
  // A member of another protocol version finds our version in the header of the answer.
  if (!read && read.error().code == Code::kUnsupported)
    static_cast<void>(deny(guest, read.error()));
  if (!read)
    doom(id, read.error().detail);
  else if (!*read)
    doom(id, "its connection closed");
  else
    guest.heard = Clock::now();
}

Status EmbeddedServer::Impl::take(GuestId id, Guest& guest, const base::Frame& frame) {
  ++received_;
  const Type type = wire::typeOf(frame);
  if (guest.proven) return state_.take(id, type, frame.payload);
  if (type == Type::kOpen && !guest.handshake) return challenge(guest, frame);
  if (type == Type::kProof && guest.handshake) return prove(guest, frame.payload);
  if (type == Type::kDeny) return turnAway(guest, wire::wrongToken());
  return outOfTurn();
}

Status EmbeddedServer::Impl::challenge(Guest& guest, const base::Frame& open) {
  VIADUCT_TRY(guest.handshake, base::Handshake::listen(token_, wire::kVersion, wire::kBinding));
  VIADUCT_TRY(auto step, guest.handshake->take(Stage::kOpen, open.payload, open.minor));
  return guest.socket.send(wire::makePacket(Type::kChallenge, std::move(step.reply)));
}

Status EmbeddedServer::Impl::prove(Guest& guest, ByteSpan payload) {
  auto step = guest.handshake->take(Stage::kProof, payload, 0);
  if (!step)
    return step.error().code == Code::kDenied ? deny(guest, wire::wrongToken()) : step.error();
  VIADUCT_CHECK(guest.socket.send(wire::makePacket(Type::kConfirm, std::move(step->reply))));
  VIADUCT_CHECK(
      guest.socket.useKeys(guest.handshake->sendingKey(), guest.handshake->receivingKey()));
  guest.socket.setLimit(wire::kMaxFromMember);
  guest.handshake.reset();
  guest.proven = true;
  guest.place.leave();
  return guest.socket.send(wire::makePacket(
      Type::kWelcome, wire::WelcomeMessage{static_cast<std::uint32_t>(options_.detect.count())}));
}

Status EmbeddedServer::Impl::turnAway(const Guest& guest, Error why) {
  const std::string line = fmt::format("turned {} away: {}", guest.remote, why.detail);
  // If a member runs the server, nobody has set options_.say, and the user learns the reason from
  // the log.
  if (options_.say)
    say(line);
  else
    base::log(base::LogLevel::kWarning, "meet: {}", line);
  return why;
}

// Sends the reason to the other end, and returns it as the error that closes the connection.
Status EmbeddedServer::Impl::deny(Guest& guest, Error why) {
  static_cast<void>(guest.socket.send(wire::makePacket(Type::kDeny, wire::ErrorMessage{why})));
  return turnAway(guest, std::move(why));
}

void EmbeddedServer::Impl::send(GuestId to, const PacketPtr& packet) {
  const auto found = guests_.find(to);
  if (found != guests_.end()) write(to, *found->second, packet);
}

void EmbeddedServer::Impl::write(GuestId id, Guest& guest, const PacketPtr& packet) {
  if (guest.doomed) return;
  ++sent_;
  if (const Status sent = guest.socket.send(packet); !sent) doom(id, sent.error().detail);
}

std::uint64_t EmbeddedServer::Impl::ping(GuestId to) {
  send(to, wire::makePacket(Type::kPing, wire::NumberMessage{++last_ping_}));
  return last_ping_;
}

void EmbeddedServer::Impl::say(const std::string& line) {
  base::log(base::LogLevel::kInfo, "meet: {}", line);
  if (options_.say) options_.say(line);
}

// Marks the guest. reap() removes it at the end of the loop's round, when no code refers to it.
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

// The listener calls this function to make room for a newer connection.
void EmbeddedServer::Impl::dropUnproven(GuestId id) {
  const auto found = guests_.find(id);
  base::log(base::LogLevel::kInfo, "meet: {} was dropped for a newer connection",
            found->second->remote);
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
