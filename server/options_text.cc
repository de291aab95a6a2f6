// SPDX-License-Identifier: Apache-2.0
//
// What people read of the options: help, the configuration in force, suggestions.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/option_table.h"
#include "server/store_factory.h"
#include "server/version.h"

namespace holdfast::server {
namespace {

// How many characters must be changed, added or left out.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string DidYouMean(absl::string_view word, absl::string_view prefix, OptionScope widest) {
  // Longer words may be more wrong; a word that has little in common with any option gets no
  // advice.
  size_t nearest = std::max<size_t>(2, word.size() / 3) + 1;
  const OptionSpec* meant = nullptr;
  for (const OptionSpec& option : OptionTable()) {
    if (option.scope > widest) continue;
    const size_t distance = EditDistance(word, option.name);
    if (distance < nearest) {
      nearest = distance;
      meant = &option;
    }
  }
  return meant == nullptr ? "" : absl::StrCat(" (did you mean ", prefix, meant->name, "?)");
}

std::string HelpText() {
  std::string text =
      "holdfastd: coordinates locks between programs, on a store that you run already\n\n"
      "Usage: holdfastd [--OPTION=VALUE ...]\n\n";
  const Options defaults;
  for (const OptionSpec& option : OptionTable()) {
    std::string left = absl::StrCat("  ", option.flag());
    if (!option.is_switch()) absl::StrAppend(&left, "=", option.value);
    left.resize(std::max<size_t>(left.size() + 2, 33), ' ');
    absl::StrAppend(&text, left, option.help);
    const std::string value = absl::StrJoin(option.get(defaults), ",");
    if (!option.is_switch() && !value.empty()) absl::StrAppend(&text, " [", value, "]");
    absl::StrAppend(&text, "\n");
  }
  absl::StrAppend(
      &text,
      "\nEach option but the last four is also an environment variable, HOLDFAST_MAX_LEASE for\n"
      "--max-lease (several values separated by commas), and each before --config is a key of "
      "the\n"
      "YAML file, `max-lease: 60s`. A flag outweighs a variable, a variable the file.\n"
      "Exit codes: 0 drained after SIGTERM or SIGINT; 64 wrong options; 69 the store or an "
      "address\n"
      "cannot be used.\n");
  return text;
}

std::string PrintConfig(const Options& options) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  for (const OptionSpec& option : OptionTable()) {
    if (option.scope != OptionScope::kEverywhere) continue;
    const std::vector<std::string> values = option.get(options);
    if (values.empty()) continue;  // a list without entries is no value
    out << YAML::Key << std::string(option.name) << YAML::Value;
    if (option.repeatable) {
      out << YAML::BeginSeq;
      for (const std::string& value : values) out << value;
      out << YAML::EndSeq;
    } else {
      out << values.front();
    }
  }
  out << YAML::EndMap;
  const bool masked = MaskStoreUrl(options.store) != options.store;
  return absl::StrCat("# holdfastd ", Version(), "\n",
                      masked ? "# The store's password is not shown.\n" : "", out.c_str(), "\n");
}

}  // namespace holdfast::server
