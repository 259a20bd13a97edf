// The environment of the tests: that of Node.js, which leaves no AsyncLocalStorage behind. Before Node.js 24, every
// promise of the process pays for each one, and a worker of Jest runs many files, all of which load their modules anew.
import asyncHooks from 'node:async_hooks';
import { TestEnvironment } from 'jest-environment-node';
import { compileOnce } from './compile-once.mjs';

compileOnce();

const storages = new Set();

asyncHooks.AsyncLocalStorage = class AsyncLocalStorage extends asyncHooks.AsyncLocalStorage {
  constructor(...options) {
    super(...options);
    storages.add(this);
  }
};

export default class extends TestEnvironment {
  async teardown() {
    for (const storage of storages) storage.disable();
    storages.clear();
    await super.teardown();
  }
}
