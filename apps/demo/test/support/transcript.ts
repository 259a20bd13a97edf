import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { HttpAgent } from '@nest-session/testing';

export interface Step {
  /** The command as it is typed. */
  readonly command: string;
  /** The expected output; "..." stands for any text within a line. */
  readonly output: string;
}

/** Runs a command and resolves to its output. */
export type Shell = (command: string) => Promise<string>;

/** The commands of a console transcript, which begin with "$ ", with their outputs. */
export function stepsOf(transcript: string): Step[] {
  return transcript
    .split(/^\$ /m)
    .slice(1)
    .map((step) => {
      const [command = '', ...output] = step.trimEnd().split('\n');
      return { command, output: output.join('\n') };
    });
}

/** The output with "..." in the places where the expected lines have it, so that both can be compared as texts. */
export function masked(printed: string, expected: string): string {
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

/** The features of curl that the README uses, for machines without curl: -i, -d, and a cookie jar for -b and -c. */
export function curlStandIn(origin: string): { shell: Shell; close: () => void } {
  // Like curl, which requests keep-alive and closes the connection when it ends.
  const agent = new HttpAgent(origin, { headers: { accept: '*/*', connection: 'keep-alive' } });
  const shell: Shell = async (command) => {
    const [, url = ''] = / (http:\S+)$/.exec(command) ?? [];
    const [, body] = / -d (\S+)/.exec(command) ?? [];
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const response = await agent.open(body === undefined ? 'GET' : 'POST', new URL(url).pathname, { body, headers });
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    return `${/ -i /.test(command) ? headOf(response) : ''}${Buffer.concat(chunks).toString()}`;
  };
  return { shell, close: () => agent.close() };
}

function headOf({ httpVersion, statusCode, statusMessage, rawHeaders }: IncomingMessage): string {
  const headers = rawHeaders.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\n`));
  return `HTTP/${httpVersion} ${statusCode} ${statusMessage}\n${headers.join('')}\n`;
}
