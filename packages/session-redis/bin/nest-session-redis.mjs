#!/usr/bin/env node
// The command of @nest-session/redis, for whoever operates an application. See docs/operating.md.
import { runCommand } from '../dist/command/run-command.js';

await runCommand();
