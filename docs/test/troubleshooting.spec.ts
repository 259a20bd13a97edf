import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Controller, Module, Post } from '@nestjs/common';
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { MapSessionModule, Session, SessionModule } from '@nest-session/core';
import { HttpAgent } from '@nest-session/testing';
import { COMMANDS } from '../../packages/session-cli/src/command/commands.js';
import { ROOT } from './support/compiler.js';
import { logLines } from './support/log-lines.js';

/** The start of a command or of code, which nobody reads in a log or a response. */
const NO_MESSAGE = /^(npx|redis-cli|@|session\.|events\.|app\.|new )/;
/** The most characters that stand for the `...` of a message. */
const MOST_VARYING = 300;

let page: string;
let sources: string[];

beforeAll(async () => {
  page = await readFile(join(ROOT, 'docs/troubleshooting.md'), 'utf8');
  const packages = await readdir(join(ROOT, 'packages'));
  const paths = await Promise.all(packages.map((name) => modulesIn(`packages/${name}/src`)));
  const texts = await Promise.all(paths.flat().map((path) => readFile(join(ROOT, path), 'utf8')));
  sources = [...texts.map(withoutJoints), ...(await logLines()).map(({ text }) => text)];
});

async function modulesIn(folder: string): Promise<string[]> {
  const names = await readdir(join(ROOT, folder), { recursive: true });
  return names.filter((name) => name.endsWith('.ts')).map((name) => `${folder}/${name}`);
}

/** The source with texts as they are written, where the code joins them of several. */
function withoutJoints(source: string): string {
  return source.replaceAll(/['`]\s*\+\s*['`]/g, '').replaceAll(/\$\{[^{}$]*\}/g, '...');
}

/** What the first columns of the tables say that somebody reads in a log, a response or an error. */
function messages(markdown: string): string[] {
  const cells = [...markdown.matchAll(/^\| (.+?) \|/gm)].map(([, cell]) => cell!);
  const spans = cells.flatMap((cell) => [...cell.matchAll(/(`+)(.+?)\1/g)].map(([, , code]) => code!.trim()));
  return spans.filter((code) => /^[a-z]+(-[a-z]+)+$| /.test(code) && !NO_MESSAGE.test(code));
}

function isWritten(message: string): boolean {
  const parts = message.split('...');
  const literals = parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
  const pattern = new RegExp(literals.join(`[^]{0,${MOST_VARYING}}?`));
  // The pattern takes long to fail, and most sources lack a part.
  return sources.some((source) => parts.every((part) => source.includes(part)) && pattern.test(source));
}

describe('docs/troubleshooting.md', () => {
  it('quotes what the packages write', () => {
    const quoted = messages(page);
    expect(quoted.length).toBeGreaterThan(10);
    expect(quoted.filter((message) => !isWritten(message))).toEqual([]);
  });

  it.each(['Redis can no longer be reached, retrying: ...', 'Too many open sessions'])(
    'would not be believed with "%s", which nothing writes',
    (message) => {
      expect(messages(`| \`${message}\` | a cause |`)).toEqual([message]);
      expect(isWritten(message)).toBe(false);
    },
  );

  it('names commands and options that exist', () => {
    const calls = [...page.matchAll(/`npx @nest-session\/cli ([\w-]+)([^`]*)`/g)];
    const known = new Map(COMMANDS.map(({ name, options }) => [name, Object.keys(options)]));
    expect(calls.length).toBeGreaterThan(5);
    const unknown = calls.filter(([, name, rest]) => {
      const options = [...rest!.matchAll(/--([\w-]+)/g)].map(([, option]) => option!);
      return !options.every((option) => known.get(name!)?.includes(option) ?? false) || !known.has(name!);
    });
    expect(unknown.map(([call]) => call)).toEqual([]);
  });
});

@Controller()
class StartController {
  @Post('start')
  start(@Session() session: Session) {
    session.setAttribute('visits', 1);
  }
}

@Module({ imports: [SessionModule.forRoot(), MapSessionModule.forRoot()], controllers: [StartController] })
class AppModule {}

/** How pages say that an application trusts its proxy, each with the adapter of an application that does so. */
const REMEDIES: readonly [RegExp, (value: unknown) => AbstractHttpAdapter][] = [
  [
    /new FastifyAdapter\(\{ trustProxy: (?!\.\.\.)(.+?) \}\)/g,
    (value) => new FastifyAdapter({ trustProxy: value as string }),
  ],
  [
    /app\.set\('trust proxy', (?!\.\.\.)(.+?)\)/g,
    (value) => {
      const adapter = new ExpressAdapter();
      adapter.set('trust proxy', value);
      return adapter;
    },
  ],
];

describe('what the pages say about a proxy that ends TLS', () => {
  it.each(REMEDIES)('makes a cookie Secure behind one on the same machine: %p', async (remedy, adapterWith) => {
    const names = (await readdir(join(ROOT, 'docs'))).filter((name) => name.endsWith('.md'));
    const pages = await Promise.all(names.map((name) => readFile(join(ROOT, 'docs', name), 'utf8')));
    const values = new Set(pages.flatMap((text) => [...text.matchAll(remedy)].map(([, value]) => value!)));
    expect(values.size).toBeGreaterThan(0);
    for (const value of values) {
      // They are numbers, and texts in the quotes of TypeScript.
      const adapter = adapterWith(JSON.parse(value.replaceAll("'", '"')));
      const app = await NestFactory.create(AppModule, adapter, { logger: false });
      await app.listen(0, '127.0.0.1');
      const behindProxy = { headers: { 'X-Forwarded-Proto': 'https' } };
      const { setCookies } = await (await HttpAgent.for(app)).post('/start', undefined, behindProxy);
      expect([value, setCookies]).toEqual([value, [expect.stringContaining('; Secure')]]);
      await app.close();
    }
  });
});
