import { NestFactory } from '@nestjs/core';
import { type AdapterName, adapters, type ApplicationName, applications } from './requests.applications.js';

// Started by BenchServer with the names of an application and of an adapter.
const [application, adapter] = process.argv.slice(2) as [ApplicationName, AdapterName];

const app = await NestFactory.create(applications[application], new adapters[adapter](), { logger: ['error'] });
await app.listen(0, '127.0.0.1');

// Reports its processor time on request, and ends with the process that has started it.
process.on('message', () => process.send!(process.cpuUsage()));
process.on('disconnect', () => process.exit());
process.send!(await app.getUrl());
