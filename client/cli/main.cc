// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>
#include <variant>
#include <vector>

#include "client/cli/commands.h"
#include "client/cli/options.h"

int main(int argc, char** argv) {
  using namespace holdfast::cli;
  const auto parsed =
      ParseCommandLine(std::vector<std::string>(argv + 1, argv + argc), std::cout, std::cerr);
  if (const int* const exit_code = std::get_if<int>(&parsed)) return *exit_code;
  const auto& line = std::get<CommandLine>(parsed);
  return std::visit([&](const auto& options) { return Execute(line.global, options); },
                    line.command);
}
