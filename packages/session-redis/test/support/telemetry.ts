import { type TracingChannel, tracingChannel } from 'node:diagnostics_channel';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { inspect } from 'node:util';
import { IORedisInstrumentation } from '@opentelemetry/instrumentation-ioredis';
import { NodeTracerProvider, type ReadableSpan } from '@opentelemetry/sdk-trace-node';
import type * as ioredis from 'ioredis';

type Client = typeof ioredis.default;
type Command = Parameters<ioredis.Redis['sendCommand']>[0];

type Channel = TracingChannel<string, { result?: unknown }>;

const CHANNELS = ['command', 'batch', 'connect'].map((name) => tracingChannel(`ioredis:${name}`) as Channel);
const OWN_CHANNELS = ['load', 'save', 'event', 'sweep', 'deadline'].map(
  (name) => tracingChannel(`nest-session:${name}`) as Channel,
);

/** What a process shows of the commands that it sends with an ioredis, to whoever looks in one of the known ways. */
export class Telemetry {
  readonly #seen = new Set<string>();
  readonly #undo: (() => void)[] = [];
  #isAway = false;
  /** How often each of them has shown something. */
  readonly #shown = { channels: 0, 'own channels': 0, spans: 0 };

  constructor(private readonly client: Client) {
    this.#watchCommands();
    // A message of ioredis may have the reply as well, which no instrumentation passes on.
    for (const each of CHANNELS) this.#watch('channels', each, (message) => ({ ...message, result: undefined }));
    for (const each of OWN_CHANNELS) this.#watch('own channels', each, (message) => message);
    this.#instrument();
  }

  /** All of it, as text. */
  get text(): string {
    return [...this.#seen].join('\n');
  }

  /** At most ten, so that a failure can be read. */
  linesWith(text: string): string[] {
    const lines = this.text.split('\n').filter((line) => line.includes(text));
    return lines.slice(0, 10).map((line) => line.slice(0, 500));
  }

  /** Does something that nobody looks at. */
  async unseen<T>(step: () => Promise<T>): Promise<T> {
    this.#isAway = true;
    const result = await step();
    // The last messages on it come after its promise is settled.
    await nextTurn();
    this.#isAway = false;
    return result;
  }

  see(...what: unknown[]): void {
    if (this.#isAway) return;
    for (const each of what) this.#seen.add(typeof each === 'string' ? each : inspect(each, { depth: 12 }));
  }

  /** @throws Error when one of them has shown nothing, so that it is none to rely on */
  stop(): void {
    for (const undo of this.#undo.reverse()) undo();
    for (const [name, times] of Object.entries(this.#shown)) if (times === 0) throw new Error(`No ${name} were seen`);
  }

  /** As agents that wrap the method of the client: they show arguments as texts, or the list as one. */
  #watchCommands(): void {
    for (const { prototype } of [this.client.Redis, this.client.Cluster] as { prototype: ioredis.Redis }[]) {
      const { sendCommand } = prototype;
      const see = (command: Command) => {
        const args = command.args as unknown[];
        this.see(`${command.name} ${args.join(' ')}`, args.map(String), args, command, command.args);
        command.promise.catch((error: unknown) => this.see(error));
      };
      prototype.sendCommand = function (this: ioredis.Redis, command, ...rest) {
        see(command);
        return sendCommand.call(this, command, ...rest);
      };
      this.#undo.push(() => (prototype.sendCommand = sendCommand));
    }
  }

  #watch(
    kind: 'channels' | 'own channels',
    channel: Channel,
    part: (message: { result?: unknown }) => { result?: unknown },
  ): void {
    const see = (message: { result?: unknown }) => {
      this.#shown[kind]++;
      this.see(part(message));
    };
    const subscribers = { start: see, end: see, asyncStart: see, asyncEnd: see, error: see };
    channel.subscribe(subscribers);
    this.#undo.push(() => channel.unsubscribe(subscribers));
  }

  /** OpenTelemetry's spans, and what the hook of Sentry, which is built on it, takes for the key of a cache entry. */
  #instrument(): void {
    const onEnd = ({ name, attributes, events, status }: ReadableSpan) => {
      this.#shown.spans++;
      this.see(name, attributes, events, status);
    };
    const nothing = async () => undefined;
    const processor = { onStart: () => undefined, onEnd, forceFlush: nothing, shutdown: nothing };
    const tracerProvider = new NodeTracerProvider({ spanProcessors: [processor] });
    const instrumentation = new IORedisInstrumentation({
      requireParentSpan: false,
      responseHook: (_span, command, args) => this.see(command, args.flat().map(cacheKeyOf)),
    });
    instrumentation.setTracerProvider(tracerProvider);
    const [definition] = instrumentation.getModuleDefinitions();
    definition!.patch!(this.client);
    this.#undo.push(() => definition!.unpatch!(this.client));
  }
}

function cacheKeyOf(argument: unknown): string {
  return typeof argument === 'string' || typeof argument === 'number' || Buffer.isBuffer(argument)
    ? argument.toString()
    : '<unknown>';
}
