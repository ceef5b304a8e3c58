import { execFile } from 'node:child_process'
import { cp, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../architecture/sources.ts'

/** All packages as npm packs them, installed into an empty project. */
export interface Installed extends AsyncDisposable {
  readonly project: string
  readonly tarballs: { readonly server: string; readonly client: string; readonly gallery: string }
  /** Runs a program in the project; rejects as execFile does when it fails. */
  readonly run: (command: string, ...args: string[]) => Promise<{ stdout: string; stderr: string }>
}

/** Without npm's variables, with which an npm below an npm script would work on the wrong project. */
const env = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name))),
  PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
}

const runIn =
  (cwd: string) =>
  (command: string, ...args: string[]) =>
    promisify(execFile)(command, args, { cwd, env, maxBuffer: 10_000_000 })

/** Packs copies of the packages, since packing builds them and changes their manifests for a moment. */
export async function installPackages(): Promise<Installed> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'mediabucket-packages-')))
  const copy = (path: string) =>
    cp(join(root, path), join(directory, 'repo', path), {
      recursive: true,
      filter: (source) => !['node_modules', 'dist'].includes(basename(source)),
    })
  await Promise.all([copy('packages'), copy('tsconfig.json')])
  await symlink(join(root, 'node_modules'), join(directory, 'repo/node_modules'))
  // One after the other, since the server's build builds the client too.
  const pack = async (name: string) => {
    const packIn = runIn(join(directory, 'repo/packages', name))
    const { stdout } = await packIn('npm', 'pack', '--pack-destination', directory)
    // The last line is the name, after the output of the build.
    return join(directory, stdout.trim().split('\n').at(-1) ?? '')
  }
  const client = await pack('client')
  const server = await pack('server')
  const gallery = await pack('gallery')
  const project = join(directory, 'project')
  await cp(join(import.meta.dirname, 'project'), project, { recursive: true })
  await writeFile(join(project, 'package.json'), '{ "name": "empty", "private": true }')
  const run = runIn(project)
  await run('npm', 'install', client, gallery, server, '--prefer-offline', '--no-audit', '--no-fund')
  return {
    project,
    tarballs: { server, client, gallery },
    run,
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  }
}
