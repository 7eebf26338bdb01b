// What a model is told about arguments and what is accepted come from one list.
#include "orchestrator/agents/tools/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "orchestrator/agents/tools/bounded.h"
#include "orchestrator/agents/tools/function_tool.h"

namespace crucible {
namespace {

using ::testing::HasSubstr;
using Kind = Argument::Kind;
using nlohmann::json;

const std::vector<Argument> kArguments = {
    {.name = "path", .help = "a path", .required = true},
    {.name = "lines", .kind = Kind::kInteger, .help = "how many", .least = 1, .most = 10},
    {.name = "rule", .help = "which", .choices = {"screen", "claim"}},
    {.name = "cases", .kind = Kind::kTexts, .help = "names", .choices = {"a", "b"}},
    {.name = "deep", .kind = Kind::kFlag, .help = "all"},
    {.name = "params", .kind = Kind::kObject, .help = "any"}};

std::string ErrorOf(const std::string& text) {
  const auto values = ReadArguments("tool", kArguments, text);
  EXPECT_FALSE(values) << text;
  return values ? "" : values.error().text;
}

TEST(Arguments, WhatTheSchemaAllowsIsRead) {
  const auto values = ReadArguments(
      "tool", kArguments,
      R"({"path":"k.cc","lines":3.0,"rule":"claim","cases":["b"],"deep":true,"params":{"x":1}})");
  ASSERT_TRUE(values) << values.error().text;
  EXPECT_EQ((*values)["lines"], 3);
  EXPECT_TRUE((*values)["lines"].is_number_integer());
  EXPECT_EQ((*values)["params"]["x"], 1);
}

TEST(Arguments, ANullIsAnAbsentField) {
  const auto values = ReadArguments("tool", kArguments, R"({"path":"k","lines":null})");
  ASSERT_TRUE(values) << values.error().text;
  EXPECT_FALSE(values->contains("lines"));
}

TEST(Arguments, EmptyTextIsAnEmptyObject) {
  EXPECT_TRUE(ReadArguments("tool", {}, " \n"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("\"path\" is missing"));
}

TEST(Arguments, AMistakeNamesTheFieldAndShowsTheForm) {
  EXPECT_THAT(ErrorOf("{\"path\":"), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(ErrorOf(R"({"path":"k","depth":1})"), HasSubstr("no argument \"depth\""));
  EXPECT_THAT(ErrorOf(R"({"path":7})"), HasSubstr("\"path\" must be text, not 7"));
  EXPECT_THAT(ErrorOf(R"({"path":"k","lines":11})"), HasSubstr("an integer from 1 to 10, not 11"));
  EXPECT_THAT(ErrorOf(R"({"path":"k","lines":"3"})"), HasSubstr("not \"3\""));
  EXPECT_THAT(ErrorOf(R"({"path":"k","lines":2.5})"), HasSubstr("not 2.5"));
  EXPECT_THAT(ErrorOf(R"({"path":"k","rule":"guess"})"), HasSubstr("one of screen, claim"));
  EXPECT_THAT(ErrorOf(R"({"path":"k","cases":["c"]})"), HasSubstr("each one of a, b"));
  EXPECT_THAT(ErrorOf(R"({"path":"k","deep":"yes"})"), HasSubstr("true or false"));
  EXPECT_THAT(ErrorOf(R"({"path":"k","params":[]})"), HasSubstr("an object"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("\"path\": text (required)"));
}

TEST(Arguments, TheSchemaSaysTheSame) {
  const json schema = json::parse(SchemaText(kArguments));
  EXPECT_EQ(schema["required"], json::array({"path"}));
  EXPECT_EQ(schema["additionalProperties"], false);
  EXPECT_EQ(schema["properties"]["lines"]["maximum"], 10);
  EXPECT_EQ(schema["properties"]["cases"]["items"]["enum"], json::array({"a", "b"}));
}

TEST(FunctionTool, AThrowingLibraryIsAnAnswerAndNotTheEnd) {
  const auto tool =
      MakeFunctionTool({"t", "help", {}, [](const json& values) -> Result<ToolAnswer> {
                          return ToolAnswer{.text = values.at("absent")};
                        }});
  const ToolAnswer answer = tool->Call("{}");
  EXPECT_TRUE(answer.is_error);
  EXPECT_FALSE(answer.bad_arguments);
  EXPECT_TRUE(tool->Call("{").bad_arguments);
}

TEST(Bounded, SaysHowMuchIsMissingAndWhere) {
  EXPECT_EQ(Head("short\n", 10, "f"), "short\n");
  EXPECT_EQ(Head("one\ntwo\nthree\n", 9, "out.txt"), "one\ntwo\n[6 more bytes in out.txt]\n");
  const std::string both = HeadAndTail(std::string(50, 'a') + std::string(50, 'z'), 30, "f");
  EXPECT_EQ(both, "aaaaaaaaaa\n[… 70 more bytes in f …]\nzzzzzzzzzzzzzzzzzzzz");
}

TEST(Bounded, NeverCutsACharacterAndMakesBytesText) {
  EXPECT_EQ(Shorten("aüb", 2), "a…");
  EXPECT_EQ(Shorten("aüb", 3), "aü…");
  EXPECT_EQ(ValidUtf8("a\xff"
                      "b\xc3"),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd");
  EXPECT_EQ(ValidUtf8("\xed\xa0\x80").find("\xed"), std::string::npos);  // a surrogate
  EXPECT_EQ(ValidUtf8("größe 𝄞"), "größe 𝄞");
}

}  // namespace
}  // namespace crucible
