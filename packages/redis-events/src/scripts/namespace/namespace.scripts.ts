import { defineScripts, loadScripts, scriptsOn } from '../define-scripts.js';
import { LUA_SOURCES } from '../lua-sources.js';

const SCRIPTS = loadScripts(LUA_SOURCES, 'namespace');

export const namespaceScripts = scriptsOn((client) => defineScripts(client, SCRIPTS));
