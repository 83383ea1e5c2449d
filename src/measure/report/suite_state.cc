#include "measure/report/suite_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "measure/result/report_json.h"
#include "measure/result/result_files.h"

namespace viaduct::measure {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFlag = "--json";

Error refused(const std::string& file, std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = kFlag,
          .detail = std::move(detail),
          .file = file,
          .remedy = std::move(remedy)};
}

bool isBlank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") == std::string::npos;
}

}  // namespace

Result<SuiteFile> SuiteFile::open(const std::string& name, bool fresh) {
  SuiteFile out;
  if (name.empty()) return out;
  out.name_ = name;
  std::error_code none;
  const fs::file_status status = fs::status(name, none);
  if (fs::exists(status) && !fs::is_regular_file(status))
    return refused(name, "the file is not a regular file", "name another file");
  VIADUCT_TRY(out.file_, base::ReplacedFile::open(kFlag, name));
  if (!fs::exists(status)) return out;
  VIADUCT_TRY(const std::string text, contentOfFile(name));
  if (isBlank(text)) return out;
  if (!isSuiteJson(text)) {
    const std::string format = formatIn(text);
    return refused(name,
                   "the file holds no suite rounds" +
                       (format.empty() ? "" : fmt::format(": its format is {}", format)),
                   "name another file, or remove this one");
  }
  if (fresh) return out;
  auto kept = suiteFromJson(text, name);
  if (!kept) {
    Error error = std::move(kept).error();
    error.remedy += error.remedy.empty() ? "" : ", or ";
    error.remedy += "start again with --fresh";
    return error;
  }
  out.kept_ = *std::move(kept);
  return out;
}

Status SuiteFile::write(const Suite& suite) const {
  return file_ ? file_->write(toJson(suite)) : Status(Ok{});
}

Result<Suite> goOn(const SuiteFile& file, Suite wanted) {
  const std::optional<Suite>& kept = file.kept();
  if (!kept) return wanted;
  const auto found = differencesOf(*kept, wanted);
  if (!found.empty())
    return refused(file.name(),
                   fmt::format("its {} rounds have other settings: {}", kept->rounds_done,
                               fmt::join(found, "; ")),
                   "use the same settings, another file, or --fresh");
  const std::size_t whole = kept->rounds_done * measuredTests(*kept).size();
  if (kept->runs.size() != whole)
    return refused(file.name(),
                   fmt::format("the file has {} runs, but {} rounds need {}", kept->runs.size(),
                               kept->rounds_done, whole),
                   "use another file, or --fresh");
  Suite out = *kept;
  out.rounds = std::max(wanted.rounds, out.rounds_done);
  out.least_effect = wanted.least_effect;
  return out;
}

}  // namespace viaduct::measure
