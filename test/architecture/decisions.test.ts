import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { read, root } from './sources.ts'

const directory = 'docs/decisions'

const records = readdirSync(join(root, directory))
  .filter((name) => name !== 'README.md')
  .sort()

test.each(records)('the decision %s has its number and the sections of a record', (name) => {
  const text = read(`${directory}/${name}`)
  expect(text).toMatch(
    new RegExp(`^# ${records.indexOf(name) + 1}\\. .+\n\nAccepted on \\d{4}-\\d\\d-\\d\\d\\.\n`),
  )
  expect(name).toMatch(new RegExp(`^${String(records.indexOf(name) + 1).padStart(4, '0')}-[\\w-]+\\.md$`))
  expect(text.match(/^## .*$/gm)?.join(' ')).toMatch(
    /^## Context ## Decision( ## Alternatives)?( ## Consequences)?$/,
  )
})
