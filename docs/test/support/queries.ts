import { metricsOf, queryFor, seriesNames, type Writer } from './prometheus-names.js';

const WORDS = ['sum', 'max', 'min', 'rate', 'increase', 'histogram_quantile', 'or', 'unless', 'offset'];
/** Prometheus gives them to every series. */
const OF_TARGETS = ['job', 'instance'];
const GROUPING = /\b(?:by|without|ignoring|on|group_left)\s*\(([^)]*)\)/g;
const SELECTOR = /(\w+)\{([^}]*)\}/g;

/** What a query names: series with the labels that it selects by, and the labels that it groups by. */
interface Named {
  readonly series: ReadonlyMap<string, readonly string[]>;
  readonly grouping: readonly string[];
}

/** What a query names that there is not, for one of the spellings of names. */
export function unknownNames(query: string, writer: Writer): string[] {
  const known = new Map(metricsOf(writer).flatMap(seriesNames));
  const { series, grouping } = namedIn(queryFor(writer, query));
  return [...series].flatMap(([name, labels]) => {
    const own = known.get(name);
    if (!own) return [name];
    return [...labels, ...grouping].filter((label) => ![...own, ...OF_TARGETS].includes(label));
  });
}

/** The names of the series that a query asks for. */
export function seriesIn(query: string, writer: Writer): string[] {
  return [...namedIn(queryFor(writer, query)).series.keys()];
}

function namedIn(query: string): Named {
  const text = query.replaceAll(/"[^"]*"|\[[^\]]*\]|\b\d+\w*/g, '');
  const grouping = [...text.matchAll(GROUPING)].flatMap(([, labels]) => wordsIn(labels!));
  const rest = text.replaceAll(GROUPING, ' ');
  const series = new Map<string, string[]>();
  for (const [, name, matchers] of rest.matchAll(SELECTOR)) {
    series.set(name!, [...(series.get(name!) ?? []), ...wordsIn(matchers!)]);
  }
  for (const name of wordsIn(rest.replaceAll(SELECTOR, ' '))) if (!WORDS.includes(name)) series.set(name, []);
  return { series, grouping };
}

function wordsIn(text: string): string[] {
  return text.match(/[a-zA-Z_]\w*/g) ?? [];
}
