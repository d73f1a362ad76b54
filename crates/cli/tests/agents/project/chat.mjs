// `/api/chat` as the published `ai` packages read it: SANDBANK is the server, TOKEN an administrator's,
// CHAT the chat's name.

import assert from "node:assert/strict";
import * as five from "ai5";
import * as six from "ai";
import * as seven from "ai7";

const { SANDBANK, TOKEN, CHAT } = process.env;
const user = (text) => ({ id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] });

/** A chat with one version of the package: every chunk passes that version's own schema. */
function chat(ai, chatId) {
  const seen = { headers: null };
  const transport = new ai.DefaultChatTransport({
    api: `${SANDBANK}/api/chat`,
    fetch: async (...request) => {
      const response = await fetch(...request);
      seen.headers = response.headers;
      return response;
    },
  });
  const stream = (messages, abortSignal) =>
    transport.sendMessages({ chatId, messages, trigger: "submit-message", abortSignal });
  const say = async (messages, heard = () => {}) => {
    const chunks = [];
    const tapped = (await stream(messages)).pipeThrough(new TransformStream({
      async transform(chunk, controller) {
        chunks.push(chunk);
        await heard(chunk);
        controller.enqueue(chunk);
      },
    }));
    let message;
    for await (message of ai.readUIMessageStream({ stream: tapped, terminateOnError: true }));
    return { message, chunks, headers: seen.headers };
  };
  return { say, stream, transport };
}

const part = (message, type) => message.parts.find((each) => each.type === type);
const text = (message) => message.parts.filter((each) => each.type === "text").map((each) => each.text).join("");

for (const [version, ai] of Object.entries({ five, six, seven })) {
  const { say, transport } = chat(ai, `${CHAT}-${version}`);

  const smoke = await say([user("Run: `echo REMCOCHAT_BASH_E2E_OK`")]);
  assert.equal(smoke.headers.get("x-remcochat-bash-tools-enabled"), "1");
  assert.equal(smoke.headers.get("x-vercel-ai-ui-message-stream"), "v1");
  const card = part(smoke.message, "tool-bash");
  assert.equal(card.state, "output-available");
  assert.deepEqual(card.input, { command: "echo REMCOCHAT_BASH_E2E_OK" });
  assert.equal(card.output.stdout.trim(), "REMCOCHAT_BASH_E2E_OK");
  assert.equal(card.output.exitCode, 0);
  assert.match(text(smoke.message), /REMCOCHAT_BASH_E2E_OK/, "the model was told");

  const direct = await say([user("/bash echo only; exit 3")]);
  assert.equal(part(direct.message, "tool-bash").output.exitCode, 3);
  assert.equal(text(direct.message), "", "no model was asked");

  const question = user("please compute it");
  const computed = await say([question]);
  const early = computed.chunks.filter((chunk) => chunk.type === "tool-output-available" && chunk.preliminary);
  assert.ok(early.length >= 2, `only ${early.length} updates`);
  assert.equal(early[0].output.exitCode, -1);
  const run = part(computed.message, "tool-bash");
  assert.equal(run.output.stdout, "line 1\nline 2\nline 3\n42\n");
  assert.equal(run.output.stderr, "oops\n");
  assert.ok(!run.preliminary);
  assert.equal(part(computed.message, "tool-readFile").output.content, "noted\n");
  assert.equal(part(computed.message, "reasoning").text, "That is 42.");
  assert.match(text(computed.message), /^Let me see\.The tools said: .*42/);
  const steps = computed.message.parts.filter((each) => each.type === "step-start").length;
  assert.equal(steps, 2);

  const later = await say([question, computed.message, user("how many results were there?")]);
  assert.equal(text(later.message), "There were 3 results.");
  const offered = await say([user("which tools do you have?")]);
  assert.equal(text(offered.message), "I have: bash readFile writeFile sandboxUrl.");

  const failed = await say([user("read what is missing")]);
  const wrong = part(failed.message, "tool-readFile");
  assert.equal(wrong.state, "output-error");
  assert.ok(wrong.errorText.length > 0);

  // A person is asked elsewhere; the page sees it as data, which is replaced when it is decided.
  const deciding = (decision) => async (chunk) => {
    if (chunk.type !== "data-approval" || chunk.data.status !== "waiting") return;
    const response = await fetch(`${SANDBANK}/api/tools/approvals/${chunk.data.approvalId}`, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify({ decision, digest: chunk.data.digest }),
    });
    assert.equal(response.status, 200);
  };
  const order = user("/bash touch approved && ls approved");
  const allowed = await say([order], deciding("allow"));
  const questions = allowed.message.parts.filter((each) => each.type === "data-approval");
  assert.deepEqual(questions.map((each) => each.data.status), ["allowed"]);
  assert.equal(questions[0].data.toolCallId, part(allowed.message, "tool-bash").toolCallId);
  assert.equal(part(allowed.message, "tool-bash").output.stdout, "approved");
  const denied = await say([user("/bash touch denied")], deciding("deny"));
  assert.equal(part(denied.message, "data-approval").data.status, "denied");
  assert.match(part(denied.message, "tool-bash").errorText, /A person said no/);
  const after = await say([order, allowed.message, user("how many results were there?")]);
  assert.equal(text(after.message), "There were 1 results.");

  assert.equal(await transport.reconnectToStream({ chatId: CHAT }), null, "nothing to resume");
}

// Whoever hangs up ends the model's call and the command.
const { say, stream } = chat(six, `${CHAT}-six`);
const hangUp = new AbortController();
const reader = (await stream([user("wait for it")], hangUp.signal)).getReader();
for (;;) {
  const { value } = await reader.read();
  if (value.type === "tool-output-available" && value.output.stdout.includes("begun")) break;
}
const running = async () => {
  const looked = await say([user("/bash ps ax | grep -c '[s]leep 7331' || true")]);
  return Number(part(looked.message, "tool-bash").output.stdout);
};
assert.ok((await running()) > 0, "it runs");
hangUp.abort();
await reader.read().catch(() => {});
const deadline = Date.now() + 20_000;
while ((await running()) > 0) assert.ok(Date.now() < deadline, "the command outlives its chat");

console.log("every version of the package reads the chat");
