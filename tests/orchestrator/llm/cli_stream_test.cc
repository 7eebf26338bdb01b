// Each program's stream, in the shape that it prints, gives the same kinds of events and totals.
#include "orchestrator/agents/cli/cli_stream.h"

#include <gtest/gtest.h>

namespace crucible {
namespace {

using Kind = CliEvent::Kind;

// The events in order, without those that mean nothing.
std::vector<Kind> Play(CliStream* stream, const std::vector<std::string>& lines) {
  std::vector<Kind> kinds;
  for (const std::string& line : lines)
    for (const CliEvent& event : stream->Read(line))
      if (event.kind != Kind::kOther) kinds.push_back(event.kind);
  return kinds;
}

TEST(CliStream, Claude) {
  CliStream stream(CliFormat::kClaude);
  const auto kinds =
      Play(&stream,
           {R"({"type":"system","subtype":"init","session_id":"s","model":"m","tools":["Bash"]})",
            R"({"type":"assistant","message":{"id":"a1","content":[{"type":"text",)"
            R"("text":"Let me look."}],"usage":{"input_tokens":10,"output_tokens":5,)"
            R"("cache_read_input_tokens":100}}})",
            R"({"type":"assistant","message":{"id":"a1","content":[{"type":"tool_use","id":"t",)"
            R"("name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":10,)"
            R"("output_tokens":5,"cache_read_input_tokens":100}}})",
            R"({"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t",)"
            R"("content":"a.cc"}]}})",
            R"({"type":"assistant","message":{"id":"a2","content":[{"type":"text",)"
            R"("text":"Done."}],"usage":{"input_tokens":20,"output_tokens":7}}})"});
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::kUsage, Kind::kText, Kind::kToolUse, Kind::kUsage,
                                      Kind::kText}));
  EXPECT_EQ(stream.totals().turns, 2) << "one message came in two lines";
  EXPECT_EQ(stream.totals().usage.input, 30);
  EXPECT_EQ(stream.totals().usage.output, 12);
  EXPECT_EQ(stream.totals().usage.cache_read, 100);
  EXPECT_FALSE(stream.totals().has_result);
  Play(&stream, {R"({"type":"result","subtype":"success","is_error":false,"num_turns":3,)"
                 R"("result":"All done.","total_cost_usd":0.25,"usage":{"input_tokens":31,)"
                 R"("output_tokens":13,"cache_read_input_tokens":101,)"
                 R"("cache_creation_input_tokens":9}})"});
  EXPECT_TRUE(stream.totals().has_result);
  EXPECT_FALSE(stream.totals().is_error);
  EXPECT_EQ(stream.totals().turns, 3);
  EXPECT_EQ(stream.totals().usage.cache_write, 9);
  EXPECT_EQ(stream.totals().usage.input, 31) << "the result has the last word";
  EXPECT_EQ(stream.totals().usd, 0.25);
  EXPECT_EQ(stream.totals().last_text, "All done.");
}

TEST(CliStream, ClaudeThatFails) {
  CliStream failed(CliFormat::kClaude);
  Play(&failed,
       {R"({"type":"result","subtype":"success","is_error":true,"result":"Invalid API key"})"});
  EXPECT_TRUE(failed.totals().is_error);
  EXPECT_EQ(failed.totals().error, "Invalid API key");
  CliStream out(CliFormat::kClaude);
  Play(&out, {R"({"type":"result","subtype":"error_max_turns","is_error":false,"num_turns":9})"});
  EXPECT_TRUE(out.totals().out_of_turns);
}

TEST(CliStream, Codex) {
  CliStream stream(CliFormat::kCodex);
  const auto kinds =
      Play(&stream,
           {R"({"type":"thread.started","thread_id":"th"})", R"({"type":"turn.started"})",
            R"({"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"Hmm"}})",
            R"({"type":"item.started","item":{"id":"item_1","type":"command_execution",)"
            R"("command":"ls","status":"in_progress"}})",
            R"({"type":"item.completed","item":{"id":"item_1","type":"command_execution",)"
            R"("command":"ls","exit_code":0,"status":"completed"}})",
            R"({"type":"item.completed","item":{"id":"item_2","type":"file_change",)"
            R"("changes":[{"path":"a.cc","kind":"update"}]}})",
            R"({"type":"item.completed","item":{"id":"item_3","type":"agent_message",)"
            R"("text":"Changed a.cc."}})",
            R"({"type":"turn.completed","usage":{"input_tokens":1000,"cached_input_tokens":900,)"
            R"("output_tokens":50}})"});
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::kToolUse, Kind::kToolUse, Kind::kText, Kind::kUsage,
                                      Kind::kResult}));
  EXPECT_EQ(stream.totals().turns, 3);
  EXPECT_EQ(stream.totals().usage.input, 100) << "the cached ones are among the input";
  EXPECT_EQ(stream.totals().usage.cache_read, 900);
  EXPECT_EQ(stream.totals().last_text, "Changed a.cc.");
  EXPECT_FALSE(stream.totals().is_error);
}

TEST(CliStream, CodexThatFails) {
  CliStream stream(CliFormat::kCodex);
  Play(&stream, {R"({"type":"error","message":"Reconnecting... 1/5"})"});
  EXPECT_FALSE(stream.totals().is_error) << "it may recover";
  Play(&stream, {R"({"type":"turn.failed","error":{"message":"stream disconnected"}})"});
  EXPECT_TRUE(stream.totals().is_error);
  EXPECT_EQ(stream.totals().error, "stream disconnected");
}

TEST(CliStream, Opencode) {
  CliStream stream(CliFormat::kOpencode);
  const auto kinds = Play(
      &stream,
      {R"({"type":"step_start","timestamp":1,"sessionID":"ses","part":{"type":"step-start"}})",
       R"({"type":"tool_use","timestamp":2,"sessionID":"ses","part":{"type":"tool",)"
       R"("tool":"bash","state":{"status":"completed","input":{"command":"ls"},)"
       R"("output":"a"}}})",
       R"({"type":"step_finish","timestamp":3,"sessionID":"ses",)"
       R"("part":{"type":"step-finish","reason":"tool-calls","cost":0.01,)"
       R"("tokens":{"input":100,"output":10,"reasoning":5,"cache":{"read":7,"write":3}}}})",
       R"({"type":"step_start","timestamp":4,"sessionID":"ses","part":{"type":"step-start"}})",
       R"({"type":"text","timestamp":5,"sessionID":"ses","part":{"type":"text","text":"Done."}})",
       R"({"type":"step_finish","timestamp":6,"sessionID":"ses",)"
       R"("part":{"type":"step-finish","reason":"stop","cost":0.02,"tokens":{"input":50,)"
       R"("output":20,"reasoning":0,"cache":{"read":0,"write":0}}}})"});
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::kToolUse, Kind::kUsage, Kind::kText, Kind::kUsage,
                                      Kind::kResult}));
  EXPECT_EQ(stream.totals().turns, 2);
  EXPECT_EQ(stream.totals().usage.input, 150);
  EXPECT_EQ(stream.totals().usage.output, 35);
  EXPECT_EQ(stream.totals().usage.cache_write, 3);
  EXPECT_NEAR(*stream.totals().usd, 0.03, 1e-12);
  CliStream failed(CliFormat::kOpencode);
  Play(&failed, {R"({"type":"error","sessionID":"s","error":{"name":"APIError",)"
                 R"("data":{"message":"no credit"}}})"});
  EXPECT_EQ(failed.totals().error, "no credit");
  EXPECT_TRUE(failed.totals().is_error);
}

TEST(CliStream, Gemini) {
  CliStream stream(CliFormat::kGemini);
  Play(&stream, {R"({"type":"init","session_id":"s","model":"m"})",
                 R"({"type":"message","role":"user","content":"mission"})",
                 R"({"type":"message","role":"assistant","content":"I will ","delta":true})",
                 R"({"type":"message","role":"assistant","content":"look.","delta":true})",
                 R"({"type":"tool_use","tool_name":"run_shell_command","tool_id":"1",)"
                 R"("parameters":{"command":"ls"}})",
                 R"({"type":"tool_result","tool_id":"1","status":"success","output":"a"})",
                 R"({"type":"message","role":"assistant","content":"Done.","delta":true})"});
  EXPECT_EQ(stream.totals().turns, 2);
  EXPECT_EQ(stream.totals().last_text, "Done.");
  Play(&stream, {R"({"type":"result","status":"success","stats":{"total_tokens":120,)"
                 R"("input_tokens":100,"output_tokens":20,"cached":60,"tool_calls":1}})"});
  EXPECT_EQ(stream.totals().usage.input, 40);
  EXPECT_EQ(stream.totals().usage.cache_read, 60);
  EXPECT_TRUE(stream.totals().has_result);
  CliStream failed(CliFormat::kGemini);
  Play(&failed, {R"({"type":"result","status":"error","error":{"type":"x","message":"quota"}})"});
  EXPECT_EQ(failed.totals().error, "quota");
}

TEST(CliStream, NoticesAndNonsenseChangeNothing) {
  for (const auto format :
       {CliFormat::kClaude, CliFormat::kCodex, CliFormat::kOpencode, CliFormat::kGemini}) {
    CliStream stream(format);
    for (const char* line :
         {"", "Update available!", "{", "[1]", "null", "{}", R"({"type":7})",
          R"({"type":"assistant"})", R"({"type":"assistant","message":{"content":7}})",
          R"({"type":"step_finish","part":[]})", R"({"type":"turn.started","usage":"x"})"})
      for (const CliEvent& event : stream.Read(line)) EXPECT_NE(event.kind, Kind::kText) << line;
    EXPECT_FALSE(stream.totals().usage_known);
    EXPECT_FALSE(stream.totals().is_error);
  }
}

TEST(CliStream, APlainCommandsLinesAreItsWords) {
  CliStream stream(CliFormat::kPlain);
  EXPECT_EQ(Play(&stream, {"one", "{\"two\":2}"}), (std::vector<Kind>{Kind::kText, Kind::kText}));
  EXPECT_EQ(stream.totals().last_text, "{\"two\":2}");
}

TEST(LineSplitter, AnyCutGivesTheSameLinesAndLongOnesAreCut) {
  const std::string text = "one\r\n\nlonger than ten\nlast";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    LineSplitter splitter(10);
    std::vector<std::string> lines;
    const auto take = [&](const std::string& line, bool cut) {
      lines.push_back(line + (cut ? "..." : ""));
    };
    for (std::size_t at = 0; at < text.size(); at += size)
      splitter.Feed(text.substr(at, size), take);
    splitter.Finish(take);
    EXPECT_EQ(lines, (std::vector<std::string>{"one", "", "longer tha...", "last"})) << size;
  }
}

}  // namespace
}  // namespace crucible
