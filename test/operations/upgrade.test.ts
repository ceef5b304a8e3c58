import { execFile } from 'node:child_process'
import { appendFile, cp, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { root } from '../architecture/sources.ts'
import { blocksOf } from '../docs/blocks.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { startServer, type TestServer } from '../harness/server.ts'
import { readItem } from '../harness/wire.ts'

const run = promisify(execFile)

const lockFile = 'package-lock.json'
const packageList = '.package-lock.json'

/**
 * What an installation has: a clone of the last release, with its packages. Where there is none, a clone of this commit: development versions
 * are not upgraded in place (docs/interface.md O8).
 */
async function installEarlierVersion(directory: string) {
  const [origin, clone] = [join(directory, 'origin'), join(directory, 'mediabucket')]
  const git = async (...args: string[]) => (await run('git', args, { cwd: root })).stdout.trim()
  const earlier = await git('describe', '--tags', '--abbrev=0').catch(() => 'HEAD')
  await git('init', '--quiet', '--bare', '--initial-branch=main', origin)
  await git('push', '--quiet', origin, `${earlier}^{commit}:refs/heads/main`, 'HEAD:refs/heads/new')
  await git('clone', '--quiet', origin, clone)
  // Most versions have another lock file than the one before.
  await appendFile(join(clone, lockFile), '\n')
  const author = ['-c', 'user.name=test', '-c', 'user.email=test@localhost']
  await git('-C', clone, ...author, 'commit', '--quiet', '--all', '--message=Earlier')
  await git('-C', clone, 'push', '--quiet', 'origin', 'main')
  // Links, where the file system is the same: npm replaces files, except for its own list of the packages.
  const [packages, copies] = [join(root, 'node_modules'), join(clone, 'node_modules')]
  await mkdir(copies)
  const names = (await readdir(packages)).filter((name) => name !== '.cache' && name !== packageList)
  const sources = names.map((name) => join(packages, name))
  await run('cp', ['-al', '-t', copies, ...sources]).catch(() => run('cp', ['-a', '-t', copies, ...sources]))
  await cp(join(packages, packageList), join(copies, packageList))
  await cp(join(root, 'packages/gallery/dist'), join(clone, 'packages/gallery/dist'), { recursive: true })
  async function publish(): Promise<void> {
    const tree = ['new^{tree}', '-p', 'main', '-m', 'This version']
    const commit = await git('-C', origin, ...author, 'commit-tree', ...tree)
    await git('-C', origin, 'update-ref', 'refs/heads/main', commit)
  }
  return { clone, publish, program: join(clone, 'packages/server/bin/mediabucket.js') }
}

// npm installs what has changed.
test('docs/operations/upgrade.md: its lines upgrade an installation, whose items stay', {
  timeout: 420_000,
}, async () => {
  await using scratch = await temporaryDirectory()
  const directory = scratch.path
  const data = join(directory, 'data')
  let server: TestServer | null = null
  try {
    const { clone, publish, program } = await installEarlierVersion(directory)
    server = await startServer({}, data, program)
    const { token } = server
    const request = { headers: { authorization: `Bearer ${token}` } }
    const added = await fetch(`${server.url}/api/media`, { method: 'POST', body: 'kept', ...request })
    const { id } = await readItem(added)
    // Some versions of npm add entries for other platforms to the lock file.
    await appendFile(join(clone, lockFile), '\n\n')
    await publish()

    const [block] = blocksOf('docs/operations/upgrade.md')
    const lines = (block?.code ?? '').trim().split('\n')
    expect(lines.length).toBeGreaterThan(4)
    for (const line of lines) {
      if (line === 'sudo systemctl stop mediabucket') await server.stop()
      else if (line === 'sudo systemctl start mediabucket') server = await startServer({}, data, program)
      else
        await run('bash', ['-ec', withTestPaths(line, directory)], {
          cwd: clone,
          env: {
            ...process.env,
            // In the place of the script that the page uses.
            PATH: `${join(clone, 'node_modules/.bin')}:${process.env['PATH']}`,
            MEDIABUCKET_DATA: data,
            MEDIABUCKET_PORT: '0',
          },
        })
    }
    const { stdout: commit } = await run('git', ['rev-parse', 'HEAD', `origin/main`], { cwd: clone })
    expect(new Set(commit.trim().split('\n')).size).toBe(1)
    expect((await run('git', ['status', '--short'], { cwd: clone })).stdout).toBe('')
    const item = await fetch(`${server.url}/api/media/${id}`, request)
    expect((await readItem(item)).id).toBe(id)
  } finally {
    await server?.stop()
  }
})

/** The line with the directories of the test, without the user of the service, and without sudo, which containers have not. */
const withTestPaths = (line: string, directory: string) =>
  line
    .replaceAll('/opt/mediabucket', join(directory, 'mediabucket'))
    .replaceAll('/mnt/backups', join(directory, 'backups'))
    .replaceAll('/var/lib/mediabucket', join(directory, 'data'))
    .replaceAll('sudo ', '')
    .replaceAll('-o mediabucket -g mediabucket ', '')
