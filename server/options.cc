// SPDX-License-Identifier: Apache-2.0
#include "server/options.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "server/option_table.h"
#include "server/store_factory.h"

namespace holdfast::server {
namespace {

// The value as it may be shown.
std::string Shown(const OptionSpec& option, const std::string& value) {
  return option.name == "store" ? MaskStoreUrl(value) : value;
}

absl::Status Apply(const Given& given, Options& options) {
  for (const auto& [option, said] : given) {
    if (option->repeatable) {
      option->clear(options);
    } else if (said.values.size() != 1) {
      return OptionError(
          *option, absl::StrCat(said.where, " takes one value, but has ", said.values.size()));
    }
    for (const std::string& value : said.values) {
      const absl::Status status = option->set(value, options);
      if (status.ok()) continue;
      return OptionError(*option, absl::StrCat(said.where, ": '", Shown(*option, value),
                                               "' is not allowed; allowed: ", status.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<std::string> ProcessEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

absl::StatusOr<Options> LoadOptions(const std::vector<std::string>& arguments,
                                    const Environment& environment) {
  const absl::StatusOr<Given> flags = ReadFlags(arguments);
  if (!flags.ok()) return flags.status();
  Options options;
  absl::Status status = Apply(*flags, options);
  if (!status.ok()) return status;
  if (options.help || options.version) return options;

  const absl::StatusOr<Given> variables = ReadEnvironment(environment);
  if (!variables.ok()) return variables.status();
  // Which file it is depends on flags and environment, which are stronger than what it says: so
  // they are applied for the sake of `config` first, and again after it.
  options = Options();
  status = Apply(*variables, options);
  if (status.ok()) status = Apply(*flags, options);
  if (!status.ok() || options.config.empty())
    return status.ok() ? absl::StatusOr<Options>(options) : status;

  const absl::StatusOr<Given> file = ReadFile(options.config);
  if (!file.ok()) return file.status();
  options = Options();
  for (const Given* source : {&*file, &*variables, &*flags}) {
    status = Apply(*source, options);
    if (!status.ok()) return status;
  }
  return options;
}

}  // namespace holdfast::server
