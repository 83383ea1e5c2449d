#include "bare_records.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "harness/program.h"

namespace viaduct::bench {
namespace {

constexpr std::size_t kRecord = std::size_t{16} << 10U, kBatch = base::CheckedCopy::kMostBytes;

// Takes `bytes` off the front of the blocks, and returns them.
std::vector<iovec> cut(std::span<iovec>& blocks, std::size_t bytes) {
  std::vector<iovec> out;
  while (bytes > 0) {
    iovec& first = blocks.front();
    const std::size_t part = std::min(bytes, first.iov_len);
    out.push_back({first.iov_base, part});
    first = {static_cast<std::byte*>(first.iov_base) + part, first.iov_len - part};
    bytes -= part;
    if (first.iov_len == 0) blocks = blocks.subspan(1);
  }
  return out;
}

void sleepUntilReady(int fd, bool to_send) {
  pollfd one{fd, static_cast<short>(to_send ? POLLOUT : POLLIN), 0};
  must(::poll(&one, 1, -1), "poll");
}

}  // namespace

BareRecords::End::End(base::Fd fd, const BareRecords& of, base::AeadUse use)
    : socket(std::move(fd)),
      encrypts(of.encrypts_),
      copy(must(base::CheckedCopy::open())),
      aead(must(base::makeAead(base::AeadKind::kAesGcm, use))),
      records(kBatch + kBatch / kRecord * base::kTagBytes) {
  if (!aead->useKey(base::Key{1})) die("the key is refused");
  std::byte* const memory = touched(2 * of.block_bytes_ * of.count_);
  for (std::size_t i = 0; i < of.count_; ++i)
    blocks.push_back({memory + 2 * i * of.block_bytes_, of.block_bytes_});
}

void BareRecords::End::seal(std::size_t bytes) {
  for (std::size_t at = 0, to = 0; at < bytes; at += kRecord) {
    const auto text = copy.room().subspan(at, std::min(kRecord, bytes - at));
    std::byte* const tag = records.data() + to + text.size();
    bool good = true;
    if (encrypts) {
      good = aead->seal({}, {}, text, records.data() + to, tag);
    } else {
      std::memcpy(records.data() + to, text.data(), text.size());
      good = aead->seal({}, text, {}, nullptr, tag);
    }
    if (!good) die("a record could not be sealed");
    to += text.size() + base::kTagBytes;
  }
}

void BareRecords::End::open(std::size_t bytes) {
  for (std::size_t at = 0, from = 0; at < bytes; at += kRecord) {
    const std::size_t part = std::min(kRecord, bytes - at);
    const std::span said(records.data() + from, part);
    std::byte* const to = copy.room().data() + at;
    if (!encrypts) std::memcpy(to, said.data(), part);
    if (!(encrypts ? aead->open({}, {}, said, to, said.data() + part)
                   : aead->open({}, said, {}, nullptr, said.data() + part)))
      die("a record is wrong");
    from += part + base::kTagBytes;
  }
}

// Sleeps after about a millisecond without bytes. False: the other end has closed the socket.
bool BareRecords::End::transport(bool sends, std::size_t bytes) {
  constexpr int kSpins = 1000;
  int spins = 0;
  for (std::size_t done = 0; done < bytes;) {
    std::byte* const at = records.data() + done;
    const ssize_t part = sends ? ::send(socket.get(), at, bytes - done, MSG_DONTWAIT | MSG_NOSIGNAL)
                               : ::recv(socket.get(), at, bytes - done, MSG_DONTWAIT);
    if (part > 0) done += static_cast<std::size_t>(part);
    if (part == 0) return false;
    if (part < 0 && errno != EAGAIN) dieOf(sends ? "send" : "recv");
    if (spins = part < 0 ? spins + 1 : 0; spins > kSpins) sleepUntilReady(socket.get(), sends);
  }
  return true;
}

bool BareRecords::End::move(bool sends) {
  std::vector<iovec> list = blocks;
  for (std::span<iovec> left(list); !left.empty();) {
    std::size_t bytes = 0;
    for (const iovec& one : left) bytes += one.iov_len;
    bytes = std::min(bytes, kBatch);
    const auto pieces = cut(left, bytes);
    const std::size_t sealed = bytes + (bytes + kRecord - 1) / kRecord * base::kTagBytes;
    if (sends) {
      if (copy.collect(pieces, 0, bytes) != bytes) die("the memory is not readable");
      seal(bytes);
    }
    if (!transport(sends, sealed)) return false;
    if (sends) continue;
    open(bytes);
    if (!copy.fill(pieces, 0)) die("the memory is not writable");
  }
  return true;
}

BareRecords::BareRecords(std::size_t block_bytes, std::size_t count, bool encrypts)
    : block_bytes_(block_bytes),
      count_(count),
      encrypts_(encrypts),
      sockets_(BarePair::make()),
      process_([this](Channel&) {
        sockets_.a.reset();
        End end(std::move(sockets_.b), *this, base::AeadUse::kOpen);
        const std::byte done{};
        while (end.move(false)) must(::send(end.socket.get(), &done, 1, MSG_NOSIGNAL), "send");
      }),
      end_(std::move(sockets_.a), *this, base::AeadUse::kSeal) {
  sockets_.b.reset();
}

void BareRecords::write() {
  if (!end_.move(true) || !end_.transport(false, 1)) die("the other end has gone");
}

}  // namespace viaduct::bench
