import { JavaBytes } from './java-bytes.js';
import type { JavaReading, JavaReadings } from './java-reading.js';
import type { JavaPart, JavaValue } from './java-tree.js';
import type { PlainValue } from './plain-value.js';

// A longer one is an attack: its decimal digits take more time than its length.
const MOST_MAGNITUDE = 1024;

/** As JavaScript has it: a long beyond 2^53 as a text, and a number that is none as Jackson writes it. */
export function numberOf(value: bigint | number): number | string {
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

/** A time in epoch milliseconds, in UTC. */
function timeOf(milliseconds: JavaValue | undefined): string | undefined {
  if (typeof milliseconds !== 'bigint') return undefined;
  const date = new Date(Number(milliseconds));
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

const value: JavaReading = ({ fields }, read) => read(fields.get('value'));

/** A text in a field. */
function text(name: string): JavaReading {
  return ({ fields }) => asText(fields.get(name));
}

function asText(each: JavaValue | undefined): string | undefined {
  return typeof each === 'string' ? each : undefined;
}

/** The classes whose objects are one number, text or time. */
export const JAVA_SCALARS: JavaReadings = new Map<string, JavaReading>([
  ...['Boolean', 'Byte', 'Character', 'Double', 'Float', 'Integer', 'Long', 'Short'].map(
    (name) => [`java.lang.${name}`, value] as const,
  ),
  ['java.util.concurrent.atomic.AtomicInteger', value],
  ['java.util.concurrent.atomic.AtomicLong', value],
  [
    'java.util.concurrent.atomic.AtomicBoolean',
    ({ fields }) => (typeof fields.get('value') === 'number' ? fields.get('value') !== 0 : undefined),
  ],
  ['java.math.BigInteger', (part) => bigIntegerOf(part)?.toString()],
  ['java.math.BigDecimal', bigDecimalOf],
  ['java.util.Date', (part) => timeOf(dateOf(part))],
  ['java.sql.Timestamp', timestampOf],
  ['java.util.Calendar', ({ fields }) => timeOf(fields.get('time'))],
  ['java.util.UUID', uuidOf],
  ['java.util.Locale', localeOf],
  ['java.util.TimeZone', text('ID')],
  ['java.util.Currency', text('currencyCode')],
  ['java.net.URI', text('string')],
  ['java.io.File', text('path')],
]);

function bigIntegerOf({ fields }: JavaPart): bigint | undefined {
  const [signum, magnitude] = [fields.get('signum'), fields.get('magnitude')];
  if (typeof magnitude !== 'object' || magnitude?.kind !== 'array' || !Buffer.isBuffer(magnitude.items))
    return undefined;
  if (typeof signum !== 'number' || magnitude.items.length > MOST_MAGNITUDE) return undefined;
  const absolute = BigInt(`0x0${magnitude.items.toString('hex')}`);
  return signum < 0 ? -absolute : absolute;
}

/** As BigDecimal.toString() has it. */
function bigDecimalOf({ fields }: JavaPart): PlainValue | undefined {
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

/** As a language tag. */
function localeOf({ fields }: JavaPart): string {
  const parts = ['language', 'script', 'country', 'variant'].map((name) => asText(fields.get(name)));
  return parts.filter(Boolean).join('-');
}
