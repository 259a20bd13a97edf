// Where the repository is on GitHub, as a person has written it and as package.json files have it.

const GITHUB = /^https:\/\/github\.com\/([A-Za-z\d](?:-?[A-Za-z\d])*)\/([\w.-]+?)(?:\.git)?\/?$/;

export const SET_ADDRESS = 'npm run release:address -- https://github.com/OWNER/NAME';

/**
 * The address without what may follow it, such as `.git`.
 * @throws Error that says how an address is written
 */
export function parseAddress(text = '') {
  const [, owner, name] = GITHUB.exec(text) ?? [];
  if (name === undefined || owner === 'OWNER' || /^\.+$/.test(name)) {
    throw new Error(`"${text}" is not the address of a repository on GitHub. Write it like this:\n${SET_ADDRESS}`);
  }
  return `https://github.com/${owner}/${name}`;
}

/** What the package.json file of a folder says of the address. Without a folder, that of the top. */
export function addressFields(address, folder) {
  return {
    repository: { type: 'git', url: `git+${address}.git`, ...(folder && { directory: folder }) },
    homepage: `${address}#readme`,
    bugs: { url: `${address}/issues` },
  };
}
