#include "support/tcpstore_server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/loop.h"
#include "base/net/address.h"
#include "base/net/listener.h"

namespace viaduct::testing {
namespace {

using meet::tcpstore::Dialect;

constexpr std::uint32_t kGreeting = 0x3C85F7CEU;
constexpr std::uint64_t kMaxKey = 8 << 10U, kMaxValue = 8 << 20U;

enum class Kind : std::uint8_t {
  kValidate,
  kSet,
  kCompareSet,
  kGet,
  kCheck,
  kWait,
  kCount,
  kDelete
};

std::optional<Kind> kindOf(Dialect dialect, std::uint8_t number) {
  const std::map<std::uint8_t, Kind> first{
      {0, Kind::kSet},  {1, Kind::kCompareSet}, {2, Kind::kGet},   {4, Kind::kCheck},
      {5, Kind::kWait}, {6, Kind::kCount},      {8, Kind::kDelete}};
  const std::map<std::uint8_t, Kind> second{
      {0, Kind::kValidate}, {1, Kind::kSet},  {2, Kind::kCompareSet}, {3, Kind::kGet},
      {5, Kind::kCheck},    {6, Kind::kWait}, {7, Kind::kCount},      {8, Kind::kDelete}};
  const auto& all = dialect == Dialect::kFirst ? first : second;
  const auto at = all.find(number);
  return at == all.end() ? std::nullopt : std::optional(at->second);
}

// Reads the parts of one query. `more`: its bytes are not complete yet.
struct QueryReader {
  base::Reader in;
  std::string wrong = {};
  bool more = false;

  std::string text(std::uint64_t most) {
    const auto size = in.get<std::uint64_t>();
    if (in.ok() && size > most) wrong = fmt::format("a text of {} bytes", size);
    if (!wrong.empty()) return {};
    std::string out(base::textOf(in.raw(size)));
    more = !in.ok();
    return out;
  }
  std::string key() {
    std::string out = text(kMaxKey);
    if (wrong.empty() && !more && !out.starts_with('/')) wrong = "a key without torch's slash";
    return out;
  }
};

}  // namespace

class TcpStoreServer::Impl {
 public:
  explicit Impl(Dialect dialect) : dialect_(dialect), loop_(*base::Loop::start("tcpstore")) {
    where_ = base::resolve(*base::parseHostPort("127.0.0.1:0"))->front();
    start();
    where_ = *base::localAddress(listening_.get());
  }
  ~Impl() {
    loop_->stop();
    kill();
  }

  void kill() {
    const auto held = loop_->hold();
    if (listening_) loop_->poller().forget(watch_);
    listening_.reset();
    closeAllHeld();
    keys_.clear();
  }
  void start() {
    const auto held = loop_->hold();
    listen(where_);
    loop_->wake();
  }
  template <class F>
  auto with(F&& use) {
    const auto held = loop_->hold();
    return use(*this);
  }
  void carryOutHeld() {
    for (Change& change : std::exchange(held_, {}))
      if (keys_[change.key] == change.expected) keys_[change.key] = std::move(change.desired);
  }
  void closeAllHeld() {
    while (!guests_.empty()) drop(guests_.begin()->first);
  }
  void put(const std::string& key, const std::string& value) {
    keys_[key] = value;
    auto waiting = std::move(waiting_[key]);
    waiting_.erase(key);
    for (const int guest : waiting) send(guest, std::string(1, '\0'));
  }

  base::SocketAddress where_;
  std::map<std::string, std::string> keys_;
  std::uint64_t queries_ = 0, connections_ = 0, refusals_ = 0;
  std::string refusal_;
  Fault fault_ = Fault::kNone;

 private:
  // A COMPARE_SET.
  struct Change {
    std::string key, expected, desired;
  };
  struct Guest {
    base::Fd socket;
    base::Poller::Id watch = 0;
    bool greeted = false;
    std::string in, out;
  };

  void listen(const base::SocketAddress& at) {
    auto fd = base::listenAt(at, true);
    if (!fd) {
      refusal_ = fd.error().text();
      return;
    }
    listening_ = std::move(*fd);
    watch_ = *loop_->poller().watch(listening_.get(), EPOLLIN, [this](std::uint32_t) { accept(); });
  }
  void accept() {
    for (;;) {
      base::Fd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) return;
      const int id = socket.get();
      static_cast<void>(base::tuneSocket(id));
      Guest& guest = guests_[id];
      guest.socket = std::move(socket);
      ++connections_;
      guest.watch =
          *loop_->poller().watch(id, EPOLLIN, [this, id](std::uint32_t) { readable(id); });
    }
  }
  void readable(int id) {
    std::array<char, 65536> part{};
    const ssize_t got = ::recv(id, part.data(), part.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return drop(id);
    guests_.at(id).in.append(part.data(), static_cast<std::size_t>(got));
    while (guests_.contains(id) && !guests_.at(id).in.empty() && obey(id));
  }
  void drop(int id) {
    const auto at = guests_.find(id);
    if (at == guests_.end()) return;
    for (auto& [key, waiting] : waiting_) waiting.erase(id);
    loop_->poller().forget(at->second.watch);
    guests_.erase(at);
  }
  bool refuse(int id, const std::string& why) {
    refusal_ = why;
    ++refusals_;
    drop(id);
    return false;
  }

  // Obeys the first query of the guest. False: the query is not complete, or the guest is gone.
  bool obey(int id) {
    Guest& guest = guests_.at(id);
    QueryReader in{base::Reader(base::bytesOf(guest.in))};
    // torch 1.x closes the connection, because the greeting is an impossible length to it.
    if (dialect_ == Dialect::kFirst && guest.in.starts_with(meet::tcpstore::greeting())) {
      if (guest.in.size() >= 9) drop(id);
      return false;
    }
    const auto number = in.in.get<std::uint8_t>();
    const auto kind = kindOf(dialect_, number);
    if (!kind) return refuse(id, fmt::format("query {}", number));
    if (dialect_ == Dialect::kSecond && (*kind == Kind::kValidate) == guest.greeted)
      return refuse(id, guest.greeted ? "greeted twice" : "not greeted");
    const auto all = in.in.left();
    const auto done = carryOut(id, *kind, in);
    if (!in.wrong.empty()) return refuse(id, in.wrong);
    if (!done) return false;
    if (!guests_.contains(id)) return false;
    ++queries_;
    guest.in.erase(0, 1 + all - in.in.left());
    return true;
  }

  bool carryOut(int id, Kind kind, QueryReader& in) {
    switch (kind) {
      case Kind::kValidate: {
        const auto magic = in.in.get<std::uint32_t>();
        if (in.in.ok() && magic != kGreeting) in.wrong = "another greeting";
        if (in.in.ok()) guests_.at(id).greeted = true;
        return in.in.ok();
      }
      case Kind::kCount:
        number(id, keys_.size());
        return true;
      case Kind::kWait:
        return await(id, in);
      default:
        return withKey(id, kind, in);
    }
  }
  bool withKey(int id, Kind kind, QueryReader& in) {
    const std::string key = in.key();
    const bool sets = kind == Kind::kSet || kind == Kind::kCompareSet;
    const std::string first = sets && in.wrong.empty() ? in.text(kMaxValue) : "";
    const std::string second =
        kind == Kind::kCompareSet && in.wrong.empty() ? in.text(kMaxValue) : "";
    if (in.more || !in.wrong.empty()) return false;
    const auto at = keys_.find(key);
    if (kind == Kind::kSet) {
      put(key, first);
    } else if (kind == Kind::kCompareSet) {
      compareSet(id, {key, first, second});
    } else if (kind == Kind::kGet) {
      if (at == keys_.end() && dialect_ == Dialect::kFirst) in.wrong = "GET of a missing key";
      if (in.wrong.empty()) text(id, at == keys_.end() ? "" : at->second);
    } else if (kind == Kind::kDelete) {
      number(id, keys_.erase(key));
    } else {
      in.wrong = "a query that our client does not use";
    }
    return true;
  }
  void compareSet(int id, Change change) {
    const auto at = keys_.find(change.key);
    const std::string now = at == keys_.end() ? "" : at->second;
    if (now != change.expected) return text(id, at == keys_.end() ? change.expected : now);
    if (fault_ == Fault::kHolds) return held_.push_back(std::move(change));
    keys_[change.key] = change.desired;
    if (fault_ != Fault::kLoses) text(id, change.desired);
  }
  bool await(int id, QueryReader& in) {
    const auto count = in.in.get<std::uint64_t>();
    if (in.in.ok() && count != 1) in.wrong = "WAIT for several keys";
    const std::string key = in.wrong.empty() ? in.key() : "";
    if (in.more || !in.in.ok() || !in.wrong.empty()) return false;
    if (keys_.contains(key))
      send(id, std::string(1, '\0'));
    else
      waiting_[key].insert(id);
    return true;
  }

  void number(int id, std::uint64_t value) {
    base::Writer out;
    out.put(value);
    send(id, std::string(base::textOf(out.bytes())));
  }
  void text(int id, const std::string& value) {
    base::Writer out;
    out.put(std::uint64_t{value.size()}).raw(base::bytesOf(value));
    send(id, std::string(base::textOf(out.bytes())));
  }
  void send(int id, std::string bytes) {
    if (fault_ == Fault::kSilent) return;
    if (fault_ == Fault::kForeign) bytes = "HTTP/1.1 400 Bad Request\r\n\r\n";
    const bool cut = fault_ == Fault::kTruncate && bytes.size() > 1;
    if (cut) bytes.resize(1);
    Guest& guest = guests_.at(id);
    guest.out += bytes;
    flush(id);
    if (cut && guests_.contains(id)) drop(id);
  }
  void flush(int id) {
    Guest& guest = guests_.at(id);
    while (!guest.out.empty()) {
      const ssize_t sent = ::send(id, guest.out.data(), guest.out.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return;  // the next read finds the error
      if (sent < 0) break;
      guest.out.erase(0, static_cast<std::size_t>(sent));
    }
    if (guest.out.empty()) return;
    loop_->poller().at(Clock::now() + std::chrono::milliseconds(1), [this, id] {
      if (guests_.contains(id)) flush(id);
    });
  }

  const Dialect dialect_;
  const std::unique_ptr<base::Loop> loop_;
  base::Fd listening_;
  base::Poller::Id watch_ = 0;
  std::map<int, Guest> guests_;
  std::map<std::string, std::set<int>> waiting_;
  std::vector<Change> held_;
};

TcpStoreServer::TcpStoreServer(Dialect dialect) : impl_(std::make_unique<Impl>(dialect)) {}
TcpStoreServer::~TcpStoreServer() = default;

std::string TcpStoreServer::where() const { return impl_->where_.text(); }
void TcpStoreServer::kill() { impl_->kill(); }
void TcpStoreServer::start() { impl_->start(); }
void TcpStoreServer::setFault(Fault fault) {
  impl_->with([&](Impl& impl) { impl.fault_ = fault; });
}
void TcpStoreServer::carryOutHeld() {
  impl_->with([](Impl& impl) { impl.carryOutHeld(); });
}
void TcpStoreServer::closeAll() {
  impl_->with([](Impl& impl) { impl.closeAllHeld(); });
}
std::uint64_t TcpStoreServer::queries() {
  return impl_->with([](Impl& impl) { return impl.queries_; });
}
std::uint64_t TcpStoreServer::connections() {
  return impl_->with([](Impl& impl) { return impl.connections_; });
}
std::size_t TcpStoreServer::keys() {
  return impl_->with([](Impl& impl) { return impl.keys_.size(); });
}
std::uint64_t TcpStoreServer::refusals() {
  return impl_->with([](Impl& impl) { return impl.refusals_; });
}
std::string TcpStoreServer::refusal() {
  return impl_->with([](Impl& impl) { return impl.refusal_; });
}
void TcpStoreServer::set(const std::string& key, const std::string& value) {
  impl_->with([&](Impl& impl) { impl.put(key, value); });
}
std::map<std::string, std::string> TcpStoreServer::all() {
  return impl_->with([](Impl& impl) { return impl.keys_; });
}

}  // namespace viaduct::testing
