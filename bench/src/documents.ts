import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { budgetsReport } from './budgets.report.js';
import { clusterReport } from './cluster.report.js';
import { deadlinesReport } from './deadlines.report.js';
import { encryptionReport } from './encryption.report.js';
import { expirationsReport } from './expirations.report.js';
import { expiryReport } from './expiry.report.js';
import { httpReport, ratiosReport } from './http.report.js';
import { lossesReport } from './losses.report.js';
import { memoryReport } from './memory.report.js';
import { requestsReport } from './requests.report.js';
import { readResults, type Results } from './results.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SUMMARY = join(ROOT, 'docs/benchmarks.md');
const DOCUMENT = join(ROOT, 'docs/evidence/benchmarks.md');

/** How the results of a subject are shown. Subjects without a report are run only by name. */
const REPORTS: Readonly<Record<string, (results: Results) => string>> = {
  http: httpReport,
  requests: requestsReport,
  budgets: budgetsReport,
  memory: memoryReport,
  encryption: encryptionReport,
  expiry: expiryReport,
  cluster: clusterReport,
  expirations: expirationsReport,
  deadlines: deadlinesReport,
};

/** Those that run without a name. */
export const USUAL = Object.keys(REPORTS);

export function resultsFile(subject: string): string {
  return join(ROOT, 'bench/results', `${subject}.json`);
}

/** Writes the tables in docs anew, from the results. */
export async function writeDocuments(): Promise<void> {
  const documents = await documentsOfResults();
  for (const { file, text } of documents) await writeFile(file, text);
}

/** The documents that are not what the results say. */
export async function staleDocuments(): Promise<string[]> {
  const documents = await documentsOfResults();
  const existing = await Promise.all(documents.map(({ file }) => readFile(file, 'utf8')));
  return documents.filter(({ text }, n) => text !== existing[n]).map(({ file }) => file);
}

async function documentsOfResults(): Promise<{ readonly file: string; readonly text: string }[]> {
  const subjects = Object.keys(REPORTS);
  const all = await Promise.all(subjects.map((subject) => readResults(resultsFile(subject))));
  const results = new Map(all.map((each) => [each.subject, each]));
  let summary = await readFile(SUMMARY, 'utf8');
  let text = await readFile(DOCUMENT, 'utf8');
  for (const [subject, each] of results) {
    const report = `${originOf(each)}\n\n${REPORTS[subject]!(each)}`;
    if (subject === 'memory') summary = replaced(summary, subject, report);
    else text = replaced(text, subject, report);
  }
  const [http, memory] = ['http', 'memory'].map((subject) => results.get(subject)!);
  summary = replaced(summary, 'ratios', `${originOf(http!)}\n\n${ratiosReport(http!)}`);
  summary = replaced(summary, 'losses', lossesReport(http!, memory!));
  return [
    { file: SUMMARY, text: summary },
    { file: DOCUMENT, text },
  ];
}

function originOf({ date, runs, node, redis, machine, isQuick }: Results): string {
  const several = runs === 1 ? '' : ` in ${runs} runs`;
  const server = redis === undefined ? '' : `, Redis ${redis}`;
  return `Measured ${date}${several} on Node.js ${node.slice(1)}${server}, ${machine}${isQuick ? ', with `--quick`' : ''}.`;
}

/** Puts it between the two comments that name the subject. */
function replaced(document: string, subject: string, text: string): string {
  const [begin, end] = [`<!-- ${subject} -->`, `<!-- /${subject} -->`];
  const [from, to] = [document.indexOf(begin), document.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`There is no place for ${subject}`);
  return `${document.slice(0, from + begin.length)}\n\n${text}\n\n${document.slice(to)}`;
}
