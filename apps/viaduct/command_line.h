// The subcommands that CLI11 reads, and the pages of all. Threads: the main one.
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

// Declares every subcommand, and takes what parse() reads.
class CommandLine {
 public:
  // `exec`: with the words that takeCommand() has taken.
  explicit CommandLine(ExecOptions exec);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // What is wrong with a first word that is no subcommand, and the one that was most likely meant.
  std::optional<std::string> unknownCommand(const std::vector<std::string>& words) const;
  // The exit code, where the words are wrong or ask for help.
  std::optional<int> parse(const std::vector<std::string>& words);
  int run() const;

  // Of `viaduct`, with those of all its commands.
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
