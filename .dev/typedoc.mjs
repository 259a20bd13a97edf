// What TypeDoc reads of a published package: its public names, with their doc comments.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Application, Comment, Converter, ReflectionKind } from 'typedoc';

/**
 * Resolves to the application of TypeDoc and what it has read, which is undefined when the package does not compile.
 */
export async function readPackage(folder, entries) {
  const application = await Application.bootstrap({
    name: entries[0].name,
    entryPoints: entries.map(({ source }) => source),
    tsconfig: join(folder, 'tsconfig.json'),
    excludePrivate: true,
    excludeInternal: true,
    // What classes inherit from Nest or Node.js.
    excludeExternals: true,
    // Links to sources need a git remote.
    disableSources: true,
    readme: 'none',
    logLevel: 'Warn',
    validation: { notDocumented: true, invalidLink: true, invalidPath: false, notExported: false },
  });
  application.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    mergeIndex(project);
    nameParameters(project);
    describe(project, folder, entries);
  });
  return { application, project: await application.convert() };
}

/** The names of the module `index` are imported from the package itself. */
function mergeIndex(project) {
  const index = project.children?.find(({ name }) => name === 'index');
  if (index) project.mergeReflections(index, project);
}

/** What package.json says of the package, and of another entry point the sentence that its source begins with. */
function describe(project, folder, entries) {
  const { description } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  project.comment = new Comment([{ kind: 'text', text: `${description}.` }]);
  for (const entry of project.children.filter(({ kind }) => kind === ReflectionKind.Module)) {
    const { source } = entries.find(({ name }) => name.endsWith(`/${entry.name}`));
    const [, text] = /^\/\/ `[^`]+`:? (?:is )?(.+)/.exec(readFileSync(source, 'utf8'));
    entry.comment = new Comment([{ kind: 'text', text: text[0].toUpperCase() + text.slice(1) }]);
  }
}

/** A parameter that is taken apart has no name in the source: that of its type says most. */
function nameParameters(project) {
  const parameters = project.getReflectionsByKind(ReflectionKind.Parameter);
  for (const parameter of parameters.filter(({ name }) => name === '__namedParameters')) {
    const { name = 'options' } = parameter.type;
    parameter.name = name[0].toLowerCase() + name.slice(1);
  }
}
