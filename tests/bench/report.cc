// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace holdfast::bench {
namespace {

std::string Number(double value) {
  if (value < 100) return absl::StrFormat("%.1f", value);
  return absl::StrFormat("%.0f", value);
}

std::string WantedText(const Figure& figure) {
  switch (figure.wanted) {
    case Figure::Wanted::kRatioAtLeast:
      return absl::StrFormat(">= %.2f", figure.bound);
    case Figure::Wanted::kRatioAtMost:
      return absl::StrFormat("<= %.2f", figure.bound);
    case Figure::Wanted::kValueAtMost:
      return absl::StrFormat("<= %s %s", Number(figure.bound), figure.unit);
    case Figure::Wanted::kNothing:
      break;
  }
  return "";
}

}  // namespace

double Median(std::vector<double> values) { return Percentile(std::move(values), 0.5); }

double Percentile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size()));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

std::optional<double> Figure::floor() const {
  if (floors.empty()) return std::nullopt;
  return Median(floors);
}

std::optional<double> Figure::ratio() const {
  if (floors.empty()) return std::nullopt;
  std::vector<double> ratios;
  for (size_t i = 0; i < values.size(); ++i) ratios.push_back(values[i] / floors[i]);
  return Median(std::move(ratios));
}

std::string Figure::verdict() const {
  bool pass = false;
  switch (wanted) {
    case Wanted::kNothing:
      return "";
    case Wanted::kRatioAtLeast:
      pass = ratio().value_or(0) >= bound;
      break;
    case Wanted::kRatioAtMost:
      pass = ratio().value_or(bound + 1) <= bound;
      break;
    case Wanted::kValueAtMost:
      pass = value() <= bound;
      break;
  }
  return pass ? "pass" : "short";
}

std::string Report::Table() const {
  constexpr char kRow[] = "%-44s %10s %-8s %10s %6s  %-10s %s\n";
  std::string text =
      absl::StrFormat(kRow, "figure", "value", "", "floor", "ratio", "wanted", "verdict");
  for (const Figure& figure : figures_) {
    const std::optional<double> floor = figure.floor();
    const std::optional<double> ratio = figure.ratio();
    absl::StrAppend(&text,
                    absl::StrFormat(kRow, figure.name, Number(figure.value()), figure.unit,
                                    floor.has_value() ? Number(*floor) : "-",
                                    ratio.has_value() ? absl::StrFormat("%.2f", *ratio) : "-",
                                    WantedText(figure), figure.verdict()));
  }
  return text;
}

std::string Report::Json(int rounds) const {
  nlohmann::ordered_json figures = nlohmann::ordered_json::array();
  for (const Figure& figure : figures_) {
    nlohmann::ordered_json row = {{"id", figure.id},
                                  {"name", figure.name},
                                  {"unit", figure.unit},
                                  {"value", figure.value()},
                                  {"values", figure.values}};
    if (const std::optional<double> floor = figure.floor()) {
      row["floor_name"] = figure.floor_name;
      row["floor"] = *floor;
      row["floors"] = figure.floors;
      row["ratio"] = *figure.ratio();
    }
    if (figure.wanted != Figure::Wanted::kNothing) {
      row["wanted"] = WantedText(figure);
      row["verdict"] = figure.verdict();
    }
    figures.push_back(std::move(row));
  }
  return nlohmann::ordered_json{{"rounds", rounds}, {"figures", figures}}.dump(2) + "\n";
}

}  // namespace holdfast::bench
