import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { runHere } from './commands.ts'
import { databaseSettings } from './database.ts'
import { runCommand, type SharedServer } from './server.ts'
import { readItem, readPage } from './wire.ts'

const Report = Type.Object({
  clean: Type.Boolean(),
  items: Type.Integer(),
  bytes: Type.Integer(),
  repair: Type.Boolean(),
  verified_bytes: Type.Boolean(),
  server_running: Type.Union([Type.Boolean(), Type.Null()]),
  findings: Type.Array(
    Type.Object({
      code: Type.String(),
      count: Type.Integer(),
      repaired: Type.Integer(),
      subjects: Type.Array(Type.String()),
    }),
  ),
})

/** The report of `fsck --json`. */
export const readReport = (value: unknown) => Value.Parse(Report, value)

/** Runs a command and resolves with its exit code and output; does not reject if it fails. */
export async function outcome(
  args: readonly string[],
  data: string,
  settings: Readonly<Record<string, string>> = {},
) {
  try {
    return { code: 0, ...(await runCommand(args, { ...settings, MEDIABUCKET_DATA: data })) }
  } catch (error) {
    return Value.Parse(
      Type.Object({ code: Type.Integer(), stdout: Type.String(), stderr: Type.String() }),
      error,
    )
  }
}

/** Runs `mediabucket fsck --json` and returns its exit code, its report, and `[count, repaired]` by code. */
export async function fsck(data: string, ...args: string[]) {
  const settings = await databaseSettings(data)
  const { code, stdout } = await outcome(['fsck', '--json', '--grace', '1ms', ...args], data, settings)
  return resultOf(code, stdout)
}

/** As `fsck`, in this process, which takes a tenth of the time. */
export async function fsckHere(data: string, ...args: string[]) {
  try {
    const { printed } = await runHere(data, 'fsck', '--json', '--grace', '1ms', ...args)
    return resultOf(Number(process.exitCode ?? 0), printed)
  } finally {
    // The command sets it for its process.
    process.exitCode = undefined
  }
}

function resultOf(code: number, json: string) {
  const report = readReport(JSON.parse(json))
  return {
    code,
    report,
    found: Object.fromEntries(report.findings.map(({ code, count, repaired }) => [code, [count, repaired]])),
  }
}

/** All URLs on all pages of an idle bucket; throws unless their number equals `total`. */
export async function listAll(server: SharedServer, authorization?: string): Promise<string[]> {
  const init = authorization === undefined ? {} : { headers: { authorization } }
  const urls: string[] = []
  for (let page = 1; ; page++) {
    const { data, last_page, total } = await readPage(await server.request(`/api/media?page=${page}`, init))
    urls.push(...data)
    if (page < last_page) continue
    if (urls.length !== total || new Set(urls).size !== total)
      throw new Error(`${urls.length} items on all pages, and a total of ${total}`)
    return urls
  }
}

/** Ids of listed items whose bytes do not have the hash of their row. */
export async function brokenItems(
  server: SharedServer,
  urls: readonly string[],
  authorization?: string,
): Promise<string[]> {
  const init = authorization === undefined ? {} : { headers: { authorization } }
  const broken: string[] = []
  for (const url of urls) {
    const { pathname } = new URL(url)
    const id = /\/media\/(\w+)/.exec(pathname)?.[1] ?? ''
    const { sha256 } = await readItem(await server.request(`/api/media/${id}`, init))
    const response = await fetch(new URL(pathname, server.url))
    const hash = createHash('sha256')
      .update(Buffer.from(await response.arrayBuffer()))
      .digest('hex')
    if (response.status !== 200 || hash !== sha256) broken.push(id)
  }
  return broken
}

/** Overwrites the second page of this kind of a table, in the order of the keys, as a disk might that has lost it. */
export async function damagePage(data: string, table: string, kind: 'leaf' | 'overflow'): Promise<void> {
  const path = join(data, 'catalog.db')
  const db = new DatabaseSync(path)
  const page = db
    .prepare(
      'SELECT pageno, pgsize FROM dbstat WHERE name = ? AND pagetype = ? ORDER BY path LIMIT 1 OFFSET 1',
    )
    .get(table, kind)
  db.close()
  const [number, size] = [Number(page?.['pageno']), Number(page?.['pgsize'])]
  const file = await open(path, 'r+')
  await file.write(Buffer.alloc(size, 0xff), 0, size, (number - 1) * size)
  await file.close()
}
