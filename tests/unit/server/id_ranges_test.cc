// SPDX-License-Identifier: Apache-2.0
#include "server/front/id_ranges.h"

#include <gtest/gtest.h>

namespace holdfast::server {
namespace {

using Added = IdRanges::Added;

TEST(IdRanges, CountingUpIsOneRange) {
  IdRanges ids(4);
  for (uint64_t id = 1; id <= 10'000; ++id) ASSERT_EQ(ids.Add(id), Added::kNew);
  EXPECT_EQ(ids.ranges(), 1u);
}

TEST(IdRanges, KnowsEachNumberThatItWasGiven) {
  IdRanges ids(4);
  for (const uint64_t id : {5, 7, 6, 1}) EXPECT_EQ(ids.Add(id), Added::kNew);
  for (const uint64_t id : {1, 5, 6, 7}) EXPECT_EQ(ids.Add(id), Added::kKnown);
  for (const uint64_t id : {2, 4, 8}) EXPECT_EQ(ids.Add(id), Added::kNew);
}

TEST(IdRanges, FillingAGapJoinsItsNeighbours) {
  IdRanges ids(4);
  ids.Add(1);
  ids.Add(3);
  EXPECT_EQ(ids.ranges(), 2u);
  EXPECT_EQ(ids.Add(2), Added::kNew);
  EXPECT_EQ(ids.ranges(), 1u);
}

TEST(IdRanges, CountingDownIsOneRange) {
  IdRanges ids(2);
  for (uint64_t id = 1000; id >= 1; --id) ASSERT_EQ(ids.Add(id), Added::kNew);
  EXPECT_EQ(ids.ranges(), 1u);
}

TEST(IdRanges, RefusesMoreRangesThanAllowedButStillGrowsThose) {
  IdRanges ids(2);
  ids.Add(10);
  ids.Add(20);
  EXPECT_EQ(ids.Add(30), Added::kFull);
  EXPECT_EQ(ids.Add(30), Added::kFull);
  EXPECT_EQ(ids.Add(21), Added::kNew);
  EXPECT_EQ(ids.Add(10), Added::kKnown);
}

TEST(IdRanges, HoldsTheGreatestNumber) {
  IdRanges ids(2);
  EXPECT_EQ(ids.Add(UINT64_MAX), Added::kNew);
  EXPECT_EQ(ids.Add(UINT64_MAX), Added::kKnown);
  EXPECT_EQ(ids.Add(0), Added::kNew);
  EXPECT_EQ(ids.Add(UINT64_MAX - 1), Added::kNew);
}

}  // namespace
}  // namespace holdfast::server
