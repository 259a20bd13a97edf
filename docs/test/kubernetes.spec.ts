import { readFile } from 'node:fs/promises';
import { parseAllDocuments } from 'yaml';

interface Selector {
  readonly matchLabels: object;
}

interface Container {
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly env: readonly { readonly name: string; readonly value: unknown }[];
  readonly lifecycle: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
  readonly [probe: `${string}Probe`]: { readonly httpGet: { readonly path: string; readonly port: string } };
}

const page = await readFile(new URL('../deploying.md', import.meta.url), 'utf8');
const [, text] = /```yaml\n(.*?)```/s.exec(page)!;
const documents = parseAllDocuments(text!);
const [deployment, budget, policy] = documents.map(
  (each) => each.toJS() as { kind: string; apiVersion: string; spec: any },
);
const { metadata, spec: pod } = deployment!.spec.template as { metadata: { labels: object }; spec: any };
const container = pod.containers[0] as Container;
const program = /## Health checks.*?```ts\n(.*?)```/s.exec(page)![1]!;

it('docs/deploying.md has objects of Kubernetes without an error of YAML', () => {
  expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
  expect([deployment, budget, policy].map((each) => `${each!.apiVersion} ${each!.kind}`)).toEqual([
    'apps/v1 Deployment',
    'policy/v1 PodDisruptionBudget',
    'networking.k8s.io/v1 NetworkPolicy',
  ]);
});

it('its selectors choose the pods of its deployment', () => {
  const selectors: Selector[] = [deployment!.spec.selector, budget!.spec.selector];
  for (const { matchLabels } of selectors) expect(matchLabels).toEqual(metadata.labels);
  expect(policy!.spec.ingress[0].from[0].podSelector.matchLabels).toEqual(metadata.labels);
  expect(policy!.spec.podSelector.matchLabels).not.toEqual(metadata.labels);
});

it('its probes ask routes that the program of the page has, and none that depends on Redis', () => {
  const [controller] = /@Controller\('health'\).*?\n}\n/s.exec(program)!;
  for (const name of ['startupProbe', 'livenessProbe', 'readinessProbe'] as const) {
    const { path, port } = container[name]!.httpGet;
    expect(container.ports.map((each) => each.name)).toContain(port);
    const [, body] = new RegExp(`@Get\\('${path.replace('/health/', '')}'\\)(.*?)\\n  }`, 's').exec(controller)!;
    expect(body).not.toContain('sessions');
  }
});

it('its pods may take as long as the program, the drain and a Redis that does not reply', () => {
  const shutdown = Number(/shutdownTimeout: '(\d+)s'/.exec(program)![1]);
  const { seconds } = container.lifecycle.preStop.sleep;
  const redis = Number(/or (\d+) s if Redis does not reply/.exec(page)![1]);
  expect(container.env).toEqual([{ name: 'DRAIN', value: '0' }]);
  expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(seconds + shutdown + redis);
});
