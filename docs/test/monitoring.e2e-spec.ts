import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PrometheusServer } from '@nest-session/test-infrastructure';
import { eventually } from '@nest-session/testing';
import { resolveRedisSessionOptions } from '../../packages/session-redis/src/configuration/redis-session.options.js';
import { ROOT } from './support/compiler.js';
import { knownLines } from './support/log-lines.js';
import { GAUGES, OBSERVED_COUNTERS } from '../../packages/session-opentelemetry/src/metrics/instrument-table.js';
import { section } from './support/markdown.js';
import { type Alert, type Panel, readAlerts, readDashboard, RULES, TESTS } from './support/monitoring.js';
import { type Writer, WRITERS } from './support/prometheus-names.js';
import { seriesIn, unknownNames } from './support/queries.js';
import { ServedMetrics } from './support/served-metrics.js';

const OF_NAMESPACE = 'nest_session_namespace="$namespace"';
/** What each instance knows of itself alone, unlike the other readings. */
const OF_INSTANCES = ['nest_session.cleanup.age'];

let alerts: Alert[];
let panels: Panel[];
let queries: string[];
let alertsDoc: string;
let logLines: string[];

beforeAll(async () => {
  alerts = await readAlerts();
  panels = (await readDashboard()).panels;
  queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  alertsDoc = section(await readFile(join(ROOT, 'docs/operating.md'), 'utf8'), 'Alerts');
  logLines = knownLines().map(({ line }) => line);
});

describe('the alerts of docs/monitoring', () => {
  it('have a section each in docs/operating.md, which has no other', () => {
    const sections = [...alertsDoc.matchAll(/^### (NestSession\w+)$/gm)].map(([, name]) => name);
    expect(alerts.length).toBeGreaterThan(8);
    expect(sections).toEqual(alerts.map(({ name }) => name));
  });

  it.each(['Means', 'Look at', 'Do'])('have an item "%s" there', (item) => {
    const texts = alertsDoc.split(/^### (?=NestSession)/m).slice(1);
    expect(texts.length).toBe(alerts.length);
    expect(texts.filter((text) => !text.includes(`\n- **${item}**: `))).toEqual([]);
  });

  it('are explained by panels of the dashboard, and by log lines, that there are', () => {
    const explained = alertsDoc.slice(alertsDoc.indexOf('\n### ')).replaceAll(/\s+/g, ' ');
    const titles = panels.map(({ title }) => title);
    const shown = [...explained.matchAll(/"([^"]+)"/g)].map(([, title]) => title!);
    const logged = [...explained.matchAll(/`([^`]*\.\.\.[^`]*)`/g)].map(([, line]) => line!);
    expect(shown.length).toBeGreaterThan(8);
    expect(shown.filter((title) => !titles.includes(title))).toEqual([]);
    expect(logged.length).toBeGreaterThan(8);
    expect(logged.filter((line) => !logLines.includes(line))).toEqual([]);
  });

  it('wait, have a severity, and name their section', () => {
    for (const { name, text } of alerts) {
      expect(text).toMatch(/^ {8}for: \d+m$/m);
      expect(text).toMatch(/^ {10}severity: (critical|warning)$/m);
      expect(text).toContain(`\n          runbook: docs/operating.md#${name.toLowerCase()}\n`);
    }
  });

  it('ask only for metrics and labels that there are', () => {
    const unknown = alerts.flatMap(({ query }) => WRITERS.flatMap((writer) => unknownNames(query, writer)));
    expect(unknown).toEqual([]);
  });

  it('fire at half of the default of `events.retention`', () => {
    const { query } = alerts.find(({ name }) => name === 'NestSessionEventsUnread')!;
    expect(query).toMatch(new RegExp(` > ${resolveRedisSessionOptions({}).events.retention / 1000 / 2}$`));
  });

  it('are each tested by promtool, firing, before it and after it', async () => {
    const tests = await readFile(TESTS, 'utf8');
    for (const { name } of alerts) {
      expect(tests.split(`alertname: ${name}, exp_alerts: [] }`).length - 1).toBeGreaterThanOrEqual(2);
      expect(tests).toContain(`alertname: ${name}\n        exp_alerts:\n`);
    }
  });
});

describe('the dashboard of docs/monitoring', () => {
  it('asks only for metrics and labels that there are', () => {
    expect(queries.length).toBeGreaterThan(20);
    expect(queries.flatMap((query) => WRITERS.flatMap((writer) => unknownNames(query, writer)))).toEqual([]);
  });

  it('shows one namespace of one data source, which can be chosen', async () => {
    const { templating } = await readDashboard();
    expect(templating.list.map(({ name }) => name)).toEqual(['datasource', 'namespace']);
    const selectors = (query: string) => query.match(/\{[^}]+\}/g) ?? [];
    expect(queries.filter((query) => selectors(query).length === 0)).toEqual([]);
    expect(queries.flatMap(selectors).filter((selector) => !selector.includes(OF_NAMESPACE))).toEqual([]);
    const sources = panels.flatMap(({ datasource, targets = [] }) =>
      targets.map((target) => [datasource, target.datasource]),
    );
    expect(new Set(sources.flat().map(({ uid }) => uid))).toEqual(new Set(['${datasource}']));
  });

  it('has six rows, and panels with a unit and a description that do not overlap', () => {
    const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title);
    expect(rows).toEqual(['Requests', 'Sessions', 'Ends', 'Events', 'Deadlines', 'Background']);
    const others = panels.filter(({ type }) => type !== 'row');
    expect(others.filter(({ description, fieldConfig }) => !description || !fieldConfig.defaults.unit)).toEqual([]);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  });

  it('says at a panel which alert belongs to it', () => {
    const named = panels.flatMap(({ description }) => description?.match(/NestSession\w+/g) ?? []);
    expect(named.toSorted()).toEqual(alerts.map(({ name }) => name).toSorted());
  });
});

// Their sum would grow with the number of instances.
it('no query adds up what every instance reports the same', () => {
  const readings = [...Object.values(GAUGES), ...Object.values(OBSERVED_COUNTERS)].map(({ name }) => name);
  const shared = readings.filter((name) => !OF_INSTANCES.includes(name)).map((name) => name.replaceAll('.', '_'));
  const asking = [...queries, ...alerts.map(({ query }) => query)].filter((query) =>
    seriesIn(query, 'exporter').some((name) => shared.includes(name.replace(/_total$/, ''))),
  );
  expect(asking.length).toBeGreaterThanOrEqual(shared.length);
  expect(asking.filter((query) => !query.startsWith('max '))).toEqual([]);
});

describe('what a query names that there is not', () => {
  it.each([
    ['max (nest_session_session_counts)', ['nest_session_session_counts']],
    ['max by (handler) (nest_session_session_count)', ['handler']],
    ['nest_session_session_count{reason="x"}', ['reason']],
    [
      'sum (rate({__name__=~"nest_session_event_delays(_seconds)?_count", type="x"}[5m]))',
      ['nest_session_event_delays_count'],
    ],
    ['sums (nest_session_session_count)', ['sums']],
    ['max by (job) (nest_session_session_count{instance="a"})', []],
  ])('is found in %s', (query, unknown) => {
    expect(unknownNames(query, 'exporter')).toEqual(unknown);
  });
});

const where = PrometheusServer.isInstalled ? describe : describe.skip;

where('promtool', () => {
  const SUCCESS = { code: 0, output: expect.stringContaining('SUCCESS') };

  it('finds nothing wrong with the alerts', async () => {
    expect(await PrometheusServer.promtool('check', 'rules', RULES)).toEqual(SUCCESS);
  });

  it('sees each alert fire and clear, and none on healthy series', async () => {
    expect(await PrometheusServer.promtool('test', 'rules', TESTS)).toEqual(SUCCESS);
  });
});

where('a Prometheus', () => {
  let metrics: ServedMetrics;
  let prometheus: PrometheusServer;

  beforeAll(async () => {
    metrics = await ServedMetrics.start();
    const job = (writer: Writer) => ({
      job_name: writer,
      metrics_path: `/${writer}`,
      static_configs: [{ targets: [metrics.address] }],
    });
    prometheus = await PrometheusServer.start({
      global: { scrape_interval: '500ms', evaluation_interval: '500ms' },
      rule_files: [RULES],
      scrape_configs: WRITERS.map(job),
    });
    const isScraped = 'min(count_over_time(nest_session_session_count[1m])) >= 3 and count(up) == 2';
    await eventually(async () => (await prometheus.query(isScraped)).length > 0, { interval: 100 });
  });

  afterAll(async () => {
    await prometheus?.stop();
    await metrics?.stop();
  });

  it('has a result for every query of the dashboard, in both spellings of names', async () => {
    const empty = [];
    for (const query of queries) {
      for (const writer of WRITERS) {
        const asked = query.replaceAll('$namespace', writer).replaceAll('$__rate_interval', '1m');
        const result = await prometheus.query(asked);
        if (result.length === 0 || result.some(({ value }) => value[1] === 'NaN')) empty.push(asked);
      }
    }
    expect(empty).toEqual([]);
  });

  it('finds the trouble of every alert, in both spellings of names', async () => {
    for (const { name, query } of alerts) {
      const found = new Set((await prometheus.query(query)).map(({ metric }) => metric['nest_session_namespace']));
      expect([name, found]).toEqual([name, new Set(WRITERS)]);
    }
  });

  it('has loaded the same rules', async () => {
    const { groups } = (await prometheus.get('rules')) as {
      groups: { rules: { name: string; lastError?: string }[] }[];
    };
    const rules = groups.flatMap((group) => group.rules);
    expect(rules.map(({ name }) => name)).toEqual(alerts.map(({ name }) => name));
    expect(rules.filter(({ lastError }) => lastError)).toEqual([]);
  });
});
