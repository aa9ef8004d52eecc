// A client made of the official JavaScript SDKs, with an MCP server of its own that the agent reaches over ACP.
//
//     node client_with_server.mjs DIRECTORY PROMPTS COMMAND ARGUMENT...
//
// It starts the command as its agent, opens a session in the directory, sends so many prompts, says yes to every
// question, and prints as JSON what `initialize` told, what the agent said, how the cards ended, and what was called.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

import { client, McpOverAcpProvider, methods, ndJsonStream } from "@agentclientprotocol/sdk/unstable";
import { fromMcpServer } from "@agentclientprotocol/sdk/experimental/mcp-server";
import { McpServer } from "@modelcontextprotocol/server";
import * as z from "zod/v4";

const [directory, prompts, command, ...args] = process.argv.slice(2);
const report = { initialize: null, said: [], cards: {}, called: [] };
let grown = false;

const tools = fromMcpServer(() => {
  const server = new McpServer({ name: "pantry", version: "1.0.0" });
  server.registerTool(
    "echo",
    { description: "Says it again.", inputSchema: z.object({ text: z.string() }) },
    async ({ text }) => {
      report.called.push(`echo ${text}`);
      return { content: [{ type: "text", text }] };
    },
  );
  server.registerTool(
    "count",
    { description: "Counts up, step by step.", inputSchema: z.object({ to: z.number() }) },
    async ({ to }, context) => {
      report.called.push(`count ${to}`);
      const progressToken = context.mcpReq._meta?.progressToken;
      for (let step = 1; step <= to; step += 1) {
        const params = { progressToken, progress: step, total: to, message: `step ${step}` };
        await context.mcpReq.notify({ method: "notifications/progress", params });
      }
      return { content: [{ type: "text", text: `counted to ${to}` }] };
    },
  );
  server.registerTool("fail", { description: "Fails." }, async () => {
    throw new Error("out of order");
  });
  server.registerTool("grow", { description: "Adds a tool." }, async () => {
    grown = true;
    tools.notify.toolsChanged();
    return { content: [{ type: "text", text: "grown" }] };
  });
  if (grown) {
    server.registerTool("fruit", { description: "A late one." }, async () => ({
      content: [{ type: "text", text: "ripe" }],
    }));
  }
  return server;
});

const provider = new McpOverAcpProvider();
const app = client({ name: "official" })
  .onRequest(methods.client.mcp.message, provider.handleRequest)
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    const yes = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: yes.optionId } };
  })
  .onNotification(methods.client.session.update, ({ params: { update } }) => {
    if (update.sessionUpdate === "agent_message_chunk") report.said.push(update.content.text);
    if (update.toolCallId && update.status) report.cards[update.toolCallId] = update.status;
  });

const agent = spawn(command, args, { cwd: directory, stdio: ["pipe", "pipe", "inherit"] });
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
await app.connectWith(stream, async (context) => {
  const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false } };
  report.initialize = await context.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities });
  const pantry = provider.registerServer(context, { name: "pantry", handler: tools.handler });
  const opened = { cwd: directory, mcpServers: [pantry.declaration] };
  const { sessionId } = await context.request(methods.agent.session.new, opened);
  for (let prompt = 0; prompt < Number(prompts); prompt += 1) {
    await context.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "go on" }] });
  }
  await context.request(methods.agent.session.close, { sessionId });
});
agent.stdin.end();
await new Promise((ended) => agent.once("exit", ended));
console.log(JSON.stringify(report));
