import { expect, test } from 'vitest'
import { read } from './sources.ts'
import { listedWalks, measureWalks, requestsPage, sources, withoutRoot } from './walks.ts'

const page = read(requestsPage)
const listed = listedWalks(page)

test('the page that follows requests lists the files whose code runs for them (npm run structure -- --write)', async () => {
  const walks = await measureWalks([...listed.keys()])
  expect(listed.size).toBe(5)
  for (const [title, walk] of walks) {
    const files = listed.get(title) ?? []
    const always = walk.files.map(withoutRoot)
    const ever = new Set([...walk.seen].map(withoutRoot))
    expect
      .soft(
        {
          missing: always.filter((file) => !files.includes(file)),
          superfluous: files.filter((file) => !ever.has(file)),
        },
        title,
      )
      .toEqual({ missing: [], superfluous: [] })
  }
})

test('each step of the page that follows requests names a file of its list, and a function of the file', () => {
  const sections = page.split(/^## /m).slice(1)
  const lists = [...listed.values()]
  const wrong = sections.flatMap((section, index) => {
    const files = lists[index] ?? []
    return [...section.matchAll(/^\d+\. `([^`]+)`, `([^`]+)`: /gm)].flatMap(
      ([step, file = '', name = '']) => {
        // A function, or a method of a class at the top level.
        const declaration = new RegExp(
          `\\b(?:function\\*?|const) ${name}\\b|^  (?:async )?[*#]?${name}[(<]`,
          'm',
        )
        return files.includes(file) && declaration.test(read(`${sources}/${file}`)) ? [] : step
      },
    )
  })
  expect(sections).toHaveLength(listed.size)
  expect([...page.matchAll(/^\d+\. /gm)].length).toBe(
    [...page.matchAll(/^\d+\. `[^`]+`, `[^`]+`: /gm)].length,
  )
  expect(wrong).toEqual([])
})
