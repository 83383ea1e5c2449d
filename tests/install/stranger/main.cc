// A program of somebody else, who has the installed library and nothing more.
#include <viaduct/result.h>

#include <cstdio>

int main() {
  const viaduct::Error error = viaduct::systemError(viaduct::Code::kDenied, "open", 13);
  std::printf("%s\n", error.text().c_str());
  return error.text().empty() ? 1 : 0;
}
