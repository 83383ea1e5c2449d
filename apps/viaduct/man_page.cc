// Writes a command's manual page in the macros of man(7).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "measure/result/text.h"
#include "viaduct/command_page.h"

namespace viaduct::app {
namespace {

// Escapes backslashes and hyphens. Protects a point or an apostrophe at the start of a line, which
// would begin a request of troff.
std::string escaped(std::string_view text) {
  using measure::replaceAll;
  std::string out = replaceAll(replaceAll(std::string(text), "\\", "\\e"), "-", "\\-");
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return out;
}

// True for a heading that stands alone on its line.
bool isHeading(std::string_view line) { return line == "Exit codes:" || line == "Examples:"; }

// Fills paragraphs and keeps indented lines.
class Text {
 public:
  std::string of(std::string_view text) {
    for (const std::string_view line : measure::linesOf(text)) add(line);
    keepAsIs(false);
    return std::move(out_);
  }

 private:
  void add(std::string_view line) {
    if (line.empty()) {
      keepAsIs(false);
      paragraph_ = true;
      return;
    }
    keepAsIs(line[0] == ' ');
    if (isHeading(line)) {
      out_ += fmt::format(".SH {}\n", base::upper(line.substr(0, line.size() - 1)));
    } else {
      if (paragraph_ && !as_is_) out_ += ".PP\n";
      out_ += escaped(as_is_ ? line.substr(2) : line) + "\n";
    }
    paragraph_ = false;
  }
  void keepAsIs(bool as_is) {
    if (as_is != as_is_) out_ += as_is ? ".nf\n" : ".fi\n";
    as_is_ = as_is;
  }

  std::string out_;
  bool paragraph_ = false, as_is_ = false;
};

std::string tagOf(const PageEntry& entry) {
  std::string out;
  for (const std::string& name : entry.names)
    out += fmt::format("{}\\fB{}\\fR", out.empty() ? "" : ", ", escaped(name));
  if (!entry.form.empty()) out += fmt::format(" \\fI{}\\fR", escaped(entry.form));
  return out;
}

std::string withoutStop(std::string_view sentence) {
  return escaped(sentence.substr(0, sentence.find_last_not_of('.') + 1));
}

}  // namespace

std::string pageName(const CommandPage& page) {
  std::string name = page.name;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string manPage(const CommandPage& page) {
  std::string out = fmt::format(
      ".TH {} 1 \"\" \"viaduct {}\" \"Viaduct\"\n.nh\n.ad l\n.SH NAME\n{} \\- {}\n.SH "
      "SYNOPSIS\n{}\n",
      base::upper(pageName(page)), VIADUCT_VERSION, escaped(pageName(page)),
      withoutStop(page.summary), escaped(page.usage));
  if (!page.about.empty()) out += ".SH DESCRIPTION\n" + Text().of(page.about);
  if (!page.commands.empty()) out += ".SH COMMANDS\n";
  for (const CommandPage& command : page.commands)
    out += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", escaped(pageName(command)),
                       escaped(command.summary));
  for (const PageSection& section : page.sections) {
    out += fmt::format(".SH {}\n", escaped(base::upper(section.title)));
    for (const PageEntry& entry : section.entries)
      out += fmt::format(".TP\n{}\n{}\n", tagOf(entry), escaped(entry.about));
  }
  // Text before the first heading gets a heading of its own.
  const bool begins_with_heading = isHeading(page.more.substr(0, page.more.find('\n')));
  if (!page.more.empty()) out += (begins_with_heading ? "" : ".SH NOTES\n") + Text().of(page.more);
  return out;
}

}  // namespace viaduct::app
