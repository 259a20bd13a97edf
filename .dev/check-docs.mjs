// npm run check:docs: whether every public name, members included, has a doc comment, and whether the links in them
// lead somewhere. What is inherited counts: TypeDoc shows a class the comment of what it implements.
import { ReflectionKind } from 'typedoc';
import { publicEntryPoints } from './entry-points.mjs';
import { main, runQuietly } from './processes.mjs';
import { readPackage } from './typedoc.mjs';

await main(async () => {
  // A package finds the types of the others where they are built.
  await runQuietly('npm', ['run', '--silent', 'build']);
  const entries = publicEntryPoints();
  const results = [];
  for (const folder of new Set(entries.map((entry) => entry.folder))) {
    results.push(
      await isDocumented(
        folder,
        entries.filter((entry) => entry.folder === folder),
      ),
    );
  }
  return results.every(Boolean) ? 0 : 1;
});

async function isDocumented(folder, entries) {
  const { application, project } = await readPackage(folder, entries);
  if (!project) return false;
  const problems = [];
  application.logger.validationWarning = (text) => problems.push(text);
  application.validate(project);
  for (const reflection of project.getReflectionsByKind(ReflectionKind.All)) {
    const { comment } = reflection;
    if (comment && comment.summary.length === 0 && comment.getTag('@throws')) {
      problems.push(`${reflection.getFullName()} is documented by its errors alone`);
    }
  }
  // Members of a type without a name are told of in the comment of what they belong to.
  const found = problems.filter((text) => !text.includes('.__type.'));
  for (const text of found) console.error(text);
  return found.length === 0 && !application.logger.hasErrors() && !application.logger.hasWarnings();
}
