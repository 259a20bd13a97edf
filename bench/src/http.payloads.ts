/** What a session holds: so many attributes `a0`, `a1`, ... of so many bytes of JSON. */
const SIZES = {
  '1 x 100 B': { attributes: 1, bytes: 100 },
  '50 x 100 B': { attributes: 50, bytes: 100 },
  '1 x 5 KB': { attributes: 1, bytes: 5000 },
} as const;

export type Size = keyof typeof SIZES;

let serial = 0;

/** A value that differs from all others: saving it is never a save of what is there. */
export function valueOf(bytes: number): { serial: number; items: readonly object[] } {
  const item = { article: 'A-1001', title: 'Enamel mug', price: 1250 };
  const size = JSON.stringify(item).length + 1;
  const items = Array.from({ length: Math.max(1, Math.round((bytes - 42) / size)) }, () => item);
  return { serial: 1_000_000 + serial++, items };
}

/** All attributes of a new session. */
export function attributesOf(size: Size): Map<string, object> {
  const { attributes, bytes } = SIZES[size];
  return new Map(Array.from({ length: attributes }, (_, n) => [`a${n}`, valueOf(bytes)]));
}
