// A client made of the official JavaScript SDK that takes up sessions of others.
//
//     node session_client.mjs DIRECTORY COMMAND ARGUMENT...
//
// It starts the command as its agent and opens a session with one prompt; then it lists the sessions, and closes, loads,
// closes, resumes, forks and deletes, with a prompt wherever there is a session to answer it. As JSON it prints what it
// was told by each, `refused` being the codes of what it asked of sessions that are gone.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

import { client, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk/unstable";

const [directory, command, ...args] = process.argv.slice(2);
const report = { said: {}, replayed: [], resumed: [], listed: [], refused: {} };
let heard = [];

const app = client({ name: "official" }).onNotification(methods.client.session.update, ({ params }) => {
  heard.push(params);
});

const agent = spawn(command, args, { cwd: directory, stdio: ["pipe", "pipe", "inherit"] });
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
await app.connectWith(stream, async (context) => {
  const { session } = methods.agent;
  const there = { cwd: directory, mcpServers: [] };
  const textOf = (kind) =>
    heard.filter(({ update }) => update.sessionUpdate === kind).map(({ update }) => update.content.text);
  const say = async (sessionId, text) => {
    heard = [];
    await context.request(session.prompt, { sessionId, prompt: [{ type: "text", text }] });
    report.said[text] = textOf("agent_message_chunk").join("");
  };
  const list = async () => {
    const { sessions } = await context.request(session.list, { cwd: directory });
    report.listed.push(sessions.map(({ sessionId, title }) => [sessionId, title]));
  };
  const refused = async (name, method, params) => {
    report.refused[name] = await context.request(method, params).then(() => null, ({ code }) => code);
  };

  const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false } };
  const asked = { protocolVersion: PROTOCOL_VERSION, clientCapabilities };
  report.initialize = await context.request(methods.agent.initialize, asked);
  const { sessionId } = await context.request(session.new, there);
  report.session = sessionId;
  await say(sessionId, "first");
  await list();

  await context.request(session.close, { sessionId });
  heard = [];
  await context.request(session.load, { sessionId, ...there });
  report.replayed = [...textOf("user_message_chunk"), ...textOf("agent_message_chunk")];
  await say(sessionId, "after the load");

  await context.request(session.close, { sessionId });
  heard = [];
  await context.request(session.resume, { sessionId, ...there });
  report.resumed = [...textOf("user_message_chunk"), ...textOf("agent_message_chunk")];
  await say(sessionId, "after the resume");

  const copy = await context.request(session.fork, { sessionId, ...there });
  report.copy = copy.sessionId;
  await say(copy.sessionId, "in the copy");
  await say(sessionId, "beside the copy");
  await list();

  await context.request(session.delete, { sessionId });
  await refused("prompt", session.prompt, { sessionId, prompt: [{ type: "text", text: "gone" }] });
  await refused("load", session.load, { sessionId, ...there });
  await refused("resume", session.resume, { sessionId, ...there });
  await refused("fork", session.fork, { sessionId, ...there });
  await list();
});
agent.stdin.end();
await new Promise((ended) => agent.once("exit", ended));
console.log(JSON.stringify(report));
