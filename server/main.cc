// SPDX-License-Identifier: Apache-2.0
//
// holdfastd. Exit codes as in sysexits.h: 64 wrong options, 69 the store or an address cannot be
// used.
#include <sysexits.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/daemon.h"
#include "server/options.h"
#include "server/version.h"

namespace {

void Print(std::FILE* to, const std::string& text) {
  std::fputs(text.c_str(), to);
  std::fflush(to);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace holdfast::server;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const absl::StatusOr<Options> options = LoadOptions(arguments, ProcessEnvironment);
  if (!options.ok()) {
    Print(stderr, absl::StrCat("holdfastd: ", options.status().message(), "\n"));
    return EX_USAGE;
  }
  if (options->help) {
    Print(stdout, HelpText());
  } else if (options->version) {
    Print(stdout, absl::StrCat("holdfastd ", Version(), "\n"));
  } else if (options->print_config) {
    Print(stdout, PrintConfig(*options));
  } else if (options->check_config) {
    Print(stdout, "holdfastd: the configuration is valid\n");
  } else {
    return RunDaemon(*options, argv[0]);
  }
  return 0;
}
