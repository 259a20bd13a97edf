import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LeakGuard, SteppableRedisServer } from '@nest-session/test-infrastructure';
import { eventually, freePort, HttpAgent, RedisServer } from '@nest-session/testing';
import { codeBlocks, namedBlocks } from './support/markdown.js';
import { compile, Program, ROOT } from './support/program.js';
import { curlStandIn, differences, hasCurl, type Shell, systemShell } from './support/transcript.js';

LeakGuard.install();

/** The recipes whose first block is a whole program, which listens on PORT and uses the Redis of REDIS_URL. */
const PROGRAMS = ['sign-in-with-roles', 'my-devices', 'health-and-deploys'];
const RECIPES = join(ROOT, 'docs/recipes');

// Enough time for compilers, test runners and several programs on a busy machine.
const SLOWLY = 300_000;

/** The folder with a folder for each recipe, as projects that have installed the packages. */
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'recipes-'));
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

const textOf = (recipe: string) => readFile(join(RECIPES, `${recipe}.md`), 'utf8');

/** Writes the code of a recipe as files, and compiles it. */
async function prepare(recipe: string): Promise<{ files: readonly string[]; problems: string }> {
  const text = await textOf(recipe);
  const named = namedBlocks(text);
  const blocks = named.size > 0 ? named : new Map([['main.ts', codeBlocks(text, 'ts')[0]!]]);
  await mkdir(join(folder, recipe));
  for (const [name, code] of blocks) await writeFile(join(folder, recipe, name), code);
  const files = [...blocks.keys()];
  const sources = files.filter((file) => file.endsWith('.ts'));
  return { files, problems: await compile(join(folder, recipe), sources, { types: ['node', 'jest'] }) };
}

/** An instance of the program of a recipe. */
class Instance {
  private constructor(
    readonly program: Program,
    readonly origin: string,
  ) {}

  static async start(recipe: string, redis: RedisServer): Promise<Instance> {
    const port = await freePort();
    const program = Program.start([join(folder, recipe, 'main.js')], { REDIS_URL: redis.url, PORT: `${port}` });
    const instance = new Instance(program, `http://localhost:${port}`);
    await eventually(() => instance.agent().get('/'), { timeout: 60_000 });
    return instance;
  }

  agent(): HttpAgent {
    return new HttpAgent(this.origin);
  }

  async stop(): Promise<void> {
    this.program.child.kill('SIGKILL');
    await this.program.exit;
  }
}

it.each(PROGRAMS)('the recipe %s begins with its whole program, and has no other', async (recipe) => {
  const text = await textOf(recipe);
  expect(codeBlocks(text, 'ts')).toHaveLength(1);
  expect(/^```(\w+)$/m.exec(text)?.[1]).toBe('ts');
});

describe.each(PROGRAMS)('the recipe %s', (recipe) => {
  let redis: RedisServer;
  let instance: Instance | undefined;

  beforeAll(async () => {
    expect(await prepare(recipe)).toEqual({ files: ['main.ts'], problems: '' });
  }, SLOWLY);

  beforeEach(async () => {
    redis = await RedisServer.start();
    instance = await Instance.start(recipe, redis);
  }, SLOWLY);

  afterEach(async () => {
    await instance?.stop();
    await redis?.stop();
  });

  const transcripts = async () => codeBlocks(await textOf(recipe), 'console').join('');

  // Not every machine with Node.js has curl.
  if (hasCurl()) {
    it('prints what the page shows, with curl', async () => {
      const jar = await mkdtemp(join(tmpdir(), 'recipe-'));
      expect(await differences(await transcripts(), systemShell(jar), instance!.origin)).toEqual([]);
      await rm(jar, { recursive: true });
    });
  }

  it('prints what the page shows, with a client like curl', async () => {
    const { shell, close }: { shell: Shell; close: () => void } = curlStandIn(instance!.origin);
    expect(await differences(await transcripts(), shell, instance!.origin)).toEqual([]);
    close();
  });

  if (recipe === 'sign-in-with-roles') {
    it('takes the token from before the sign-in away, and signs out', async () => {
      const browser = instance!.agent();
      await browser.post('/cart', { item: 'apple' });
      const thief = browser.fork();
      expect((await browser.post('/sign-in', { name: 'ada', password: 'engine' })).status).toBe(201);
      expect((await thief.get('/orders')).status).toBe(401);
      expect((await browser.post('/sign-in', { name: 'bob', password: 'builder' })).status).toBe(409);
      await browser.post('/sign-out');
      expect((await browser.get('/orders')).status).toBe(401);
    });

    it('refuses to sign in with anything but a name and its password', async () => {
      const wrong = [
        { name: 'ada', password: 'builder' },
        { name: 'nobody', password: 'engine' },
        { name: 'ada' },
        { name: ['ada'], password: ['engine'] },
        {},
      ];
      for (const body of wrong) {
        const { status, setCookies } = await instance!.agent().post('/sign-in', body);
        expect({ body, status, setCookies }).toEqual({ body, status: 401, setCookies: [] });
      }
    });
  }

  if (recipe === 'my-devices') {
    async function signedIn(name: string): Promise<HttpAgent> {
      const agent = instance!.agent();
      await agent.post('/sign-in', { name });
      return agent;
    }

    const devices = async (agent: HttpAgent) =>
      (await agent.get('/devices')).json<{ id: string; isThisOne: boolean }[]>();
    const idOf = async (agent: HttpAgent) => (await devices(agent)).find(({ isThisOne }) => isThisOne)!.id;

    it('ends a device of the user, and no device of another user', async () => {
      const [laptop, phone, bobs] = await Promise.all(['ada', 'ada', 'bob'].map(signedIn));
      const [ofLaptop, ofBob] = [await idOf(laptop!), await idOf(bobs!)];
      const statusOf = async (agent: HttpAgent, id: string) => (await agent.request('DELETE', `/devices/${id}`)).status;
      expect(await statusOf(phone!, ofBob)).toBe(404);
      expect(await statusOf(phone!, 'unknown')).toBe(404);
      expect(await statusOf(instance!.agent(), ofBob)).toBe(401);
      expect(await devices(bobs!)).toHaveLength(1);
      expect(await statusOf(phone!, ofLaptop)).toBe(204);
      expect((await laptop!.get('/devices')).status).toBe(401);
      expect(await devices(phone!)).toHaveLength(1);
    });

    it('signs out the device in use, and expires its cookie', async () => {
      const phone = await signedIn('ada');
      const { status } = await phone.request('DELETE', `/devices/${await idOf(phone)}`);
      expect([status, phone.cookies]).toEqual([204, {}]);
    });
  }
});

describe('the recipe health-and-deploys, in production', () => {
  let redis: SteppableRedisServer;
  let instances: Instance[];

  beforeEach(async () => {
    redis = await SteppableRedisServer.start();
    instances = [];
  });
  afterEach(async () => {
    await Promise.all(instances.map((instance) => instance.stop()));
    await redis.stop();
  });

  async function start(): Promise<Instance> {
    const instance = await Instance.start('health-and-deploys', redis);
    instances.push(instance);
    return instance;
  }

  const statusOf = async (instance: Instance, path: string) => (await instance.agent().get(path)).status;

  it(
    'reports Redis that does not reply, and stays alive and ready',
    async () => {
      const instance = await start();
      await redis.stop();
      expect([await statusOf(instance, '/health/live'), await statusOf(instance, '/health/ready')]).toEqual([200, 200]);
      const health = await instance.agent().get('/health/sessions');
      const { error } = health.json<{ error: object }>();
      expect({ status: health.status, error }).toEqual({
        status: 503,
        error: { store: { status: 'down' }, events: { status: 'down' } },
      });
    },
    SLOWLY,
  );

  it(
    'deploys while sessions expire: the owner of every cart is reminded once, and requests are served until the end',
    async () => {
      const old = await start();
      const items = Array.from({ length: 300 }, (_, i) => `item-${i}`);
      await Promise.all(items.map((item) => old.agent().post('/cart', { item })));
      await redis.stepClock(31 * 60_000);
      await eventually(() => expect(old.program.output).toContain('Sending'), { timeout: 90_000 });
      old.program.child.kill('SIGTERM');
      await eventually(async () => expect(await statusOf(old, '/health/ready')).toBe(503));
      expect((await old.agent().post('/cart', { item: 'pear' })).status).toBe(201);
      const next = await start();
      // Nest ends the process by the signal, after all of its hooks.
      expect(await old.program.exit).toEqual([null, 'SIGTERM']);
      const output = () => old.program.output + next.program.output;
      const sent = () => [...output().matchAll(/^Sent \[ '(item-\d+)' \]$/gm)].map(([, item]) => item!);
      await eventually(() => expect(sorted(sent())).toEqual(sorted(items)), { timeout: 90_000 });
      // The old instance has left some to the next one.
      expect(next.program.output).toContain('Sent');
    },
    SLOWLY,
  );
});

describe('the recipe tests', () => {
  beforeAll(async () => {
    const { files, problems } = await prepare('tests');
    expect(problems).toBe('');
    expect(files).toEqual(['shop.spec.ts', 'visits.spec.ts', 'vitest.config.ts', 'package.json']);
  }, SLOWLY);

  it.each([
    { runner: 'Vitest', args: ['node_modules/vitest/vitest.mjs', 'run'] },
    { runner: 'Jest', args: ['--experimental-vm-modules', 'node_modules/jest/bin/jest.js'] },
  ])(
    'passes under $runner',
    async ({ args }) => {
      const absolute = args.map((arg) => (arg.startsWith('node_modules') ? join(ROOT, arg) : arg));
      const env = { REDIS_URL: 'redis://nowhere.invalid', NODE_OPTIONS: '' };
      const run = Program.start(absolute, env, join(folder, 'tests'));
      await run.exit;
      expect(run.output).toMatch(/^ *Tests:? +4 passed/m);
      expect(run.child.exitCode).toBe(0);
    },
    SLOWLY,
  );
});

function sorted(words: readonly string[]): string[] {
  return words.toSorted((a, b) => a.localeCompare(b));
}

it('the index names every recipe', async () => {
  const files = (await readdir(RECIPES)).filter((file) => file !== 'README.md');
  const index = await readFile(join(RECIPES, 'README.md'), 'utf8');
  const named = [...index.matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, file]) => file!);
  expect(sorted(named)).toEqual(sorted(files));
  expect(sorted(files)).toEqual(sorted([...PROGRAMS, 'tests'].map((recipe) => `${recipe}.md`)));
});
