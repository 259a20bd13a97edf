// Writes streams that no Java writes, byte by byte.

const MAGIC = Buffer.of(0xac, 0xed, 0, 5);
export const NULL: Buffer = Buffer.of(0x70);
export const RESET: Buffer = Buffer.of(0x79);
export const END: Buffer = Buffer.of(0x78);

type Bytes = Buffer | readonly Bytes[];

export function stream(...parts: Bytes[]): Buffer {
  return Buffer.concat([MAGIC, ...parts.map(flat)]);
}

export function int(number: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(number);
  return bytes;
}

export function text(string: string): Buffer {
  return Buffer.concat([Buffer.of(0x74), utf(string)]);
}

export function reference(handle: number): Buffer {
  return Buffer.concat([Buffer.of(0x71), int(0x7e_0000 + handle)]);
}

/** The description of a class. `fields`: by their names, all of one type, by default of objects. */
export function described(
  name: string,
  { flags = 2, fields = [] as readonly string[], superclass = NULL, type = 'L' } = {},
): Buffer {
  const ofType = type === 'L' ? [text('Ljava/lang/Object;')] : [];
  const each = fields.map((field) => [Buffer.from(type), utf(field), ...ofType]);
  return flat([Buffer.of(0x72), utf(name), Buffer.alloc(8), Buffer.of(flags, 0, fields.length), each, END, superclass]);
}

export function object(description: Buffer, ...content: Bytes[]): Buffer {
  return flat([Buffer.of(0x73), description, ...content]);
}

export function array(type: string, length: number, ...items: Bytes[]): Buffer {
  return flat([Buffer.of(0x75), described(type), int(length), ...items]);
}

export function block(...bytes: number[]): Buffer {
  return Buffer.of(0x77, bytes.length, ...bytes);
}

function utf(string: string): Buffer {
  const bytes = Buffer.from(string);
  return Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 0xff), bytes]);
}

function flat(bytes: Bytes): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.concat(bytes.map(flat));
}
