import { defineConfig } from 'vitest/config';

const patiently = { testTimeout: 60_000, hookTimeout: 60_000 };

export default defineConfig({ test: { globals: true, include: ['test/**/*.spec.ts'], ...patiently } });
