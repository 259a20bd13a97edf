import { connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { BodyPlan, ConnectionPlan, Edit, RequestPlan } from './fuzzed.plans.js';
import { type ParsedResponses, parseResponses } from './http-responses.js';

/** Milliseconds of silence after which this client stops waiting for a server that may wait for more bytes. */
const LULL = 25;

/** Milliseconds: longer than any response takes, and shorter than the server keeps an idle connection open. */
const LONGEST = 15_000;

/** The bytes of one connection, and what is known of them. */
export interface Rendered {
  readonly bytes: Buffer;
  /** Whether the server can tell where each request ends, so that it must respond to all of them. */
  readonly isClear: boolean;
}

/** The lines of a client that is known: its tokens, its visit, its CSRF token. */
export type Identity = (plan: RequestPlan) => readonly string[];

export function render({ requests, edits }: ConnectionPlan, identity: Identity): Rendered {
  const parts = requests.map((plan, i) =>
    requestOf(i === 0 ? plan : withoutExpectation(plan), identity(plan), i === requests.length - 1),
  );
  const bytes = edits.reduce(edited, Buffer.concat(parts));
  const isClear = edits.length === 0 && requests.every(isClearRequest);
  return { bytes, isClear };
}

/**
 * Node.js 20 writes the `100 Continue` of a request that is not the first of a pipeline between the head and the body
 * of its response, if the body is a Buffer and the response before has not been sent yet. That is so without sessions.
 */
function withoutExpectation(plan: RequestPlan): RequestPlan {
  return { ...plan, lines: plan.lines.filter((line) => line !== 'Expect: 100-continue') };
}

function isClearRequest({ line, lines, body }: RequestPlan): boolean {
  const isPlainBody = body === undefined || body.framing === 'length' || body.framing === 'chunked';
  return lines.length === 0 && isPlainBody && /^(GET|POST|PUT|DELETE|HEAD) \/[\w/?=]*$/.test(line);
}

/** Whether the server closes a connection that asks for it. Nest keeps that of server-sent events open. */
function isClosedByServer({ requests }: ConnectionPlan): boolean {
  return !requests.at(-1)!.line.includes('/sse');
}

function requestOf({ line, lines, body }: RequestPlan, own: readonly string[], isLast: boolean): Buffer {
  const isRead = /^(GET|HEAD|OPTIONS|TRACE) /.test(line);
  const framed = isRead || !body ? { lines: isRead ? [] : ['Content-Length: 0'], bytes: Buffer.alloc(0) } : frame(body);
  const head = [
    `${line} HTTP/1.1`,
    'Host: a',
    ...(isLast ? ['Connection: close'] : []),
    ...own,
    ...lines,
    ...framed.lines,
  ];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), framed.bytes]);
}

function frame({ bytes, type, framing }: BodyPlan): { readonly lines: readonly string[]; readonly bytes: Buffer } {
  const length = (n: number) => `Content-Length: ${n}`;
  const chunked = 'Transfer-Encoding: chunked';
  const plain = Buffer.from(bytes);
  const framings: Record<BodyPlan['framing'], () => readonly [lines: readonly string[], bytes: Buffer]> = {
    length: () => [[length(bytes.length)], plain],
    chunked: () => [[chunked], inChunks(plain)],
    'too long': () => [[length(bytes.length + 10)], plain],
    'too short': () => [[length(Math.floor(bytes.length / 2))], plain],
    both: () => [[length(bytes.length), chunked], inChunks(plain)],
    twice: () => [[length(bytes.length), length(bytes.length + 1)], plain],
    negative: () => [['Content-Length: -1'], plain],
    none: () => [[], plain],
  };
  const [lines, content] = framings[framing]();
  return { lines: [...(type === '' ? [] : [`Content-Type: ${type}`]), ...lines], bytes: content };
}

function inChunks(bytes: Buffer): Buffer {
  const middle = Math.ceil(bytes.length / 3);
  const chunks = [bytes.subarray(0, middle), bytes.subarray(middle)].filter(({ length }) => length > 0);
  const parts = chunks.flatMap((chunk) => [
    Buffer.from(`${chunk.length.toString(16)}\r\n`),
    chunk,
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}

function edited(bytes: Buffer, { at, how, bytes: others }: Edit): Buffer {
  const place = Math.floor(at * bytes.length);
  const before = bytes.subarray(0, place);
  const after = bytes.subarray(place);
  const edits: Record<Edit['how'], () => Buffer> = {
    flip: () => Buffer.concat([before, Buffer.from([(after[0] ?? 0) ^ (others[0]! || 1)]), after.subarray(1)]),
    insert: () => Buffer.concat([before, others, after]),
    delete: () => Buffer.concat([before, after.subarray(others.length)]),
    repeat: () => Buffer.concat([before, after.subarray(0, 20), after]),
  };
  return edits[how]();
}

/** What came back on one connection. */
export interface Received extends ParsedResponses {
  /** Whether the connection was reset, which discards what was under way. */
  readonly wasReset: boolean;
}

/** Sends bytes as the plan says, and resolves to the responses when the connection is closed. */
export async function send(url: string, rendered: Rendered, plan: ConnectionPlan): Promise<Received> {
  const { bytes } = rendered;
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true });
  const chunks: Buffer[] = [];
  let wasReset = false;
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  // A server that refuses a request closes the connection before it has read all of it.
  socket.on('error', () => (wasReset = true));
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  // Half open: otherwise this side would close first where the server waits for more.
  socket.once('end', () => socket.end());
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    socket.destroy();
  }, LONGEST);
  const { end } = plan;
  const sent = typeof end === 'object' ? bytes.subarray(0, Math.floor(end.leave * bytes.length)) : bytes;
  await write(socket, sent, plan.cuts);
  if (typeof end === 'object' || end === 'unread') socket.destroy();
  else if (end === 'half-close') socket.end();
  else if (!rendered.isClear) endAfterLull(socket);
  else if (!isClosedByServer(plan)) {
    const isAnswered = () => parseResponses(Buffer.concat(chunks), false).responses.length >= plan.requests.length;
    socket.on('data', () => isAnswered() && socket.end());
  }
  await closed;
  clearTimeout(timer);
  if (isLate) throw new Error(`The connection is still open after ${LONGEST} ms`);
  const { responses, isWhole } = parseResponses(Buffer.concat(chunks), true);
  return { responses, isWhole, wasReset };
}

async function write(socket: Socket, bytes: Buffer, cuts: readonly number[]): Promise<void> {
  const places = cuts.map((share) => Math.floor(share * bytes.length)).sort((a, b) => a - b);
  let from = 0;
  for (const to of [...places, bytes.length]) {
    if (socket.destroyed) return;
    if (to > from) await new Promise<void>((resolve) => socket.write(bytes.subarray(from, to), () => resolve()));
    // In a packet of its own.
    if (to < bytes.length) await nextTurn();
    from = to;
  }
}

/** No outcome depends on this time: it keeps the client from waiting for a server that waits for it. */
function endAfterLull(socket: Socket): void {
  const timer = setInterval(() => socket.end(), LULL);
  socket.on('data', () => timer.refresh());
  socket.once('close', () => clearInterval(timer));
}
