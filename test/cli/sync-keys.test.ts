import { mkdir, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { random, testSeed } from '../harness/random.ts'
import { type keysScene, useKeysScenes } from './keys-scene.ts'
import { contentsOf, start } from './sync-scene.ts'

/** Changes of both sides, with a run or two each. */
const steps = Number(process.env['TEST_STEPS'] ?? 24)

/** None is a directory of another one. */
const paths = ['a', 'b.txt', 'd/a', 'd/b', 'd/e/c', 'é/x', 'f-1', 'g']
/** Keys that no file has as its path. */
const oddKeys = ['d//a', 'd/', './a', 'e\u0301/x']
/** All have the same size. */
const contents = ['AAAA', 'BBBB', 'CCCC', 'DDDD']

type Random = (limit: number) => number
const one = <T>(random: Random, choices: readonly T[]): T => {
  const choice = choices[random(choices.length)]
  if (choice === undefined) throw new Error('there is no choice')
  return choice
}

type Scene = Awaited<ReturnType<typeof keysScene>>

const contentOf = (stored: string | undefined) => stored?.slice(0, 4)

for (const engine of ['sqlite', 'postgres'] as const)
  describe(engine, () => {
    const newScene = useKeysScenes(engine)

    test('OK1 a key is a path: sync transfers nothing that has the bytes of its key, also without a slash', async () => {
      await using at = await newScene()
      await at.put('a.txt', 'top')
      await at.put('d/b.txt', 'below')
      await at.put('odd//key', 'no path')
      await at.write({ 'a.txt': 'top', 'd/b.txt': 'below' })
      expect(await at.sync(at.at('files'))).toMatchObject({ code: 0, stdout: '' })
      expect(await at.sync('--down', at.at('copy'))).toMatchObject({ code: 0 })
      expect(await contentsOf(at.at('copy'))).toEqual({ 'a.txt': 'top', 'd/b.txt': 'below' })
      expect(await at.list()).toEqual(['a.txt', 'd/b.txt', 'odd//key'])
    })

    test('OK10 a file that replaces an object takes over its key, with what still applies', async () => {
      await using at = await newScene()
      const checksum = Buffer.alloc(4)
      checksum.writeUInt32BE(crc32('<p>1</p>'))
      await at.put('d/page.html', '<p>1</p>', {
        ...{ 'content-type': 'text/html', 'cache-control': 'max-age=7', 'x-amz-acl': 'public-read' },
        ...{ 'x-amz-meta-mtime': '1700000000', 'x-amz-checksum-crc32': checksum.toString('base64') },
      })
      await at.write({ 'd/page.html': '<p>22</p>' })
      expect(await at.sync(at.at('files'))).toMatchObject({ code: 0, stdout: 'replace\td/page.html\n' })
      expect(await at.list()).toEqual(['d/page.html'])
      expect(await at.keys()).toEqual(new Map([['d/page.html', '<p>22</p> public']]))
      const { headers } = await at.head('d/page.html')
      expect(Object.fromEntries(headers)).toMatchObject({
        ...{ 'content-type': 'text/html', 'cache-control': 'max-age=7' },
        etag: expect.stringMatching(/^"[0-9a-f]{32}-1"$/),
      })
      expect(headers.get('x-amz-meta-mtime')).toBeNull()
      expect(headers.get('x-amz-checksum-crc32')).toBeNull()
    })

    test('OK10 of several items with a path, the one that has it as its key counts in both directions', async () => {
      await using at = await newScene()
      await at.put('a', 'keyed')
      await at.client.upload(Buffer.from('newer'), { filename: './a' })
      await at.sync('--down', at.at('copy'))
      expect(await contentsOf(at.at('copy'))).toEqual({ a: 'keyed' })
      await at.write({ a: 'newer' })
      // The bytes are in the bucket already.
      expect(await at.sync(at.at('files'))).toMatchObject({ code: 0, stdout: 'replace\ta\n' })
      expect(await at.list()).toEqual(['a'])
      expect(await at.get('a')).toBe('newer')
    })

    test(
      'OK10 random changes of a directory and through S3: runs make both sides equal, keys keep naming the right bytes, and every file is listed once',
      async () => {
        const draw = random(testSeed())
        await using at = await newScene()
        await mkdir(at.at('files'))
        for (let step = 0; step < steps; step += 1) {
          for (let changes = draw(4); changes >= 0; changes -= 1) await changeFiles(at, draw)
          for (let changes = draw(4); changes >= 0; changes -= 1) await changeBucket(at, draw)
          await runAndCheck(at, draw, `step ${step}`)
        }
      },
      steps * 30_000,
    )
  })

async function changeFiles(at: Scene, draw: Random): Promise<void> {
  const path = one(draw, paths)
  const file = at.at('files', path)
  await mkdir(dirname(file), { recursive: true })
  const others = Object.keys(await contentsOf(at.at('files')))
  const kind = draw(4)
  if (kind === 0) await rm(file, { force: true })
  else if (kind === 1 && others.length > 0) await rename(at.at('files', one(draw, others)), file)
  else {
    await writeFile(file, one(draw, contents))
    const time = one(draw, [new Date(1_700_000_000_000), new Date(1_600_000_000_000)])
    await utimes(file, time, time)
  }
}

async function changeBucket(at: Scene, draw: Random): Promise<void> {
  const key = one(draw, draw(4) === 0 ? oddKeys : paths)
  const known = [...(await at.keys()).keys()]
  switch (draw(8)) {
    case 0:
      return void (known.length > 0 && (await at.remove(one(draw, known))))
    case 1:
      return void (known.length > 0 && (await at.copy(one(draw, known), key).catch(ignoreSame)))
    case 2:
      return void (await at.client.upload(Buffer.from(one(draw, contents)), {
        filename: `./${one(draw, paths)}`,
      }))
    case 3:
      return void (await at.put(key, one(draw, contents), { 'x-amz-acl': 'public-read' }))
    default:
      return void (await at.put(key, one(draw, contents)))
  }
}

/** A copy of an object to itself has to change something. */
function ignoreSame(error: unknown): void {
  if (!String(error).includes('InvalidRequest')) throw error
}

async function runAndCheck(at: Scene, draw: Random, step: string): Promise<void> {
  const isDown = draw(3) === 0
  const deletes = draw(2) === 0
  const args = [...(isDown ? ['--down'] : []), at.at('files'), ...(deletes ? ['--delete=all'] : [])]
  const label = `${step}: sync ${args.join(' ')}`
  const [keysBefore, itemsBefore] = [await at.keys(), await at.items()]
  if (draw(4) === 0) {
    const { child, exited } = start(at.service, 'sync', ...args)
    await Promise.race([new Promise((resolve) => child.stdout?.once('data', resolve)), exited])
    child.kill('SIGKILL')
    await exited
  }
  expect(await at.sync(...args), label).toMatchObject({ code: 0 })
  const [files, keys, items, listed] = [
    new Map(Object.entries(await contentsOf(at.at('files')))),
    await at.keys(),
    await at.items(),
    await at.list(),
  ]
  // Each item once, by its key or below `_items/`.
  expect(listed, label).toHaveLength(items.count)
  expect(new Set(listed).size, label).toBe(items.count)
  if (isDown) {
    expect([keys, items], label).toEqual([keysBefore, itemsBefore])
    for (const [path, found] of items.found)
      expect(files.get(path), `${label}: ${path}`).toBe(contentOf(keys.get(path)) ?? found.at(-1))
    if (deletes) expect(new Set(files.keys()), label).toEqual(new Set(items.found.keys()))
  } else {
    const expected = new Map(
      [...keysBefore].flatMap(([key, stored]) => {
        const content = files.get(key)
        const isKept = !deletes || content !== undefined || oddKeys.includes(key)
        return isKept ? [[key, content === undefined ? stored : content + stored.slice(4)] as const] : []
      }),
    )
    expect(keys, label).toEqual(expected)
    for (const [path, content] of files)
      expect(contentOf(keys.get(path)) ?? items.found.get(path)?.at(-1), `${label}: ${path}`).toBe(content)
    if (deletes)
      expect(items.found, label).toEqual(new Map([...files].map(([path, content]) => [path, [content]])))
  }
  expect(await at.sync(...args), `${label} again`).toMatchObject({ code: 0, stdout: '' })
}
