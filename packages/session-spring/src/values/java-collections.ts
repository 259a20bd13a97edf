import type { JavaReading, JavaReadings, ReadJava } from './java-reading.js';
import type { JavaPart, JavaValue } from './java-tree.js';
import type { PlainValue } from './plain-value.js';

// What stands for a list, a set, a map, and a list that may have null, in the lowest byte of a field.
const MAP = 3;
const TAGS = 0xff;

/** An element that cannot be read is null, as JSON.stringify() has it: the others keep their places. */
export function listOf(items: Iterable<JavaValue>, read: ReadJava): PlainValue[] {
  return Array.from(items, (item) => read(item) ?? null);
}

/** A value that cannot be read is missing, and so is one whose key is neither a text nor a number. */
function mapOf(entries: readonly JavaValue[], read: ReadJava): PlainValue {
  const all: [string, PlainValue][] = [];
  for (let i = 0; i + 1 < entries.length; i += 2) {
    const [key, value] = [read(entries[i]), read(entries[i + 1])];
    if (key !== null && typeof key !== 'object' && key !== undefined && value !== undefined)
      all.push([`${key}`, value]);
  }
  // Also for a key such as `__proto__`, which is a key like others then.
  return Object.fromEntries(all);
}

/** What a class has written, without the bytes between. */
function valuesIn({ written }: JavaPart): JavaValue[] {
  return written.filter((each): each is JavaValue => !Buffer.isBuffer(each));
}

/** What a class has written behind the first bytes, before which stands a comparator. */
function valuesBehindBytes(part: JavaPart): JavaValue[] {
  const { written } = part;
  return valuesIn({ ...part, written: written.slice(written.findIndex((each) => Buffer.isBuffer(each))) });
}

function itemsOf(value: JavaValue | undefined): readonly JavaValue[] | undefined {
  if (typeof value !== 'object' || value?.kind !== 'array' || Buffer.isBuffer(value.items)) return undefined;
  return value.items;
}

function list(part: JavaPart, read: ReadJava): PlainValue {
  return listOf(valuesIn(part), read);
}

function map(part: JavaPart, read: ReadJava): PlainValue {
  return mapOf(valuesIn(part), read);
}

/** Entries up to the one whose key is null, which the class writes as its end. */
const mapWithEnd: JavaReading = (part, read) => {
  const values = valuesIn(part);
  const end = values.findIndex((value, i) => i % 2 === 0 && value === null);
  return mapOf(end < 0 ? values : values.slice(0, end), read);
};

/** A collection around another one, in a field. */
function around(field: string): JavaReading {
  return ({ fields }, read) => read(fields.get(field));
}

/** The keys of a map in a field. */
function keysOf(field: string): JavaReading {
  return ({ fields }, read) => {
    const inner = read(fields.get(field));
    return typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? Object.keys(inner) : undefined;
  };
}

/** An array in a field, up to a length in another field. */
function arrayIn(field: string, length?: string): JavaReading {
  return ({ fields }, read) => {
    const items = itemsOf(fields.get(field));
    const end = length === undefined ? undefined : fields.get(length);
    return items && listOf(items.slice(0, typeof end === 'number' ? end : undefined), read);
  };
}

const immutable: JavaReading = (part, read) => {
  const tag = part.fields.get('tag');
  if (typeof tag !== 'number') return undefined;
  return (tag & TAGS) === MAP ? map(part, read) : list(part, read);
};

function ofUtil(names: readonly string[], reading: JavaReading): [string, JavaReading][] {
  return names.map((name) => [`java.util.${name}`, reading]);
}

/** The lists, sets and maps of Java, also as superclasses of others. */
export const JAVA_COLLECTIONS: JavaReadings = new Map<string, JavaReading>([
  ...ofUtil(['ArrayList', 'LinkedList', 'ArrayDeque', 'PriorityQueue', 'HashSet'], list),
  ...ofUtil(['concurrent.CopyOnWriteArrayList'], list),
  ...ofUtil(['HashMap', 'Hashtable', 'IdentityHashMap', 'EnumMap', 'TreeMap'], map),
  ...ofUtil(['concurrent.ConcurrentHashMap', 'concurrent.ConcurrentSkipListMap'], mapWithEnd),
  ['java.util.TreeSet', (part, read) => listOf(valuesBehindBytes(part), read)],
  ['java.util.Vector', arrayIn('elementData', 'elementCount')],
  ['java.util.Arrays$ArrayList', arrayIn('a')],
  ['java.util.EnumSet$SerializationProxy', arrayIn('elements')],
  ['java.util.CollSer', immutable],
  ...ofUtil(['Collections$UnmodifiableCollection', 'Collections$SynchronizedCollection'], around('c')),
  ...ofUtil(['Collections$CheckedCollection'], around('c')),
  ...ofUtil(['Collections$UnmodifiableMap', 'Collections$SynchronizedMap', 'Collections$CheckedMap'], around('m')),
  ['java.util.concurrent.CopyOnWriteArraySet', around('al')],
  ['java.util.Collections$SetFromMap', keysOf('m')],
  ['java.util.concurrent.ConcurrentHashMap$CollectionView', keysOf('map')],
  ...ofUtil(['Collections$EmptyList', 'Collections$EmptySet'], () => []),
  ...ofUtil(['Collections$EmptyMap'], () => ({})),
  ...ofUtil(['Collections$SingletonList', 'Collections$SingletonSet'], ({ fields }, read) =>
    listOf([fields.get('element') ?? null], read),
  ),
  ...ofUtil(['Collections$SingletonMap'], ({ fields }, read) =>
    mapOf([fields.get('k') ?? null, fields.get('v') ?? null], read),
  ),
]);
