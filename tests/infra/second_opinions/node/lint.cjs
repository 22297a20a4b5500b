// Reads a line with {name: definition as text} and prints {linter: {name: [finding]}}.
//
// asl-validator has a JSON Schema of the language, and checks transitions, paths and ARNs.
// amazon-states-language-service is AWS's own: it is behind the editor of the AWS Toolkit.
const { readFileSync } = require("node:fs");
const validate = require("asl-validator");
const { TextDocument } = require("vscode-languageserver-textdocument");
const { getLanguageService } = require("amazon-states-language-service");

const definitions = JSON.parse(readFileSync(0, "utf8"));
const service = getLanguageService({});

async function diagnostics(text) {
  const document = TextDocument.create("file:///definition.asl.json", "asl", 1, text);
  const found = await service.doValidation(document, service.parseJSONDocument(document));
  return found.map(({ message, range }) => `${message} (${document.getText(range)})`);
}

(async () => {
  const findings = { "asl-validator": {}, "amazon-states-language-service": {} };
  for (const [name, text] of Object.entries(definitions)) {
    const { errors } = validate(JSON.parse(text), { checkPaths: true, checkArn: true });
    findings["asl-validator"][name] = errors.map((error) => JSON.stringify(error));
    findings["amazon-states-language-service"][name] = await diagnostics(text);
  }
  process.stdout.write(JSON.stringify(findings) + "\n");
})();
