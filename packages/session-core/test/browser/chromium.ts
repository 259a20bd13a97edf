import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

/** A cookie as the browser has it. */
export interface BrowserCookie {
  readonly name: string;
  readonly value: string;
  readonly domain: string;
  readonly path: string;
  /** Epoch seconds; -1 when it ends with the browser. */
  readonly expires: number;
  readonly httpOnly: boolean;
  readonly secure: boolean;
  readonly sameSite?: 'Strict' | 'Lax' | 'None';
  readonly partitionKey?: { readonly topLevelSite: string };
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: unknown;
  readonly sessionId?: string;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

interface Call {
  resolve(result: unknown): void;
  reject(error: Error): void;
}

const FLAGS = [
  '--headless=new',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-component-update',
  '--no-first-run',
  '--no-proxy-server',
  // The certificates of the tests are nobody's.
  '--ignore-certificate-errors',
  // Every name is this machine; nothing leaves it.
  '--host-resolver-rules=MAP * 127.0.0.1',
  '--remote-debugging-pipe',
];

/** A headless Chromium of the test's own, told what to do over the pipes of its DevTools protocol. */
export class Chromium {
  readonly #process: ChildProcess;
  readonly #folder: string;
  readonly #calls = new Map<number, Call>();
  readonly #listeners = new Set<(message: Message) => void>();
  #nextId = 1;
  #rest = '';

  /** Starts the program of `CHROMIUM`, or `chromium` on the PATH. */
  static async start(): Promise<Chromium> {
    const folder = await mkdtemp(join(tmpdir(), 'chromium-'));
    const args = [...FLAGS, `--user-data-dir=${folder}`];
    const stdio = ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] as const;
    const browser = new Chromium(spawn(process.env['CHROMIUM'] ?? 'chromium', args, { stdio: [...stdio] }), folder);
    await browser.call('Browser.getVersion');
    return browser;
  }

  private constructor(process: ChildProcess, folder: string) {
    this.#process = process;
    this.#folder = folder;
    const output = process.stdio[4] as Readable;
    output.setEncoding('utf8').on('data', (text: string) => this.#read(text));
    const fail = (reason: string) => {
      for (const { reject } of this.#calls.values()) reject(new Error(reason));
      this.#calls.clear();
    };
    process.once('error', (error) => fail(`Chromium cannot be started: ${error.message}`));
    process.once('exit', (code) => fail(`Chromium has ended with ${code}`));
  }

  /** Another user: nothing is shared with the pages of others. */
  async newUser(): Promise<BrowserUser> {
    const { browserContextId } = await this.call<{ browserContextId: string }>('Target.createBrowserContext');
    return new BrowserUser(this, browserContextId);
  }

  /** One command of the DevTools protocol. */
  async call<T>(method: string, params: object = {}, sessionId?: string): Promise<T> {
    const id = this.#nextId++;
    const result = new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }));
    const message = { id, method, params, ...(sessionId !== undefined && { sessionId }) };
    (this.#process.stdio[3] as Writable).write(`${JSON.stringify(message)}\0`);
    return (await result) as T;
  }

  /** Calls `listener` for each event of this kind that a page reports. */
  on<T>(method: string, sessionId: string, listener: (params: T) => void): void {
    this.#listeners.add((message) => {
      if (message.method === method && message.sessionId === sessionId) listener(message.params as T);
    });
  }

  async stop(): Promise<void> {
    const isOver = once(this.#process, 'exit');
    // It may end before it has answered.
    await this.call('Browser.close').catch(() => undefined);
    await isOver;
    // Its own processes may end after it, and write until then.
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 20 });
  }

  #read(text: string): void {
    const messages = (this.#rest + text).split('\0');
    this.#rest = messages.pop() ?? '';
    for (const message of messages) this.#take(JSON.parse(message) as Message);
  }

  #take(message: Message): void {
    for (const listener of this.#listeners) listener(message);
    const call = message.id === undefined ? undefined : this.#calls.get(message.id);
    if (!call) return;
    this.#calls.delete(message.id!);
    if (message.error) call.reject(new Error(message.error.message));
    else call.resolve(message.result);
  }
}

/** Somebody with cookies of their own. */
export class BrowserUser {
  constructor(
    private readonly browser: Chromium,
    private readonly browserContextId: string,
  ) {}

  async newTab(): Promise<BrowserTab> {
    const { browser, browserContextId } = this;
    const { targetId } = await browser.call<{ targetId: string }>('Target.createTarget', {
      url: 'about:blank',
      browserContextId,
    });
    const { sessionId } = await browser.call<{ sessionId: string }>('Target.attachToTarget', {
      targetId,
      flatten: true,
    });
    const tab = new BrowserTab(browser, sessionId, targetId);
    await browser.call('Page.enable', {}, sessionId);
    await browser.call('Page.setLifecycleEventsEnabled', { enabled: true }, sessionId);
    return tab;
  }

  /** All cookies that the browser keeps for this user. */
  async cookies(): Promise<readonly BrowserCookie[]> {
    const { browser, browserContextId } = this;
    const { cookies } = await browser.call<{ cookies: BrowserCookie[] }>('Storage.getCookies', { browserContextId });
    return cookies;
  }
}

/** What happens to a document while it is loaded. */
interface LifecycleEvent {
  readonly frameId: string;
  readonly loaderId: string;
  readonly name: string;
}

export class BrowserTab {
  /** The documents that have been here and were loaded, with their frames. */
  readonly #loaded = new Set<string>();
  #onLoaded: () => void = () => undefined;

  /** `frameId`: that of the page itself. */
  constructor(
    private readonly browser: Chromium,
    private readonly sessionId: string,
    frameId: string,
  ) {
    browser.on<LifecycleEvent>('Page.lifecycleEvent', sessionId, (event) => {
      if (event.name !== 'load' || event.frameId !== frameId) return;
      this.#loaded.add(event.loaderId);
      this.#onLoaded();
    });
  }

  /** Opens an address as if it had been typed, and waits until the page, its frames included, is there. */
  async open(url: string): Promise<string> {
    const { errorText, loaderId } = await this.browser.call<{ errorText?: string; loaderId?: string }>(
      'Page.navigate',
      { url },
      this.sessionId,
    );
    if (errorText !== undefined) throw new Error(`${url}: ${errorText}`);
    // Not any page: the empty one of a new tab may still be about to be there.
    await this.#untilLoaded((document) => document === loaderId);
    return this.text();
  }

  /** Runs a script that leads to another page, and waits until that is there. */
  async follow(script: string): Promise<string> {
    const before = new Set(this.#loaded);
    await this.evaluate(script);
    await this.#untilLoaded((document) => !before.has(document));
    return this.text();
  }

  /** The text of the page. */
  async text(): Promise<string> {
    return String(await this.evaluate('document.body.innerText'));
  }

  /** The value of an expression in the page; a promise is awaited. */
  async evaluate(expression: string): Promise<unknown> {
    const { result } = await this.browser.call<{ result: { value?: unknown } }>(
      'Runtime.evaluate',
      { expression, awaitPromise: true, returnByValue: true },
      this.sessionId,
    );
    return result.value;
  }

  async #untilLoaded(isMeant: (document: string) => boolean): Promise<void> {
    while (![...this.#loaded].some(isMeant)) await new Promise<void>((resolve) => (this.#onLoaded = resolve));
  }
}
