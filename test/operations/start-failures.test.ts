import { execFile } from 'node:child_process'
import { chown, copyFile, readFile, truncate, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { basics, bin, startServer } from '../harness/server.ts'
import { canMount, smallDisk } from '../harness/small-disk.ts'
import { upload } from '../harness/upload.ts'

const run = promisify(execFile)

/** Starts a service that must fail, through other programs, and returns its output and its exit code. */
async function failedStart(
  data: string,
  prefix: readonly string[] = [],
  settings: Record<string, string> = {},
  options: readonly string[] = [],
) {
  const [program = '', ...args] = [...prefix, process.execPath, bin, 'serve', ...options]
  const env = { ...basics, MEDIABUCKET_PORT: '0', ...settings, MEDIABUCKET_DATA: data }
  return run(program, args, { env, timeout: 60_000 }).then(
    () => {
      throw new Error('it did not fail')
    },
    ({ code, stderr, stdout }: { code: number; stderr: string; stdout: string }) => ({
      code,
      stderr,
      stdout,
    }),
  )
}

/** As failedStart, of `serve --check --connect`. */
const failedCheck = (data: string, prefix: readonly string[] = []) =>
  failedStart(data, prefix, {}, ['--check', '--connect'])

const oneLine = (...words: readonly (string | RegExp)[]) => ({
  code: 1,
  stdout: '',
  stderr: expect.toSatisfy(
    (printed: string) => {
      // The log may contain warnings before it.
      const text = printed.replace(/^\{.*\}\n/gm, '')
      return (
        /^mediabucket: [^\n]+\n$/.test(text) &&
        words.every((word) => (typeof word === 'string' ? text.includes(word) : word.test(text)))
      )
    },
    `one line with ${words.join(', ')}`,
  ),
})

/** Data with one stored item; each test uses a copy. */
let original: string
beforeAll(async () => {
  const server = await startServer()
  for (const text of ['one', 'two']) await upload(server, text)
  await server.stop()
  original = server.data
  return () => server[Symbol.asyncDispose]()
})

async function copyOfData() {
  const directory = await temporaryDirectory()
  await run('cp', ['-a', `${original}/.`, directory.path])
  return directory
}

/** Damages a file of the catalog as a broken disk might. */
const damages: Readonly<Record<string, (catalog: string) => Promise<unknown>>> = {
  'a catalog that is text': (path) => writeFile(path, 'not a database, but text '.repeat(1000)),
  'a catalog with another first page': async (path) =>
    writeFile(path, (await readFile(path)).fill(0x55, 100, 4096)),
  'a catalog that was cut off': (path) => truncate(path, 3 * 4096),
  'a write-ahead log that was overwritten': (path) => writeFile(`${path}-wal`, Buffer.alloc(10_000, 0x55)),
}

test.each(Object.entries(damages))(
  'S6 %s is reported in one line with its path and the remedy',
  async (_title, damage) => {
    await using data = await copyOfData()
    await damage(join(data.path, 'catalog.db'))
    expect(await failedStart(data.path)).toEqual(
      oneLine(join(data.path, 'catalog.db'), 'damaged', 'Restore a backup'),
    )
  },
)

test('S6, O14 a catalog without a table, of a newer version, or of another program is reported in one line', async () => {
  await using data = await copyOfData()
  const path = join(data.path, 'catalog.db')
  const change = (sql: string) => {
    const db = new DatabaseSync(path)
    db.exec(sql)
    db.close()
  }
  change('PRAGMA foreign_keys = OFF; DROP TABLE items')
  expect(await failedStart(data.path)).toEqual(oneLine(path, 'the table "items" is missing', 'Make a backup'))
  const names = await data.names()
  expect(await failedCheck(data.path)).toEqual(oneLine(path, 'the table "items" is missing', 'Make a backup'))
  expect(await data.names()).toEqual(names)
  for (const [sql, ...words] of [
    ['PRAGMA user_version = 1000', 'newer mediabucket', 'restore a backup'],
    ['PRAGMA application_id = 42', 'another program', 'MEDIABUCKET_DATA'],
  ] as const) {
    change(sql)
    for (const failure of [await failedStart(data.path), await failedCheck(data.path)])
      expect(failure).toEqual(oneLine(path, ...words))
  }
})

test('S6 a lock.db that is not a database is reported in one line', async () => {
  await using data = await copyOfData()
  await writeFile(join(data.path, 'lock.db'), 'not a database '.repeat(100))
  expect(await failedStart(data.path)).toEqual(oneLine(join(data.path, 'lock.db'), 'Remove it'))
})

test('S6 an invalid setting is reported in one line, with exit code 2', async () => {
  await using data = await temporaryDirectory()
  const failure = await failedStart(data.path, [], { MEDIABUCKET_BASE_URL: 'media.example.org' })
  expect(failure).toEqual({ ...oneLine('MEDIABUCKET_BASE_URL', 'https://media.example.org'), code: 2 })
})

test('S6 an address of another machine is reported in one line', async () => {
  await using data = await temporaryDirectory()
  expect(await failedStart(data.path, [], { MEDIABUCKET_HOST: '192.0.2.1' })).toEqual(
    oneLine('MEDIABUCKET_HOST'),
  )
})

test('S6 too few file descriptors are reported in one line', async () => {
  await using data = await copyOfData()
  expect(await failedStart(data.path, ['prlimit', '--nofile=26'])).toEqual(oneLine('ulimit -n'))
})

describe.skipIf(process.env['CI'] === undefined && !(await canMount()))('as root', () => {
  /** Drops the capability with which root bypasses file permissions. */
  const unprivileged = [
    'setpriv',
    '--bounding-set=-dac_override,-dac_read_search',
    '--inh-caps=-dac_override,-dac_read_search',
  ]

  test.each(['.', 'catalog.db', 'lock.db', 'blobs'])(
    'S6, O14 %s of another user is reported in one line',
    async (name) => {
      await using data = await copyOfData()
      await chown(join(data.path, name), 12345, 12345)
      const words = [data.path, 'uid 12345', 'chown']
      expect(await failedStart(data.path, unprivileged)).toEqual(oneLine(...words))
      expect(await failedCheck(data.path, unprivileged)).toEqual(oneLine(...words))
    },
  )

  test('commands on a data directory of another user report that this user cannot read it, and run as its owner for root', async () => {
    await using data = await copyOfData()
    await run('chown', ['-R', '12345:12345', data.path])
    const env = { ...basics, MEDIABUCKET_DATA: data.path }
    const tokenList = (...prefix: readonly string[]) => {
      const [program = '', ...args] = [...prefix, process.execPath, bin, 'token', 'list']
      return run(program, args, { env })
    }
    expect((await tokenList(...unprivileged)).stdout).toContain('first')
    await using ofRoot = await temporaryDirectory()
    const copy = join(ofRoot.path, 'program')
    await run('cp', ['-r', dirname(dirname(bin)), copy])
    await expect(
      run(process.execPath, [join(copy, 'bin', basename(bin)), 'token', 'list'], { env }),
    ).rejects.toMatchObject({
      code: 1,
      stderr: `mediabucket: the user who owns ${data.path} cannot read the program in ${join(copy, 'dist')}. Install it where all users can read it.\n`,
    })
    await expect(tokenList('setpriv', '--reuid=12346', '--clear-groups')).rejects.toMatchObject({
      code: 1,
      stderr: `mediabucket: ${data.path} cannot be read by this user. Run this command as the owner of the data, for example with sudo -u.\n`,
    })
  })

  test('S6, O14 a data directory that cannot be created is reported in one line', async () => {
    await using other = await temporaryDirectory()
    await chown(other.path, 12345, 12345)
    const data = join(other.path, 'data')
    // It creates nothing.
    expect(await failedCheck(data, unprivileged)).toEqual(oneLine(other.path, 'MEDIABUCKET_DATA'))
    expect(await failedStart(data, unprivileged)).toEqual(oneLine(other.path, 'MEDIABUCKET_DATA'))
  })

  test('S6, O14 data on a read-only disk, and a first start on a full disk, are reported in one line', async () => {
    await using disk = await smallDisk(10)
    await run('cp', ['-a', `${original}/.`, disk.path])
    await run('mount', ['-o', 'remount,ro', disk.path])
    for (const failure of [await failedStart(disk.path), await failedCheck(disk.path)])
      expect(failure).toEqual(oneLine(disk.path, 'read-only'))
    await using full = await smallDisk(1)
    await copyFile(join(original, 'catalog.db'), join(full.path, 'catalog.db'))
    await full.fill()
    expect(await failedStart(full.path)).toEqual(oneLine(/disk is full/, /[Ff]ree some space/))
  })
})
