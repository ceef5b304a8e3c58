import { execFile } from 'node:child_process'
import { cp, mkdir, readlink, symlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { root as sources } from '../architecture/sources.ts'
import { commandInRoot } from './bare-root.ts'
import { type StartedService, startCommand, useService } from './service.ts'

const run = promisify(execFile)

/** What the tests read of the configuration of an image. */
const Config = Type.Object({
  User: Type.String(),
  Env: Type.Array(Type.String()),
  Entrypoint: Type.Array(Type.String()),
  Cmd: Type.Array(Type.String()),
  Healthcheck: Type.Object({ Test: Type.Array(Type.String()) }),
})

/** An image whose root file system is a directory. No container runs: its command is run in this directory. */
interface Image {
  readonly root: string
  readonly config: Type.Static<typeof Config>
}

export const readConfig = (config: unknown): Image['config'] => Value.Parse(Config, config)

const settingsOf = ({ Env }: Image['config']): Record<string, string> =>
  Object.fromEntries(Env.map((line) => line.split(/=(.*)/s).slice(0, 2)))

/** Starts the command of an image as its user, uses the service, and runs the health check with the right port and with a wrong one. */
export async function useImage({ root, config }: Image): Promise<void> {
  const env = settingsOf(config)
  const inside = (command: readonly string[]) => commandInRoot(root, command, `--userspec=${config.User}`)
  await using service: StartedService = await startCommand(inside([...config.Entrypoint, ...config.Cmd]), {
    ...env,
    MEDIABUCKET_HOST: '127.0.0.1',
    MEDIABUCKET_PORT: '0',
  })
  await useService(service)
  const [, ...health] = config.Healthcheck.Test
  const isHealthy = async (port: string) => {
    const options = { env: { ...env, MEDIABUCKET_PORT: port } }
    const [program = '', ...args] = ['chroot', root, ...health]
    return await run(program, args, options).then(
      () => true,
      () => false,
    )
  }
  const { port } = new URL(service.url)
  if (!(await isHealthy(port)) || (await isHealthy('1'))) throw new Error('the health check is wrong')
}

/** The image that the Dockerfile begins with, and what that of Docker contains of Debian. */
const base = 'docker.io/library/node:26-bookworm-slim'
const basePackages = ['ca-certificates', 'libatomic1', 'libstdc++6']

/** Makes a root file system with the Node.js and the npm of this process, and the certificates of this machine. Needs mmdebstrap and root. */
async function createNodeRoot(root: string): Promise<void> {
  const account = [
    'echo node:x:1000:1000::/home/node:/bin/bash >> "$1/etc/passwd"',
    'echo node:x:1000: >> "$1/etc/group"',
    'install -d -o 1000 -g 1000 "$1/home/node"',
  ].map((line) => `--customize-hook=${line}`)
  const include = `--include=${basePackages.join(',')}`
  await run('mmdebstrap', ['--quiet', '--variant=apt', include, ...account, 'bookworm', root])
  const local = join(root, 'usr/local')
  await cp(process.execPath, join(local, 'bin/node'), { dereference: true })
  const { stdout: npm } = await run('sh', ['-c', 'command -v npm'])
  const program = resolve(dirname(npm.trim()), await readlink(npm.trim()))
  await mkdir(join(local, 'lib/node_modules'), { recursive: true })
  await run('cp', ['-a', resolve(dirname(program), '..'), join(local, 'lib/node_modules/npm')])
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm'))
  const certificates = 'etc/ssl/certs/ca-certificates.crt'
  await cp(join('/', certificates), join(root, certificates))
}

/**
 * Builds the Dockerfile of the repository with an argument, below `directory`, without a registry of images: its base is made of Debian packages. Needs
 * buildah, mmdebstrap, root and the registry of npm.
 */
export async function buildDockerfile(directory: string, argument: string): Promise<Image> {
  const places = ['--root', join(directory, 'storage'), '--runroot', join(directory, 'run')]
  const buildah = async (...args: readonly string[]) => {
    const command = ['--storage-driver', 'vfs', ...places, ...args]
    return (await run('buildah', command, { maxBuffer: 10_000_000 })).stdout.trim()
  }
  const node = join(directory, 'node')
  await createNodeRoot(node)
  const empty = await buildah('from', 'scratch')
  await buildah('copy', '--quiet', empty, node, '/')
  // npm trusts these certificates too, as it does on this machine.
  const variables = [
    'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    'NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt',
  ]
  await buildah('config', ...variables.flatMap((variable) => ['--env', variable]), empty)
  await buildah('commit', '--quiet', '--rm', empty, base)
  const settings = ['--isolation', 'chroot', '--format', 'docker', '--pull-never']
  await buildah('build', ...settings, '--build-arg', argument, '--tag', 'mediabucket', sources)
  const container = await buildah('from', '--pull-never', 'mediabucket')
  const { Docker } = JSON.parse(await buildah('inspect', '--type', 'image', 'mediabucket'))
  return { root: await buildah('mount', container), config: readConfig(Docker.config) }
}
