// A client made of the official JavaScript SDK for the draft of ACP v2.
//
//     node draft_client.mjs DIRECTORY COMMAND ARGUMENT...
//
// It starts the command as its agent, opens a session in the directory, sends two prompts at once and reads both turns,
// saying yes to every question; then it switches the mode, lists and closes the session, and resumes it with its
// history. As JSON it prints what it saw.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

import { client, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk/experimental/v2";

const [directory, command, ...args] = process.argv.slice(2);
const report = { questions: [], turns: [], statuses: {}, cancellable: [], replayed: [] };
let replaying = false;

const app = client({ name: "official" })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    report.questions.push({ title: params.title, subject: params.subject.type });
    const yes = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: yes.optionId } };
  })
  .onNotification(methods.client.session.update, ({ params: { update } }) => {
    if (replaying) report.replayed.push(update.sessionUpdate);
  });

const agent = spawn(command, args, { cwd: directory, stdio: ["pipe", "pipe", "inherit"] });
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
await app.connectWith(stream, async (context) => {
  const info = { name: "official", version: "1" };
  report.initialize = await context.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION, info, capabilities: {},
  });
  await context.request(methods.agent.auth.login, { methodId: report.initialize.authMethods[0].methodId });
  const session = await context.buildSession(directory).start();
  const placed = [session.prompt("first"), session.prompt("second")];
  while (report.turns.length < 2) {
    const told = await session.nextUpdate();
    const { update } = told;
    if (update.toolCallId && update.status) {
      report.statuses[update.toolCallId] = [...(report.statuses[update.toolCallId] ?? []), update.status];
      report.cancellable.push(session.canCancelToolCall(update.toolCallId));
    }
    if (told.kind === "stop") report.turns.push(told.stopReason);
  }
  report.messages = (await Promise.all(placed)).map(({ messageId }) => messageId);
  const { configOptions } = await session.setConfigOption({ configId: "mode", type: "id", value: "auto" });
  report.mode = configOptions.find(({ configId }) => configId === "mode").currentValue;
  const { sessionId } = session;
  session.dispose();
  await context.request(methods.agent.session.close, { sessionId });
  report.listed = (await context.request(methods.agent.session.list, { cwd: directory })).sessions.length;
  replaying = true;
  await context.request(methods.agent.session.resume, { sessionId, cwd: directory, replayFrom: { type: "start" } });
  await context.request(methods.agent.session.delete, { sessionId });
  await context.request(methods.agent.auth.logout, {});
});
agent.stdin.end();
await new Promise((ended) => agent.once("exit", ended));
console.log(JSON.stringify(report));
