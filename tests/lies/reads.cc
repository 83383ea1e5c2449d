// Preloaded into the program: reads of files that never happen, reads that bring a wrong byte, and
// payload that a member throws away. LIE: file, byte, payload.
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

bool lies(std::string_view kind) {
  static const char* const lie = std::getenv("LIE");
  return lie != nullptr && lie == kind;
}

constexpr std::size_t kLeast = 4096;  // bytes of a read that is a transfer

ssize_t bytesOf(const iovec* pieces, std::size_t count) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) bytes += pieces[i].iov_len;
  return static_cast<ssize_t>(bytes);
}

}  // namespace

extern "C" ssize_t preadv2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  using Read = ssize_t (*)(int, const iovec*, int, off_t, int);
  static const auto real = reinterpret_cast<Read>(::dlsym(RTLD_NEXT, "preadv2"));
  const ssize_t bytes = bytesOf(pieces, static_cast<std::size_t>(count));
  const bool transfer = bytes >= static_cast<ssize_t>(kLeast);
  if (transfer && lies("file")) return bytes;
  const ssize_t done = real(fd, pieces, count, offset, flags);
  if (transfer && lies("byte") && done > 0) *static_cast<unsigned char*>(pieces->iov_base) ^= 1U;
  return done;
}
extern "C" ssize_t preadv64v2(int fd, const iovec* pieces, int count, off_t offset, int flags) {
  return preadv2(fd, pieces, count, offset, flags);
}

// The TCP backend reads payload into the pieces before the last one.
extern "C" ssize_t recvmsg(int fd, msghdr* message, int flags) {
  using Receive = ssize_t (*)(int, msghdr*, int);
  static const auto real = reinterpret_cast<Receive>(::dlsym(RTLD_NEXT, "recvmsg"));
  if (!lies("payload") || message->msg_iovlen < 2) return real(fd, message, flags);
  thread_local std::vector<std::byte> trash;
  std::vector<iovec> pieces(message->msg_iov, message->msg_iov + message->msg_iovlen);
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
    if (pieces[i].iov_len < kLeast) continue;
    if (trash.size() < pieces[i].iov_len) trash.resize(pieces[i].iov_len);
    pieces[i].iov_base = nullptr;
  }
  for (iovec& piece : pieces)
    if (piece.iov_base == nullptr) piece.iov_base = trash.data();
  msghdr other = *message;
  other.msg_iov = pieces.data();
  return real(fd, &other, flags);
}
