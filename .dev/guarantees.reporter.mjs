// A reporter of Jest: the tests that the documents name must have passed in this run, each with at least one assertion.
// A test that was skipped, emptied, commented out or renamed therefore fails the run.
import { readFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';

const NAMED_TEST = /^(?:- |\|.*\| )\[(?<title>(?:(?!\]\().)+)\]\((?<path>\S+)\)(?: *\|)?$/gm;

export default class GuaranteesReporter {
  #globalConfig;
  #documents;
  #tests;

  /**
   * `documents`: Markdown files in which a test is a list item of its own, `- [title](path of its file)`, or such a
   * link in the last cell of a table. A link with the name of the file instead stands for the titles that `tests` has
   * of it, a JSON file.
   */
  constructor(globalConfig, { documents, tests }) {
    this.#globalConfig = globalConfig;
    this.#documents = documents;
    this.#tests = tests;
  }

  onRunComplete(contexts, results) {
    // With a pattern for titles, most tests are left out on purpose.
    if (this.#globalConfig.testNamePattern) return;
    const named = [...this.#documents.flatMap((document) => this.#namedIn(document)), ...this.#listed()];
    const problems = named.flatMap((each) => this.#problemsOf(each, contexts, results));
    for (const problem of problems) console.error(`FAILED: ${problem}`);
    // Counted as failed tests, so that the summary, the JSON report and the exit code all say so.
    results.numFailedTests += problems.length;
    results.numTotalTests += problems.length;
  }

  #namedIn(document) {
    const file = this.#path(document);
    const named = [...readFileSync(file, 'utf8').matchAll(NAMED_TEST)].map(({ groups }) => groups);
    const titled = named.filter(({ title, path }) => `${title}.ts` !== basename(path));
    return titled.map(({ title, path }) => ({ document, title, path, spec: resolve(dirname(file), path) }));
  }

  #listed() {
    if (this.#tests === undefined) return [];
    const listed = Object.entries(JSON.parse(readFileSync(this.#path(this.#tests), 'utf8')));
    const of = ([path, titles]) => titles.map((title) => ({ title, path, spec: this.#path(path) }));
    return listed.flatMap(of).map((each) => ({ document: this.#tests, ...each }));
  }

  #path(ofRoot) {
    return resolve(this.#globalConfig.rootDir, ofRoot);
  }

  #problemsOf({ document, title, path, spec }, contexts, results) {
    const ran = results.testResults.find(({ testFilePath }) => testFilePath === spec);
    if (!ran && !this.#mustRun(spec, contexts)) return [];
    const problem = problemIn(ran?.testResults ?? [], title);
    return problem === undefined ? [] : [`${document} names "${title}" in ${path}: ${problem}`];
  }

  /** Whether this run is one of all files of the kind: .spec.ts, .e2e-spec.ts or .chaos.ts. */
  #mustRun(spec, contexts) {
    const { testPathPatterns, onlyChanged, shard } = this.#globalConfig;
    if (testPathPatterns.isSet() || onlyChanged || shard) return false;
    return [...contexts].some(({ config }) => config.testRegex.some((regex) => new RegExp(regex).test(spec)));
  }
}

function problemIn(tests, title) {
  const pattern = patternOf(title);
  const found = tests.filter(({ fullName }) => pattern.test(fullName));
  if (found.length === 0) return 'no such test ran';
  const other = found.find(({ status }) => status !== 'passed');
  if (other) return `it is ${other.status}`;
  return found.every(({ numPassingAsserts }) => numPassingAsserts > 0) ? undefined : 'it asserts nothing';
}

/** The end of a full name, that of the `describe` included. `%s` and `$name` stand for the values of `it.each`. */
function patternOf(title) {
  const literal = title.split(/%[psdifjo#]|\$[\w.]+/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`(^| )${literal.join('.+')}$`, 's');
}
