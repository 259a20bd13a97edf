import { defineScripts, loadScripts, scriptsOn } from '../define-scripts.js';
import { LUA_SOURCES } from '../lua-sources.js';

const SOURCES = loadScripts(LUA_SOURCES, 'namespace', {
  raiseFormat: 'raise-format',
  signInstance: 'sign-instance',
});

/** The scripts for what a namespace has besides its partitions: its record, and the signs of its instances. */
export const namespaceScripts = scriptsOn((client) => defineScripts(client, SOURCES));
