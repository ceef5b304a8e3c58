import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { describe, expect, test } from 'vitest'
import { newItemId } from '../../packages/server/src/core/ids.ts'
import { builtInSizes } from '../../packages/server/src/core/variant-sizes.ts'
import { createVariantList } from '../../packages/server/src/core/variants.ts'
import { objectsOf, s3Settings } from '../harness/ceph.ts'
import { temporaryDirectory } from '../harness/directory.ts'
import { expectProblem } from '../harness/problem.ts'
import { runCommand, startServer } from '../harness/server.ts'
import { brokenItems, fsck, listAll } from '../harness/upkeep.ts'
import { upload } from '../harness/upload.ts'

type Settings = Readonly<Record<string, string>>

/** Runs a command that may fail. */
async function outcome(args: readonly string[], settings: Settings) {
  const Failure = Type.Object({ code: Type.Integer(), stdout: Type.String(), stderr: Type.String() })
  return await runCommand(args, settings).then(
    (output) => ({ code: 0, ...output }),
    (error: unknown) => Value.Parse(Failure, error),
  )
}

const Report = Type.Object({
  findings: Type.Array(Type.Object({ code: Type.String(), count: Type.Integer(), repaired: Type.Integer() })),
})

/** The exit code of `fsck`, and `[count, repaired]` by finding. */
async function check(settings: Settings, ...options: string[]) {
  const { code, stdout } = await outcome(['fsck', '--json', '--grace', '1ms', ...options], settings)
  const { findings } = Value.Parse(Report, JSON.parse(stdout))
  return [code, Object.fromEntries(findings.map(({ code, count, repaired }) => [code, [count, repaired]]))]
}

describe('upkeep of an S3 store', () => {
  test('F1, F3 fsck finds missing, wrong and unknown objects; --repair moves those without a row to lost+found/', async () => {
    const stored = await s3Settings()
    await using server = await startServer(stored)
    const settings = { ...stored, MEDIABUCKET_DATA: server.data }
    const objects = await objectsOf(stored)
    const names = ['missing', 'longer', 'changed', 'kept']
    const items = await Promise.all(names.map((name) => upload(server, name)))
    const [missing, longer, changed, kept] = items
    if (!missing || !longer || !changed || !kept) throw new Error('four items')
    await server.stop()
    expect(await check(settings, '--verify-bytes')).toEqual([0, {}])

    const orphan = newItemId()
    await objects.put(orphan, 'planted')
    await objects.put('notes.txt', 'mine')
    await objects.put(`variants/${newItemId()}/${createVariantList(builtInSizes).keys[0]}`, 'a variant')
    await objects.remove(missing.id)
    await objects.put(longer.id, 'longer!')
    await objects.put(changed.id, 'CHANGED')
    const lasting = { 'bytes-missing': [1, 0], 'size-wrong': [1, 0], 'hash-wrong': [1, 0] }
    const unknown = (repaired: number) => ({
      'bytes-orphaned': [1, repaired],
      'entry-foreign': [1, repaired],
      'variant-orphaned': [1, repaired],
    })
    expect(await check(settings, '--verify-bytes')).toMatchObject([1, { ...lasting, ...unknown(0) }])
    expect(await objects.read(orphan)).toBe('planted')
    expect(await check(settings, '--verify-bytes', '--repair')).toMatchObject([
      1,
      { ...lasting, ...unknown(1) },
    ])
    expect(await check(settings, '--verify-bytes')).toEqual([1, lasting])
    const moved = (await objects.names()).find((name) => name.startsWith(`lost+found/stored.${orphan}.`))
    expect(moved && (await objects.read(moved))).toBe('planted')

    // Copied back, they are right again.
    await Promise.all(items.map(({ id }, index) => objects.put(id, names[index] ?? '')))
    await using later = await startServer(stored, server.data)
    await expectProblem(await fetch(new URL(new URL(changed.url).pathname, later.url)), 500, 'bytes-missing')
    expect(await check(settings, '--verify-bytes')).toEqual([0, {}])
    const authorization = `Bearer ${server.token}`
    const urls = await listAll(later, authorization)
    expect([urls.length, await brokenItems(later, urls, authorization)]).toEqual([4, []])
  })

  test('F2 while servers upload, fsck --repair moves orphans and nothing else', async () => {
    const stored = await s3Settings()
    await using server = await startServer(stored)
    const settings = { ...stored, MEDIABUCKET_DATA: server.data }
    const objects = await objectsOf(stored)
    const orphan = newItemId()
    await objects.put(orphan, 'planted')
    let isChecking = true
    const uploads = (async () => {
      for (let count = 0; isChecking || count < 10; count += 1) await upload(server, randomBytes(10_000))
    })()
    expect(await check(settings, '--repair')).toEqual([0, { 'bytes-orphaned': [1, 1] }])
    isChecking = false
    await uploads
    expect(await objects.names()).toContainEqual(expect.stringMatching(`^lost\\+found/stored.${orphan}`))
    const urls = await listAll(server)
    expect(await brokenItems(server, urls)).toEqual([])
  })

  test('F7, F8, F11 a backup from the store is restored to a directory, and moved to another place in the store', async () => {
    await using directory = await temporaryDirectory()
    const [backup, restored] = ['backup', 'restored'].map((name) => join(directory.path, name))
    if (!backup || !restored) throw new Error('two directories')
    const base = { MEDIABUCKET_BASE_URL: 'http://media.test' }
    const stored = await s3Settings()
    await using server = await startServer({ ...stored, ...base })
    const settings = { ...stored, MEDIABUCKET_DATA: server.data }
    await upload(server, 'small')
    const large = randomBytes(10_000_000)
    await upload(server, large, { name: 'large.bin', type: '' })
    const lost = await upload(server, 'lost')
    const listed = await listAll(server)
    expect((await runCommand(['backup', backup], settings)).stdout).toMatch(/^Backed up 3 items .*: 3 copied/)
    expect((await runCommand(['backup', backup], settings)).stdout).toMatch(/: 0 copied .*, 3 already there/)

    await (await objectsOf(stored)).remove(lost.id)
    const faulty = await outcome(['backup', join(directory.path, 'other')], settings)
    expect([faulty.code, faulty.stdout.includes(lost.id) || faulty.stderr.includes(lost.id)]).toEqual([
      5,
      true,
    ])

    const refused = await outcome(['restore', backup], settings)
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('MEDIABUCKET_BLOBS_URL')])
    await runCommand(['restore', backup], { MEDIABUCKET_DATA: restored })
    expect((await fsck(restored, '--verify-bytes')).code).toBe(0)
    const { MEDIABUCKET_BLOBS_URL: place = '', ...credentials } = await s3Settings()
    await runCommand(['migrate', '--to', place], { ...credentials, MEDIABUCKET_DATA: restored })

    await using later = await startServer({ ...credentials, ...base, MEDIABUCKET_BLOBS_URL: place }, restored)
    const authorization = `Bearer ${server.token}`
    const urls = await listAll(later, authorization)
    expect([urls, await brokenItems(later, urls, authorization)]).toEqual([listed, []])
  })
})
