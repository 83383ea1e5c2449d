#include "host/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/fd.h"
#include "base/read_fd.h"
#include "base/text.h"

namespace viaduct::host {
namespace {

using State = FileText::State;

FileText refused(int error) {
  // ENODEV is the error of files whose device has gone.
  if (error == ENOENT || error == ENOTDIR || error == ENODEV || error == EISDIR) return {};
  const bool denied = error == EACCES || error == EPERM;
  return {.state = denied ? State::kDenied : State::kUnreadable, .reason = ::strerror(error)};
}

template <class Value, class Fetch>
Value once(std::map<std::string, Value>& known, const std::string& path, Fetch fetch) {
  const auto at = known.find(path);
  return at != known.end() ? at->second : known.emplace(path, fetch()).first->second;
}

// The path of an open descriptor.
std::string pathOf(int file) {
  std::array<char, PATH_MAX> out;
  const ssize_t length =
      ::readlink(fmt::format("/proc/self/fd/{}", file).c_str(), out.data(), out.size());
  return length <= 0 ? std::string() : std::string(out.data(), static_cast<std::size_t>(length));
}

}  // namespace

std::string lineWith(std::string_view text, std::string_view part) {
  const auto at = text.find(part);
  if (at == std::string_view::npos) return {};
  const auto first = text.rfind('\n', at) + 1;  // 0 if there is none
  return std::string(text.substr(first, text.find('\n', at) - first));
}

std::string valueIn(std::string_view text, std::string_view key, char separator) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(key)) continue;
    const auto at = line.find_first_not_of('\t', key.size());
    if (at == std::string_view::npos || line[at] != separator) continue;
    const auto first = std::min(line.find_first_not_of(" \t\r\"", at + 1), line.size());
    return std::string(line.substr(first, line.find_last_not_of(" \t\r\"") + 1 - first));
  }
  return {};
}

Tree::Tree(const std::string& root) {
  if (root == root_) return;
  root_ = root;
  folder_.reset(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder_) return;
  if (std::string path = pathOf(folder_.get()); !path.empty()) root_ = std::move(path);
}

std::optional<Tree> Tree::open(const std::string& root, std::string& why) {
  Tree out(root);
  if (out.live() || out.folder_) return out;
  why = ::strerror(errno);
  return std::nullopt;
}

// Opens below the root. An absolute link in another node's folder starts at the root of that node.
int Tree::openBelow(const std::string& path, int flags) const {
  flags |= O_CLOEXEC;
  if (live()) return ::open(path.c_str(), flags);
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, folder_.get(), path.c_str(), &how, sizeof how));
}

void Tree::markUnread(const std::string& path, const std::string& reason, bool denied) {
  marked_[path] = {.state = denied ? State::kDenied : State::kUnreadable, .reason = reason};
}

const FileText* Tree::markedAt(const std::string& path) const {
  if (marked_.empty()) return nullptr;
  const auto marked = marked_.find(resolve(path));
  return marked == marked_.end() ? nullptr : &marked->second;
}

// Reads up to `most` bytes, and one more if the file is longer.
FileText Tree::fetch(const std::string& path, std::size_t most, Reader reader) const {
  if (const FileText* const marked = markedAt(path)) return *marked;
  // O_NONBLOCK, because opening a pipe or a device might block.
  const base::Fd file(openBelow(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (!file) return refused(errno);
  // Refuses special files, which a copy may hold. Files of this machine are the kernel's, so the
  // call is spared.
  struct stat facts{};
  if (!live() && ::fstat(file.get(), &facts) == 0 && !S_ISREG(facts.st_mode) &&
      !S_ISDIR(facts.st_mode))
    return {.state = State::kUnreadable, .reason = "not a regular file"};
  FileText out{.state = State::kRead};
  const int error = reader(file.get(), out.text, most);
  return error == 0 ? out : refused(error);
}

void Tree::remember(const std::string& path, const FileText& found) const {
  if (found.state != State::kDenied && found.state != State::kUnreadable) return;
  const auto same = [&](const Unread& one) { return one.path == path; };
  if (std::ranges::none_of(unread_, same))
    unread_.push_back({path, found.reason, found.state == State::kDenied});
}

FileText Tree::look(const std::string& path, Reader reader) const {
  looked_.push_back(path);
  return live() ? fetchText(path, reader)
                : once(texts_, path, [&] { return fetchText(path, base::readAll); });
}

FileText Tree::tryRead(const std::string& path) const { return look(path, base::readAll); }

FileText Tree::fetchText(const std::string& path, Reader reader) const {
  FileText out = fetch(path, kMostBytes, reader);
  if (!out) return out;
  if (out.text.size() > kMostBytes)
    return {.state = State::kUnreadable, .reason = "longer than 4 MiB"};
  if (out.text.find('\0') != std::string::npos)
    return {.state = State::kUnreadable, .reason = "holds binary data"};
  if (out.text.ends_with('\n')) out.text.pop_back();
  return out;
}

FileText Tree::read(const std::string& path) const {
  FileText out = tryRead(path);
  remember(path, out);
  return out;
}

FileText Tree::readBytes(const std::string& path, std::size_t bytes) const {
  looked_.push_back(path);
  FileText out = fetch(path, bytes, base::readAll);
  if (out.text.size() > bytes) out.text.resize(bytes);
  remember(path, out);
  return out;
}

std::string Tree::line(const std::string& path) const {
  const FileText found = look(path, base::readLine);
  remember(path, found);
  const std::string_view text = found.text;
  return std::string(base::trimmed(text.substr(0, text.find('\n'))));
}

std::vector<std::string> Tree::lines(const std::string& path) const {
  return base::partsOf(read(path).text, '\n');
}

std::optional<std::uint64_t> Tree::number(const std::string& path) const {
  const std::string text = line(path);
  return text.starts_with("0x") ? base::numberIn<std::uint64_t>(text.substr(2), 16)
                                : base::numberIn<std::uint64_t>(text);
}

std::vector<std::string> Tree::list(const std::string& folder) const {
  looked_.push_back(folder + "/");
  return live() ? fetchNames(folder) : once(names_, folder, [&] { return fetchNames(folder); });
}

std::vector<std::string> Tree::fetchNames(const std::string& folder) const {
  if (const FileText* const marked = markedAt(folder)) {
    remember(folder, *marked);
    return {};
  }
  const int open = openBelow(folder, O_RDONLY | O_DIRECTORY);
  if (open < 0) {
    remember(folder, refused(errno));
    return {};
  }
  DIR* const names = ::fdopendir(open);
  if (names == nullptr) {
    ::close(open);
    return {};
  }
  std::vector<std::string> out;
  while (const dirent* const entry = ::readdir(names)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.emplace_back(name);
  }
  ::closedir(names);
  std::ranges::sort(out);
  return out;
}

bool Tree::has(const std::string& path) const {
  looked_.push_back(path);
  return base::Fd(openBelow(path, O_PATH)).operator bool();
}

std::string Tree::resolve(const std::string& path) const {
  looked_.push_back(path);
  return live() ? fetchPlace(path) : once(places_, path, [&] { return fetchPlace(path); });
}

std::string Tree::fetchPlace(const std::string& path) const {
  const base::Fd at(openBelow(path, O_PATH));
  if (!at) return {};
  std::string whole = pathOf(at.get());
  if (live()) return whole;
  return whole.starts_with(root_ + "/") ? whole.substr(root_.size()) : std::string();
}

}  // namespace viaduct::host
