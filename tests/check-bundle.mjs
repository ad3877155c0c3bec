// Checks the built dist/module.js: what it expects Grafana to provide, and its size. Runs after every `npm run build`.
import { readFileSync } from 'node:fs';

// React 18 and 19 differ in react/jsx-runtime; `React.createElement` is in both, so JSX has to become that.
const provided = ['@grafana/data', '@grafana/runtime', '@grafana/ui', 'module', 'react'];
const maxBytes = 150_000;

const bundle = readFileSync(new URL('../dist/module.js', import.meta.url), 'utf8');
const dependencies = JSON.parse(/define\((\[[^\]]*\])/.exec(bundle)?.[1] ?? '["nothing: it is no AMD module"]');
const problems = dependencies
  .filter((dependency) => !provided.includes(dependency))
  .map((dependency) => `depends on ${dependency}`);

if (!bundle.includes('.createElement(')) {
  problems.push('has no React.createElement');
}
const bytes = Buffer.byteLength(bundle);
if (bytes > maxBytes) {
  problems.push(`has ${bytes} bytes, more than ${maxBytes}`);
}
for (const problem of problems) {
  process.exitCode = 1;
  process.stderr.write(`dist/module.js ${problem}\n`);
}
