import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { root } from '../architecture/sources.ts'
import { upload } from '../harness/upload.ts'
import { type Block, blocksOf, shown } from './blocks.ts'
import { interpreters } from './interpreters.ts'
import { openStage, type Stage } from './run.ts'
import { stableJson } from './stable-json.ts'

const documents = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'packages/client/README.md',
  'packages/server/README.md',
  'packages/strip-metadata/README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
]

/** Their examples need programs of others, so test/clients runs them. */
const ofClients = ['docs/widgets.md', 'docs/generated-clients.md', 'docs/s3.md']

const isRun = ({ language, reason }: Block) => !shown.includes(language) && reason === null

/** Nine items: with the README's own three uploads, its listing shows the second page of twelve. */
async function fillFirstPage({ server }: Stage): Promise<void> {
  for (let item = 1; item <= 9; item++) await upload(server, `${item}`)
}

describe.each(documents.filter((path) => !ofClients.includes(path) && blocksOf(path).some(isRun)))(
  'the examples of %s',
  (path) => {
    let stage: Stage
    beforeAll(async () => {
      stage = await openStage()
      if (path === 'README.md') await fillFirstPage(stage)
    })
    afterAll(() => stage[Symbol.asyncDispose]())

    const blocks = blocksOf(path)
    for (const [index, block] of blocks.entries()) {
      const { language, line } = block
      if (!isRun(block)) continue
      test(`line ${line}, ${language}, runs`, async () => {
        const { stdout } = await stage.run(block)
        const next = blocks[index + 1]
        // A following block of JSON or text is its output, except for values that differ between runs.
        const { url } = stage.server
        if (next?.language === 'json') expect(stableJson(stdout, url)).toEqual(stableJson(next.code, url))
        if (next?.language === 'text') expect(stdout).toBe(next.code)
      })
    }
  },
)

test('docs/api.md has an example of every path of the OpenAPI document', () => {
  const codes = blocksOf('docs/api.md').map(({ code }) => code)
  const paths = Object.keys(JSON.parse(readFileSync(join(root, 'docs/openapi.json'), 'utf8')).paths)
  const missing = paths
    // Up to the first parameter, as the examples contain values.
    .filter((path) => !codes.some((code) => code.includes(`$URL${path.replace(/\{.*/, '')}`)))
  // Bytes are fetched by the URLs that the service returns.
  expect(missing).toEqual(['/media/{name}', '/media/{name}/{filename}'])
})

test('every code block of the documents names a language, which is run or listed as not run', () => {
  const known = [...shown, ...Object.keys(interpreters)]
  const unknown = documents.flatMap((path) =>
    blocksOf(path)
      .filter(({ language }) => !known.includes(language))
      .map(({ language, line }) => `${path}:${line} ${language}`),
  )
  expect(unknown).toEqual([])
})
