// Which conversation has which sandbox.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { sandbankTools } from "@sandbank/ai-sdk";
import { call, conversation, printed } from "./conversation.js";

test("a conversation finds its sandbox again, and no other one does", async () => {
  await using chat = await conversation();
  const secret = randomUUID();
  await call(chat, "writeFile", { path: "note", content: secret });
  const again = await sandbankTools({ session: chat.session });
  assert.equal(await printed(again, "cat note"), secret);
  await using other = await conversation();
  assert.equal(await printed(other, "cat note"), "");
});

test("a reset leaves nothing, and the next call has a new sandbox", async () => {
  await using chat = await conversation();
  await call(chat, "writeFile", { path: "note", content: "x" });
  const before = await printed(chat, "hostname");
  await chat.reset();
  assert.equal(await printed(chat, "ls note"), "");
  assert.notEqual(await printed(chat, "hostname"), before);
});

test("the name of a conversation may have any letters", async () => {
  await using chat = await conversation({ session: `чат:${randomUUID()} 😀` });
  await call(chat, "writeFile", { path: "note", content: "x" });
  assert.equal(await printed(await sandbankTools({ session: ` ${chat.session} ` }), "cat note"), "x");
});
