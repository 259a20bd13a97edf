import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LeakGuard, Program, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually, freePort, HttpAgent } from '@nest-session/testing';
import { SECURITY_HEADERS } from '../../apps/demo/src/http/security-headers.js';
import { codeBlocks, namedBlocks, section } from './support/markdown.js';
import { compile, ROOT } from './support/compiler.js';
import { curlStandIn, differences, hasCurl, type Shell, systemShell } from './support/transcript.js';

LeakGuard.install();

const DIST = join(ROOT, 'apps/demo/dist');
const PACKAGES = [...(await readdir(join(ROOT, 'packages'))).map((name) => `packages/${name}`), 'libs/testing'];

// Enough time for compilers and several programs on a busy machine.
const SLOWLY = 300_000;

let readme: string;
let gettingStarted: string;
/** The folder in which the code of the texts is compiled; from there, Node.js finds the packages. */
let folder: string;
let blocks: string[];

beforeAll(async () => {
  readme = await readFile(join(ROOT, 'README.md'), 'utf8');
  gettingStarted = await readFile(join(ROOT, 'docs/getting-started.md'), 'utf8');
  const docs = (await readdir(join(ROOT, 'docs'))).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`);
  const others = [...PACKAGES.map((path) => join(path, 'README.md')), ...docs];
  const texts = await Promise.all(others.map((path) => readFile(join(ROOT, path), 'utf8')));
  blocks = [readme, ...texts].flatMap((markdown) => unnamed(markdown));
  // Not below a dist: every build removes files without a source from there.
  const cache = join(ROOT, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  folder = await mkdtemp(join(cache, 'readme-'));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** The blocks of a page, but for the files of a recipe for a runner of tests, which `recipes.chaos.ts` starts. */
function unnamed(markdown: string): string[] {
  const named = new Set(namedBlocks(markdown).values());
  return codeBlocks(markdown, 'ts').filter((block) => !named.has(block));
}

describe('the code of the READMEs', () => {
  it('begins with a complete program of at most 25 lines, and its transcript', () => {
    const [first = '', second = ''] = [...readme.matchAll(/^```\w+\n/gm)].map(([fence]) => fence.trim());
    expect([first, second]).toEqual(['```ts', '```console']);
    expect(blocks[0]?.trimEnd().split('\n').length).toBeLessThanOrEqual(25);
  });

  it(
    'compiles',
    async () => {
      const files = blocks.map((_, i) => `block-${i}.ts`);
      await Promise.all(files.map((file, i) => writeFile(join(folder, file), blocks[i]!)));
      // What declares attributes declares them for all files that are compiled with it.
      const declaring = files.filter((_, i) => /interface SessionAttributes\b/.test(blocks[i]!));
      const others = files.filter((file) => !declaring.includes(file));
      const programs = [others, ...declaring.map((file) => [file])];
      const projects = new Map(programs.map((names, i) => [join(folder, `tsconfig.${i}.json`), names]));
      // Stricter than the sources: readers may have this option.
      expect(await compile(projects, { exactOptionalPropertyTypes: true })).toBe('');
    },
    SLOWLY,
  );

  it(
    'tests an application',
    async () => {
      const isTest = (block: string) => /from '(@nestjs\/testing|node:test)'/.test(block);
      const programs = blocks.flatMap((block, i) => (isTest(block) ? [`block-${i}.js`] : []));
      expect(programs).toHaveLength(6);
      const results: unknown[] = [];
      const runNext = async () => {
        for (let program = programs.pop(); program; program = programs.pop()) {
          const run = Program.start([join(folder, program)]);
          results.push([await run.exit, run.output]);
        }
      };
      // Most of the time they wait.
      await Promise.all(Array.from({ length: 4 }, runNext));
      expect(results).toEqual(Array.from({ length: 6 }, () => [[0, null], expect.any(String)]));
    },
    SLOWLY,
  );
});

const TRANSCRIPTS = [
  { page: 'the README', transcript: () => codeBlocks(readme, 'console')[0]! },
  { page: 'docs/getting-started.md', transcript: () => codeBlocks(gettingStarted, 'console')[0]! },
];
const PROGRAMS = [
  { name: 'program of the README', path: () => join(folder, 'block-0.js'), adds: [] },
  { name: 'demo', path: () => join(DIST, 'main.js'), adds: [...SECURITY_HEADERS.keys()] },
];

describe.each(TRANSCRIPTS.flatMap((transcript) => PROGRAMS.map((program) => ({ ...transcript, ...program }))))(
  'the transcript of $page against the $name',
  ({ page, transcript, name, path, adds }) => {
    let redis: SteppableRedisServer;
    let program: Program;
    let origin: string;

    beforeAll(async () => {
      redis = await SteppableRedisServer.start();
      const port = await freePort();
      origin = `http://localhost:${port}`;
      program = Program.start([path()], { REDIS_URL: redis.url, COMMAND_TIMEOUT: '30s', PORT: `${port}` });
      const agent = new HttpAgent(origin);
      await eventually(async () => (await agent.get('/is-there-anybody')).status === 404, { timeout: 60_000 });
      // The session of a step must outlive the next step, however long that takes.
      await redis.stopClock();
    }, SLOWLY);

    afterAll(async () => {
      program?.child.kill();
      await program?.exit;
      await redis?.stop();
    });

    async function expectTranscript(shell: Shell): Promise<void> {
      const isAdded = (line: string) => adds.some((header) => line.startsWith(`${header}: `));
      const plain: Shell = async (command) =>
        (await shell(command))
          .split('\n')
          .filter((line) => !isAdded(line))
          .join('\n');
      expect(await differences(transcript(), plain, origin)).toEqual([]);
    }

    // Not every machine with Node.js has curl.
    if (hasCurl()) {
      it('holds with curl', async () => {
        const jar = await mkdtemp(join(tmpdir(), 'readme-'));
        try {
          await expectTranscript(systemShell(jar));
        } finally {
          await rm(jar, { recursive: true });
        }
      });
    }

    it('holds with a client like curl', async () => {
      const { shell, close } = curlStandIn(origin);
      try {
        await expectTranscript(shell);
      } finally {
        close();
      }
    });

    if (page === 'the README' && name !== 'demo') {
      it(
        'ends with the output of the program when the session has expired',
        async () => {
          const line = codeBlocks(readme, 'text')[0]!;
          await redis.stepClock(30 * 60_000 + 1);
          await eventually(() => expect(program.output).toContain(line), { timeout: 90_000 });
        },
        SLOWLY,
      );
    }
  },
);

describe('the versions of docs/getting-started.md', () => {
  const tested = async (manifest: string): Promise<string[]> => {
    const { dependencies, devDependencies } = JSON.parse(await readFile(join(ROOT, manifest), 'utf8'));
    const versions = { ...dependencies, ...devDependencies };
    return ['@nestjs/core', 'ioredis', '@nestjs/schedule', '@nestjs/event-emitter'].map((name) => versions[name]);
  };

  it('are the ones that npm run test:matrix installs, and the first of each is the one of all other tests', async () => {
    const rows = [...section(gettingStarted, 'Install').matchAll(/^\| (\d.*) \|$/gm)].map(([, row]) =>
      row!.split(/ *\| */),
    );
    expect(new Set(rows.map(([, on, as]) => `${on}; ${as}`))).toEqual(
      new Set(['Express, Fastify; ES module, CommonJS']),
    );
    const told = rows.map(([nest, , , ...others]) => [nest, ...others.map((version) => version.trim())]);
    expect(told[0]).toEqual(await tested('package.json'));
    const folders = await readdir(join(ROOT, 'docs/test/works-with/matrix'), { withFileTypes: true });
    const manifests = folders
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `docs/test/works-with/matrix/${name}/package.json`);
    expect(new Set(told)).toEqual(new Set(await Promise.all(manifests.map(tested))));
  });
});
