import { JavaBytes } from './java-bytes.js';
import type { JavaReading, JavaReadings } from './java-reading.js';
import { UnreadableValueError } from './unreadable-value.error.js';

const NANOS = 1_000_000_000;
/** The offset of the last moment that Date knows, in seconds. */
const MOST_SECONDS = 8_640_000_000_000n;

/**
 * The classes of java.time, which Java writes in a form of their own. They are as in ISO 8601, and as Jackson has them.
 */
export const JAVA_TIME: JavaReadings = new Map<string, JavaReading>([
  [
    'java.time.Ser',
    ({ written: [block] }) => {
      if (!Buffer.isBuffer(block)) return undefined;
      const bytes = new JavaBytes(block);
      return TYPES.get(bytes.byte())?.(bytes);
    },
  ],
]);

/** By the number that stands for them. */
const TYPES: ReadonlyMap<number, (bytes: JavaBytes) => number | string | undefined> = new Map([
  [1, duration],
  [2, instant],
  [3, date],
  [4, (bytes) => time(bytes)],
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
] as [number, (bytes: JavaBytes) => number | string | undefined][]);

/** As Duration.toString() has it. */
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

/** Of a second. */
function decimals(nanos: number): string {
  return nanos === 0 ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`;
}

function within(number: number, least: number, most: number): number {
  if (number >= least && number <= most) return number;
  throw new UnreadableValueError('A time has a number that does not exist');
}
