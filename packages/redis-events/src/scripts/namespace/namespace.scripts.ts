import { defineScripts, loadScripts, scriptsOn } from '../define-scripts.js';
import { LUA_SOURCES } from '../lua-sources.js';

const SCRIPTS = loadScripts(LUA_SOURCES, 'namespace');

/** The scripts for what a namespace has besides its partitions: its record, and the signs of its instances. */
export const namespaceScripts = scriptsOn((client) => defineScripts(client, SCRIPTS));
