import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, relative } from 'node:path';
import { UnfetchedPackagesError } from './unfetched-packages.error.js';

const CACHE = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'nest-session');
const JAR = 'application.jar';
/** How Maven says that a package, a plugin or a parent is not there. */
const UNFETCHED = /Could not (?:find|resolve|transfer)|Non-resolvable|could not be resolved|UnknownHostException/;

/**
 * Packages an application of Spring Boot with Maven: `folder` has its pom.xml and its sources. Resolves to the path of
 * the jar, which is kept outside of the repository until a source changes.
 * @throws UnfetchedPackagesError when Maven cannot fetch what it needs, and Error with what Maven prints
 */
export async function packagedJava(folder: string): Promise<string> {
  const packaged = join(CACHE, `spring-${await hashOf(folder)}`);
  if (!existsSync(packaged)) await build(folder, packaged);
  return join(packaged, JAR);
}

async function hashOf(folder: string): Promise<string> {
  const hash = createHash('sha256');
  for (const path of (await filesIn(folder)).toSorted())
    hash.update(`${path}\n${await readFile(join(folder, path), 'utf8')}\n`);
  return hash.digest('hex').slice(0, 16);
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

async function build(folder: string, packaged: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  // What was interrupted must not look finished, so it is made under another name.
  const unfinished = await mkdtemp(join(CACHE, 'unfinished-'));
  try {
    const sources = join(unfinished, 'sources');
    await cp(folder, sources, { recursive: true });
    await runMaven(sources);
    const [jar] = (await readdir(join(sources, 'target'))).filter((name) => name.endsWith('.jar'));
    await rename(join(sources, 'target', jar!), join(unfinished, JAR));
    await rm(sources, { recursive: true });
    // Another process may have been faster.
    if (!existsSync(packaged)) await rename(unfinished, packaged);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

function runMaven(folder: string): Promise<void> {
  const args = ['--batch-mode', '--quiet', '--no-transfer-progress', 'package'];
  return new Promise((resolve, reject) => {
    execFile('mvn', args, { cwd: folder, maxBuffer: Infinity }, (error, stdout, stderr) => {
      if (!error) return resolve();
      const output = `${stdout}${stderr}` || error.message;
      reject(UNFETCHED.test(output) ? new UnfetchedPackagesError(output) : new Error(output));
    });
  });
}
