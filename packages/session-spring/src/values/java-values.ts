import {
  EXTERNALIZABLE,
  type JavaArray,
  JavaBytes,
  type JavaObject,
  type JavaPart,
  type JavaValue,
} from './java-stream.js';
import { type JsonValue, membersOf, type ReadingLimits, UnreadableValueError } from './json-values.js';

type ReadJava = (value: JavaValue | undefined) => JsonValue | undefined;

/** By the part that the class has written, and those of its superclasses before it. Undefined if they are wrong. */
type JavaReading = (part: JavaPart, read: ReadJava, parts: readonly JavaPart[]) => JsonValue | undefined;

// A longer one is an attack: its decimal digits take more time than its length.
const MOST_MAGNITUDE = 1024;

/** As JavaScript has it: a long beyond 2^53 as a text, and a number that is none as Jackson writes it. */
function numberOf(value: bigint | number): number | string {
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

function timeOf(milliseconds: JavaValue | undefined): string | undefined {
  if (typeof milliseconds !== 'bigint') return undefined;
  const date = new Date(Number(milliseconds));
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

const value: JavaReading = ({ fields }, read) => read(fields.get('value'));

function text(name: string): JavaReading {
  return ({ fields }) => asText(fields.get(name));
}

function isNotZero(number: JavaValue | undefined): boolean | undefined {
  return typeof number === 'number' ? number !== 0 : undefined;
}

function asText(each: JavaValue | undefined): string | undefined {
  return typeof each === 'string' ? each : undefined;
}

function bigIntegerOf({ fields }: JavaPart): bigint | undefined {
  const [signum, magnitude] = [fields.get('signum'), fields.get('magnitude')];
  if (typeof magnitude !== 'object' || magnitude?.kind !== 'array' || !Buffer.isBuffer(magnitude.items))
    return undefined;
  if (typeof signum !== 'number' || magnitude.items.length > MOST_MAGNITUDE) return undefined;
  const absolute = BigInt(`0x0${magnitude.items.toString('hex')}`);
  return signum < 0 ? -absolute : absolute;
}

function bigDecimalOf({ fields }: JavaPart): JsonValue | undefined {
  const [whole, scale] = [fields.get('intVal'), fields.get('scale')];
  const part = typeof whole === 'object' && whole?.kind === 'object' ? whole.parts.at(-1) : undefined;
  const unscaled = part && bigIntegerOf(part);
  if (unscaled === undefined || typeof scale !== 'number') return undefined;
  const sign = unscaled < 0n ? '-' : '';
  const digits = String(unscaled).slice(sign.length);
  const exponent = digits.length - 1 - scale;
  if (scale === 0) return sign + digits;
  if (scale < 0 || exponent < -6) {
    const mantissa = digits.length === 1 ? digits : `${digits.charAt(0)}.${digits.slice(1)}`;
    return `${sign}${mantissa}${exponent === 0 ? '' : `E${exponent > 0 ? '+' : ''}${exponent}`}`;
  }
  const padded = digits.padStart(scale + 1, '0');
  return `${sign}${padded.slice(0, -scale)}.${padded.slice(-scale)}`;
}

function dateOf({ written: [block] }: JavaPart): bigint | undefined {
  return Buffer.isBuffer(block) ? new JavaBytes(block).long() : undefined;
}

/** Its seconds are in the part of Date. */
function timestampOf(...[{ fields }, , parts]: Parameters<JavaReading>): string | undefined {
  const [date, nanos] = [parts.find(({ type }) => type.name === 'java.util.Date'), fields.get('nanos')];
  const seconds = date && dateOf(date);
  // A stream may say that its field is a double.
  if (seconds === undefined || !Number.isInteger(nanos)) return undefined;
  return timeOf(seconds + BigInt(Math.floor((nanos as number) / 1_000_000)));
}

function uuidOf({ fields }: JavaPart): string | undefined {
  const [most, least] = [fields.get('mostSigBits'), fields.get('leastSigBits')];
  if (typeof most !== 'bigint' || typeof least !== 'bigint') return undefined;
  const hex = [most, least].map((bits) => BigInt.asUintN(64, bits).toString(16).padStart(16, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

function localeOf({ fields }: JavaPart): string {
  const parts = ['language', 'script', 'country', 'variant'].map((name) => asText(fields.get(name)));
  return parts.filter(Boolean).join('-');
}

const NANOS = 1_000_000_000;
/** The offset of the last moment that Date knows, in seconds. */
const MOST_SECONDS = 8_640_000_000_000n;

/** What Java writes of java.time, in a form of its own: as in ISO 8601, and as Jackson has it. */
const javaTime: JavaReading = ({ written: [block] }) => {
  if (!Buffer.isBuffer(block)) return undefined;
  const bytes = new JavaBytes(block);
  return TIMES.get(bytes.byte())?.(bytes);
};

const TIMES = new Map<number, (bytes: JavaBytes) => number | string | undefined>([
  [1, duration],
  [2, instant],
  [3, date],
  [4, time],
  [5, dateTime],
  // With the name of its zone behind it, which ISO 8601 does not have.
  [6, (bytes) => dateTime(bytes) + offset(bytes)],
  [7, (bytes) => bytes.utf()],
  [8, offset],
  [9, (bytes) => time(bytes) + offset(bytes)],
  [10, (bytes) => dateTime(bytes) + offset(bytes)],
  [11, (bytes) => bytes.int()],
  [12, (bytes) => `${year(bytes.int())}-${padded(within(bytes.byte(), 1, 12))}`],
  [13, (bytes) => `--${padded(within(bytes.byte(), 1, 12))}-${padded(within(bytes.byte(), 1, 31))}`],
  [14, period],
]);

function duration(bytes: JavaBytes): string {
  const seconds = bytes.long();
  const nanos = within(bytes.int(), 0, NANOS - 1);
  const isNegative = seconds < 0n;
  // The fraction counts upwards, also from a negative number of seconds.
  const whole = isNegative && nanos > 0 ? seconds + 1n : seconds;
  const fraction = isNegative && nanos > 0 ? NANOS - nanos : nanos;
  const [hours, minutes, rest] = [whole / 3600n, (whole % 3600n) / 60n, whole % 60n];
  const parts = `${hours === 0n ? '' : `${hours}H`}${minutes === 0n ? '' : `${minutes}M`}`;
  if (rest === 0n && fraction === 0) return parts === '' ? 'PT0S' : `PT${parts}`;
  const sign = isNegative && rest === 0n ? '-' : '';
  return `PT${parts}${sign}${rest}${decimals(fraction)}S`;
}

function instant(bytes: JavaBytes): string | undefined {
  const seconds = bytes.long();
  const nanos = within(bytes.int(), 0, NANOS - 1);
  if (seconds < -MOST_SECONDS || seconds > MOST_SECONDS) return undefined;
  const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, -'.000Z'.length);
  const digits = String(nanos).padStart(9, '0');
  const shown = nanos === 0 ? '' : `.${digits.replace(/(?:000){1,2}$/, '')}`;
  return `${whole}${shown}Z`;
}

function date(bytes: JavaBytes): string {
  return `${year(bytes.int())}-${padded(within(bytes.byte(), 1, 12))}-${padded(within(bytes.byte(), 1, 31))}`;
}

/** What is zero at its end is left out: the last number that there is has all its bits turned. */
function time(bytes: JavaBytes): string {
  const parts: number[] = [];
  for (const most of [23, 59, 59]) {
    const part = bytes.byte();
    parts.push(within(part < 0 ? ~part : part, 0, most));
    if (part < 0) break;
    if (parts.length === 3) return `${parts.map(padded).join(':')}${decimals(within(bytes.int(), 0, NANOS - 1))}`;
  }
  return [...parts, 0, 0].slice(0, 3).map(padded).join(':');
}

function dateTime(bytes: JavaBytes): string {
  return `${date(bytes)}T${time(bytes)}`;
}

function offset(bytes: JavaBytes): string {
  const quarters = bytes.byte();
  const seconds = within(quarters === 127 ? bytes.int() : quarters * 900, -64_800, 64_800);
  if (seconds === 0) return 'Z';
  const [total, sign] = [Math.abs(seconds), seconds < 0 ? '-' : '+'];
  const parts = [Math.floor(total / 3600), Math.floor(total / 60) % 60, total % 60];
  return sign + (parts[2] === 0 ? parts.slice(0, 2) : parts).map(padded).join(':');
}

function period(bytes: JavaBytes): string {
  const parts = [`${bytes.int()}Y`, `${bytes.int()}M`, `${bytes.int()}D`].filter((part) => !part.startsWith('0'));
  return `P${parts.length === 0 ? '0D' : parts.join('')}`;
}

function year(number: number): string {
  const digits = String(Math.abs(number)).padStart(4, '0');
  return number < 0 ? `-${digits}` : number > 9999 ? `+${digits}` : digits;
}

function padded(number: number): string {
  return String(number).padStart(2, '0');
}

function decimals(nanos: number): string {
  return nanos === 0 ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`;
}

function within(number: number, least: number, most: number): number {
  if (number >= least && number <= most) return number;
  throw new UnreadableValueError('A time has a number that does not exist');
}

// What stands for a list, a set, a map, and a list that may have null, in the lowest byte of a field.
const MAP = 3;
const TAGS = 0xff;

/** An element that cannot be read is null, as JSON.stringify() has it: the others keep their places. */
function listOf(items: Iterable<JavaValue>, read: ReadJava): JsonValue[] {
  return Array.from(items, (item) => read(item) ?? null);
}

/** A value that cannot be read is missing, and so is one whose key is neither a text nor a number. */
function mapOf(entries: readonly JavaValue[], read: ReadJava): JsonValue {
  const all: [string, JsonValue][] = [];
  for (let i = 0; i + 1 < entries.length; i += 2) {
    const [key, value] = [read(entries[i]), read(entries[i + 1])];
    if (key !== null && typeof key !== 'object' && key !== undefined && value !== undefined)
      all.push([`${key}`, value]);
  }
  // Also for a key such as `__proto__`, which is a key like others then.
  return Object.fromEntries(all);
}

function valuesIn({ written }: JavaPart): JavaValue[] {
  return written.filter((each): each is JavaValue => !Buffer.isBuffer(each));
}

/** What a class has written behind the first bytes, before which stands a comparator. */
function valuesBehindBytes(part: JavaPart): JavaValue[] {
  const { written } = part;
  return valuesIn({ ...part, written: written.slice(written.findIndex((each) => Buffer.isBuffer(each))) });
}

function fieldsIn({ fields }: JavaPart, ...names: readonly string[]): JavaValue[] {
  return names.map((name) => fields.get(name) ?? null);
}

const list: JavaReading = (part, read) => listOf(valuesIn(part), read);

const map: JavaReading = (part, read) => mapOf(valuesIn(part), read);

/** Entries up to the one whose key is null, which the class writes as its end. */
const mapWithEnd: JavaReading = (part, read) => {
  const values = valuesIn(part);
  const end = values.findIndex((value, i) => i % 2 === 0 && value === null);
  return mapOf(end < 0 ? values : values.slice(0, end), read);
};

function around(field: string): JavaReading {
  return ({ fields }, read) => read(fields.get(field));
}

function keysOf(field: string): JavaReading {
  return ({ fields }, read) => {
    const inner = membersOf(read(fields.get(field)));
    return inner && Object.keys(inner);
  };
}

/** An array in a field, up to a length in another field. */
function arrayIn(field: string, length?: string): JavaReading {
  return ({ fields }, read) => {
    const array = fields.get(field);
    if (typeof array !== 'object' || array?.kind !== 'array' || Buffer.isBuffer(array.items)) return undefined;
    const end = length === undefined ? undefined : fields.get(length);
    return listOf(array.items.slice(0, typeof end === 'number' ? end : undefined), read);
  };
}

const immutable: JavaReading = (part, read) => {
  const tag = part.fields.get('tag');
  if (typeof tag !== 'number') return undefined;
  return (tag & TAGS) === MAP ? mapOf(valuesIn(part), read) : listOf(valuesIn(part), read);
};

/** What objects of the classes of Java mean, also where they are superclasses of others. */
const READINGS: readonly (readonly [prefix: string, names: string, reading: JavaReading])[] = [
  ['java.lang.', 'Boolean Byte Character Double Float Integer Long Short', value],
  ['java.util.concurrent.atomic.', 'AtomicInteger AtomicLong', value],
  ['java.util.concurrent.atomic.', 'AtomicBoolean', ({ fields }) => isNotZero(fields.get('value'))],
  ['java.math.', 'BigInteger', (part) => bigIntegerOf(part)?.toString()],
  ['java.math.', 'BigDecimal', bigDecimalOf],
  ['java.time.', 'Ser', javaTime],
  ['java.util.', 'Date', (part) => timeOf(dateOf(part))],
  ['java.sql.', 'Timestamp', timestampOf],
  ['java.util.', 'Calendar', ({ fields }) => timeOf(fields.get('time'))],
  ['java.util.', 'UUID', uuidOf],
  ['java.util.', 'Locale', localeOf],
  ['java.util.', 'TimeZone', text('ID')],
  ['java.util.', 'Currency', text('currencyCode')],
  ['java.net.', 'URI', text('string')],
  ['java.io.', 'File', text('path')],
  ['java.util.', 'ArrayList LinkedList ArrayDeque PriorityQueue HashSet concurrent.CopyOnWriteArrayList', list],
  ['java.util.', 'HashMap Hashtable IdentityHashMap EnumMap TreeMap', map],
  ['java.util.concurrent.', 'ConcurrentHashMap ConcurrentSkipListMap', mapWithEnd],
  ['java.util.', 'TreeSet', (part, read) => listOf(valuesBehindBytes(part), read)],
  ['java.util.', 'Vector', arrayIn('elementData', 'elementCount')],
  ['java.util.', 'Arrays$ArrayList', arrayIn('a')],
  ['java.util.', 'EnumSet$SerializationProxy', arrayIn('elements')],
  ['java.util.', 'CollSer', immutable],
  ['java.util.Collections$', 'UnmodifiableCollection SynchronizedCollection CheckedCollection', around('c')],
  ['java.util.Collections$', 'UnmodifiableMap SynchronizedMap CheckedMap', around('m')],
  ['java.util.concurrent.', 'CopyOnWriteArraySet', around('al')],
  ['java.util.', 'Collections$SetFromMap', keysOf('m')],
  ['java.util.concurrent.', 'ConcurrentHashMap$CollectionView', keysOf('map')],
  ['java.util.Collections$', 'EmptyList EmptySet', () => []],
  ['java.util.Collections$', 'EmptyMap', () => ({})],
  ['java.util.Collections$', 'SingletonList SingletonSet', (part, read) => listOf(fieldsIn(part, 'element'), read)],
  ['java.util.Collections$', 'SingletonMap', (part, read) => mapOf(fieldsIn(part, 'k', 'v'), read)],
];

const KNOWN: ReadonlyMap<string, JavaReading> = new Map(
  READINGS.flatMap(([prefix, names, reading]) => names.split(' ').map((name) => [prefix + name, reading] as const)),
);
/** What the fields of such a class mean, only the class knows. */
const OF_JAVA = /^(?:java|javax|jdk|sun|com\.sun)\./;

/**
 * Says what a tree of a Java stream means, as data of JSON: numbers, texts, lists, maps and times as Jackson writes
 * them, objects of an application by their fields. Undefined for what is unknown, and for an object inside of itself.
 */
export class JavaMeaning {
  readonly #open = new Set<JavaObject | JavaArray>();
  #steps = 0;
  #characters = 0;

  /** `keptClass`: the member that gets the class of an object; undefined: none. */
  constructor(
    private readonly limits: ReadingLimits,
    private readonly keptClass?: string,
  ) {}

  /** @throws UnreadableValueError beyond the limits: what is referred to often is as large as often */
  readonly read = (value: JavaValue | undefined): JsonValue | undefined => {
    if (++this.#steps > this.limits.steps) throw new UnreadableValueError('The value has too many parts');
    switch (typeof value) {
      case 'undefined':
      case 'boolean':
        return value;
      case 'bigint':
      case 'number':
        return numberOf(value);
      case 'string':
        return this.#counted(value);
      default:
        return value && this.#structure(value);
    }
  };

  #structure(value: Exclude<JavaValue, null | boolean | number | bigint | string>): JsonValue | undefined {
    switch (value.kind) {
      case 'enum':
      case 'class':
        return this.#counted(value.name);
      case 'array':
        return this.#inside(value, () => this.#array(value));
      case 'object':
        return this.#inside(value, () => this.#object(value));
    }
  }

  #inside(value: JavaObject | JavaArray, work: () => JsonValue | undefined): JsonValue | undefined {
    if (this.#open.has(value)) return undefined;
    // References make a value deeper than its stream.
    if (this.#open.size === this.limits.depth) throw new UnreadableValueError('The value is too deep');
    this.#open.add(value);
    const meaning = work();
    this.#open.delete(value);
    return meaning;
  }

  #array({ type, items }: JavaArray): JsonValue {
    if (Buffer.isBuffer(items)) return this.#counted(items.toString('base64'));
    return type === 'C'
      ? this.#counted(items.filter((item) => typeof item === 'string').join(''))
      : listOf(items, this.read);
  }

  #object({ type, parts }: JavaObject): JsonValue | undefined {
    // A class of the application may extend a known one.
    const known = parts.findLast((part) => KNOWN.has(part.type.name));
    if (known) return this.#text(KNOWN.get(known.type.name)!(known, this.read, parts));
    if (OF_JAVA.test(type.name) || (type.flags & EXTERNALIZABLE) !== 0) return undefined;
    const own = parts.filter((part) => !OF_JAVA.test(part.type.name));
    const fields = own.flatMap((part) => [...part.fields].map(([name, value]) => [name, this.read(value)] as const));
    const members = fields.filter((field): field is [string, JsonValue] => field[1] !== undefined);
    return Object.fromEntries(this.keptClass === undefined ? members : [...members, [this.keptClass, type.name]]);
  }

  #text(meaning: JsonValue | undefined): JsonValue | undefined {
    return typeof meaning === 'string' ? this.#counted(meaning) : meaning;
  }

  /** A short text in the stream may be meant many times. */
  #counted(text: string): string {
    this.#characters += text.length;
    if (this.#characters > 2 * this.limits.bytes) throw new UnreadableValueError('The value has too much text');
    return text;
  }
}
