// A file as it was when it was pinned: its name, identity and limits. Threads: constants; the
// functions may be called from any.
#pragma once

#include <sys/types.h>
#include <viaduct/memory.h>
#include <viaduct/result.h>
#include <viaduct/settings.h>

#include <cstdint>
#include <string>

#include "backends/file/cut.h"
#include "base/fd.h"

namespace viaduct::file {

// The identity of a file, and how it is opened.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  std::string generation = {};  // base::generationOf()
  bool writable = false;
  bool sync = false;
  // Whether both name the same bytes.
  bool isSameFile(const FileId& other) const {
    return device == other.device && inode == other.inode && generation == other.generation;
  }
  friend bool operator==(const FileId&, const FileId&) = default;
  friend auto operator<=>(const FileId&, const FileId&) = default;
};

struct OpenedFile {
  std::string path;   // for texts, and to open the file again
  base::Fd own;       // of a file that was pinned by its descriptor; else empty
  int borrowed = -1;  // the caller's descriptor, in place of `own`; else -1
  FileId id;
  bool is_device = false;
  Alignment alignment;

  // Opens the file again. It must still be the same file.
  Result<base::Fd> reopen() const;
};

// Opens the file that the segment names, for reading and, if possible, for writing. Makes or
// extends the file if the segment says so. Fills in the segment's kind, bytes, access and
// Segment::opened.
Result<Segment> openFile(Segment segment, Toggle direct);

// Refuses a file that no longer has the bytes up to `end`, or that `path` no longer names. Does
// not wait for a file server.
Status checkFile(const OpenedFile& file, int fd, std::uint64_t end);

// The error of a read or write at `offset`.
Error ioError(const OpenedFile& file, bool write, std::uint64_t offset, std::uint64_t bytes,
              int os_errno);
Error shrunkError(const OpenedFile& file, std::uint64_t offset, std::uint64_t size);

}  // namespace viaduct::file
