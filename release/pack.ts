import { execFile } from 'node:child_process'
import { cp, readFile, symlink } from 'node:fs/promises'
import { basename, delimiter, dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'

export interface Tarballs {
  readonly server: string
  readonly client: string
  readonly stripMetadata: string
  readonly gallery: string
  readonly react: string
  readonly vue: string
}

export type Run = (command: string, ...args: string[]) => Promise<{ stdout: string; stderr: string }>

export const root = resolve(import.meta.dirname, '..')

export const readSource = (path: string): Promise<string> => readFile(join(root, path), 'utf8')

/** Without npm's variables, with which an npm below an npm script would work on the wrong project. */
const env = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name))),
  PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
}

/** Runs programs in a directory, with further variables; rejects as execFile does when one fails. */
export const runIn =
  (cwd: string, variables: Readonly<Record<string, string>> = {}): Run =>
  (command, ...args) =>
    promisify(execFile)(command, args, { cwd, env: { ...env, ...variables }, maxBuffer: 10_000_000 })

/**
 * Packs all packages as npm packs them for the registry, into `directory`, which is empty. Packs copies, since packing builds the
 * packages and changes their manifests for a moment.
 */
export async function packAll(directory: string): Promise<Tarballs> {
  const pack = await preparePacking(directory)
  const [client, stripMetadata, gallery, server, react, vue] = await Promise.all([
    pack('client'),
    pack('strip-metadata'),
    pack('gallery'),
    pack('server'),
    pack('react'),
    pack('vue'),
  ])
  return { server, client, stripMetadata, gallery, react, vue }
}

/** Packs only the packages for apps. */
export async function packApps(directory: string): Promise<void> {
  const pack = await preparePacking(directory)
  await Promise.all(['client', 'react'].map(pack))
}

/** Copies the packages into `directory`. Returns a function that packs one of them. */
async function preparePacking(directory: string): Promise<(name: string) => Promise<string>> {
  const copy = (path: string) =>
    cp(join(root, path), join(directory, 'repo', path), {
      recursive: true,
      filter: (source) => !['node_modules', 'dist'].includes(basename(source)),
    })
  await Promise.all(['packages', 'tsconfig.json', 'docs', 'CHANGELOG.md'].map(copy))
  await symlink(join(root, 'node_modules'), join(directory, 'repo/node_modules'))
  return async (name) => {
    const { stdout } = await runIn(join(directory, 'repo/packages', name))(
      ...(['npm', 'pack', '--pack-destination', directory] as const),
    )
    // The last line is the name, after the output of the build.
    return join(directory, stdout.trim().split('\n').at(-1) ?? '')
  }
}
