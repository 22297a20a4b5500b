// Simulates IAM: of each line {account, principal, policies, resourcePolicy, action, resource,
// context} it prints a line with {result}: "Allowed", "ImplicitlyDenied" or "ExplicitlyDenied".
//
// A request that AWS could not get so, such as with a condition key that the action does not have,
// is an error that ends the program, unless it says `unchecked`.
const readline = require("node:readline");
const { runSimulation, runUnsafeSimulation } = require("@cloud-copilot/iam-simulate");

async function simulate(asked) {
  const simulation = {
    identityPolicies: asked.policies.map((policy, index) => ({ name: `policy-${index}`, policy })),
    serviceControlPolicies: [],
    resourceControlPolicies: [],
    resourcePolicy: asked.resourcePolicy ?? undefined,
    request: {
      principal: asked.principal,
      action: asked.action,
      resource: { resource: asked.resource, accountId: asked.account },
      contextVariables: asked.context,
    },
  };
  if (asked.unchecked) {
    return { result: runUnsafeSimulation(simulation, {}) };
  }
  const answer = await runSimulation(simulation, {});
  const ignored = answer.result?.ignoredContextKeys ?? [];
  if (answer.resultType !== "single" || ignored.length > 0) {
    const { action, resource, context } = asked;
    throw new Error(JSON.stringify([answer.errors, ignored, action, resource, context]));
  }
  return { result: answer.overallResult };
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await simulate(JSON.parse(line))) + "\n");
  }
})();
