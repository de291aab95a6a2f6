// SPDX-License-Identifier: Apache-2.0
#include "server/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>

#include "server/option_table.h"
#include "server/store_factory.h"

namespace holdfast::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

absl::StatusOr<Options> Load(const std::vector<std::string>& arguments,
                             const Variables& variables = {}) {
  return LoadOptions(arguments, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

std::string Failure(const std::vector<std::string>& arguments, const Variables& variables = {}) {
  const absl::StatusOr<Options> options = Load(arguments, variables);
  return options.ok() ? "no failure" : std::string(options.status().message());
}

class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text)
      : path_(testing::TempDir() + "holdfast_options_test.yaml") {
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { std::remove(path_.c_str()); }
  std::string flag() const { return "--config=" + path_; }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

TEST(Options, HaveTheDocumentedDefaults) {
  const auto options = Load({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(options->listen, ElementsAre("127.0.0.1:7420"));
  EXPECT_EQ(options->store, "memory:");
  EXPECT_EQ(options->max_lease, absl::Seconds(60));
  EXPECT_EQ(options->default_max_hold, absl::Minutes(3));
  EXPECT_EQ(options->drain_limit, absl::Seconds(10));
}

TEST(Options, AFlagOutweighsAVariableAndAVariableTheFile) {
  const ConfigFile file("namespace: from-file\nmax-lease: 10s\ndrain-limit: 1s\n");
  const auto options =
      Load({file.flag(), "--namespace=from-flag"},
           {{"HOLDFAST_NAMESPACE", "from-variable"}, {"HOLDFAST_MAX_LEASE", "20s"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->default_namespace, "from-flag");
  EXPECT_EQ(options->max_lease, absl::Seconds(20));
  EXPECT_EQ(options->drain_limit, absl::Seconds(1));
}

TEST(Options, AStrongerSourceReplacesAWholeList) {
  const ConfigFile file("listen: [127.0.0.1:1, 127.0.0.1:2]\n");
  EXPECT_THAT(Load({file.flag()})->listen, ElementsAre("127.0.0.1:1", "127.0.0.1:2"));
  const Variables variables = {{"HOLDFAST_LISTEN", "127.0.0.1:3,unix:///tmp/x.sock"}};
  EXPECT_THAT(Load({file.flag()}, variables)->listen,
              ElementsAre("127.0.0.1:3", "unix:///tmp/x.sock"));
  EXPECT_THAT(Load({file.flag(), "--listen=[::1]:0", "--listen", "host:4"}, variables)->listen,
              ElementsAre("[::1]:0", "host:4"));
}

TEST(Options, TheFileMayBeNamedByAVariable) {
  const ConfigFile file("no-grace: true\n");
  EXPECT_TRUE(Load({}, {{"HOLDFAST_CONFIG", file.path()}})->no_grace);
}

TEST(Options, AnEmptyVariableIsUnsetAndAnEmptyFlagIsAValue) {
  EXPECT_EQ(Load({}, {{"HOLDFAST_NAMESPACE", ""}})->default_namespace, "default");
  const auto options = Load({"--redis-prefix=", "--no-grace"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->redis_prefix, "");
  EXPECT_TRUE(options->no_grace);
}

TEST(Options, SwitchesTakeAValueToo) {
  EXPECT_TRUE(Load({"--no-grace"})->no_grace);
  EXPECT_FALSE(Load({"--no-grace=false"}, {{"HOLDFAST_NO_GRACE", "true"}})->no_grace);
  EXPECT_THAT(Failure({"--no-grace=perhaps"}), HasSubstr("true or false"));
}

TEST(Options, TheLastFlagCounts) {
  EXPECT_EQ(Load({"--namespace=a", "--namespace=b"})->default_namespace, "b");
  EXPECT_FALSE(Load({"--no-grace", "--no-grace=false"})->no_grace);
}

TEST(Options, ErrorsSayWhereWhatAndWhatIsAllowed) {
  EXPECT_EQ(
      Failure({"--max-lease=7"}),
      "--max-lease: '7' is not allowed; allowed: a duration from 100ms to 1h, such as 250ms, 5s, "
      "3m or 1h");
  EXPECT_THAT(Failure({}, {{"HOLDFAST_LOG_LEVEL", "loud"}}),
              "HOLDFAST_LOG_LEVEL: 'loud' is not allowed; allowed: error, warn, info or debug");
  for (const char* listen : {"7420", "127.0.0.1:", "127.0.0.1:65536", ":7420", "::1:7420",
                             "unix://relative", "unix:///folder/", "a b:1"}) {
    EXPECT_THAT(Failure({std::string("--listen=") + listen}), HasSubstr("HOST:PORT")) << listen;
  }
  EXPECT_THAT(Failure({"--namespace=Upper"}), HasSubstr("a-z"));
  EXPECT_THAT(Failure({"--redis-prefix={x}"}), HasSubstr("braces"));
  EXPECT_THAT(Failure({"--max-lease"}), HasSubstr("--max-lease"));
  EXPECT_THAT(Failure({"serve"}), HasSubstr("unexpected argument 'serve'"));
}

TEST(Options, AReleaseDelayIsForTheKeysOfANamespaceThatBeginAlike) {
  const ConfigFile file(
      "release-delay:\n  - default:printer/=5s\n  - jobs:=1m\n  - a:odd=key:=250ms\n");
  const auto options = Load({file.flag()});
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->release_delays.size(), 3u);
  EXPECT_EQ(options->release_delays[0].ns, "default");
  EXPECT_EQ(options->release_delays[0].prefix, "printer/");
  EXPECT_EQ(options->release_delays[0].delay, absl::Seconds(5));
  EXPECT_EQ(options->release_delays[1].prefix, "");
  EXPECT_EQ(options->release_delays[2].prefix, "odd=key:");
  EXPECT_THAT(PrintConfig(*options), HasSubstr("default:printer/=5s"));
  EXPECT_EQ(Load({file.flag(), "--release-delay=x:=1s"})->release_delays.size(), 1u);
  for (const char* wrong : {"=5s", "default=5s", "default:k", "UPPER:k=5s", "default:k=0s",
                            "default:k=2h", "default:k=x", "default:a\nb=5s"}) {
    EXPECT_THAT(Failure({std::string("--release-delay=") + wrong}),
                HasSubstr("NAMESPACE:PREFIX=DURATION"))
        << wrong;
  }
  EXPECT_TRUE(Load({"--listen=127.0.0.1:1"})->release_delays.empty());
}

TEST(Options, MisspeltOnesAreRecognised) {
  EXPECT_THAT(Failure({"--liste=x"}),
              HasSubstr("unknown option '--liste' (did you mean --listen?)"));
  EXPECT_THAT(Failure({"--default-maxhold=1s"}), HasSubstr("(did you mean --default-max-hold?)"));
  EXPECT_EQ(Failure({"--something-else=1"}), "unknown option '--something-else'; --help lists all");
}

TEST(ConfigFileErrors, NameFileAndLine) {
  const auto failure = [](const std::string& text) {
    const ConfigFile file(text);
    const std::string message = Failure({file.flag()});
    EXPECT_THAT(message, testing::StartsWith(file.path() + ":"));
    return message.substr(file.path().size());
  };
  EXPECT_EQ(failure("# one\n\nmax-leas: 3s\n"),
            ":3: unknown option 'max-leas' (did you mean max-lease?)");
  EXPECT_THAT(failure("no-grace: true\nmax-lease: 3\n"),
              HasSubstr(":2: max-lease: '3' is not allowed"));
  EXPECT_THAT(failure("listen:\n  - 127.0.0.1:1\n  - nonsense\n"), HasSubstr("'nonsense'"));
  EXPECT_THAT(failure("log-level: info\nlog-level: warn\n"),
              HasSubstr(":2: log-level is given twice"));
  EXPECT_THAT(failure("store: [a, b]\n"), HasSubstr(":1: store takes one value, but has 2"));
  EXPECT_THAT(failure("store:\n"), HasSubstr(":1: store must have a value"));
  EXPECT_THAT(failure("config: other.yaml\n"), HasSubstr("unknown option 'config'"));
  EXPECT_THAT(failure("- a\n- b\n"), HasSubstr("must be a mapping"));
  EXPECT_THAT(failure("a: [1\nb: 2\n"), HasSubstr("not YAML"));
}

TEST(ConfigFileErrors, AMissingFileIsNamed) {
  EXPECT_EQ(Failure({"--config=/does/not/exist.yaml"}),
            "--config: cannot read the file '/does/not/exist.yaml'");
}

TEST(PrintConfig, IsAFileThatGivesTheSameOptions) {
  const auto given = Load(
      {"--listen=127.0.0.1:0", "--listen=unix:///tmp/a b.sock", "--store=redis://127.0.0.1:6379/1",
       "--namespace=true", "--redis-prefix=", "--max-lease=1m30s", "--default-max-hold=0",
       "--no-grace", "--log-format=json", "--drain-limit=250ms", "--default-ordering=fifo"});
  ASSERT_TRUE(given.ok()) << given.status();
  const ConfigFile file(PrintConfig(*given));
  const auto read = Load({file.flag()});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PrintConfig(*read), PrintConfig(*given));
  EXPECT_EQ(read->listen, given->listen);
  EXPECT_EQ(read->default_max_hold, absl::ZeroDuration());
  EXPECT_TRUE(read->default_fifo);
  EXPECT_EQ(read->default_namespace, "true");
}

TEST(PrintConfig, ShowsNoPassword) {
  const auto options = Load({"--store=redis://user:hunter2@127.0.0.1:6379/0"});
  ASSERT_TRUE(options.ok()) << options.status();
  const std::string text = PrintConfig(*options);
  EXPECT_EQ(text.find("hunter2"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("redis://user:***@127.0.0.1:6379/0"));
}

TEST(HelpText, NamesEveryOption) {
  for (const OptionSpec& option : OptionTable()) {
    EXPECT_THAT(HelpText(), HasSubstr(option.flag()));
  }
}

TEST(StoreUrls, AreMaskedWhereverASecretMayStand) {
  EXPECT_EQ(MaskStoreUrl("memory:/var/lib/holdfast"), "memory:/var/lib/holdfast");
  EXPECT_EQ(MaskStoreUrl("redis://:pw@host"), "redis://:***@host");
  EXPECT_EQ(MaskStoreUrl("redis://pw@host"), "redis://***@host");
  EXPECT_EQ(MaskStoreUrl("redis://u:p/a@b@host:1/2"), "redis://u:***@host:1/2");
  EXPECT_EQ(MaskStoreUrl("redis+unix:///run/r.sock?db=1&Password=pw"),
            "redis+unix:///run/r.sock?db=1&Password=***");
}

TEST(StoreUrls, OfLaterVersionsAreRefusedByName) {
  EXPECT_THAT(Failure({"--store=etcd://127.0.0.1"}),
              HasSubstr("etcd is not supported by this version"));
  EXPECT_THAT(Failure({"--store=redis://u:hunter2@host:no"}), testing::Not(HasSubstr("hunter2")));
  EXPECT_THAT(Failure({"--store=postgres://h"}), HasSubstr("memory:"));
  EXPECT_THAT(Failure({"--store=memory:relative"}), HasSubstr("memory:/absolute/folder"));
}

}  // namespace
}  // namespace holdfast::server
