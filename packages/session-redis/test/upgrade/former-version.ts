import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const execute = promisify(execFile);

const PACKAGES = fileURLToPath(new URL('former-version', import.meta.url));
/** Both versions use the same packages of others: those above this folder, and those of each package. */
const CACHE = fileURLToPath(new URL('../../../../node_modules/.cache', import.meta.url));
const OWN_PACKAGES = (name: string) => fileURLToPath(new URL(`../../../session-${name}/node_modules`, import.meta.url));

/** The packages of the version before this one, and a program that runs them. */
export interface FormerVersion {
  readonly program: string;
  remove(): Promise<void>;
}

/** Unpacks them, with a copy of a program that is to run them. */
export async function unpackFormerVersion(program: string): Promise<FormerVersion> {
  await mkdir(CACHE, { recursive: true });
  const folder = await mkdtemp(join(CACHE, 'former-version-'));
  for (const file of await readdir(PACKAGES)) {
    const name = file.replace(/^nest-session-(\w+)-.*$/, '$1');
    const place = join(folder, 'node_modules/@nest-session', name);
    await mkdir(place, { recursive: true });
    await execute('tar', ['-xzf', join(PACKAGES, file), '-C', place, '--strip-components=1']);
    if (existsSync(OWN_PACKAGES(name))) await symlink(OWN_PACKAGES(name), join(place, 'node_modules'));
  }
  const copy = join(folder, 'instance.mjs');
  await cp(program, copy);
  return { program: copy, remove: () => rm(folder, { recursive: true }) };
}
