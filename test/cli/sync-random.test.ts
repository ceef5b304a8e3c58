import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { lstat, mkdir, readdir, readFile, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { seededRandom } from '../harness/random.ts'
import type { SharedServer } from '../harness/server.ts'
import { sharedServer } from '../harness/shared-server.ts'
import { start, syncScene } from './sync-scene.ts'

let server: SharedServer
beforeAll(async () => {
  server = await sharedServer()
})

/** Changes of the trees, with a run or two each. */
const steps = Number(process.env['TEST_STEPS'] ?? 12)

/** Names in two forms of Unicode, and files that are directories elsewhere. */
const paths = [
  'a',
  'b',
  'A',
  'd',
  'd/a',
  'd/b',
  'd-1',
  '\u00e9',
  'e\u0301',
  '\u00e9/x',
  'e\u0301/y',
  'deep/er/file',
]
/** More than ten, so that deleting them all needs a word of the user. */
const many = Array.from({ length: 14 }, (_, index) => `many/${index}`)
/** All have the same size. */
const contents = ['AAAA', 'BBBB', 'CCCC', 'DDDD']
/** All files have one of two times. */
const times = [new Date(1_700_000_000_000), new Date(1_600_000_000_000)]

type Random = (limit: number) => number
const one = <T>(random: Random, choices: readonly T[]): T => {
  const choice = choices[random(choices.length)]
  if (choice === undefined) throw new Error('there is no choice')
  return choice
}

/** Regular files with their contents, by their paths in NFC; paths that two files have are in `twins`. */
async function filesOf(root: string) {
  const files = new Map<string, string>()
  const twins = new Set<string>()
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || /\ufffd|mediabucket-part$/.test(entry.name)) continue
    const file = join(entry.parentPath, entry.name)
    const path = relative(root, file).normalize('NFC')
    if (files.has(path)) twins.add(path)
    files.set(path, await readFile(file, 'utf8'))
  }
  for (const path of twins) files.delete(path)
  return { files, twins }
}

/** Changes a tree in a random way. */
async function change(root: string, random: Random): Promise<void> {
  const at = (path: string) => join(root, path)
  async function makeWay(path: string): Promise<void> {
    for (let parent = dirname(path); parent !== '.'; parent = dirname(parent))
      if (
        await lstat(at(parent)).then(
          (found) => !found.isDirectory(),
          () => false,
        )
      )
        await rm(at(parent))
    await rm(at(path), { recursive: true, force: true })
    await mkdir(dirname(at(path)), { recursive: true })
  }
  async function write(path: string): Promise<void> {
    await makeWay(path)
    await writeFile(at(path), one(random, contents))
    const time = one(random, times)
    await utimes(at(path), time, time)
  }
  const path = one(random, paths)
  switch (random(12)) {
    case 0:
      return await rm(at(path), { recursive: true, force: true }).catch(() => {})
    case 1: {
      const from = one(random, [...(await filesOf(root)).files.keys(), path])
      const isFile = await lstat(at(from)).then(
        (found) => found.isFile(),
        () => false,
      )
      if (!isFile || path.startsWith(`${from}/`) || from.startsWith(`${path}/`) || from === path) return
      await rename(at(from), join(root, 'moving'))
      await makeWay(path)
      return await rename(join(root, 'moving'), at(path))
    }
    case 2:
      for (const path of many) await write(path)
      return
    case 3:
      return await rm(at('many'), { recursive: true, force: true })
    case 4:
      await makeWay(path)
      return await symlink('/nothing', at(path))
    case 5:
      await makeWay(path)
      return void (await promisify(execFile)('mkfifo', [at(path)]))
    case 6:
      return await writeFile(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x66, 0xff])]), 'AAAA')
    case 7:
      // As when its disk is not mounted.
      if (random(4) > 0) return
      await rm(root, { recursive: true })
      return await mkdir(root)
    default:
      return await write(path)
  }
}

type Scene = Awaited<ReturnType<typeof syncScene>>

/** The contents of the items with a path, by their ids. */
async function itemsOf({ client }: Scene, known: Map<string, string>) {
  const items: { id: string; path: string; content: string }[] = []
  for await (const { id, path, sha256 } of client.items({ path: '' })) {
    const content = known.get(sha256) ?? (await (await client.get(id)).text())
    known.set(sha256, content)
    items.push({ id, path: path ?? '', content })
  }
  return items
}

type Items = Awaited<ReturnType<typeof itemsOf>>

const newestOf = (items: Items) => new Map(items.map((item) => [item.path, item]))

/** Both sides of a run. */
async function sidesOf(at: Scene, directory: string, texts: Map<string, string>) {
  return { ...(await filesOf(at.at(directory))), items: await itemsOf(at, texts) }
}

type Sides = Awaited<ReturnType<typeof sidesOf>>

/** What runs in one direction have known: the items up, the paths with their contents down. */
type Known = Set<string>

const keyUp = ({ id }: { readonly id: string }) => id
const keyDown = (path: string, content: string) => JSON.stringify([path, content])

function learn(known: Known, { files, twins, items }: Sides, isDown: boolean): void {
  // Up, also earlier items with the same bytes, and those of one of two files with the same path.
  for (const item of isDown ? newestOf(items).values() : items)
    if (files.get(item.path) === item.content || (!isDown && twins.has(item.path)))
      known.add(isDown ? keyDown(item.path, item.content) : keyUp(item))
}

/** What was deleted, without what another one has replaced: nothing unknown, never most of many, nothing without --delete. */
function checkDeletes(before: Sides, after: Sides, known: Known, isDown: boolean, deletes: boolean): void {
  if (isDown) {
    expect(after.items).toEqual(before.items)
    const newest = newestOf(after.items)
    const gone = [...before.files].filter(([path]) => !after.files.has(path) && !after.twins.has(path))
    for (const [path, content] of gone) {
      expect.soft(known.has(keyDown(path, content)), `the file ${path} was known`).toBe(true)
      expect.soft(newest.has(path), `the file ${path} has no item`).toBe(false)
    }
    const isReplaced = ([path]: readonly [string, string]) =>
      [...newest.keys()].some((other) => other.startsWith(`${path}/`))
    const deleted = gone.filter((file) => !isReplaced(file))
    if (!deletes) expect(deleted).toEqual([])
    const all = [...before.files].filter(([path, content]) => known.has(keyDown(path, content))).length
    expect(deleted.length <= 10 || deleted.length * 2 <= all).toBe(true)
    return
  }
  expect(after.files).toEqual(before.files)
  const left = new Set(after.items.map(keyUp))
  const deleted = before.items.filter(
    (item) => !left.has(item.id) && !before.files.has(item.path) && !before.twins.has(item.path),
  )
  for (const item of deleted) expect.soft(known.has(item.id), `the item ${item.path} was known`).toBe(true)
  if (!deletes) expect(deleted).toEqual([])
  const count = (some: Items) => new Set(some.map(({ path }) => path)).size
  const all = count(before.items.filter(({ id }) => known.has(id)))
  expect(count(deleted) <= 10 || count(deleted) * 2 <= all).toBe(true)
}

/** After a run that could transfer everything, the target has everything of the source. */
function checkEqual({ files, twins, items }: Sides, isDown: boolean, isComplete: boolean): void {
  const newest = newestOf(items)
  if (!isDown) {
    for (const [path, content] of files)
      expect.soft(newest.get(path)?.content, `the item of ${path}`).toBe(content)
    return
  }
  if (!isComplete) return
  // Of two files with the same path, the run chose one.
  for (const [path, { content }] of newest)
    if (!twins.has(path)) expect.soft(files.get(path), `the file of ${path}`).toBe(content)
}

test(
  'random trees and runs: nothing unknown and never most of it is deleted, no bytes of the source are lost, and a second run sends nothing',
  async () => {
    const random = seededRandom()
    await using at = await syncScene(server)
    const texts = new Map<string, string>()
    const directories = { up: 'files', down: 'copy' }
    for (const name of Object.values(directories)) await mkdir(at.at(name))
    const known = { up: new Set<string>(), down: new Set<string>() }
    for (let step = 0; step < steps; step += 1) {
      const direction = one(random, ['up', 'up', 'down'] as const)
      const isDown = direction === 'down'
      const directory = directories[direction]
      for (let changes = random(4); changes >= 0; changes -= 1) await change(at.at(directory), random)
      // Somebody else changes the bucket.
      if (random(4) === 0)
        await at.client.upload(Buffer.from(one(random, contents)), { filename: `./${one(random, paths)}` })
      if (random(6) === 0) await at.client.upload(Buffer.from('none'), { filename: 'without a path' })
      if (random(4) === 0) {
        const [item] = await itemsOf(at, texts)
        if (item) await at.client.delete(item.id)
      }
      const deletes = random(2) === 0
      const args = [...(isDown ? ['--down'] : []), at.at(directory), ...(deletes ? ['--delete'] : [])]
      const label = `step ${step}: sync ${args.join(' ')}`
      const before = await sidesOf(at, directory, texts)
      if (random(4) === 0) {
        const { child, exited } = start(at.service, 'sync', ...args)
        await Promise.race([child.stdout ? once(child.stdout, 'data') : exited, exited])
        child.kill('SIGKILL')
        await exited
        const after = await sidesOf(at, directory, texts)
        checkDeletes(before, after, known[direction], isDown, deletes)
        learn(known[direction], after, isDown)
        continue
      }
      const { code, stdout, stderr } = await at.sync(...args)
      expect([0, 23, 24, 25], `${label}\n${stderr}`).toContain(code)
      const after = await sidesOf(at, directory, texts)
      checkDeletes(before, after, known[direction], isDown, deletes)
      checkEqual(after, isDown, code === 0)
      if (code === 0 && deletes && !stderr.includes('no earlier run knew'))
        expect(new Set([...after.files.keys(), ...after.twins]), label).toEqual(
          new Set(after.items.map(({ path }) => path)),
        )
      learn(known[direction], after, isDown)
      const again = await at.sync(...args)
      expect([again.stdout, again.code], `${label}\n${stdout}${stderr}again\n${again.stderr}`).toEqual([
        '',
        code,
      ])
    }
  },
  steps * 20_000,
)
