// An application as the Nest CLI generates it, and what its author adds to have sessions.
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { programOf } from '../../../../.dev/other-versions.mjs';
import { runIn } from '../../../../.dev/temporary-folder.mjs';

const ADDED = fileURLToPath(new URL('./added/', import.meta.url));

/**
 * Runs the command of the CLI, and adds the files of `added`. Resolves to the exit code and the output.
 * @param {{ cli: string, command: string[] }} generator a name of other-versions.mjs, and its arguments before the name
 */
export async function generate({ cli, command }, folder, env) {
  const args = command.map((each) => each.replace('NAME', basename(folder)));
  const result = await runIn(dirname(folder), await programOf(cli), args, env);
  if (result.code === 0) await addSessions(folder);
  return result;
}

async function addSessions(folder) {
  const style = await styleOf(folder);
  for (const path of await readdir(ADDED, { recursive: true })) {
    if (!path.endsWith('.ts')) continue;
    await cp(join(ADDED, path), join(folder, path));
    await change(join(folder, path), style);
  }
  await change(join(folder, 'src/app.module.ts'), (text) =>
    style(
      text
        .replace('imports: []', 'imports: [ShopModule]')
        .replace('\n\n@Module', `\nimport { ShopModule } from './shop.module';\n\n@Module`),
    ),
  );
}

/** The imports of the added files, written as the generated files write theirs. */
async function styleOf(folder) {
  const generated = await readFile(join(folder, 'test/app.e2e-spec.ts'), 'utf8');
  const suffix = generated.includes(".js'") ? '.js' : '';
  const [request] = /import .*request from/.exec(generated);
  return (text) =>
    text.replace(/(from '(?:\.|supertest\/)[^']*?)(?:\.js)?'/g, `$1${suffix}'`).replace('import request from', request);
}

async function change(path, edit) {
  await writeFile(path, edit(await readFile(path, 'utf8')));
}
