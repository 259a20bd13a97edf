/** One contender of a comparison. Each call measures it once; only the ratio to the others counts. */
export interface Contender {
  readonly name: string;
  measure(): Promise<number>;
}

export interface Result {
  readonly name: string;
  /** The median of all rounds. */
  readonly value: number;
  /** To the first contender, in the same round: the median, and the range that holds the middle half of the rounds. */
  readonly ratio: number;
  readonly spread: readonly [number, number];
}

/**
 * Measures all contenders in turn, in many rounds, so that a disturbance of the machine affects all of them. Every round
 * starts with another contender. The first rounds are a warm-up and do not count.
 */
export async function runRounds(contenders: readonly Contender[], rounds: number, warmUp: number): Promise<Result[]> {
  const values = contenders.map((): number[] => []);
  for (let round = -warmUp; round < rounds; round++) {
    for (const offset of contenders.keys()) {
      const index = (round + warmUp + offset) % contenders.length;
      const value = await contenders[index]!.measure();
      if (round >= 0) values[index]!.push(value);
    }
  }
  return contenders.map(({ name }, index) => {
    const ratios = values[index]!.map((value, round) => value / values[0]![round]!);
    const spread = [quantile(ratios, 0.25), quantile(ratios, 0.75)] as const;
    return { name, value: quantile(values[index]!, 0.5), ratio: quantile(ratios, 0.5), spread };
  });
}

/** The figures of a comparison, the ratios first: only they carry over to another machine. */
export function printTable(title: string, results: readonly Result[]): void {
  console.log(`\n${title}`);
  console.log(`${' '.repeat(40)} ratio   middle half   median`);
  for (const { name, value, ratio, spread } of results) {
    const range = spread.map((each) => each.toFixed(2)).join(' - ');
    console.log(`${name.padEnd(40)} ${ratio.toFixed(2).padStart(5)}   ${range}   ${value.toFixed(1).padStart(6)}`);
  }
}

function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.round((sorted.length - 1) * part)]!;
}
