import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Program } from '@nest-session/test-infrastructure';
import { eventually, freePort, HttpAgent } from '@nest-session/testing';
import { compile, ROOT } from './compiler.js';
import { codeBlocks } from './markdown.js';
import { LOGOUT_PATH, LogoutProxy } from './logout.proxy.js';

/** The programs of docs/identity-providers.md, compiled in a folder of their own: the shop and the provider. */
export class ProviderPage {
  private constructor(private readonly folder: string) {}

  /** @throws Error with what the compiler prints */
  static async compile(): Promise<ProviderPage> {
    const folder = await mkdtemp(join(tmpdir(), 'provider-page-'));
    const page = await readFile(join(ROOT, 'docs/identity-providers.md'), 'utf8');
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    await writeFile(join(folder, 'main.ts'), codeBlocks(page, 'ts')[0]!);
    await writeFile(join(folder, 'provider.js'), codeBlocks(page, 'js')[0]!);
    const printed = await compile(new Map([[join(folder, 'tsconfig.json'), ['main.ts']]]));
    if (printed !== '') throw new Error(printed);
    return new ProviderPage(folder);
  }

  start(program: 'main' | 'provider', env: NodeJS.ProcessEnv): Program {
    return Program.start([join(this.folder, `${program}.js`)], env);
  }

  remove(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }
}

/** The shop of the page, behind a proxy. */
export class Shop {
  private constructor(
    private readonly program: Program,
    private readonly proxy: LogoutProxy,
  ) {}

  static async start(page: ProviderPage, env: NodeJS.ProcessEnv): Promise<Shop> {
    const port = await freePort();
    const proxy = await LogoutProxy.start(port);
    const shop = new Shop(page.start('main', { ...env, PORT: `${port}`, SHOP: proxy.origin }), proxy);
    const agent = new HttpAgent(proxy.origin);
    await eventually(async () => expect((await agent.get('/')).status).toBe(200), { timeout: 120_000 });
    return shop;
  }

  get origin(): string {
    return this.proxy.origin;
  }

  get output(): string {
    return this.program.output;
  }

  /** The logout tokens that the provider has posted. */
  get logouts(): LogoutProxy['logouts'] {
    return this.proxy.logouts;
  }

  /** The security events that the provider has posted. */
  get events(): LogoutProxy['events'] {
    return this.proxy.events;
  }

  /** Posts what the provider has posted last, once more. Resolves to the status. */
  async repeat(): Promise<number> {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const { body } = this.logouts.at(-1)!;
    return (await new HttpAgent(this.origin).request('POST', LOGOUT_PATH, { headers, body })).status;
  }

  async stop(): Promise<void> {
    this.program.child.kill('SIGKILL');
    await this.program.exit;
    await this.proxy.stop();
  }
}
