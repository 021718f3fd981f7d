// Preloaded into every Node process of a command, so that jest, vitest and `node --test` are seen also below npm, make or a
// script. Only in the main process of one of them does it do anything: it adds a reporter that writes down how each test
// ended, and afterwards has the same runner, with the project's configuration, run two canaries that lie outside of the tree.
'use strict';
const { appendFileSync, readFileSync, realpathSync, rmSync, writeFileSync } = require('node:fs');
const { randomBytes } = require('node:crypto');
const { dirname, join, relative } = require('node:path');
const { pathToFileURL } = require('node:url');

const ENTRIES = { jest: /[\\/]jest(?:-cli)?[\\/]bin[\\/]jest\.js$/, vitest: /[\\/]vitest[\\/]vitest\.mjs$/ };
const OLDEST = { jest: 28, vitest: 3 }; // with what is called below; an older one is not watched
const ENDS = { passed: 'passed', pass: 'passed', failed: 'failed', fail: 'failed' };
const PATIENCE_MS = 60000;
const SHARED = Symbol.for(__filename); // vitest loads a reporter as a module of its own: it must find what is told here

const entry = realpath(process.argv[1]);
const runner = Object.keys(ENTRIES).find((name) => ENTRIES[name].test(entry));
const told = runner && process.env.LOOPWRIGHT_WITNESS ? JSON.parse(process.env.LOOPWRIGHT_WITNESS) : null;
const file = told && join(told.folder, `${process.pid}-${randomBytes(8).toString('hex')}.jsonl`);
const say = (what) => appendFileSync(file, JSON.stringify(what) + '\n');

function realpath(path) {
  try {
    return realpathSync(path);
  } catch {
    return ''; // no program: a script from the command line, or a thread
  }
}

function version() {
  const folder = dirname(runner === 'jest' ? dirname(entry) : entry);
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version;
}

// Writes a canary, has it run, and says how it ended; what could not be run at all is told as such.
async function canary(kind, imports, body, run) {
  const path = join(told.folder, `${told[kind]}.test.${runner === 'jest' ? 'cjs' : 'mjs'}`);
  writeFileSync(path, `${imports}\ntest('${told[kind]}', () => { ${body} });\n`);
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('it took too long')), PATIENCE_MS);
  });
  let outcome;
  try {
    outcome = await Promise.race([run(path), late]);
  } catch (error) {
    outcome = `could not be run (${error?.name})`; // without its words, which may name a folder of this run alone
  } finally {
    clearTimeout(timer);
    rmSync(path);
  }
  say({ e: 'canary', kind, name: told[kind], outcome });
}

async function canaries(imports, run) {
  await canary('must_pass', imports, 'expect(1).toBe(1)', run);
  // Failing in several ways, each of which has to raise; one that does not is a canary that passes by mistake.
  const ways = ['expect(1).toBe(2)', 'expect(() => {}).toThrow()', 'expect([]).toContain(1)', 'expect({ a: 1 }).toEqual({ a: 2 })'];
  const tried = ways.map((way) => `try { ${way}; return; } catch {}`).join(' ');
  await canary('must_fail', imports, `${tried} throw new Error('on purpose')`, run);
}

// Says how tests ended: those that the name pattern of the command leaves out are deselected, as with `pytest -k`.
function report(tests, pattern) {
  const left = [];
  for (const { id, name, state } of tests) {
    const outcome = ENDS[state] || 'skipped';
    if (outcome === 'skipped' && pattern && !pattern.test(name)) left.push(id);
    else say({ e: 'report', id, when: 'call', outcome, hidden: false });
  }
  if (left.length) say({ e: 'deselected', ids: left });
}

// --- jest: a reporter beside those of the configuration, which `--reporters` would replace.

class JestReporter {
  constructor(globalConfig) {
    say({ e: 'start', runner, version: version() });
    this.config = globalConfig;
    this.ids = [];
  }

  onTestResult(test, result) {
    const where = relative(process.cwd(), test.path);
    const tests = result.testResults.map((one) => {
      const parts = [...one.ancestorTitles, one.title];
      return { id: `${where}::${parts.join(' > ')}`, name: parts.join(' '), state: one.status };
    });
    this.ids.push(...tests.map((one) => one.id));
    report(tests, this.config.testNamePattern && new RegExp(this.config.testNamePattern, 'i'));
    if (result.testExecError || (result.failureMessage && !result.testResults.length)) {
      say({ e: 'collect', id: where, outcome: 'failed' });
    }
  }

  async onRunComplete(contexts) {
    say({ e: 'collected', ids: this.ids });
    const [context] = contexts;
    if (context) {
      const globals = "const { test, expect } = globalThis.test ? globalThis : require('@jest/globals');";
      await canaries(globals, (path) => this.tried(context, path));
    }
    say({ e: 'end', exit: 0 });
  }

  async tried(context, path) {
    const loaded = require(context.config.runner);
    const Runner = loaded.default || loaded;
    const config = { ...this.config, collectCoverage: false, maxWorkers: 1, testNamePattern: '' };
    const own = new Runner(config, { sourcesRelatedToTestsInChangedFiles: new Set() });
    const found = [];
    own.on('test-file-success', ([, result]) => found.push(...result.testResults.map((one) => ENDS[one.status] || 'skipped')));
    own.on('test-file-failure', () => found.push('failed'));
    const nobody = { isInterrupted: () => false, isWatchMode: () => false, on: () => {}, setState: async () => {} };
    await own.runTests([{ context, path, duration: undefined }], nobody, { serial: true });
    return found.length === 1 ? found[0] : `ended ${found.length} times`;
  }
}

function watchJest() {
  const Module = require('node:module');
  const load = Module._load;
  Module._load = function (request, ...more) {
    const real = load.call(this, request, ...more);
    if (request !== 'jest-config' || !real.readConfigs) return real;
    const readConfigs = async (...given) => {
      const read = await real.readConfigs(...given);
      const reporters = [...(read.globalConfig.reporters || [['default', {}]]), [__filename, {}]];
      return { ...read, globalConfig: Object.freeze({ ...read.globalConfig, reporters }) };
    };
    return { ...real, readConfigs };
  };
}

// --- vitest: a reporter from the command line, which then also makes those that the configuration names.

class VitestReporter {
  async onInit(vitest) {
    say({ e: 'start', runner, version: version() });
    this.vitest = vitest;
    this.api = await import(pathToFileURL(join(dirname(entry), 'dist', 'node.js')));
    if (process.argv.filter((word) => /^--reporters?\b/.test(word)).length > 1) return; // those of the user's command
    const wanted = [vitest.vite.config.test?.reporters ?? []].flat();
    for (const one of wanted.length ? wanted : ['default']) await this.add(one);
  }

  async add(wanted) {
    const [name, options] = Array.isArray(wanted) ? wanted : [wanted, {}];
    let made = name;
    if (typeof name === 'string') {
      const Kind = this.api.ReportersMap[name] || (await this.vitest.runner.import(name)).default;
      made = new Kind(options || {});
    }
    this.vitest.reporters.push(made);
    await made.onInit?.(this.vitest);
  }

  async onTestRunEnd(modules) {
    const ids = [];
    for (const module of modules) {
      const where = relative(process.cwd(), module.moduleId);
      const tests = [...module.children.allTests()].map((test) => {
        return { id: `${where}::${test.fullName}`, name: test.fullName.replaceAll(' > ', ' '), state: test.result().state };
      });
      ids.push(...tests.map((one) => one.id));
      report(tests, this.vitest.config.testNamePattern);
      if (module.state() === 'failed' && module.errors().length) say({ e: 'collect', id: where, outcome: 'failed' });
    }
    say({ e: 'collected', ids });
    if (modules.length) {
      const before = process.exitCode;
      await canaries("import { test, expect } from 'vitest';", (path) => this.tried(modules[0].project.name, path));
      process.exitCode = before;
    }
    say({ e: 'end', exit: 0 });
  }

  async tried(project, path) {
    const { options } = this.api.parseCLI(['vitest', ...process.argv.slice(2)]);
    const quiet = { reporter: undefined, reporters: [{}], watch: false, coverage: { enabled: false }, testNamePattern: undefined };
    const own = await this.api.createVitest('test', { ...options, ...quiet });
    try {
      const home = own.projects.find((one) => one.name === project) || own.projects[0];
      const done = await own.runTestSpecifications([home.createSpecification(path)], false);
      const found = done.testModules.flatMap((module) => [...module.children.allTests()]).map((test) => ENDS[test.result().state] || 'skipped');
      return found.length === 1 ? found[0] : `ended ${found.length} times`;
    } finally {
      await own.close();
    }
  }
}

// --- node --test: started once more, since no option can be given to it any more.

function testsWithNode() {
  const given = [...process.execArgv, process.env.NODE_OPTIONS || ''].join(' ');
  const plain = process.execArgv.includes('--test') && !/--test-reporter|--watch\b/.test(given);
  return plain && !process.env.NODE_TEST_CONTEXT && Boolean(process.env.LOOPWRIGHT_WITNESS);
}

function watchNode() {
  const { spawnSync } = require('node:child_process');
  const own = ['spec', 'stdout', join(__dirname, 'witness_node.mjs'), '/dev/null'];
  const options = own.map((what, n) => `--test-reporter${n % 2 ? '-destination' : ''}=${what}`);
  const done = spawnSync(process.execPath, [...options, ...process.execArgv, ...process.argv.slice(1)], { stdio: 'inherit' });
  if (done.signal) process.kill(process.pid, done.signal);
  process.exit(done.status ?? 1);
}

if (testsWithNode()) watchNode();

if (told && Number.parseInt(version(), 10) >= OLDEST[runner]) {
  // Taken away at once: what the tests start themselves is not what is being judged, and need not know of it.
  delete process.env.LOOPWRIGHT_WITNESS;
  process.env.NODE_OPTIONS = (process.env.NODE_OPTIONS || '').replace(/"--require=[^"]*witness_javascript\.cjs"/, '').trim();
  globalThis[SHARED] = runner === 'jest' ? JestReporter : VitestReporter;
  if (runner === 'jest') watchJest();
  else process.argv.push(`--reporter=${__filename}`);
}

module.exports = globalThis[SHARED];
