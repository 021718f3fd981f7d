// A reporter for `node --test` that writes down how each test ended. It runs in the runner's own process; the tests run
// in others, one for each file. Two canaries of our own are run the same way, by the same node, and must be told apart.
import { spawn } from 'node:child_process';
import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join, relative } from 'node:path';

const told = JSON.parse(process.env.LOOPWRIGHT_WITNESS || 'null');
delete process.env.LOOPWRIGHT_WITNESS; // what is tested need not know where this is written down
const file = told && join(told.folder, `${process.pid}-${randomBytes(8).toString('hex')}.jsonl`);
const say = (what) => told && appendFileSync(file, JSON.stringify(what) + '\n');

async function canary(kind, body) {
  const path = join(told.folder, `${told[kind]}.test.mjs`);
  writeFileSync(path, `import test from 'node:test';\nimport assert from 'node:assert';\ntest('${told[kind]}', () => { ${body} });\n`);
  const env = { ...process.env };
  delete env.NODE_TEST_CONTEXT;
  env.NODE_OPTIONS = (env.NODE_OPTIONS || '').replace(/"--test-reporter[^"]*"|--test-reporter\S*/g, '');
  const code = await new Promise((ended) => {
    spawn(process.execPath, ['--test', path], { env, stdio: 'ignore' }).on('close', ended).on('error', () => ended(null));
  });
  rmSync(path);
  say({ e: 'canary', kind, name: told[kind], outcome: code === 0 ? 'passed' : 'failed' });
}

// A file that brings tests and of which none was seen ended before them: its exit code is no test that passed.
function bringsTests(path) {
  try {
    return /\bnode:test\b/.test(readFileSync(path, 'utf8'));
  } catch {
    return false;
  }
}

// Node tells a test that a name pattern leaves out as skipped, with these words; newer ones do not tell of it at all.
const byName = process.execArgv.some((word) => word.startsWith('--test-name-pattern'));
const isLeftOut = (data) => byName && data.skip === 'test name does not match pattern';

export default async function* (source) {
  if (!told) {
    for await (const event of source) void event;
    return;
  }
  say({ e: 'start', runner: 'node', version: process.version });
  const seen = [];
  for await (const { type, data } of source) {
    if ((type !== 'test:pass' && type !== 'test:fail') || data.details?.type === 'suite') continue;
    const where = data.file ? relative(process.cwd(), data.file) : '';
    // Node tells a file in which no test was seen by its full path, which is another one in each run.
    const whole = Boolean(where) && data.name === data.file;
    const id = whole ? where : `${where}::${'  '.repeat(data.nesting || 0)}${data.name}`;
    const unseen = whole && type === 'test:pass' && bringsTests(data.file);
    const left = data.skip !== undefined || data.todo !== undefined || unseen;
    seen.push(id);
    if (isLeftOut(data)) say({ e: 'deselected', ids: [id] });
    else if (whole && type === 'test:fail' && !left) say({ e: 'collect', id, outcome: 'failed' });
    else say({ e: 'report', id, when: 'call', outcome: left ? 'skipped' : type === 'test:pass' ? 'passed' : 'failed', hidden: false });
  }
  say({ e: 'collected', ids: seen });
  await Promise.all([canary('must_pass', 'assert.equal(1, 1)'), canary('must_fail', 'assert.equal(1, 2)')]);
  say({ e: 'end', exit: 0 });
  yield '';
}
