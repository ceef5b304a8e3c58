import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { read, root } from './sources.ts'

const directory = 'docs/decisions'

const records = readdirSync(join(root, directory))
  .filter((name) => name !== 'README.md')
  .sort()

test('the index of the decisions lists each record once, in order, with its title and date', () => {
  const expected = records.map((name, index) => {
    const [, title, date] =
      read(`${directory}/${name}`).match(/^# \d+\. (.+)\n\nAccepted on (\d{4}-\d\d-\d\d)\./) ?? []
    return `| ${index + 1} | [${title}](${name}) | ${date} |`
  })
  expect(records.length).toBeGreaterThan(20)
  expect(read(`${directory}/README.md`).match(/^\| \d+ .*$/gm)).toEqual(expected)
})

test.each(records)('the decision %s has its number and the sections of a record', (name) => {
  const text = read(`${directory}/${name}`)
  expect(text).toMatch(new RegExp(`^# ${Number(name.slice(0, 4))}\\. `))
  expect(text.match(/^## .*$/gm)).toEqual(['## Context', '## Decision', '## Alternatives', '## Consequences'])
})
