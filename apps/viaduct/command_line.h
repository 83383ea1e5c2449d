// The subcommands that CLI11 parses, and the help pages of all subcommands. Threads: the main one.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "viaduct/command_page.h"
#include "viaduct/commands.h"
#include "viaduct/doctor.h"
#include "viaduct/env.h"
#include "viaduct/exec.h"
#include "viaduct/meet.h"
#include "viaduct/p2p.h"
#include "viaduct/top.h"

namespace viaduct::app {

// Declares every subcommand and holds the parsed options.
class CommandLine {
 public:
  // `exec` holds the words that takeCommand() has already taken.
  explicit CommandLine(ExecOptions exec);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // Returns the error text for a first word that is no subcommand, with the most similar
  // subcommand.
  std::optional<std::string> unknownCommand(const std::vector<std::string>& words) const;
  // Returns the exit code if the words are wrong or ask for help. Otherwise run() follows.
  std::optional<int> parse(const std::vector<std::string>& words);
  int run() const;

  // Returns the help page of `viaduct` with the pages of all its commands.
  CommandPage page() const;

 private:
  CLI::App app_;
  CompareCommand compare_;
  DoctorCommand doctor_;
  EnvOptions env_;
  ExecOptions exec_;
  MeetOptions meet_;
  P2pOptions p2p_;
  ReportCommand report_;
  TopOptions top_;
  bool markdown_ = false;
  std::string shell_;
};

}  // namespace viaduct::app
