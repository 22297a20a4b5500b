// Evaluates JSONata: of each line {expression, bindings}, it prints a line with the value, or with
// {"error": code}, or {} when the expression has no result, which fails a state of Step Functions.
const readline = require("node:readline");
const jsonata = require("jsonata");

async function outcome({ expression, bindings }) {
  try {
    const value = await jsonata(expression).evaluate(undefined, bindings);
    return value === undefined ? {} : { value };
  } catch (error) {
    return { error: error.code, message: error.message };
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await outcome(JSON.parse(line))) + "\n");
  }
})();
