// tsc copies no .lua files: puts the Redis scripts beside the compiled code that reads them.
import { cpSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../packages/session-redis/', import.meta.url));
const isFolderOrScript = (path) => !path.includes('.') || path.endsWith('.lua');
cpSync(`${folder}src/scripts`, `${folder}dist/scripts`, {
  recursive: true,
  filter: (source) => isFolderOrScript(source.slice(folder.length)),
});
if (!readdirSync(`${folder}dist/scripts`).some((name) => name.endsWith('.lua')))
  throw new Error('No .lua file was copied');
