import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createClient } from '../src/index.ts'
import { stubFetch } from './stub-fetch.ts'

const fixtures = join(import.meta.dirname, 'fixtures')
const names = readdirSync(fixtures).map((name) => name.replace(/\.json$/, ''))
const textOf = (name: string) => readFileSync(join(fixtures, `${name}.json`), 'utf8')

function clientOf(name: string) {
  const { fetch } = stubFetch(
    () => new Response(textOf(name), { headers: { 'content-type': 'application/json' } }),
  )
  return createClient({ url: 'https://media.example.org', token: 'secret', fetch })
}

test.each(names)('%s is parsed completely, without its envelope', async (name) => {
  const recorded = JSON.parse(textOf(name))
  const bare = 'current_page' in recorded ? recorded : recorded.data
  const page = await clientOf(name).listPage(1)
  expect(page).toEqual(bare)
  expect(page.per_page).toBe(10)
})

test('there are recorded responses of every kind', () => {
  expect(names).toEqual([
    'laravel-11-past-end',
    'laravel-11-window',
    'laravel-12-window',
    'laravel-12-wrapped-v1',
    'seed-bare',
    'seed-empty',
    'seed-wrapped',
    'unknown-members',
  ])
})

test('L9 a gap in windowed links has a null url and no page', async () => {
  const { links } = await clientOf('laravel-12-window').listPage(1)
  expect(links.find(({ label }) => label === '...')).toEqual({ url: null, label: '...', active: false })
  expect(links.at(0)?.page).toBeNull()
  expect(links.at(1)?.page).toBe(1)
})

test('L5 an empty bucket has null for its positions', async () => {
  expect(await clientOf('seed-empty').listPage(1)).toMatchObject({ from: null, to: null, last_page: 1 })
})
