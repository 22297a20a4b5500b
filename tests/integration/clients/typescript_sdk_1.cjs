// The official TypeScript SDK 1.x as a client: typescript_sdk_1.cjs URL SCENARIO OPTIONS, as
// python_sdk_1.py has them. The working directory is where the SDK is installed.

const { createRequire } = require("node:module");
const sdk = createRequire(`${process.cwd()}/`);
const { Client } = sdk("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = sdk("@modelcontextprotocol/sdk/client/streamableHttp.js");
const types = sdk("@modelcontextprotocol/sdk/types.js");

const [url, scenario, text] = process.argv.slice(2);
const options = JSON.parse(text);
const { tool: name, arguments: args } = options;
const tell = (event, observed = {}) => console.log(JSON.stringify({ event, ...observed }));

function tellError(error) {
  if (!(error instanceof types.McpError)) throw error;
  tell("error", { code: error.code, message: error.message });
}

async function tellHttp(input, init = {}) {
  const response = await fetch(input, init);
  const lastEventId = new Headers(init.headers).get("last-event-id");
  tell("http", { method: init.method ?? "GET", status: response.status, lastEventId });
  return response;
}

const transport = new StreamableHTTPClientTransport(new URL(url), {
  fetch: tellHttp,
  requestInit: options.token ? { headers: { Authorization: `Bearer ${options.token}` } } : {},
});
const client = new Client(
  { name: "typescript-sdk-1", version: "1" },
  { capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} } },
);

// Fixed answers to everything that a client can be asked.
const form = options.form ?? { name: "Ada" };
const poem = { type: "text", text: "Roses are red" };
const answers = [
  [types.ElicitRequestSchema, (asked) => ({ action: "accept", ...(asked.mode !== "url" && { content: form }) })],
  [types.CreateMessageRequestSchema, () => ({ role: "assistant", content: poem, model: "a-model" })],
  [types.ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///home/ada" }] })],
];
for (const [schema, answer] of answers) {
  client.setRequestHandler(schema, ({ method, params = {} }) => {
    tell("asked", { method, params });
    return answer(params);
  });
}
const updated = new Promise((resolve) => {
  client.fallbackNotificationHandler = async ({ method, params = {} }) => {
    tell("notification", { method, params });
    if (method === "notifications/resources/updated") resolve();
  };
});
const onprogress = (progress) => tell("progress", progress);
// The SDK gives a request 60 seconds, whatever the server does; a busy machine takes longer.
const timeout = 120_000;

const call = async () =>
  tell("result", { result: await client.callTool({ name, arguments: args }, undefined, { onprogress, timeout }) });

async function callStream(task) {
  const { tasks } = client.experimental;
  const messages = tasks.callToolStream({ name, arguments: args }, undefined, { onprogress, timeout, task });
  for await (const { type, task, result, error } of messages) {
    if (type === "result") tell("result", { result });
    else if (type === "error") throw error;
    else tell("task", task);
  }
}

const scenarios = {
  async list_and_call() {
    tell("tools", { tools: (await client.listTools()).tools });
    tell("result", { result: await client.callTool({ name: "hello", arguments: { name: "Ada" } }) });
  },
  call,
  // The task that the tool's definition makes of it: a call, for tools that need none.
  async call_stream() {
    await client.listTools();
    await callStream();
  },
  task_call: () => callStream({ ttl: 120_000 }),
  async task_cancel() {
    const { tasks } = client.experimental;
    for await (const { type, task, error } of tasks.callToolStream({ name, arguments: args }, undefined, { task: {} })) {
      if (type === "error") throw error;
      tell("task", task);
      if (type === "taskCreated") await tasks.cancelTask(task.taskId);
    }
  },
  // notifications/cancelled, when progress shows that the call is at work.
  async cancel_call() {
    const abort = new AbortController();
    const stop = (progress) => (tell("progress", progress), abort.abort("enough"));
    const options = { onprogress: stop, signal: abort.signal };
    await client.callTool({ name, arguments: args }, undefined, options).catch(tellError);
    await client.ping(); // so that the notification is out before the connection is closed
  },
  // With a `tool`, that is what changes the resource.
  async subscribe_resource() {
    await client.subscribeResource({ uri: options.uri });
    tell("subscribed");
    if (name) await call();
    await updated;
    await client.unsubscribeResource({ uri: options.uri });
    tell("unsubscribed");
  },
  async end_session() {
    await client.ping();
    await transport.terminateSession();
  },
};

async function main() {
  await client.connect(transport);
  const capabilities = client.getServerCapabilities();
  const { protocolVersion, sessionId = null } = transport;
  tell("initialized", { protocolVersion, capabilities, sessionId });
  await scenarios[scenario]().catch(tellError);
  await client.close();
  tell("ended");
}

main();
