// The reply to a script has another first word, and other words in each version of Redis.
const DENIED = /^NOPERM|executing the script can't run|no permissions to/;

const ADVICE: readonly (readonly [kind: RegExp, advice: string])[] = [
  [/^(MOVED|CROSSSLOT)/, 'This is a node of a Cluster: set option `cluster`, not `url`'],
  [/^ERR This instance has cluster support disabled/, 'This is no node of a Cluster: set option `url`, not `cluster`'],
  [
    /^The Cluster does not say the addresses/,
    'Set cluster-preferred-endpoint-type of its nodes to ip, or to hostname, not to unknown-endpoint',
  ],
  [/^READONLY/, 'This is a replica. If it stays one, set the address of the primary, or option `sentinels`'],
  [/^All sentinels .*: ERR No such master/, 'Correct option `name`: the Sentinels know no master of this name'],
  [
    /^All sentinels .*: (NOAUTH|WRONGPASS)/,
    'The Sentinels require a password of their own, which option `sentinels` does not have: set option `client` instead',
  ],
  // A script declares its flags in its first line.
  [
    /unexpected symbol near '#'/,
    'This server is too old for the scripts: upgrade it. Redis 7.0 is the oldest that works',
  ],
  [
    /^(write EPIPE|ERR max number of clients reached|The server closed the connection before it was ready)/,
    'Redis closes a new connection at once. If this goes on, it has as many clients as its `maxclients` allows: close ' +
      'some, or raise it',
  ],
  [
    /^OOM/,
    'Redis is full: it loads and ends sessions and deadlines, and saves none. Raise its maxmemory, or free memory. Leave ' +
      'maxmemory-policy at noeviction: what is evicted ends without an event',
  ],
  [
    /^NOAUTH/,
    'Redis requires a password: put user and password into the url, redis://user:password@host, with `sentinels` or ' +
      '`cluster` into options `username` and `password`, or into the options of your client',
  ],
  [
    /^WRONGPASS/,
    'Correct user and password in the url, redis://user:password@host, with `sentinels` or `cluster` in options ' +
      '`username` and `password`, or in the options of your client. Where the password changes, as a token of IAM or ' +
      'Entra ID does, see "A password that changes" on the page "Securing Redis" of the documentation',
  ],
  [
    /^ERR (DB index is out of range|SELECT is not allowed in cluster mode)/,
    'End the url with the number of a database that this server has, such as /0, or raise its setting `databases`',
  ],
  [
    /^WRONGTYPE/,
    'Something else has written a key that is ours: run `nest-session verify` with the --namespace, which names it, ' +
      'and with --repair renames it',
  ],
  [
    /^NOJSON/,
    'Its application of Spring keeps it by Java serialization: the page "One Redis with Spring Boot" has the Java code ' +
      'for JSON',
  ],
  [DENIED, 'Grant this user of Redis the rights of the page "Securing Redis" of the documentation'],
];

/** To follow a text that ends with the error; empty where nothing is known. */
export function adviceFor(error: unknown): string {
  const { message = String(error) } = Object(error) as { readonly message?: string };
  const advice = ADVICE.find(([kind]) => kind.test(message))?.[1];
  return advice === undefined ? '' : `${message.endsWith('.') ? '' : '.'} ${advice}`;
}

const DEFAULT_NAMESPACE = 'nest:session';
const PLAIN = /^[\w:.,/@%+=-]+$/;

/** A call of the command `nest-session` for a namespace, to be pasted into a POSIX shell. */
export function shownCommand(namespace: string, ...words: readonly string[]): string {
  const ofNamespace = namespace === DEFAULT_NAMESPACE ? [] : [`--namespace=${namespace}`];
  return ['nest-session', ...words, ...ofNamespace].map(quoted).join(' ');
}

function quoted(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
