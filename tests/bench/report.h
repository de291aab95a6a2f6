// SPDX-License-Identifier: Apache-2.0
//
// What was measured, its floor, and whether it is what was wanted.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::bench {

double Median(std::vector<double> values);
// 0 < `part` < 1.
double Percentile(std::vector<double> values, double part);

// A row. Values and floors of one round stand at the same place, and only those are compared: the
// machine is not the same from one minute to the next.
struct Figure {
  enum class Wanted { kNothing, kRatioAtLeast, kRatioAtMost, kValueAtMost };

  std::string id;    // in JSON
  std::string name;  // for people
  std::string unit;
  std::string floor_name = {};  // empty: it has none
  Wanted wanted = Wanted::kNothing;
  double bound = 0;
  std::vector<double> values = {};
  std::vector<double> floors = {};

  double value() const { return Median(values); }
  // Medians; nothing where there is no floor.
  std::optional<double> floor() const;
  std::optional<double> ratio() const;
  std::string verdict() const;  // "pass", "short", or "" where nothing is wanted
};

class Report {
 public:
  // The figure stays where it is.
  Figure& Add(Figure figure) { return figures_.emplace_back(std::move(figure)); }

  std::string Table() const;
  std::string Json(int rounds) const;

 private:
  std::deque<Figure> figures_;
};

}  // namespace holdfast::bench
