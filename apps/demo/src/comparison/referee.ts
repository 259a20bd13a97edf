import { ConflictException, Injectable } from '@nestjs/common';
import { DemoRedis } from '../engine-room/demo.redis.js';
import { environment } from '../environment.js';
import { Runs } from './runs.js';
import type { Finding, Scenario } from './scenario.js';
import { SCENARIOS } from './scenarios.js';
import { type BySide, bySide, SIDES, Sides } from './sides.js';
import { type SentRequest, Visitor } from './visitor.js';

/** What one side has shown so far. Without a finding, it is to be asked again. */
interface Result {
  readonly finding: Finding | undefined;
  readonly requests?: readonly SentRequest[];
}

/** `run` is there as long as the comparison goes on. */
export type Comparison = BySide<Result> & { readonly run?: string };

/** Lets both sides go through a scenario at the same time, and says what each has done. */
@Injectable()
export class Referee {
  constructor(
    private readonly redis: DemoRedis,
    private readonly sides: Sides,
    private readonly runs: Runs,
  ) {}

  /** Returns why a scenario is not available here, or null if it is. */
  reason({ needsOwnRedis, needsInstances }: Scenario): string | null {
    if (!this.redis.client) return 'This needs Redis, but the demo keeps its sessions in memory.';
    if (environment.expressSessionUrl === undefined)
      return 'The shop with express-session does not run: start the demo with npm start, without --watch.';
    if (needsOwnRedis && !environment.ownsRedis)
      return 'This works only with a Redis of the demo: start the demo without REDIS_URL.';
    return needsInstances && environment.instances < 2
      ? 'This needs two instances: npm start, without --instances 1'
      : null;
  }

  /** `ownPort`: where this instance listens. */
  compare(name: string, ownPort: number): Promise<Comparison> {
    const scenario = SCENARIOS[name]!;
    const reason = this.reason(scenario);
    if (reason) throw new ConflictException(reason);
    const compare = async (): Promise<Comparison> => {
      const visitors = SIDES.map((side) => new Visitor(this.sides.originOf(side, ownPort)));
      const sessionIds = await Promise.all(visitors.map((visitor) => this.#prepare(scenario, visitor)));
      await scenario.breakRedis?.(this.redis.client!);
      const findings = await Promise.all(visitors.map((visitor) => scenario.act(visitor)));
      const results = bySide((i) => ({ finding: findings[i], requests: visitors[i]!.requests }));
      if (scenario.find) {
        const run = { scenario: name, begun: Date.now(), sessionIds: bySide((i) => sessionIds[i]!) };
        return { ...results, run: await this.runs.keep(run) };
      }
      await Promise.all(visitors.map((visitor) => visitor.send('POST', 'logout')));
      return results;
    };
    return scenario.isHarmless ? compare() : this.runs.alone(compare);
  }

  /** Begins what would let a visitor wait when they press a button. A side that fails shows it then. */
  warm(ownPort: number): void {
    for (const scenario of Object.values(SCENARIOS)) {
      if (!scenario.warm || this.reason(scenario)) continue;
      for (const side of SIDES) void scenario.warm(this.sides.originOf(side, ownPort)).catch(() => undefined);
    }
  }

  /** What a comparison that goes on has shown so far. */
  async lookAt(run: string): Promise<Comparison> {
    const { scenario, begun, sessionIds } = await this.runs.find(run);
    const entries = await Promise.all(SIDES.map((side) => this.sides.endOf(side, sessionIds[side])));
    const findings = entries.map((each) => SCENARIOS[scenario]!.find?.(each, begun));
    const results = bySide((i) => ({ finding: findings[i] }));
    return findings.includes(undefined) ? { ...results, run } : results;
  }

  async #prepare(scenario: Scenario, visitor: Visitor): Promise<string> {
    await scenario.prepare(visitor);
    return (await visitor.account()).id;
  }
}
