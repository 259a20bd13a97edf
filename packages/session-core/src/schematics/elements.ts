import { posix } from 'node:path';
import type { Rule, SchematicContext } from '@angular-devkit/schematics';
import { type Application, type ApplicationOptions, changing } from './application.js';
import { ModuleClass } from './module-class.js';
import { Refusal } from './refusal.js';
import { Templates } from './templates.js';

interface ElementOptions extends ApplicationOptions {
  readonly name: string;
  readonly path?: string;
  readonly module?: string;
}

/** `nest generate --collection @nest-session/core handler NAME`: a provider that hears of expired sessions. */
export function handler(options: ElementOptions): Rule {
  return changing(options, (application, context) => {
    addElement(application, options, context, 'handler');
  });
}

/** `nest generate --collection @nest-session/core deadline NAME`: a kind of deadlines, and its handler. */
export function deadlineKind(options: ElementOptions): Rule {
  return changing(options, (application, context) => {
    if (!application.importing('DeadlineModule', '@nest-session/deadlines'))
      throw new Refusal('Import DeadlineModule and RedisDeadlineModule first: see the page "Deadlines"');
    addElement(application, options, context, 'deadline');
  });
}

function addElement(
  application: Application,
  { name, path = '', module }: ElementOptions,
  context: SchematicContext,
  role: 'handler' | 'deadline',
): void {
  const { dir, base } = posix.parse(posix.join('/', application.sourceRoot, path, name));
  const subject = base
    .replace(/\.\w+$/, '')
    .replaceAll(/(?<=[a-z\d])(?=[A-Z])|[\s_]+/g, '-')
    .toLowerCase();
  const className = `-${subject}-${role}`.replaceAll(/-+(\w)/g, (_, letter: string) => letter.toUpperCase());
  const file = `${dir}/${subject}.${role}.ts`;
  const parent = module ? ModuleClass.in(application, module) : nearestModule(application, dir);
  const text = new Templates(context, new Set(), '').text(`name.${role}.ts`);
  application.create(
    file,
    text.replaceAll(/Name(?=Handler|Deadline)\w+/g, className).replaceAll('name-', `${subject}-`),
  );
  application.sources.write(parent.path, [
    application.import(className, parent.path, file),
    ...parent.added('providers', className),
  ]);
}

/** That of the nearest folder with one file of a module, or else the root module. */
function nearestModule(application: Application, folder: string): ModuleClass {
  const isBelow = folder.startsWith(`/${application.sourceRoot}/`);
  if (!isBelow) return ModuleClass.root(application);
  const modules = application.tree.getDir(folder).subfiles.filter((name) => name.endsWith('.module.ts'));
  const [only] = modules;
  return only && modules.length === 1
    ? ModuleClass.in(application, `${folder}/${only}`)
    : nearestModule(application, posix.dirname(folder));
}
