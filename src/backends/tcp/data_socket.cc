#include "backends/tcp/data_socket.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "backends/tcp/socket.h"
#include "backends/tcp/tcp_channel.h"
#include "base/net/hearing.h"

namespace viaduct::tcp {

namespace {
// Longer than a delayed acknowledgement, and than two retransmissions on a short path.
constexpr std::chrono::milliseconds kLeastSilence{400};
// On a long path, or behind a long queue, the round trip sets the limit.
constexpr int kRoundTrips = 4;
// A post holds the agent's lock, so it sends no larger frame than this. The kernel copies this many
// bytes in about 3 us.
constexpr std::size_t kMostAtOnce = std::size_t{16} << 10U;
// Batches of records to move before another thread may take over, about 400 us. A hand-over costs
// as many system calls as a batch.
constexpr int kRecordBatches = 16;

bool isSmall(std::span<const iovec> pieces) {
  std::size_t bytes = 0;
  for (const iovec& piece : pieces)
    if (bytes += piece.iov_len; bytes > kMostAtOnce) return false;
  return true;
}
}  // namespace

DataSocket::DataSocket(TcpShared& shared, TcpChannel& channel, const RemotePins& remote,
                       const core::PinRights& rights, base::Fd fd, const Protection& protection,
                       SocketKeys keys)
    : shared_(shared),
      channel_(channel),
      keys_(std::move(keys)),
      initiator_(shared.pins, remote),
      responder_(shared.pins, shared.buffers[channel.rail()], rights),
      outbound_(initiator_, responder_, shared.buffers[channel.rail()],
                protection.hasRecords() ? nullptr : keys_.sealing.get()),
      inbound_(initiator_, responder_, shared.buffers[channel.rail()],
               protection.hasRecords() ? nullptr : keys_.opening.get()),
      fd_(std::move(fd)),
      remote_(remoteAddress(fd_.get())),
      progressed_(shared.poller.now()),
      moved_(progressed_) {
  if (!protection.hasRecords()) return;
  const bool encrypted = protection.level == Privacy::kEncrypted;
  writer_.emplace(*keys_.sealing, encrypted, shared.buffers[channel.rail()]);
  reader_.emplace(*keys_.opening, encrypted, shared.buffers[channel.rail()]);
}

DataSocket::~DataSocket() {
  if (watch_ != 0) shared_.poller.forget(watch_);
  tcp::reset(fd_);
  if (writer_) writer_->clear();
  if (reader_) reader_->clear();
  inbound_.clear();
  outbound_.clear();
  responder_.clear();
}

// EPOLLONESHOT, so that incoming data causes no events while the rail polls. sleep() arms the
// descriptor again with one system call.
Status DataSocket::open() {
  VIADUCT_TRY(watch_, shared_.poller.watch(fd_.get(), EPOLLIN | EPOLLONESHOT,
                                           [this](std::uint32_t) { channel_.wake(); }));
  return Ok{};
}

// If the kernel refuses SO_RCVLOWAT, every packet wakes the channel.
void DataSocket::await(std::size_t bytes) {
  if (bytes != awaited_ && wakeFor(fd_.get(), bytes)) awaited_ = bytes;
}

void DataSocket::sleep() {
  inbound_.rest();
  if (reader_) reader_->rest();
  await(inbound_.worthwhile());
  initiator_.trim();
  responder_.trim();
  const bool sends = outbound_.wants() || (writer_ && !writer_->unsent().empty());
  const std::uint32_t out = sends ? EPOLLOUT : 0U;
  if (auto armed = shared_.poller.change(watch_, EPOLLIN | EPOLLONESHOT | out); !armed)
    lose(std::move(armed).error());
}

void DataSocket::add(move::Job& job) {
  initiator_.add(job);
  if (full_) return;
  const auto from = outbound_.gather();
  if (!isSmall(from)) return;
  if (writer_)
    sendRecords(*writer_, true);
  else
    send(from);
}

void DataSocket::dropSlot(std::uint32_t slot) {
  inbound_.dropSlot(slot);
  outbound_.dropSlot(slot);
}

void DataSocket::progress(Clock::time_point now, const move::Turn& turn) {
  // After a pause this long the peer may have given the session up, and with it the bytes that wait
  // in the socket.
  if (now - progressed_ > shared_.detect && isStale(fd_.get(), shared_.detect)) {
    ends_link_ = true;
    return lose({.code = Code::kPeerLost,
                 .operation = "receive",
                 .detail = "the data in the socket is older than the time limit for a silent peer",
                 .cause = "this process was stopped"});
  }
  progressed_ = now;
  dry_ = full_ = false;
  for (int batch = 1; channel_.up(); ++batch) {
    const bool in = receive();
    const bool out = send();
    if (!in && !out) break;
    moved_ = shared_.poller.now();
    const bool may_end = !writer_ || batch % kRecordBatches == 0;
    if (may_end && turn.isOver(moved_)) break;
  }
}

// A stopped peer is not a broken path: its kernel closes the window, but still acknowledges.
bool DataSocket::measureSilence(Clock::time_point now) {
  const base::Hearing heard = base::hearingOf(fd_.get());
  if (!heard.awaited) {
    unheard_since_.reset();
    silence_ = common_silence_ = {};
    too_silent_ = false;
    return channel_.active;
  }
  const auto heard_at = now - heard.since;
  if (!unheard_since_) unheard_since_ = now;
  if (heard_at > *unheard_since_) {
    unheard_since_ = heard_at;
    common_silence_ = {};
  }
  silence_ = now - *unheard_since_;
  too_silent_ = heard.repeats &&
                silence_ >= std::max<Duration>(kLeastSilence, kRoundTrips * heard.round_trip);
  return true;
}

// TCP doubles the time between its retransmissions. After a silence of all sockets, a socket may
// thus wait twice as long for its next retransmission, while another one is heard already.
void DataSocket::judge(Duration least) {
  constexpr int kTimesAsLong = 3;
  common_silence_ = std::max(common_silence_, least);
  if (!too_silent_ || silence_ < kTimesAsLong * common_silence_) return;
  lose({.code = Code::kPeerLost,
        .operation = "send",
        .detail = "the peer's host has acknowledged no data for " +
                  std::to_string(silence_ / std::chrono::milliseconds(1)) + " ms",
        .cause = "the link between the hosts is cut, or drops all packets"});
}

ssize_t DataSocket::receivePlain() {
  const auto into = inbound_.scatter();
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(into.data());
  message.msg_iovlen = into.size();
  const ssize_t got = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  dry_ = got < static_cast<ssize_t>(inbound_.room());
  return got;
}

ssize_t DataSocket::receiveRecords(RecordReader& reader) {
  const auto into = reader.space();
  const ssize_t got = ::recv(fd_.get(), into.data(), into.size(), MSG_DONTWAIT);
  dry_ = got < static_cast<ssize_t>(into.size());
  return got;
}

std::string_view DataSocket::received(std::size_t bytes) {
  return reader_ ? reader_->received(bytes, inbound_) : inbound_.received(bytes);
}

bool DataSocket::receive() {
  if (dry_) return false;
  const ssize_t got = reader_ ? receiveRecords(*reader_) : receivePlain();
  if (got > 0) {
    if (const auto wrong = received(static_cast<std::size_t>(got)); !wrong.empty()) {
      ends_link_ = true;
      lose({.code = Code::kProtocol,
            .operation = "receive",
            .detail = "the peer sent " + std::string(wrong)});
    }
    return true;
  }
  if (got == 0)
    lose({.code = Code::kPeerLost, .operation = "recvmsg", .detail = "the peer closed the socket"});
  else if (errno == EFAULT && inbound_.faulted())
    dry_ = false;
  else if (errno != EAGAIN && errno != EINTR)
    loseTo("recvmsg", errno);
  return !dry_;
}

bool DataSocket::send() {
  if (full_) return false;
  return writer_ ? sendRecords(*writer_, false) : send(outbound_.gather());
}

bool DataSocket::sendRecords(RecordWriter& writer, bool one_frame) {
  if (!writer.fill(outbound_, one_frame)) {
    ends_link_ = true;
    lose({.code = Code::kUnsupported,
          .operation = "send",
          .detail = "the data could not be encrypted",
          .cause = "libcrypto failed"});
    return false;
  }
  const auto from = writer.unsent();
  if (from.empty()) return false;
  const ssize_t took = ::send(fd_.get(), from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (took > 0) {
    writer.sent(static_cast<std::size_t>(took));
    full_ = static_cast<std::size_t>(took) < from.size();
    return true;
  }
  full_ = true;
  if (errno != EAGAIN && errno != EINTR) loseTo("send", errno);
  return false;
}

bool DataSocket::send(std::span<const iovec> from) {
  if (from.empty()) return false;
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(from.data());
  message.msg_iovlen = from.size();
  const ssize_t took = ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (took > 0) {
    full_ = !outbound_.sent(static_cast<std::size_t>(took));
    return true;
  }
  if (errno == EFAULT && outbound_.faulted()) return true;
  full_ = true;
  if (errno != EAGAIN && errno != EINTR) loseTo("sendmsg", errno);
  return false;
}

void DataSocket::loseTo(std::string_view call, int os_errno) {
  lose(systemError(Code::kPeerLost, std::string(call), os_errno));
}

void DataSocket::lose(Error why) {
  why.device = remote_.text();
  channel_.lost(std::move(why));
}

}  // namespace viaduct::tcp
