/** One contender of a comparison. Each call measures it once; only the ratio to the others counts. */
export interface Contender<Value = number> {
  readonly name: string;
  measure(): Promise<Value>;
}

interface Result {
  readonly name: string;
  /** One for each round. */
  readonly values: readonly number[];
  /** The median of all rounds. */
  readonly value: number;
  /** To the first contender, in the same round: the median, and the range that holds the middle half of the rounds. */
  readonly ratio: number;
  readonly spread: readonly [number, number];
}

/**
 * Measures all contenders in turn, in many rounds, so that a disturbance of the machine affects all of them. Every
 * round starts with another contender. The first rounds are a warm-up and do not count. Resolves to the values of each
 * contender, one for each round.
 */
export async function interleave<Value>(
  contenders: readonly Contender<Value>[],
  rounds: number,
  warmUp: number,
): Promise<Value[][]> {
  const values = contenders.map((): Value[] => []);
  for (let round = -warmUp; round < rounds; round++) {
    for (const offset of contenders.keys()) {
      const index = (round + warmUp + offset) % contenders.length;
      const value = await contenders[index]!.measure();
      if (round >= 0) values[index]!.push(value);
    }
  }
  return values;
}

/** The medians of interleaved rounds, beside the first contender. */
export async function runRounds(contenders: readonly Contender[], rounds: number, warmUp: number): Promise<Result[]> {
  const values = await interleave(contenders, rounds, warmUp);
  return contenders.map(({ name }, index) => {
    const { median: ratio, spread } = ratioOf(values[index]!, values[0]!);
    return { name, values: values[index]!, value: quantile(values[index]!, 0.5), ratio, spread };
  });
}

/**
 * The ratio of two contenders in the same round: its median, and the range that holds the middle half of the rounds.
 */
export function ratioOf(values: readonly number[], beside: readonly number[]) {
  const ratios = values.map((value, round) => value / beside[round]!);
  const sorted = ratios.toSorted((one, other) => one - other);
  const spread = [
    sorted[Math.floor((sorted.length - 1) / 4)]!,
    sorted[Math.ceil(((sorted.length - 1) * 3) / 4)]!,
  ] as const;
  return { median: quantile(ratios, 0.5), spread };
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

export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.round((sorted.length - 1) * part)]!;
}
