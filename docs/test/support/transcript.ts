import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { HttpAgent } from '@nest-session/testing';

interface Step {
  /** The command as it is typed. */
  readonly command: string;
  /** The expected output; "..." stands for any text within a line. */
  readonly output: string;
}

/** The address of every program in the texts. */
const PRINTED_ORIGIN = 'http://localhost:3000';

/** Runs a command and resolves to its output. */
export type Shell = (command: string) => Promise<string>;

/** The commands of a console transcript, which begin with "$ ", with their outputs. */
function stepsOf(transcript: string): Step[] {
  return transcript
    .split(/^\$ /m)
    .slice(1)
    .map((step) => {
      const [command = '', ...output] = step.trimEnd().split('\n');
      return { command, output: output.join('\n') };
    });
}

/** The commands of a transcript whose output is not the printed one, with both. */
export async function differences(
  transcript: string,
  shell: Shell,
  origin: string,
): Promise<{ command: string; printed: string; expected: string }[]> {
  const found = [];
  for (const { command, output } of stepsOf(transcript)) {
    if (!command.includes(PRINTED_ORIGIN)) throw new Error(`${command} does not go to ${PRINTED_ORIGIN}`);
    const printed = masked(await shell(command.replaceAll(PRINTED_ORIGIN, origin)), output);
    if (printed !== output) found.push({ command, printed, expected: output });
  }
  return found;
}

/** The output with "..." in the places where the expected lines have it, so that both can be compared as texts. */
function masked(printed: string, expected: string): string {
  const lines = expected.split('\n');
  return printed
    .replaceAll('\r\n', '\n')
    .trimEnd()
    .split('\n')
    .map((line, i) => (matches(line, lines[i] ?? '') ? lines[i] : line))
    .join('\n');
}

function matches(line: string, expected: string): boolean {
  const parts = expected.split('...').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.+')}$`).test(line);
}

export function hasCurl(): boolean {
  return spawnSync('curl', ['--version']).status === 0;
}

export function systemShell(cwd: string): Shell {
  return async (command) => {
    const env = { ...process.env, no_proxy: '*' };
    const child = spawn('sh', ['-c', command], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let printed = '';
    let problems = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (problems += text));
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new Error(`${command} has failed: ${problems}`);
    return printed;
  };
}

/**
 * The features of curl that the texts use, for machines without curl: -i, -d, --json, -H, -A, -X, and a cookie jar for
 * -b and -c. Each jar is a client of its own.
 */
export function curlStandIn(origin: string): { shell: Shell; close: () => void } {
  const agents = new Map<string, HttpAgent>();
  const agentOf = (jar: string): HttpAgent => {
    // Like curl, which requests keep-alive and closes the connection when it ends.
    const agent = agents.get(jar) ?? new HttpAgent(origin, { headers: { accept: '*/*', connection: 'keep-alive' } });
    agents.set(jar, agent);
    return agent;
  };
  const shell: Shell = async (command) => {
    const words = wordsOf(command);
    const values = (flag: string) => words.flatMap((word, i) => (word === flag ? words.slice(i + 1, i + 2) : []));
    const [form, [json], [jar = ''], [userAgent]] = [values('-d'), values('--json'), values('-b'), values('-A')];
    const body = json ?? (form.length > 0 ? form.join('&') : undefined);
    const [method = body === undefined ? 'GET' : 'POST'] = values('-X');
    const headers = {
      ...(form.length > 0 && { 'content-type': 'application/x-www-form-urlencoded' }),
      ...(json !== undefined && { 'content-type': 'application/json', accept: 'application/json' }),
      ...(userAgent && { 'user-agent': userAgent }),
      ...Object.fromEntries(values('-H').map((header) => /^([^:]+): *(.*)$/.exec(header)!.slice(1))),
    };
    const { pathname, search } = new URL(words.at(-1)!);
    const response = await agentOf(jar).open(method, `${pathname}${search}`, { headers, body });
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    return `${words.includes('-i') ? headOf(response) : ''}${Buffer.concat(chunks).toString()}`;
  };
  return { shell, close: () => agents.forEach((agent) => agent.close()) };
}

/** The words of a command as sh splits them; text in single quotes is one word. */
function wordsOf(command: string): string[] {
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word!);
}

function headOf({ httpVersion, statusCode, statusMessage, rawHeaders }: IncomingMessage): string {
  const headers = rawHeaders.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\n`));
  return `HTTP/${httpVersion} ${statusCode} ${statusMessage}\n${headers.join('')}\n`;
}
