#include "diag/live_storage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include "base/fd.h"
#include "base/text.h"
#include "host/direct_io.h"
#include "host/storage.h"

namespace viaduct::diag {
namespace {

using namespace std::chrono_literals;

constexpr auto kPathLimit = 5s;
constexpr auto kStoreLimit = 10s;

Tried refused(const char* call, int error) {
  return {.ok = false, .text = fmt::format("{}: {}", call, ::strerror(error))};
}

// Finds the mount that an open descriptor belongs to.
void addMount(int fd, PathFacts& out) {
  const std::string id =
      valueIn(Tree().read(fmt::format("/proc/self/fdinfo/{}", fd)).text, "mnt_id");
  for (host::Mount& mount : host::mounts()) {
    if (mount.id != id) continue;
    out.mount = std::move(mount.point);
    out.kind = std::move(mount.type);
    out.source = std::move(mount.source);
  }
  if (out.kind.empty() && host::isInMemory(fd)) out.kind = "tmpfs";
}

Tried directIn(const base::Fd& file, bool is_device, PathFacts& out) {
  const host::DirectIo rules = host::directIo(file.get(), is_device);
  if (!rules.works) return {.ok = false, .text = "the file system offers it for no file"};
  out.offset_multiple = rules.offset;
  out.memory_multiple = rules.memory;
  return {.ok = true};
}

// Opens the first regular file of a folder that can be opened with these flags.
base::Fd anyFileIn(const std::string& folder, int flags) {
  constexpr int kMost = 1000;
  int looked = 0;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed)) {
    if (++looked > kMost) break;
    std::error_code ignored;
    if (!at->is_regular_file(ignored)) continue;
    base::Fd out(::open(at->path().c_str(), O_RDONLY | O_CLOEXEC | flags));
    if (out || errno == EINVAL) return out;
  }
  errno = ENOENT;
  return {};
}

// A folder is tried with a file without a name, which vanishes when it is closed. A folder that
// takes no such file is tried with one of its files.
std::optional<Tried> directInFolder(PathFacts& out) {
  base::Fd file(::open(out.path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600));
  if (!file && errno != EINVAL) file = anyFileIn(out.path, O_DIRECT);
  if (file) return directIn(file, false, out);
  return errno == EINVAL ? std::optional(refused("open with O_DIRECT", EINVAL)) : std::nullopt;
}

// Only a virtio disk has this file. The folder of a partition lies in that of its disk.
std::string virtioFeatures(dev_t disk) {
  const std::string folder = fmt::format("/sys/dev/block/{}:{}", major(disk), minor(disk));
  for (const char* file : {"/device/features", "/../device/features"})
    if (std::string line = Tree().line(folder + file); !line.empty()) return line;
  return {};
}

PathFacts look(const std::string& path) {
  PathFacts out{.path = path};
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) {
    out.opened = refused("stat", errno);
    return out;
  }
  const bool folder = S_ISDIR(facts.st_mode), device = S_ISBLK(facts.st_mode);
  if (!folder && !device && !S_ISREG(facts.st_mode)) {
    out.opened = {.ok = false, .text = "it is no regular file, folder or block device"};
    return out;
  }
  const base::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  out.opened = fd ? Tried{.ok = true} : refused("open", errno);
  if (!fd) return out;
  struct statvfs room{};
  if (!device && ::fstatvfs(fd.get(), &room) == 0) {
    out.bytes = room.f_blocks * room.f_frsize;
    out.free = room.f_bavail * room.f_frsize;
  }
  if (!device) addMount(fd.get(), out);
  out.virtio_features = virtioFeatures(device ? facts.st_rdev : facts.st_dev);
  out.read_only = (room.f_flag & ST_RDONLY) != 0 || ::access(path.c_str(), W_OK) != 0;
  if (folder) {
    out.direct = directInFolder(out);
    return out;
  }
  const base::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
  out.direct = file ? directIn(file, device, out) : refused("open with O_DIRECT", errno);
  return out;
}

// ---- Object stores.

StoreStep stepOf(const s3::StoreAnswer& answer) {
  using enum StoreStep;
  switch (answer.answer.fault) {
    case s3::Fault::kNone:
      break;
    case s3::Fault::kName:
      return kName;
    case s3::Fault::kConnection:
      return kPort;
    case s3::Fault::kHandshake:
    case s3::Fault::kCertificate:
      return kTls;
    default:
      return kAnswer;
  }
  constexpr std::array kCodes{
      base::Word<StoreStep>{"RequestTimeTooSkewed", kClock},
      base::Word<StoreStep>{"SignatureDoesNotMatch", kKeys},
      base::Word<StoreStep>{"InvalidAccessKeyId", kKeys},
      base::Word<StoreStep>{"ExpiredToken", kKeys},
      base::Word<StoreStep>{"InvalidToken", kKeys},
      base::Word<StoreStep>{"NoSuchBucket", kBucket},
      base::Word<StoreStep>{"PermanentRedirect", kBucket},
      base::Word<StoreStep>{"AuthorizationHeaderMalformed", kBucket},
      base::Word<StoreStep>{"AccessDenied", kRights},
  };
  return base::valueOf(kCodes, s3::xmlText(answer.answer.body, "Code")).value_or(kAnswer);
}

void addError(StoreStep step, const Error& error, StoreFacts& out) {
  out.ended = step;
  out.text = fmt::format("{}: {}{}", error.operation, error.file.empty() ? "" : error.file + ": ",
                         error.detail);
  out.cause = error.cause;
  out.remedy = error.remedy;
}

void judge(const s3::StoreAnswer& asked, StoreFacts& out) {
  if (const auto theirs = s3::parseTime(asked.answer.date)) {
    const auto ahead = std::chrono::round<std::chrono::seconds>(asked.asked_at - *theirs);
    out.behind = ahead < 0s;
    out.clock_off = static_cast<std::uint64_t>(std::chrono::abs(ahead).count());
  }
  if (asked.failure) return addError(stepOf(asked), asked.failure->error, out);
  const char* const wanted = out.bucket.empty() ? "<ListAllMyBucketsResult" : "<ListBucketResult";
  if (asked.answer.body.find(wanted) != std::string::npos) return;
  out.ended = StoreStep::kAnswer;
  out.text = fmt::format("HTTP {} without {}>", asked.answer.status, wanted);
  out.cause = "Another server than an object store answers there, such as a web console.";
  out.remedy = "check the host and the port of the endpoint";
}

}  // namespace

// A server that does not answer holds a system call for ever, so a separate thread makes the call.
PathFacts lookAtPath(const std::string& path) {
  auto found = std::make_shared<std::promise<PathFacts>>();
  auto facts = found->get_future();
  std::thread([found, path] { found->set_value(look(path)); }).detach();
  if (facts.wait_for(kPathLimit) == std::future_status::ready) return facts.get();
  return {.path = path, .opened = {.ok = false, .text = "no answer within 5s"}};
}

StoreFacts lookAtStore(const Settings& settings, const std::string& bucket) {
  StoreFacts out{.bucket = bucket};
  const auto endpoint = s3::resolveEndpoint(settings);
  if (!endpoint) {
    addError(StoreStep::kSettings, endpoint.error(), out);
    return out;
  }
  out.endpoint = s3::endpointText(*endpoint);
  const auto access = s3::resolveAccess(settings);
  if (!access) {
    addError(StoreStep::kKeys, access.error(), out);
    return out;
  }
  if (const auto asked = s3::askStore(*access, bucket, kStoreLimit))
    judge(*asked, out);
  else
    addError(StoreStep::kLibrary, asked.error(), out);
  return out;
}

std::vector<StoreFacts> lookAtStores(const std::vector<std::string>& buckets) {
  std::vector<StoreFacts> out;
  if (buckets.empty()) return out;
  const auto settings = settingsFromEnvironment();
  for (const std::string& bucket : buckets) {
    if (settings) {
      out.push_back(lookAtStore(*settings, bucket));
      continue;
    }
    out.push_back({.bucket = bucket});
    addError(StoreStep::kSettings, settings.error(), out.back());
  }
  return out;
}

}  // namespace viaduct::diag
