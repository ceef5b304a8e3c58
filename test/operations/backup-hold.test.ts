import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../harness/directory.ts'
import { startServer } from '../harness/server.ts'
import { until } from '../harness/until.ts'
import { blobPath, onDisk, upload } from '../harness/upload.ts'

/** A module that runs before the server; `body` is its code, with `DatabaseSync` and `existsSync` in scope. */
async function preload(directory: string, body: string): Promise<Record<string, string>> {
  const path = join(directory, 'preload.mjs')
  await writeFile(
    path,
    `import { existsSync } from 'node:fs'
     import { isMainThread } from 'node:worker_threads'
     import { DatabaseSync } from 'node:sqlite'
     if (isMainThread && process.argv[2] === 'serve') { ${body} }`,
  )
  return { NODE_OPTIONS: `--import file://${path}` }
}

test('S2 if one part fails to stop, the others still stop, and the exit code is 1', async () => {
  await using directory = await temporaryDirectory()
  const settings = await preload(
    directory.path,
    `const { close } = DatabaseSync.prototype
     DatabaseSync.prototype.close = function () {
       if (this.location().endsWith('hold.db')) throw new Error('planted')
       return close.call(this)
     }`,
  )
  await using server = await startServer({ ...settings, ...onDisk })
  await upload(server, 'stored')
  expect(existsSync(join(server.data, 'catalog.db-wal'))).toBe(true)
  expect(await server.stop()).toBe(1)
  expect(server.log().filter(({ level }) => level === 50)).toMatchObject([
    { err: { message: 'planted' }, msg: 'the backup hold did not close' },
  ])
  // The last connection removes it.
  expect(existsSync(join(server.data, 'catalog.db-wal'))).toBe(false)
})

test('S3 while hold.db cannot be read, bytes of deleted items are not removed, and one error is logged; then they are removed', async () => {
  await using directory = await temporaryDirectory()
  const healed = join(directory.path, 'healed')
  const settings = await preload(
    directory.path,
    `const { exec } = DatabaseSync.prototype
     DatabaseSync.prototype.exec = function (sql) {
       if (sql === 'SELECT count(*) FROM sqlite_schema' && this.location().endsWith('hold.db') && !existsSync(${JSON.stringify(healed)}))
         throw Object.assign(new Error('disk I/O error'), { errcode: 10 })
       return exec.call(this, sql)
     }`,
  )
  await using server = await startServer({ ...settings, ...onDisk })
  const reports = () => server.log().filter(({ msg }) => /hold\.db cannot be read/.test(msg))
  const paths = await Promise.all(
    ['one', 'two'].map(async (text) => blobPath(server, (await upload(server, text)).id)),
  )
  for (const path of paths)
    expect((await server.request(`/api/media/${path.split('/').at(-1)}`, { method: 'DELETE' })).status).toBe(
      204,
    )
  await until('it is logged', () => reports().length > 0)
  expect(paths.map(existsSync)).toEqual([true, true])
  await writeFile(healed, '')
  await until('the bytes are removed', () => !paths.some(existsSync))
  expect(reports()).toMatchObject([{ level: 50, err: { message: 'disk I/O error' } }])
})

test('S3 a start replaces a hold.db that is not a database', async () => {
  await using server = await startServer()
  await server.stop()
  await writeFile(join(server.data, 'hold.db'), 'not a database '.repeat(100))
  await using later = await startServer({}, server.data)
  const authorization = `Bearer ${server.token}`
  const { id } = await upload(later, 'x', { authorization })
  const { status } = await later.request(`/api/media/${id}`, { method: 'DELETE', headers: { authorization } })
  expect(status).toBe(204)
  await until('the bytes are removed', () => !existsSync(blobPath(later, id)))
})
