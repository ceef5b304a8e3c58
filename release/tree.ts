import { globSync } from 'node:fs'
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import server from '../packages/server/package.json' with { type: 'json' }
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
 * Creates what an installation consists of that needs no Node.js of the machine, in `directory`: bin/mediabucket, lib/node, and the
 * packages in lib/node_modules in the versions of the lock file, for Linux with glibc.
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
  await rename(join(node, 'LICENSE'), join(lib, 'LICENSE-NODE'))
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
  await cp(join(modules, 'mediabucket/LICENSE'), join(directory, 'LICENSE'))
  const readme = await readFile(join(modules, 'mediabucket/README.md'), 'utf8')
  // Here the command is bin/mediabucket, and there is no npm.
  await writeFile(join(directory, 'README.md'), readme.replaceAll('npx mediabucket', 'mediabucket'))
  await runIn(directory)('chmod', '-R', 'u=rwX,go=rX', '.')
}

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
