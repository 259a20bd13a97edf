import { connect } from 'node:net';

/** A reply of Redis. */
export type Reply = string | number | null | Error | readonly Reply[];

type Command = readonly (string | number)[];

const END = '\r\n';
const REPLY_TIMEOUT = 10_000;

/**
 * Sends commands to the Redis on a port of 127.0.0.1 over a new connection, and resolves to their replies.
 * @throws Error if Redis replies with an error, or does not reply for `timeout` milliseconds
 */
export async function askRedis(
  port: number,
  commands: readonly Command[],
  timeout = REPLY_TIMEOUT,
): Promise<readonly Reply[]> {
  const socket = connect(port, '127.0.0.1').setTimeout(timeout);
  let received = Buffer.alloc(0);
  try {
    return await new Promise((resolve, reject) => {
      socket.on('data', (data) => {
        received = Buffer.concat([received, data]);
        const replies = repliesIn(received, commands.length);
        const error = replies?.find((reply) => reply instanceof Error);
        if (error) reject(error);
        else if (replies) resolve(replies);
      });
      socket.on('error', reject);
      socket.on('close', () => reject(new Error('Redis closed the connection')));
      socket.on('timeout', () => reject(new Error(`Redis did not reply within ${timeout} ms`)));
      socket.write(commands.map(encoded).join(''));
    });
  } finally {
    socket.destroy();
  }
}

function encoded(command: Command): string {
  const parts = command.map(String).map((part) => `$${Buffer.byteLength(part)}${END}${part}${END}`);
  return `*${command.length}${END}${parts.join('')}`;
}

/** Returns the replies, or undefined while some are missing. */
function repliesIn(data: Buffer, count: number): Reply[] | undefined {
  let at = 0;
  const next = (): Reply => {
    const end = data.indexOf(END, at);
    if (end < 0) throw MISSING;
    const [type, text] = [String.fromCharCode(data[at]!), data.toString('utf8', at + 1, end)];
    at = end + END.length;
    if (type === '+') return text;
    if (type === '-') return new Error(text);
    if (type === ':') return Number(text);
    if (text === '-1') return null;
    if (type === '*') return Array.from({ length: Number(text) }, next);
    const begin = at;
    at += Number(text) + END.length;
    if (at > data.length) throw MISSING;
    return data.toString('utf8', begin, at - END.length);
  };
  try {
    return Array.from({ length: count }, next);
  } catch (error) {
    if (error === MISSING) return undefined;
    throw error;
  }
}

const MISSING = new Error('The rest of a reply has not arrived yet');
