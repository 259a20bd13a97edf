import { RedisCluster, type RedisClusterOptions, type RedisServerOptions } from '@nest-session/testing';
import { SteppableRedisServer } from './steppable-redis.server.js';

// Milliseconds. The nodes never take each other for failed, however far a test steps their clocks.
const NEVER = 1e12;

/**
 * A private Redis Cluster whose nodes have one wall clock, which a test steps and stops. No primary is ever replaced.
 */
export class SteppableRedisCluster extends RedisCluster {
  declare readonly nodes: readonly SteppableRedisServer[];

  static override start(options?: RedisClusterOptions): Promise<SteppableRedisCluster> {
    return super.start({ ...options, nodeTimeout: NEVER }) as Promise<SteppableRedisCluster>;
  }

  protected static override startServer(options: RedisServerOptions): Promise<SteppableRedisServer> {
    return SteppableRedisServer.start(options);
  }

  async stepClock(milliseconds: number): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stepClock(milliseconds)));
  }

  async stopClock(): Promise<void> {
    const now = Date.now();
    await Promise.all(this.nodes.map((node) => node.stopClock(now)));
  }
}
