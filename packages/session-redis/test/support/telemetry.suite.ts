import { eventually } from '@nest-session/testing';
import type * as ioredis from 'ioredis';
import { LineRecorder } from './line.recorder.js';
import { Telemetry } from './telemetry.js';
import { SECRETS, SecretsApplication } from './told.secrets.js';

/** An ioredis, a client of it, and what Redis does for a test. */
export interface TelemetryVariant {
  readonly ioredis: typeof ioredis.default;
  readonly namespace: string;
  readonly sessionIds: 'hashed' | 'plain';
  /** @default 1, on a Cluster 64 */
  readonly partitions?: number;
  /** A client as an application has it. */
  readonly open: (ioredis: TelemetryVariant['ioredis']) => ioredis.Redis | ioredis.Cluster;
}

/** Lets every write to a session fail. */
const PLANT = `for _, key in ipairs(redis.call('KEYS', '*:sessions:expires:*')) do
  redis.call('DEL', key)
  redis.call('RPUSH', key, 'foreign')
end`;

/** Plants a secret in each operation of the library, and looks for it in all that the process shows of its commands. */
export function describeTelemetry(
  name: string,
  { ioredis, namespace, sessionIds, partitions, open }: TelemetryVariant,
): void {
  it(`no telemetry, no error, no log line and no security event has a secret: ${name}, ${sessionIds} ids`, async () => {
    const log = new LineRecorder();
    const client = open(ioredis);
    const telemetry = new Telemetry(ioredis);
    const application = await SecretsApplication.start(sessionIds, { client, namespace, partitions });
    log.install();
    try {
      // What the application itself tells Redis is not for the library to hide.
      await application.useAll((key, text) => telemetry.unseen(() => client.set(key, text, 'EX', 60)));
      const nodes = client.isCluster ? (client as ioredis.Cluster).nodes('master') : [client as ioredis.Redis];
      telemetry.see(await application.fail(() => Promise.all(nodes.map((node) => node.eval(PLANT, 0)))));
      await eventually(() => expect(application.handlers.securityEvents).not.toEqual([]));
    } finally {
      await application.stop();
      telemetry.stop();
      client.disconnect();
    }
    telemetry.see(log.lines);
    expect(telemetry.text).toMatch(/evalsha \w{40} \d+ \?/);
    expect(telemetry.text).toContain('WRONGTYPE');
    for (const secret of [...Object.values(SECRETS), ...application.tokens]) {
      expect(telemetry.linesWith(secret)).toEqual([]);
    }
    // They name the principal: see docs/security.md.
    const { principal: _, ...others } = SECRETS;
    const events = JSON.stringify(application.handlers.securityEvents);
    for (const secret of [...Object.values(others), ...application.tokens]) expect(events).not.toContain(secret);
  });
}
