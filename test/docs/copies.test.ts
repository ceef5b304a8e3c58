import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { upload } from '../harness/upload.ts'
import { blocksOf } from './blocks.ts'
import { openStage } from './run.ts'

test('the recipe for curl copies every item back, those of one name and of names beyond ASCII too', async () => {
  await using stage = await openStage()
  const names = ['same.txt', 'same.txt', 'größe 東京.txt', '100% #1 "$HOME" -o [x].txt', 'unknown']
  const uploaded = new Map<string, { name: string; text: string }>()
  for (const [index, name] of names.entries()) {
    const text = `content ${index}`
    uploaded.set((await upload(stage.server, text, { name })).id, { name, text })
  }
  const block = blocksOf('docs/recipes.md').find(({ language }) => language === 'sh')
  if (!block) throw new Error('there is no recipe for curl')
  await stage.run(block)
  const copy = join(stage.directory, 'copy')
  // The recipe uploads two more items.
  expect(await readdir(copy)).toHaveLength(names.length + 2)
  for (const [id, { name, text }] of uploaded) {
    expect(await readdir(join(copy, id))).toEqual([name])
    expect(await readFile(join(copy, id, name), 'utf8')).toBe(text)
  }
}, 600_000)
