/** Every key, written out, so that a rename in both the code and the scripts is noticed. */
export const KEYS = {
  'nest:session:sessions:<id>': 'hash',
  'nest:session:sessions:expires:<id>': 'string',
  'nest:session:sessions:expires:canary:<uuid>': 'string',
  'nest:session:expirations:<minute>': 'set',
  'nest:session:expirations': 'zset',
  'nest:session:ends': 'zset',
  'nest:session:index:<index name>:<hash>': 'zset',
  'nest:session:sessions:forwarded:<previous id>': 'string',
  'nest:session:sessions:taken-over:<id>': 'string',
  'nest:session:revoked:<index name>:<hash>': 'string',
  'nest:session:marks:<hash>': 'string',
  'nest:session:ledger:<hash>': 'hash',
  'nest:session:epoch': 'hash',
  'nest:session:cleanup': 'string',
  'nest:session:events': 'stream',
  'nest:session:events:dead': 'stream',
  'nest:session:events:dead:index': 'zset',
  'nest:session:events:dead:sizes': 'hash',
  'nest:session:events:dead:lost': 'hash',
  'nest:session:events:dead:unreported': 'hash',
  'nest:session:events:failing:<group>': 'hash',
  'nest:session:events:retries:<group>': 'zset',
  'nest:session:events:handlers': 'hash',
  'nest:session:events:wanted': 'hash',
  'nest:session:events:wanted:broadcast:<type>': 'string',
  'nest:session:events:trimmed': 'string',
  'nest:session:events:thinned': 'hash',
  'nest:session:events:dropped': 'hash',
  'nest:session:meta': 'hash',
  'nest:session:instances': 'zset',
};

const ANY: Record<string, string> = {
  '<id>': '[\\w-]{43}',
  '<previous id>': '[\\w-]{43}',
  '<uuid>': '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}',
  '<minute>': '\\d+0000',
};

/**
 * A pattern for each key.
 * @param tag matches the hash tag of a partition; empty for one partition
 * @param placeholders what the names may contain that a test decides
 */
export function patternsOfKeys(
  tag: string,
  placeholders: Readonly<Record<string, string>>,
): { readonly key: string; readonly pattern: RegExp }[] {
  const all = { ...ANY, ...placeholders };
  return Object.keys(KEYS).map((key) => {
    const isOfAll = key === 'nest:session:meta' || key === 'nest:session:instances';
    const tagged = isOfAll ? key : key.replace('nest:session:', `nest:session:${tag}`);
    return { key, pattern: new RegExp(`^${tagged.replaceAll(/<[\w ]+>/g, (placeholder) => all[placeholder]!)}$`, 's') };
  });
}
