// The flags that several commands share, each declared once. Threads: pure functions.
#pragma once

#include <span>

#include "viaduct/bench_values.h"
#include "viaduct/flag_sheet.h"
#include "viaduct/run_options.h"

namespace viaduct::app {

using RunFlag = Flag<RunOptions>;
std::span<const RunFlag> runFlags();
// Add groups that are the same for several commands.
void addBlocks(FlagSheet& sheet, RunOptions& options);  // the data of blocks between equal members
void addDuration(FlagSheet& sheet, RunOptions& options);
void addChecks(FlagSheet& sheet, RunOptions& options);
void addMeeting(FlagSheet& sheet, RunOptions& options);
void addComparison(FlagSheet& sheet, RunOptions& options);
// `form` is the flag --output, and `names` are flags beside it.
void addOutput(FlagSheet& sheet, RunOptions& options, std::span<const RunFlag> form,
               std::initializer_list<std::string_view> names);

inline constexpr base::Words<OpKind, 4> kOps{{{"WRITE", OpKind::kWrite},
                                              {"READ", OpKind::kRead},
                                              {"push", OpKind::kWrite},
                                              {"pull", OpKind::kRead}}};
inline constexpr base::Words<std::string_view, 2> kSegments{{{"DRAM", "DRAM"}, {"VRAM", "VRAM"}}};

// The forms of --output. kNixlbench is in neither list, because nixlbench's table only has columns
// for blocks.
inline constexpr base::Words<OutputForm, 3> kRowForms{
    {{"table", OutputForm::kTable}, {"json", OutputForm::kJson}, {"csv", OutputForm::kCsv}}};
inline constexpr base::Words<OutputForm, 2> kTableOrJson{
    {{"table", OutputForm::kTable}, {"json", OutputForm::kJson}}};
template <const auto& Forms>
constexpr RunFlag outputFlag(std::string_view form, std::string_view fallback = "table") {
  return {"output", form, fallback, "output format",
          oneOf<Forms, &RunOptions::out, &OutputOptions::form>};
}

}  // namespace viaduct::app
