// A member's connection to the embedded server: dials it until a deadline, proves the token, and
// keeps it alive. Threads: all calls are made with the loop's lock held. The loop's handlers call
// the user with the same lock held.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/net/dialer.h"
#include "meet/embedded/message_socket.h"
#include "meet/embedded/messages.h"
#include "meet/embedded/site.h"

namespace viaduct::meet::embedded {

class ServerConnectionUser {
 public:
  virtual ~ServerConnectionUser() = default;
  virtual void ready() = 0;
  virtual Status message(Type type, ByteSpan payload) = 0;  // an error closes the connection
  // No callback follows until open(), which lost() itself may call. `again`: another try may
  // succeed.
  virtual void lost(const Error& why, bool again) = 0;
};

class ServerConnection {
 public:
  // `once`: gives up after one try of each address.
  ServerConnection(SitePtr site, ServerConnectionUser& user, bool once = false)
      : site_(std::move(site)), user_(user), once_(once) {}
  ~ServerConnection() = default;
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;

  // Retries until `until`, because the name may not resolve yet, or the server may not listen yet.
  void open(Clock::time_point until, std::chrono::milliseconds first_after = {});
  void close();  // without a goodbye; call it before the destructor
  void send(const PacketPtr& packet);
  bool ready() const { return phase_ == Phase::kReady; }
  bool opened() const { return phase_ != Phase::kClosed; }
  // Returns the number of tries and their outcome, for a caller that gives up waiting for ready().
  Error unreachable() const;

 private:
  enum class Phase : std::uint8_t { kClosed, kDialing, kPausing, kProving, kReady };

  void attempt();
  void dial();
  void connected(base::Fd socket);
  void onReadable();
  Status take(const base::Frame& frame);
  Status prove(base::Handshake::Stage stage, const base::Frame& frame);
  Status welcome(ByteSpan payload);
  Status denied(ByteSpan payload);
  void write(const PacketPtr& packet);
  void failed(Error why);
  void tick();
  void setTimer(Clock::time_point when, void (ServerConnection::*then)());
  void helloTimedOut();

  Loop& loop() const { return *site_->loop; }

  const SitePtr site_;
  ServerConnectionUser& user_;
  const bool once_;

  Phase phase_ = Phase::kClosed;
  Clock::time_point began_ = {}, until_ = {};
  unsigned tries_ = 0;
  BackOff pauses_{std::chrono::milliseconds(10), std::chrono::seconds(2)};  // between tries
  std::optional<Error> last_;
  std::vector<std::string> untried_;  // addresses that this attempt has still to try
  std::unique_ptr<base::Dialer> dialer_;
  std::unique_ptr<MessageSocket> socket_;
  base::Poller::Id timer_ = 0;
  std::uint64_t turn_ = 0;    // the number of this connection's turn, see Turns; 0: none
  Duration hello_time_ = {};  // the time limit of the next hello
  bool denied_ = false;
  std::optional<base::Handshake> handshake_;  // until both ends have proved themselves
  std::chrono::milliseconds detect_ = {};
  Clock::time_point heard_ = {}, ticked_ = {};
};

}  // namespace viaduct::meet::embedded
