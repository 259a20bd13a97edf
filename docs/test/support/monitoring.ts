import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from './compiler.js';

export const RULES = join(ROOT, 'docs/monitoring/alerts.yaml');
export const TESTS = join(ROOT, 'docs/monitoring/alerts.test.yaml');
const DASHBOARD = join(ROOT, 'docs/monitoring/dashboard.json');

/** A rule of docs/monitoring/alerts.yaml. */
export interface Alert {
  readonly name: string;
  readonly query: string;
  /** All of it, as it stands there. */
  readonly text: string;
}

/** A panel of docs/monitoring/dashboard.json. */
export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  /** A row has none. */
  readonly description?: string;
  readonly datasource: Datasource;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig: { readonly defaults: { readonly unit: string } };
  readonly targets?: readonly { readonly datasource: Datasource; readonly expr: string }[];
}

interface Datasource {
  readonly type: string;
  readonly uid: string;
}

/** Without a parser of YAML: all rules have the same form. */
export async function readAlerts(): Promise<Alert[]> {
  const [, ...texts] = (await readFile(RULES, 'utf8')).split(/^ {6}- alert: /m);
  return texts.map((text) => {
    const [name = ''] = text.split('\n');
    const [, query = ''] = /^ {8}expr: \|\n((?: {10}.*\n)+)/m.exec(text) ?? [];
    return { name, query: query.replaceAll(/\s+/g, ' ').trim(), text };
  });
}

export async function readDashboard(): Promise<{ panels: Panel[]; templating: { list: { name: string }[] } }> {
  return JSON.parse(await readFile(DASHBOARD, 'utf8')) as Awaited<ReturnType<typeof readDashboard>>;
}
