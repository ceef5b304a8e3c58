import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { cp, mkdir } from 'node:fs/promises'
import { release } from 'node:os'
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

/** Makes `root` the root directory of Debian for arm64 with what the service and its launcher need. Needs mmdebstrap. */
export async function createArm64Root(root: string): Promise<void> {
  await run('mmdebstrap', [
    '--quiet',
    // Unpacked only: the scripts of these packages do not run here.
    '--variant=extract',
    '--architectures=arm64',
    '--include=coreutils,dash,libatomic1,libstdc++6',
    'bookworm',
    root,
  ])
  for (const name of ['dev', 'proc']) await mkdir(join(root, name), { recursive: true })
}

/**
 * The command that runs one for arm64 in such a root directory, with the processor that QEMU emulates. The kernel starts QEMU for programs
 * below this command only. Throws before Linux 6.7, whose emulators were those of the whole machine.
 */
export function commandInArm64Root(root: string, command: readonly string[]): string[] {
  const [major = 0, minor = 0] = release().split('.').map(Number)
  if (major * 100 + minor < 607)
    throw new Error(`The emulation of arm64 needs Linux 6.7 or newer, and this is Linux ${release()}.`)
  const script = `
    mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
    cat /usr/lib/binfmt.d/qemu-aarch64.conf > /proc/sys/fs/binfmt_misc/register
    for name in dev proc; do mount --rbind "/$name" "$0/$name"; done
    exec chroot "$0" "$@"`
  return [...['unshare', '--user', '--map-root-user', '--mount', 'sh', '-ec', script, root], ...command]
}
