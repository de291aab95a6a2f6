// SPDX-License-Identifier: Apache-2.0
#include "client/cli/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "client/cli/exit_codes.h"
#include "client/lib/endpoint.h"

namespace holdfast::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() {
    for (const char* name :
         {"HOLDFAST_ADDRESS", "HOLDFAST_NAMESPACE", "HOLDFAST_OWNER", "HOLDFAST_HOLD_ID"}) {
      unsetenv(name);
    }
  }

  template <typename T>
  T Parse(std::vector<std::string> arguments) {
    auto parsed = ParseCommandLine(std::move(arguments), out_, err_);
    if (!std::holds_alternative<CommandLine>(parsed)) {
      ADD_FAILURE() << "refused: " << err_.str();
      return T();
    }
    auto& line = std::get<CommandLine>(parsed);
    global_ = line.global;
    return std::get<T>(line.command);
  }
  // The exit code of what is not run.
  int Refused(std::vector<std::string> arguments) {
    const auto parsed = ParseCommandLine(std::move(arguments), out_, err_);
    return std::holds_alternative<int>(parsed) ? std::get<int>(parsed) : -1;
  }

  GlobalOptions global_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(OptionsTest, RunHasTheDocumentedDefaults) {
  const auto run = Parse<RunOptions>({"run", "backup", "--", "backup.sh"});
  EXPECT_EQ(run.key, "backup");
  EXPECT_EQ(run.wait, absl::Seconds(5));
  EXPECT_FALSE(run.lease.has_value());  // the daemon decides: its --max-lease may be shorter
  EXPECT_EQ(run.max_hold, absl::ZeroDuration());
  EXPECT_EQ(run.at_least, absl::ZeroDuration());
  EXPECT_EQ(run.on_lost, OnLost::kTerm);
  EXPECT_EQ(run.retry, 0);
  EXPECT_EQ(run.conflict_exit_code, kExitConflict);
  EXPECT_FALSE(run.note.has_value());
  EXPECT_THAT(run.command, ElementsAre("backup.sh"));
  EXPECT_EQ(global_.address, client::kDefaultAddress);
  EXPECT_THAT(global_.ns, IsEmpty());
  EXPECT_FALSE(global_.json);
}

TEST_F(OptionsTest, RunTakesAllItsOptions) {
  const auto run = Parse<RunOptions>({"run", "--wait=0", "--lease=1m30s", "backup", "--max-hold",
                                      "1h", "--at-least=250ms", "--on-lost=kill", "--retry=3",
                                      "--conflict-exit-code=0", "--note=me", "--", "true"});
  EXPECT_EQ(run.wait, absl::ZeroDuration());
  EXPECT_EQ(run.lease, absl::Seconds(90));
  EXPECT_EQ(run.max_hold, absl::Hours(1));
  EXPECT_EQ(run.at_least, absl::Milliseconds(250));
  EXPECT_EQ(run.on_lost, OnLost::kKill);
  EXPECT_EQ(run.retry, 3);
  EXPECT_EQ(run.conflict_exit_code, 0);
  EXPECT_EQ(run.note, "me");
}

TEST_F(OptionsTest, MoreKeysAreGivenOneByOne) {
  const auto run = Parse<RunOptions>({"run", "a", "--key=b", "--key", "c", "--", "true"});
  EXPECT_EQ(run.key, "a");
  EXPECT_THAT(run.more_keys, ElementsAre("b", "c"));
  EXPECT_THAT(Parse<AcquireOptions>({"acquire", "a", "--key=b"}).more_keys, ElementsAre("b"));
  EXPECT_THAT(Parse<AcquireOptions>({"acquire", "a"}).more_keys, IsEmpty());
}

TEST_F(OptionsTest, WhatIsBehindTheMarkIsTheCommandsOwn) {
  const auto run =
      Parse<RunOptions>({"run", "k", "--", "env", "--json", "--wait=x", "--", "ls", ""});
  EXPECT_THAT(run.command, ElementsAre("env", "--json", "--wait=x", "--", "ls", ""));
  EXPECT_FALSE(global_.json);
}

TEST_F(OptionsTest, GlobalOptionsMayStandBeforeAndAfterTheCommand) {
  Parse<ListOptions>({"--address=unix:///run/h.sock", "ls", "jobs/", "--json", "--namespace=a.b"});
  EXPECT_EQ(global_.address, "unix:///run/h.sock");
  EXPECT_EQ(global_.ns, "a.b");
  EXPECT_TRUE(global_.json);
}

TEST_F(OptionsTest, TheEnvironmentFillsInWhatIsNotGiven) {
  setenv("HOLDFAST_ADDRESS", "db:7420", 1);
  setenv("HOLDFAST_OWNER", "an owner of many bytes", 1);
  const auto release = Parse<ReleaseOptions>({"release", "k", "--hold-id=h"});
  EXPECT_EQ(global_.address, "db:7420");
  EXPECT_EQ(release.owner, "an owner of many bytes");
  Parse<PingOptions>({"ping", "--address=other:7420"});
  EXPECT_EQ(global_.address, "other:7420");
}

TEST_F(OptionsTest, AnAcquiresOwnerIsNotTakenFromTheEnvironment) {
  setenv("HOLDFAST_OWNER", "an owner of many bytes", 1);
  EXPECT_THAT(Parse<AcquireOptions>({"acquire", "k"}).owner, IsEmpty());
}

TEST_F(OptionsTest, AModeIsSharedOrOneOfSomePermits) {
  EXPECT_FALSE(Parse<RunOptions>({"run", "k", "--", "true"}).mode.shared);
  EXPECT_TRUE(Parse<RunOptions>({"run", "k", "--shared", "--", "true"}).mode.shared);
  EXPECT_EQ(Parse<AcquireOptions>({"acquire", "k", "--permits=3"}).mode.permits, 3u);
}

TEST_F(OptionsTest, ARenewalKeepsTheLeaseUnlessItIsGiven) {
  const std::vector<std::string> plain = {"renew", "k", "--owner=o", "--hold-id=h"};
  EXPECT_FALSE(Parse<RenewOptions>(plain).lease.has_value());
  EXPECT_EQ(Parse<RenewOptions>({"renew", "k", "--owner=o", "--hold-id=h", "--lease=5s"}).lease,
            absl::Seconds(5));
}

TEST_F(OptionsTest, WrongUsageIsSaidAndExits64) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"no-such-command"},
      {"run", "k"},
      {"run", "k", "--"},
      {"run", "--", "true"},
      {"run", "k", "true"},
      {"run", "k", "--wait=5", "--", "true"},
      {"run", "k", "--wait=-5s", "--", "true"},
      {"run", "k", "--on-lost=shrug", "--", "true"},
      {"run", "k", "--retry=-1", "--", "true"},
      {"run", "k", "--conflict-exit-code=256", "--", "true"},
      {"run", "k", "--shared", "--permits=3", "--", "true"},
      {"run", "k", "--permits=0", "--", "true"},
      {"acquire", "k", "--permits=1001"},
      {"run", "", "--", "true"},
      {"run", "a\nb", "--", "true"},
      {"acquire", "k", "--owner=short"},
      {"release", "k", "--owner=o"},
      {"inspect"},
      {"inspect", "k", "--namespace=UPPER"},
      {"ls", "--", "x"},
  };
  for (const auto& arguments : wrong) {
    err_.str("");
    EXPECT_EQ(Refused(arguments), kExitUsage) << ::testing::PrintToString(arguments);
    EXPECT_THAT(err_.str(), HasSubstr("--help"));
  }
}

TEST_F(OptionsTest, HelpIsNoFailure) {
  EXPECT_EQ(Refused({"--help"}), kExitOk);
  EXPECT_EQ(Refused({"run", "--help"}), kExitOk);
  EXPECT_THAT(out_.str(), HasSubstr("-- COMMAND"));
}

TEST(Endpoint, OnlyAddressesAreTaken) {
  for (const char* good : {"127.0.0.1:7420", "[::1]:7420", "host:1", "unix:///run/h.sock"}) {
    EXPECT_TRUE(client::Connect(good).ok()) << good;
  }
  for (const char* bad : {"", "host", ":7420", "host:0", "host:99999", "::1:7420", "unix://",
                          "unix:///", "unix:relative", "dns:///x:1"}) {
    EXPECT_FALSE(client::Connect(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace holdfast::cli
