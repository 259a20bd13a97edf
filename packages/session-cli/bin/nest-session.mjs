#!/usr/bin/env node
// The program of @nest-session/cli, for whoever operates an application. See docs/operating.md.
import { runCommand } from '../dist/command/run-command.js';

await runCommand();
