// SPDX-License-Identifier: Apache-2.0
//
// Flags, environment and file, each read into what it says of which option.
#include <yaml-cpp/yaml.h>

#include <CLI/CLI.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/option_table.h"
#include "src/base/status.h"

namespace holdfast::server {
namespace {

absl::Status UsageError(absl::string_view message) {
  return Fail(Reason::kInvalidField, "", message);
}

// CLI11 takes the argument after "--name=" for the value that is missing there.
std::vector<std::string> SplitEmptyValues(const std::vector<std::string>& arguments) {
  std::vector<std::string> split;
  for (const std::string& argument : arguments) {
    if (argument.size() > 3 && argument.compare(0, 2, "--") == 0 && argument.back() == '=' &&
        argument.find('=') == argument.size() - 1) {
      split.push_back(argument.substr(0, argument.size() - 1));
      split.emplace_back();
    } else {
      split.push_back(argument);
    }
  }
  return split;
}

const OptionSpec* FindFileKey(absl::string_view key) {
  for (const OptionSpec& option : OptionTable()) {
    if (option.name == key && option.scope == OptionScope::kEverywhere) return &option;
  }
  return nullptr;
}

// The scalars of a value: one, or those of a list.
absl::StatusOr<std::vector<std::string>> FileValues(const YAML::Node& node,
                                                    const std::string& where) {
  if (node.IsScalar()) return std::vector<std::string>{node.Scalar()};
  std::vector<std::string> values;
  if (node.IsSequence()) {
    for (const YAML::Node& item : node) {
      if (!item.IsScalar())
        return UsageError(absl::StrCat(where, " must be a list of plain values"));
      values.push_back(item.Scalar());
    }
    if (!values.empty()) return values;
  }
  return UsageError(absl::StrCat(where, " must have a value"));
}

absl::StatusOr<Given> ReadMapping(const YAML::Node& root, const std::string& path) {
  Given given;
  if (root.IsNull() || !root.IsDefined()) return given;
  if (!root.IsMap()) {
    return UsageError(
        absl::StrCat(path, ":", root.Mark().line + 1,
                     ": the file must be a mapping of options, such as `max-lease: 30s`"));
  }
  for (const auto& entry : root) {
    const std::string at = absl::StrCat(path, ":", entry.first.Mark().line + 1, ": ");
    if (!entry.first.IsScalar())
      return UsageError(absl::StrCat(at, "an option's name is expected"));
    const std::string& key = entry.first.Scalar();
    const OptionSpec* option = FindFileKey(key);
    if (option == nullptr) {
      return UsageError(absl::StrCat(at, "unknown option '", key, "'",
                                     DidYouMean(key, "", OptionScope::kEverywhere)));
    }
    const std::string where = absl::StrCat(at, key);
    absl::StatusOr<std::vector<std::string>> values = FileValues(entry.second, where);
    if (!values.ok()) return values.status();
    if (!given.emplace(option, GivenValues{where, *std::move(values)}).second) {
      return UsageError(absl::StrCat(where, " is given twice"));
    }
  }
  return given;
}

}  // namespace

absl::StatusOr<Given> ReadFlags(const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::map<const OptionSpec*, CLI::Option*> known;
  for (const OptionSpec& option : OptionTable()) {
    const std::string names = option.name == "help" ? "-h,--help" : option.flag();
    CLI::Option* flag =
        option.is_switch() ? app.add_flag(names) : app.add_option(names)->type_size(1)->expected(1);
    flag->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    known[&option] = flag;
  }
  try {
    std::vector<std::string> reversed = SplitEmptyValues(arguments);
    std::reverse(reversed.begin(), reversed.end());  // as CLI11 wants it
    app.parse(reversed);
  } catch (const CLI::Error& error) {
    return UsageError(error.what());
  }
  for (const std::string& extra : app.remaining()) {
    if (extra.compare(0, 1, "-") != 0) {
      return UsageError(
          absl::StrCat("unexpected argument '", extra, "': holdfastd takes options only"));
    }
    const std::string name = extra.substr(0, extra.find('='));
    const size_t word = std::min(name.find_first_not_of('-'), name.size());
    return UsageError(absl::StrCat("unknown option '", name, "'",
                                   DidYouMean(name.substr(word), "--", OptionScope::kFlagOnly),
                                   "; --help lists all"));
  }
  Given given;
  for (const auto& [option, flag] : known) {
    if (flag->count() == 0) continue;
    std::vector<std::string> values = flag->results();
    // The last one counts, so that a wrapper's flags can be overruled.
    if (!option->repeatable) values = {values.back()};
    given[option] = {option->flag(), std::move(values)};
  }
  return given;
}

absl::StatusOr<Given> ReadEnvironment(const Environment& environment) {
  Given given;
  for (const OptionSpec& option : OptionTable()) {
    if (option.scope == OptionScope::kFlagOnly) continue;
    const std::optional<std::string> value = environment(option.variable());
    if (!value.has_value() || value->empty()) continue;
    std::vector<std::string> values = {*value};
    if (option.repeatable) values = absl::StrSplit(*value, ',', absl::SkipWhitespace());
    given[&option] = {option.variable(), std::move(values)};
  }
  return given;
}

absl::StatusOr<Given> ReadFile(const std::string& path) {
  try {
    return ReadMapping(YAML::LoadFile(path), path);
  } catch (const YAML::BadFile&) {
    return UsageError(absl::StrCat("--config: cannot read the file '", path, "'"));
  } catch (const YAML::Exception& error) {
    return UsageError(absl::StrCat(path, ":", error.mark.line + 1, ": not YAML: ", error.msg));
  }
}

}  // namespace holdfast::server
