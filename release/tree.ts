import { globSync } from 'node:fs'
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import server from '../packages/server/package.json' with { type: 'json' }
import { writeManPage } from './man-page.ts'
import { root, runIn, type Tarballs } from './pack.ts'

export const architectures = ['x64', 'arm64'] as const
export type Architecture = (typeof architectures)[number]

/** Their names at Debian and in images. */
export const debianNames: Readonly<Record<Architecture, string>> = { x64: 'amd64', arm64: 'arm64' }

export const { version } = server

/** Runs the service with the Node.js beside it, also by a symbolic link. */
const launcher = `#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
exec "$here/../lib/node" "$here/../lib/node_modules/mediabucket/bin/mediabucket.js" "$@"
`

/**
 * Creates what an installation consists of that needs no Node.js of the machine, in `directory`: bin/mediabucket, lib/node, the
 * packages in lib/node_modules in the versions of the lock file, for Linux with glibc, the pages for operators, the manual page, the
 * completion of shells, and the licences.
 */
export async function createTree(
  directory: string,
  architecture: Architecture,
  tarballs: Pick<Tarballs, 'server' | 'gallery'>,
): Promise<void> {
  await mkdir(directory, { recursive: true })
  const scratch = await mkdtemp(join(directory, 'install-'))
  for (const path of ['package.json', 'package-lock.json', '.npmrc'])
    await cp(join(root, path), join(scratch, path))
  for (const name of await readdir(join(root, 'packages')))
    await cp(join(root, 'packages', name, 'package.json'), join(scratch, 'packages', name, 'package.json'))
  // The service's packages, and the Node.js that the repository itself uses.
  const selected = ['--workspace=mediabucket', '--include-workspace-root', '--omit=dev']
  const platform = ['--os=linux', `--cpu=${architecture}`, '--libc=glibc']
  const quiet = ['--ignore-scripts', '--no-audit', '--prefer-offline']
  await runIn(scratch)('npm', 'ci', ...selected, ...platform, ...quiet)

  const [lib, modules] = [join(directory, 'lib'), join(directory, 'lib/node_modules')]
  const node = join(scratch, 'node_modules', `node-linux-${architecture}`)
  await mkdir(join(directory, 'bin'))
  await mkdir(lib)
  await rename(join(node, 'bin/node'), join(lib, 'node'))
  await mkdir(join(directory, 'licences'))
  await rename(join(node, 'LICENSE'), join(directory, 'licences/node.txt'))
  await rename(join(scratch, 'node_modules'), modules)
  // npm ignores the option --libc, and also installs the binaries for musl.
  for (const name of globSync('@img/*linuxmusl*', { cwd: modules }))
    await rm(join(modules, name), { recursive: true })
  for (const name of [
    `node-linux-${architecture}`,
    '.bin',
    '.package-lock.json',
    '@mediabucket',
    'mediabucket',
  ])
    await rm(join(modules, name), { recursive: true, force: true })
  for (const [name, tarball] of [
    ['mediabucket', tarballs.server],
    ['@mediabucket/gallery', tarballs.gallery],
  ] as const) {
    await mkdir(join(modules, name), { recursive: true })
    await runIn(directory)(
      'tar',
      'xzf',
      tarball,
      '--strip-components=1',
      '--no-same-owner',
      '-C',
      join(modules, name),
    )
  }
  await rm(scratch, { recursive: true })
  await writeFile(join(directory, 'bin/mediabucket'), launcher)
  await chmod(join(directory, 'bin/mediabucket'), 0o755)
  for (const name of ['docs', 'CHANGELOG.md'])
    await rename(join(modules, 'mediabucket', name), join(directory, name))
  await writeLicences(join(directory, 'licences'), modules)
  await writeManPage(join(directory, 'share/man/man1/mediabucket.1'))
  await writeCompletions(join(directory, 'share'))
  await cp(join(modules, 'mediabucket/LICENSE'), join(directory, 'LICENSE'))
  const readme = await readFile(join(modules, 'mediabucket/README.md'), 'utf8')
  // Here the command is bin/mediabucket, and there is no npm.
  await writeFile(join(directory, 'README.md'), readme.replaceAll('npx mediabucket', 'mediabucket'))
  await runIn(directory)('chmod', '-R', 'u=rwX,go=rX', '.')
}

/** Where each shell looks for the completion of a command, below share/. */
export const completionFiles = {
  bash: 'bash-completion/completions/mediabucket',
  zsh: 'zsh/vendor-completions/_mediabucket',
  fish: 'fish/vendor_completions.d/mediabucket.fish',
} as const

async function writeCompletions(directory: string): Promise<void> {
  const program = join(root, 'packages/server/bin/mediabucket.js')
  for (const [shell, file] of Object.entries(completionFiles)) {
    const { stdout } = await runIn(directory)(process.execPath, program, 'completion', shell)
    await mkdir(join(directory, file, '..'), { recursive: true })
    await writeFile(join(directory, file), stdout)
  }
}

/** The licences that the library for pictures and the libraries in it have, besides those whose texts they contain. */
const commonLicences = ['LGPL-3', 'GPL-3', 'MPL-1.1', 'MPL-2.0', 'Apache-2.0']

/** Writes the licences of what an installation contains. Debian has the texts of the common ones. */
async function writeLicences(directory: string, modules: string): Promise<void> {
  for (const name of commonLicences)
    await cp(join('/usr/share/common-licenses', name), join(directory, `${name}.txt`), { dereference: true })
  await rename(
    join(modules, 'mediabucket/dist/THIRD-PARTY-NOTICES.txt'),
    join(directory, 'bundled-packages.txt'),
  )
  const [library = ''] = globSync('@img/sharp-libvips-linux-*', { cwd: modules })
  const described = await readFile(join(modules, library, 'README.md'), 'utf8')
  const versions = await readFile(join(modules, library, 'versions.json'), 'utf8')
  await writeFile(join(directory, 'libvips.md'), `${described.trim()}\n\nVersions:\n\n${versions}`)
  await writeFile(join(directory, 'README.md'), licencesPage(library))
}

const licencesPage = (library: string): string => `# Licences

Mediabucket itself has the MIT licence (LICENSE in the directory above). An installation also contains:

| What | Licence |
| --- | --- |
| Node.js, \`lib/node\` | node.txt, with the licences of its libraries |
| the packages that are bundled into \`mediabucket\` | bundled-packages.txt |
| the packages in \`lib/node_modules\` | the file LICENSE of each |
| libvips and the libraries in it, \`lib/node_modules/${library}/lib\` | GNU Lesser General Public License, version 3 (LGPL-3.txt, which extends GPL-3.txt); libvips.md lists the libraries, their versions and their licences |

libvips is a shared library: to use a version that you have changed, replace the file. Its sources and the way in which it is built are at
https://github.com/lovell/sharp-libvips, for the version in libvips.md.
`

/** Options of tar for an archive that depends on the contents of the files only. Seconds since 1970. */
export const reproducible = (time: string): string[] => [
  '--sort=name',
  `--mtime=@${time}`,
  '--owner=0',
  '--group=0',
  '--numeric-owner',
  '--format=gnu',
]

/** Packs a directory, with its own name as the first part of all paths. */
export async function writeArchive(parent: string, name: string, file: string, time: string): Promise<void> {
  const tar = join(parent, `${name}.tar`)
  await runIn(parent)('tar', 'cf', tar, ...reproducible(time), name)
  await runIn(parent)('gzip', '-n', tar)
  await rename(`${tar}.gz`, file)
}
