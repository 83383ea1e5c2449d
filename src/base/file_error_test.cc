#include "base/file_error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace viaduct::base {
namespace {

TEST(FileError, NamesTheFileAndTheKindOfFailure) {
  EXPECT_EQ(fileError("--config_file", EISDIR, "/etc").text(),
            "--config_file: invalid: Is a directory (errno 21); file /etc");
  EXPECT_EQ(fileError("read", ENOENT, "/none").code, Code::kNotFound);
  EXPECT_EQ(fileError("read", EACCES, "/none").code, Code::kDenied);
  EXPECT_EQ(fileError("write", ENOSPC, "/none").code, Code::kExhausted);
  EXPECT_EQ(fileError("write", EIO, "/none").code, Code::kDevice);
}

}  // namespace
}  // namespace viaduct::base
