// npm run test:keycloak: the program of docs/identity-providers.md against a real Keycloak, which Maven fetches (180 MB):
// docs/test/identity-providers.keycloak.ts. Keycloak takes a minute or two to start, and 1 GB of memory. Without a JDK,
// Maven, what Maven fetches, or the memory, all of this is skipped, loudly. Arguments are those of Jest.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { freemem } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ensurePackages } from './install.mjs';
import { capture, main, root, run, runQuietly } from './processes.mjs';
import { temporaryFolder } from './temporary-folder.mjs';

const VERSION = '26.7.3';
const LEAST_MEMORY = 1.5e9;
const LONGEST_START = 1_200_000;
const UNFETCHED = /Could not (?:find|resolve|transfer)|could not be resolved|UnknownHostException/;
/** It pushes security events, and to addresses with http as well. */
const EVENTS = ['--features=ssf', '--spi-ssf-transmitter--default--allow-insecure-push-targets=true'];
const ADMINISTRATOR = { KC_BOOTSTRAP_ADMIN_USERNAME: 'admin', KC_BOOTSTRAP_ADMIN_PASSWORD: 'admin' };

const args = process.argv.slice(2);

class Keycloak {
  #output = '';

  /** @throws Error with what it has printed, when it does not start */
  static async start(folder, port) {
    await mkdir(join(folder, 'data/import'), { recursive: true });
    await copyFile(join(root, 'docs/test/keycloak/shop-realm.json'), join(folder, 'data/import/shop-realm.json'));
    const keycloak = new Keycloak(folder, port);
    try {
      await keycloak.#ready();
      return keycloak;
    } catch (error) {
      await keycloak.stop();
      throw error;
    }
  }

  constructor(folder, port) {
    this.origin = `http://127.0.0.1:${port}`;
    const http = [`--http-port=${port}`, '--http-host=127.0.0.1'];
    const options = ['start-dev', '--import-realm', ...http, ...EVENTS];
    const env = { ...process.env, ...ADMINISTRATOR, JAVA_OPTS_KC_HEAP: '-Xms128m -Xmx512m' };
    // Its script starts Java beside itself: both are in a group of their own, which ends as one.
    this.child = spawn('sh', ['bin/kc.sh', ...options], { cwd: folder, detached: true, env, stdio: 'pipe' });
    this.ended = once(this.child, 'close');
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => (this.#output += text));
    }
    process.on('exit', () => this.#kill());
  }

  async stop() {
    this.#kill();
    await this.ended;
  }

  #kill() {
    if (this.child.exitCode === null && this.child.signalCode === null)
      process.kill(-Number(this.child.pid), 'SIGKILL');
  }

  async #ready() {
    const end = Date.now() + LONGEST_START;
    while (!this.#output.includes('Listening on:')) {
      if (this.child.exitCode !== null || Date.now() > end)
        throw new Error(`Keycloak has not started:\n${this.#output}`);
      await sleep(500);
    }
  }
}

await main(async () => {
  await ensurePackages();
  await runQuietly('npm', ['run', '--silent', 'build']);
  // Built by the time they are asked for.
  const { missingJava } = await import('../libs/test-infrastructure/dist/spring.js');
  const { freePort } = await import('../libs/testing/dist/index.js');
  const missing = missingJava() ?? missingMemory();
  if (missing) return skip(missing);
  const folder = temporaryFolder('keycloak');
  const unfetched = await fetchKeycloak(folder);
  if (unfetched) return skip(`Maven cannot fetch Keycloak:\n${unfetched}`);
  const keycloak = await Keycloak.start(join(folder, `keycloak-${VERSION}`), await freePort());
  try {
    const jest = ['--testRegex=/test/.*\\.keycloak\\.ts$', '--testTimeout=600000', '--maxWorkers=1', ...args];
    return await run(process.execPath, ['.dev/test.mjs', ...jest], { KEYCLOAK: keycloak.origin });
  } finally {
    await keycloak.stop();
  }
});

function missingMemory() {
  if (freemem() >= LEAST_MEMORY) return undefined;
  return `There are ${Math.round(freemem() / 1e6)} MB of free memory, and it takes ${LEAST_MEMORY / 1e6} MB.`;
}

/** Resolves to why Maven cannot. @throws Error with the output of another failure */
async function fetchKeycloak(folder) {
  const artifact = `-Dartifact=org.keycloak:keycloak-quarkus-dist:${VERSION}:zip`;
  const options = ['--batch-mode', '--quiet', '--no-transfer-progress'];
  const maven = ['dependency:unpack', artifact, `-DoutputDirectory=${folder}`];
  const { code, output } = await capture('mvn', [...options, ...maven], { cwd: folder });
  if (code === 0) return undefined;
  if (!UNFETCHED.test(output)) throw new Error(output);
  return output;
}

/** What could not be tried counts, and nobody overlooks it. */
async function skip(reason) {
  console.log(`\n${'!'.repeat(40)}\nNOT TESTED with Keycloak. ${reason}\n${'!'.repeat(40)}`);
  const file = args.find((arg) => arg.startsWith('--outputFile='))?.slice('--outputFile='.length);
  const assertionResults = [{ fullName: 'with a running Keycloak', status: 'pending', failureMessages: [] }];
  const report = { testResults: [{ name: 'Keycloak', status: 'passed', assertionResults }] };
  if (file) await writeFile(file, JSON.stringify(report));
  return 0;
}
