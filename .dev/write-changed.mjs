import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** Writes a file, and its folder. One that is as it should be stays untouched: a program may be reading it. */
export function writeChanged(path, text) {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Copies a text file in the same way. */
export function copyChanged(source, target) {
  writeChanged(target, readFileSync(source, 'utf8'));
}
