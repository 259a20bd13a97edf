// The reference of all public names, as pages that TypeDoc writes.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Application } from 'typedoc';
import { readPackage } from '../../.dev/typedoc.mjs';
import { publicEntryPoints } from './pages.mjs';

/** @throws Error when TypeDoc has found a fault; it prints which */
export async function writeReference(target) {
  const read = mkdtempSync(join(tmpdir(), 'nest-session-reference-'));
  try {
    const folders = [...new Set(publicEntryPoints().map(({ folder }) => folder))];
    await write(target, await Promise.all(folders.map((folder) => readInto(read, folder))));
  } finally {
    rmSync(read, { recursive: true });
  }
}

/** Resolves to the path of a file with what TypeDoc has read of a package. */
async function readInto(target, folder) {
  const entries = publicEntryPoints().filter((entry) => entry.folder === folder);
  const { application, project } = await readPackage(folder, entries);
  if (!project) throw new Error(`TypeDoc cannot read ${folder}`);
  const file = join(target, `${basename(folder)}.json`);
  await application.generateJson(project, file);
  return file;
}

/** All packages at once, so that they link to each other. */
async function write(target, files) {
  const application = await Application.bootstrapWithPlugins({
    plugin: ['typedoc-plugin-markdown'],
    entryPointStrategy: 'merge',
    entryPoints: files,
    name: 'Reference',
    readme: 'none',
    out: target,
    logLevel: 'Warn',
    entryFileName: 'index',
    hidePageHeader: true,
    useCodeBlocks: true,
    indexFormat: 'table',
    parametersFormat: 'table',
  });
  await application.generateOutputs(await application.convert());
  if (application.logger.hasErrors() || application.logger.hasWarnings()) throw new Error('TypeDoc has found a fault');
}
