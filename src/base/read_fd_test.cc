#include "base/read_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/fd.h"

namespace viaduct::base {
namespace {

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    out.reset(ends[0]);
    in.reset(ends[1]);
  }
  Fd out, in;
};

TEST(ReadFd, ReadsWhatWasWrittenToTheEnd) {
  Pipe pipe;
  const std::string text(10'000, 'x');
  EXPECT_EQ(writeAll(pipe.in.get(), text), 0);
  EXPECT_EQ(writeAll(pipe.in.get(), "end"), 0);
  pipe.in.reset();
  std::string read = "front ";
  EXPECT_EQ(readAll(pipe.out.get(), read, 100'000), 0);
  EXPECT_EQ(read, "front " + text + "end");
}

TEST(ReadFd, ReadsOneByteMoreThanTheMost) {
  Pipe pipe;
  EXPECT_EQ(writeAll(pipe.in.get(), "0123456789"), 0);
  std::string read;
  EXPECT_EQ(readAll(pipe.out.get(), read, 4), 0);
  EXPECT_EQ(read, "01234");
}

TEST(ReadFd, SaysTheErrno) {
  Pipe pipe;
  std::string read;
  EXPECT_EQ(readAll(pipe.in.get(), read, 4), EBADF);
  EXPECT_EQ(writeAll(pipe.out.get(), "x"), EBADF);
}

}  // namespace
}  // namespace viaduct::base
