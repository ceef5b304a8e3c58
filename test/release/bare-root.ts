import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { cp, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** What a launcher needs of a system. */
const programs = ['/bin/sh', '/usr/bin/dirname', '/usr/bin/readlink']

/** Makes `root`, which contains `tree`, the root directory of a system with a shell, two programs, their libraries, and no Node.js. Needs root. */
export async function createBareRoot(root: string, tree: string): Promise<void> {
  const native = globSync('lib/{node,node_modules/@img/*/lib/*.{node,so*}}', { cwd: tree }).map((path) =>
    join(tree, path),
  )
  const linked = await Promise.all(
    [...programs, ...native].map(async (path) => (await run('ldd', [path])).stdout),
  )
  const libraries = linked
    .flatMap((text) => [...text.matchAll(/(?:=> |^\s*)(\/\S+) \(/gm)].map(([, path = '']) => path))
    .filter((path) => !path.startsWith(root))
  for (const path of new Set([...programs, ...libraries])) {
    await mkdir(join(root, dirname(path)), { recursive: true })
    await cp(path, join(root, path), { dereference: true })
  }
  for (const name of ['dev', 'opt', 'proc', 'tmp']) await mkdir(join(root, name), { recursive: true })
  await run('mknod', ['-m', '666', join(root, 'dev/null'), 'c', '1', '3'])
}

/** The command that runs another one in a root directory with its own /proc, which is mounted as long as the command runs. Needs root. */
export const commandInRoot = (
  root: string,
  command: readonly string[],
  ...options: readonly string[]
): string[] => [
  ...['unshare', '--mount', 'sh', '-c', 'mount -t proc proc "$0/proc" && exec chroot "$@"', root],
  ...[...options, root, ...command],
]
