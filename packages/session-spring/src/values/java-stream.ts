import { type ReadingLimits, UnreadableValueError } from './json-values.js';

/** `bigint` is a long, and a text of one unit may be a char. */
export type JavaValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | JavaObject
  | JavaArray
  | JavaClass
  | { readonly kind: 'enum'; readonly name: string };

interface JavaClass {
  readonly kind: 'class';
  /** As Java names it, such as `java.util.Map$Entry` or `[B`. */
  readonly name: string;
  flags: number;
  /** `type`: a primitive type, or `L` and `[` for objects and arrays. */
  readonly fields: readonly { readonly name: string; readonly type: string }[];
  /** It and its superclasses, the uppermost first. Undefined while it is being read. */
  line: readonly JavaClass[] | undefined;
}

export interface JavaObject {
  readonly kind: 'object';
  readonly type: JavaClass;
  /** What each class has written, the uppermost first. */
  readonly parts: JavaPart[];
}

export interface JavaPart {
  readonly type: JavaClass;
  readonly fields: Map<string, JavaValue>;
  /** What the class has written with code of its own: values, and bytes between them. */
  readonly written: (JavaValue | Buffer)[];
}

export interface JavaArray {
  readonly kind: 'array';
  readonly type: string;
  /** A view of the stream for `byte[]`. */
  items: readonly JavaValue[] | Buffer;
}

const WRITES = 0x01;
const SERIALIZABLE = 0x02;
export const EXTERNALIZABLE = 0x04;
const IN_BLOCKS = 0x08;

const PROXY = 'java.lang.reflect.Proxy';

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
    return this.take(length).toString('latin1').replace(CODED, unitOf);
  }

  #pass(length: number): number {
    if (length < 0 || length > this.left) throw new UnreadableValueError('The stream ends too early');
    const at = this.#at;
    this.#at += length;
    return at;
  }
}

/** The bytes of a unit of UTF-16, or one that begins none. Half of a surrogate pair is a unit like others. */
const CODED = /[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\x80-\xff]/g;

function unitOf(bytes: string): string {
  if (bytes.length === 1) throw new UnreadableValueError('A text is not modified UTF-8');
  let unit = bytes.charCodeAt(0) & (0x7f >> bytes.length);
  for (let i = 1; i < bytes.length; i++) unit = (unit << 6) | (bytes.charCodeAt(i) & 0x3f);
  return String.fromCharCode(unit);
}

const NULL = 0x70;
const REFERENCE = 0x71;
const CLASS_DESCRIPTION = 0x72;
const OBJECT = 0x73;
const STRING = 0x74;
const ARRAY = 0x75;
const CLASS = 0x76;
const BLOCK = 0x77;
const END_OF_BLOCKS = 0x78;
const RESET = 0x79;
const LONG_BLOCK = 0x7a;
// 0x7b is an exception while Java wrote: nobody can read such a stream.
const LONG_STRING = 0x7c;
const PROXY_DESCRIPTION = 0x7d;
const ENUM = 0x7e;

const PRIMITIVES: ReadonlyMap<string, (bytes: JavaBytes) => JavaValue> = new Map([
  ['B', (bytes) => bytes.byte()],
  ['C', (bytes) => String.fromCharCode(bytes.unsignedShort())],
  ['D', (bytes) => bytes.double()],
  ['F', (bytes) => bytes.float()],
  ['I', (bytes) => bytes.int()],
  ['J', (bytes) => bytes.long()],
  ['S', (bytes) => bytes.short()],
  ['Z', (bytes) => bytes.unsignedByte() !== 0],
] as [string, (bytes: JavaBytes) => JavaValue][]);

const MAGIC_AND_VERSION = 0xaced_0005;
const FIRST_HANDLE = 0x7e_0000;
const MOST_SUPERCLASSES = 50;

/** Reads the first value of a stream of the Java Object Serialization Stream Protocol, and makes no object of it. */
export class JavaStreamReader {
  readonly #bytes: JavaBytes;
  /** What later parts of the stream may refer to. */
  #handles: JavaValue[] = [];
  #steps = 0;
  #depth = 0;

  constructor(
    bytes: Buffer,
    private readonly limits: ReadingLimits,
  ) {
    this.#bytes = new JavaBytes(bytes);
  }

  /** @throws UnreadableValueError when it is no such stream, or beyond the limits */
  read(): JavaValue {
    if (this.#bytes.int() >>> 0 !== MAGIC_AND_VERSION) throw new UnreadableValueError('This is no Java stream');
    return this.#value();
  }

  #value(): JavaValue {
    return this.#content(this.#code());
  }

  #code(): number {
    let code = this.#bytes.unsignedByte();
    for (; code === RESET; code = this.#bytes.unsignedByte()) {
      this.#step();
      this.#handles = [];
    }
    return code;
  }

  #content(code: number): JavaValue {
    this.#step();
    if (++this.#depth > this.limits.depth) throw new UnreadableValueError('The stream is too deep');
    const value = this.#contentAt(code);
    this.#depth--;
    return value;
  }

  #contentAt(code: number): JavaValue {
    switch (code) {
      case NULL:
        return null;
      case REFERENCE:
        return this.#referred();
      case STRING:
        return this.#withHandle(this.#bytes.utf());
      case LONG_STRING:
        return this.#withHandle(this.#bytes.text(Number(this.#bytes.long())));
      case OBJECT:
        return this.#object(this.#classDescription());
      case ARRAY:
        return this.#array(this.#classDescription());
      case CLASS:
        return this.#withHandle(this.#classDescription());
      case ENUM:
        return this.#enum(this.#classDescription());
      case CLASS_DESCRIPTION:
      case PROXY_DESCRIPTION:
        return this.#describedAt(code);
      default:
        throw new UnreadableValueError('The stream has an unknown code');
    }
  }

  #withHandle<T extends JavaValue>(value: T): T {
    this.#handles.push(value);
    return value;
  }

  #referred(): JavaValue {
    const value = this.#handles[this.#bytes.int() - FIRST_HANDLE];
    if (value === undefined) throw new UnreadableValueError('The stream refers to nothing');
    return value;
  }

  #classDescription(): JavaClass {
    const described = this.#value();
    // One that is being read has no superclasses yet, and may not be its own.
    if (isClass(described) && described.line) return described;
    throw new UnreadableValueError('The stream has no class description in its place');
  }

  #describedAt(code: number): JavaClass {
    const described = code === PROXY_DESCRIPTION ? this.#proxyDescription() : this.#namedDescription();
    this.#written();
    const superclass = this.#value();
    if (superclass !== null && !(isClass(superclass) && superclass.line)) {
      throw new UnreadableValueError('The stream has no superclass in its place');
    }
    described.line = [...(superclass?.line ?? []), described];
    if (described.line.length > MOST_SUPERCLASSES) throw new UnreadableValueError('A class has too many superclasses');
    return described;
  }

  #namedDescription(): JavaClass {
    const name = this.#bytes.utf();
    this.#bytes.long();
    const fields: JavaClass['fields'][number][] = [];
    const described: JavaClass = { kind: 'class', name, flags: 0, fields, line: undefined };
    this.#withHandle(described);
    described.flags = this.#bytes.unsignedByte();
    for (let left = this.#bytes.unsignedShort(); left > 0; left--) fields.push(this.#field());
    return described;
  }

  #field(): JavaClass['fields'][number] {
    this.#step();
    const type = String.fromCharCode(this.#bytes.unsignedByte());
    const name = this.#bytes.utf();
    if (type === 'L' || type === '[') this.#value();
    return { name, type };
  }

  #proxyDescription(): JavaClass {
    const described: JavaClass = { kind: 'class', name: PROXY, flags: SERIALIZABLE, fields: [], line: undefined };
    this.#withHandle(described);
    for (let left = this.#bytes.int(); left > 0; left--) {
      this.#step();
      this.#bytes.utf();
    }
    return described;
  }

  #object(type: JavaClass): JavaObject {
    const object: JavaObject = this.#withHandle({ kind: 'object', type, parts: [] });
    for (const each of type.line!) object.parts.push(this.#part(each));
    return object;
  }

  #part(type: JavaClass): JavaPart {
    this.#step();
    const fields = new Map<string, JavaValue>();
    if ((type.flags & EXTERNALIZABLE) !== 0) {
      // Without blocks, only the class itself knows where it ends.
      if ((type.flags & IN_BLOCKS) === 0) throw new UnreadableValueError('An object is in the format of Java 1.1');
      return { type, fields, written: this.#written() };
    }
    if ((type.flags & SERIALIZABLE) === 0) return { type, fields, written: [] };
    for (const { name, type: kind } of type.fields) fields.set(name, this.#ofType(kind));
    return { type, fields, written: (type.flags & WRITES) === 0 ? [] : this.#written() };
  }

  #written(): (JavaValue | Buffer)[] {
    const written: (JavaValue | Buffer)[] = [];
    for (let code = this.#code(); code !== END_OF_BLOCKS; code = this.#code()) {
      this.#step();
      if (code === BLOCK) written.push(this.#bytes.take(this.#bytes.unsignedByte()));
      else if (code === LONG_BLOCK) written.push(this.#bytes.take(this.#bytes.int()));
      else written.push(this.#content(code));
    }
    return written;
  }

  #array({ name }: JavaClass): JavaValue {
    const array: JavaArray = { kind: 'array', type: name.charAt(1), items: [] };
    this.#withHandle(array);
    const length = this.#bytes.int();
    // Each element has a byte at least, so an array that is longer than the stream gets no room.
    if (length < 0 || length > this.#bytes.left) throw new UnreadableValueError('An array is longer than the stream');
    if (array.type === 'B') {
      array.items = this.#bytes.take(length);
      return array;
    }
    const items: JavaValue[] = [];
    array.items = items;
    for (let left = length; left > 0; left--) {
      this.#step();
      items.push(this.#ofType(array.type));
    }
    return array;
  }

  #enum(type: JavaClass): JavaValue {
    // Java counts the constant first, then its name.
    const at = this.#handles.push({ kind: 'enum', name: '' }) - 1;
    const name = this.#value();
    if (typeof name !== 'string') throw new UnreadableValueError(`A constant of ${type.name} has no name`);
    const constant = { kind: 'enum', name } as const;
    this.#handles[at] = constant;
    return constant;
  }

  #ofType(type: string): JavaValue {
    if (type === 'L' || type === '[') return this.#value();
    const read = PRIMITIVES.get(type);
    if (!read) throw new UnreadableValueError('A field has an unknown type');
    return read(this.#bytes);
  }

  #step(): void {
    if (++this.#steps > this.limits.steps) throw new UnreadableValueError('The stream has too many parts');
  }
}

function isClass(value: JavaValue): value is JavaClass {
  return typeof value === 'object' && value !== null && value.kind === 'class';
}
