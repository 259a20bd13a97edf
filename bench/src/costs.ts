import type { BenchServer } from './bench.server.js';
import { isQuick } from './results.js';
import { interleave } from './rounds.js';
import { medianOf, number, ratio, table } from './table.js';

const ROUNDS = isQuick ? 7 : 21;
const WARM_UP = 2;
const DURATION = isQuick ? 400 : 800;
export const CONNECTIONS = 16;

interface Contender {
  readonly name: string;
  readonly server: BenchServer;
  readonly cookies: readonly string[];
}

/** The processor time of a request to a route, of each contender beside the first one. */
export async function costTable(title: string, path: string, contenders: readonly Contender[]): Promise<string> {
  const each = contenders.map(({ name, server, cookies }) => ({
    name,
    measure: async () => {
      const { processorTime, requests } = await server.load({
        path,
        connections: CONNECTIONS,
        duration: DURATION,
        cookies,
      });
      return processorTime / requests;
    },
  }));
  const [first, ...others] = await interleave(each, ROUNDS, WARM_UP);
  const rows = others.map((times, n) => [contenders[n + 1]!.name, number(medianOf(times)), ratio(times, first!)]);
  return table([title, 'Node µs', 'ratio'], [[contenders[0]!.name, number(medianOf(first!)), '1'], ...rows]);
}
