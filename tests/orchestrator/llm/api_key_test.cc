// Keys are found where they may be, refused where others can read them, and kept out of texts.
#include "orchestrator/agents/llm/api_key.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/files.h"
#include "orchestrator/agents/llm/make_provider.h"

namespace crucible {
namespace {

using testing::HasSubstr;
using testing::Not;
constexpr const char* kSecret = "sk-secret-in-a-file-0123456789";

class Keys : public testing::Test {
 protected:
  Keys() : folder(*MakeTemporaryDirectory("crucible-keys")) {
    for (const std::string& name : KeyVariables()) ::unsetenv(name.c_str());
    ::unsetenv("ANTHROPIC_BASE_URL");
    ::unsetenv("OPENAI_BASE_URL");
  }
  ~Keys() override {
    (void)RemoveTree(folder);
    ::unsetenv("CRUCIBLE_KEY_FILE");
  }
  std::filesystem::path File(const std::string& text, mode_t mode) {
    const auto path = folder / "keys";
    EXPECT_TRUE(WriteFileAtomically(path, text));
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    ::setenv("CRUCIBLE_KEY_FILE", path.c_str(), 1);
    return path;
  }
  std::filesystem::path folder;
};

TEST_F(Keys, FromTheEnvironmentFirst) {
  File("OPENAI_API_KEY=" + std::string(kSecret) + "\n", 0600);
  EXPECT_EQ(FindKey("OPENAI_API_KEY")->Reveal(), kSecret);
  ::setenv("OPENAI_API_KEY", " sk-of-the-environment \n", 1);
  EXPECT_EQ(FindKey("OPENAI_API_KEY")->Reveal(), "sk-of-the-environment");
}

TEST_F(Keys, OfTheirOwnNameOnly) {
  File("# mine\n\nOPENAI_API_KEY = " + std::string(kSecret) + "\r\n", 0600);
  EXPECT_EQ(FindKey("OPENAI_API_KEY")->Reveal(), kSecret);
  const auto other = FindKey("ANTHROPIC_API_KEY");
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->empty()) << "one provider's key must not reach another";
}

TEST_F(Keys, AFileThatOthersCanReadIsRefused) {
  for (const mode_t mode : {0640, 0604, 0660, 0620, 0610}) {
    File("OPENAI_API_KEY=" + std::string(kSecret) + "\n", mode);
    const auto key = FindKey("OPENAI_API_KEY");
    ASSERT_FALSE(key) << std::oct << mode;
    EXPECT_EQ(key.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(key.error().text, HasSubstr("chmod 600"));
  }
}

TEST_F(Keys, AFileOfAnotherFormIsRefusedWithoutShowingIt) {
  File(std::string(kSecret) + "\n", 0600);
  const auto key = FindKey("OPENAI_API_KEY");
  ASSERT_FALSE(key);
  EXPECT_THAT(key.error().text, HasSubstr("OPENAI_API_KEY=KEY"));
  EXPECT_THAT(key.error().text, Not(HasSubstr(kSecret)));
}

TEST_F(Keys, AMissingFileIsAnErrorAndNotAMissingKey) {
  ::setenv("CRUCIBLE_KEY_FILE", (folder / "none").c_str(), 1);
  EXPECT_FALSE(FindKey("OPENAI_API_KEY"));
  ::setenv("CRUCIBLE_KEY_FILE", folder.c_str(), 1);
  EXPECT_FALSE(FindKey("OPENAI_API_KEY")) << "a folder";
}

TEST_F(Keys, AKeyWithALineEndCannotForgeAHeader) {
  ::setenv("OPENAI_API_KEY", "sk-one\r\nx-evil: 1", 1);
  const auto key = FindKey("OPENAI_API_KEY");
  ASSERT_FALSE(key);
  EXPECT_THAT(key.error().text, Not(HasSubstr("x-evil")));
}

TEST_F(Keys, AProvidersOwnServerNeedsOneAndALocalServerDoesNot) {
  for (const auto kind : {ProviderKind::kAnthropic, ProviderKind::kOpenAi}) {
    ModelSettings settings;
    settings.name = "m";
    settings.kind = kind;
    const auto own = KeyFor(settings);
    ASSERT_FALSE(own);
    EXPECT_THAT(own.error().text, HasSubstr("_API_KEY is not set"));
    EXPECT_FALSE(MakeProvider(settings));
    settings.base_url = "http://127.0.0.1:8000";
    EXPECT_TRUE(KeyFor(settings)->empty());
    EXPECT_TRUE(MakeProvider(settings));
  }
}

TEST_F(Keys, TheEnvironmentMayNameTheServer) {
  ModelSettings settings;
  EXPECT_EQ(BaseUrl(settings), "https://api.anthropic.com");
  ::setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1", 1);
  EXPECT_EQ(BaseUrl(settings), "http://127.0.0.1:1");
  settings.base_url = "http://127.0.0.1:2";
  EXPECT_EQ(BaseUrl(settings), "http://127.0.0.1:2") << "the settings come first";
  ::unsetenv("ANTHROPIC_BASE_URL");
}

TEST_F(Keys, ScrubbingTakesEveryOccurrence) {
  const ApiKey key(kSecret);
  EXPECT_EQ(key.Scrub(std::string(kSecret) + " and " + kSecret), "[key] and [key]");
  EXPECT_EQ(ApiKey("abc").Scrub("abcdef"), "abcdef") << "too short to be a secret";
  EXPECT_EQ(ApiKey().Scrub("text"), "text");
  EXPECT_EQ(ScrubAll("one-secret two-secret", {"one-secret", "two-secret"}), "[key] [key]");
}

TEST(Origin, ShowsNoUserPasswordOrQuery) {
  EXPECT_EQ(Origin("https://me:secret@host.example:8443/v1?key=secret"),
            "https://host.example:8443");
  EXPECT_EQ(Origin("https://host.example/"), "https://host.example");
  EXPECT_EQ(Origin("what?"), "an address that is no URL");
}

}  // namespace
}  // namespace crucible
