import { UnreadableValueError } from './unreadable-value.error.js';

/** The data types of a Java stream, one after the other. @throws UnreadableValueError where the bytes end too early */
export class JavaBytes {
  #at = 0;

  constructor(private readonly bytes: Buffer) {}

  get left(): number {
    return this.bytes.length - this.#at;
  }

  unsignedByte(): number {
    return this.bytes.readUInt8(this.#pass(1));
  }

  byte(): number {
    return this.bytes.readInt8(this.#pass(1));
  }

  unsignedShort(): number {
    return this.bytes.readUInt16BE(this.#pass(2));
  }

  short(): number {
    return this.bytes.readInt16BE(this.#pass(2));
  }

  int(): number {
    return this.bytes.readInt32BE(this.#pass(4));
  }

  long(): bigint {
    return this.bytes.readBigInt64BE(this.#pass(8));
  }

  /** As Java prints it: the shortest number that is the same float. */
  float(): number {
    const value = this.bytes.readFloatBE(this.#pass(4));
    for (let digits = 6; digits < 9; digits++) {
      const short = Number(value.toPrecision(digits));
      if (Math.fround(short) === value) return short;
    }
    return value;
  }

  double(): number {
    return this.bytes.readDoubleBE(this.#pass(8));
  }

  boolean(): boolean {
    return this.unsignedByte() !== 0;
  }

  char(): string {
    return String.fromCharCode(this.unsignedShort());
  }

  /** A view, not a copy. */
  take(length: number): Buffer {
    const at = this.#pass(length);
    return this.bytes.subarray(at, at + length);
  }

  /** A text in modified UTF-8, behind its length of two bytes. */
  utf(): string {
    return this.text(this.unsignedShort());
  }

  /** A text in modified UTF-8: surrogates are coded one by one, and NUL as two bytes. */
  text(length: number): string {
    const bytes = this.take(length);
    if (bytes.every((byte) => byte > 0 && byte < 0x80)) return bytes.toString('latin1');
    // Half of a surrogate pair stays as it is: UTF-16 can say it, and UTF-8 cannot.
    const units = Buffer.allocUnsafe(2 * length);
    let end = 0;
    for (let i = 0; i < length;) {
      const [unit, size] = unitAt(bytes, i);
      end = units.writeUInt16LE(unit, end);
      i += size;
    }
    return units.toString('utf16le', 0, end);
  }

  #pass(length: number): number {
    if (length < 0 || length > this.left) throw new UnreadableValueError('The stream ends too early');
    const at = this.#at;
    this.#at += length;
    return at;
  }
}

function unitAt(bytes: Buffer, at: number): [unit: number, size: number] {
  const first = bytes[at]!;
  if (first < 0x80) return [first, 1];
  const [second, third] = [bytes[at + 1] ?? 0, bytes[at + 2] ?? 0];
  const isNext = (byte: number) => (byte & 0xc0) === 0x80;
  if ((first & 0xe0) === 0xc0 && isNext(second)) return [((first & 0x1f) << 6) | (second & 0x3f), 2];
  if ((first & 0xf0) === 0xe0 && isNext(second) && isNext(third)) {
    return [((first & 0x0f) << 12) | ((second & 0x3f) << 6) | (third & 0x3f), 3];
  }
  throw new UnreadableValueError('A text is not modified UTF-8');
}
